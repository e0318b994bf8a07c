//! The cluster as every node knows it: identity, endpoint, networks, authorities and manifests.

use serde_json::{Map, Value, json};
use url::Url;

use super::links::prefix;
use super::machine::is_subdomain;
use super::pem;
use super::work::{Field, Role, Work};

pub(super) fn all(work: &mut Work<'_>) {
    if !work.target.has(14) {
        return;
    }
    identity(work);
    endpoint(work);
    network(work);
    authority(work);
    discovery(work);
    manifests(work);
}

/// Returns a field unless it is an empty text.
fn filled<'a>(work: &Work<'a>, keys: &[&str]) -> Option<Field<'a>> {
    work.at(keys)
        .filter(|field| field.node.as_str() != Some(""))
}

/// A document has both parts of an identity.
fn identity(work: &mut Work<'_>) {
    let id = filled(work, &["cluster", "id"]);
    let secret = filled(work, &["cluster", "secret"]);
    match (id, secret) {
        (Some(field), None) => {
            work.refuse(
                &field,
                "stands without `cluster.secret`, and a DiscoveryIdentityConfig needs both",
            );
        }
        (None, Some(field)) => {
            work.refuse(
                &field,
                "stands without `cluster.id`, and a DiscoveryIdentityConfig needs both",
            );
        }
        _ => {}
    }
}

fn endpoint(work: &mut Work<'_>) {
    let name = filled(work, &["cluster", "clusterName"]);
    let endpoint = filled(work, &["cluster", "controlPlane", "endpoint"]);
    let existing = work.existing("KubeClusterConfig", "").map(|(_, node)| node);
    let has = |key| existing.is_some_and(|node| node.contains(key));
    match (name, endpoint) {
        (Some(field), None) if !has("endpoint") => {
            work.refuse(&field, "stands without `cluster.controlPlane.endpoint`, and a KubeClusterConfig needs both");
        }
        (None, Some(field)) if !has("clusterName") => {
            work.refuse(
                &field,
                "stands without `cluster.clusterName`, and a KubeClusterConfig needs both",
            );
        }
        _ => {}
    }
    if let Some(field) = work.at(&["cluster", "controlPlane", "localAPIServerPort"])
        && field.node.means(&json!(0))
    {
        work.drop(&field, "it is the default");
    }
}

fn network(work: &mut Work<'_>) {
    const KIND: &str = "KubeNetworkConfig";
    let Some(section) = work.at(&["cluster", "network"]) else {
        return;
    };
    match section
        .at(&["dnsDomain"])
        .filter(|field| field.node.as_str() != Some(""))
    {
        Some(field) => work.copy(&field, KIND, "", &["dnsDomain"]),
        None => work.imply(KIND, "", &["dnsDomain"], "cluster.local".into()),
    }
    for (key, default) in [
        ("podSubnets", "10.244.0.0/16"),
        ("serviceSubnets", "10.96.0.0/12"),
    ] {
        let Some(field) = section.at(&[key]).filter(|field| !field.node.is_empty()) else {
            work.imply(KIND, "", &[key], json!([default]));
            continue;
        };
        for item in work.list(&field) {
            if work.text(&item).is_some_and(|text| prefix(&text).is_none()) {
                work.refuse(&item, "is no subnet");
            }
        }
        work.copy(&field, KIND, "", &[key]);
    }
    for key in ["dnsDomain", "podSubnets", "serviceSubnets"] {
        if let Some(field) = section
            .at(&[key])
            .filter(|field| !work.is_taken(&field.path))
        {
            work.drop(&field, "it is empty");
        }
    }
    cni(work, &section);
}

/// Flannel has a document, and a network of its own manifests has those.
fn cni(work: &mut Work<'_>, section: &Field<'_>) {
    const KIND: &str = "KubeFlannelCNIConfig";
    let cni = section.at(&["cni"]);
    let named = cni.as_ref().and_then(|cni| cni.at(&["name"]));
    let name = match &named {
        Some(field) => work.text(field).unwrap_or_default(),
        None if cni.is_some() => String::new(),
        None => "flannel".to_owned(),
    };
    if !["flannel", "custom", "none"].contains(&name.as_str()) {
        let field = cni.as_ref().unwrap_or(section);
        return work.refuse(field, "names none of flannel, custom and none");
    }
    if name != "flannel" {
        if let Some(field) = named {
            work.drop(&field, "it is what no KubeFlannelCNIConfig means");
        }
        if let Some(field) = cni.and_then(|cni| cni.at(&["flannel"])) {
            work.drop(&field, "flannel is not used");
        }
        return;
    }
    let source = named.as_ref().or(cni.as_ref()).unwrap_or(section);
    match work.role {
        Role::ControlPlane => {}
        Role::Worker => {
            if let Some(cni) = cni {
                work.drop(&cni, "it has no effect on a worker");
            }
            return;
        }
        Role::Unknown => {
            work.admits(source, KIND);
            return;
        }
    }
    work.imply(KIND, "", &["backendType"], "vxlan".into());
    work.imply(KIND, "", &["backendPort"], 4789.into());
    if let Some(field) = named {
        work.moved(&field, KIND, "", &[]);
    }
    for key in ["extraArgs", "kubeNetworkPoliciesEnabled"] {
        let field = cni.as_ref().and_then(|cni| cni.at(&["flannel", key]));
        let Some(field) = field else { continue };
        if key == "extraArgs" {
            work.copy(&field, KIND, "", &[key]);
        } else if let Some(flag) = work.flag(&field) {
            work.put(&field, KIND, "", &[key], flag.into());
        }
    }
}

/// Control plane nodes issue by the authority, workers accept it.
fn authority(work: &mut Work<'_>) {
    const KIND: &str = "KubeAPIServerCAConfig";
    let mut accepted: Vec<Value> = Vec::new();
    if let Some(ca) = work.at(&["cluster", "ca"]) {
        let certificate = ca.at(&["crt"]).and_then(|field| pem::of(work, &field));
        let key = ca.at(&["key"]).and_then(|field| pem::of(work, &field));
        match (certificate, key) {
            (Some(_), Some(_)) if work.role == Role::Worker => {
                work.refuse(&ca, "has a key, which only control plane nodes may have");
            }
            (Some(cert), Some(key)) => {
                work.put(
                    &ca,
                    KIND,
                    "",
                    &["issuingCA"],
                    json!({ "cert": cert, "key": key }),
                );
            }
            (Some(cert), None) => {
                accepted.push(cert.into());
                if !has_refused(work, &ca) {
                    work.moved(&ca, KIND, "", &["acceptedCAs"]);
                }
            }
            (None, Some(_)) => work.refuse(&ca, "has a key without its certificate"),
            (None, None) if !has_refused(work, &ca) => work.drop(&ca, "it is empty"),
            (None, None) => {}
        }
    }
    if let Some(field) = work.at(&["cluster", "acceptedCAs"]) {
        for item in work.list(&field) {
            match item.at(&["crt"]).and_then(|field| pem::of(work, &field)) {
                Some(pem) => accepted.push(pem.into()),
                None if has_refused(work, &item) => {}
                None => work.refuse(&item, "has no `crt`"),
            }
        }
        match accepted.is_empty() {
            true => work.drop(&field, "it is empty"),
            false => work.moved(&field, KIND, "", &["acceptedCAs"]),
        }
    }
    if !accepted.is_empty() {
        work.imply(KIND, "", &["acceptedCAs"], accepted.into());
    }
}

fn has_refused(work: &Work<'_>, field: &Field<'_>) -> bool {
    work.taken.reach_into(&field.path)
}

/// The service registry has documents; the one in Kubernetes itself has none.
fn discovery(work: &mut Work<'_>) {
    const DEFAULT: &str = "https://discovery.talos.dev/";
    const KIND: &str = "DiscoveryServiceConfig";
    let Some(section) = work.at(&["cluster", "discovery"]) else {
        return;
    };
    let enabled = section.at(&["enabled"]);
    let on = enabled
        .as_ref()
        .is_some_and(|field| work.flag(field) == Some(true));
    if enabled
        .as_ref()
        .is_some_and(|field| work.is_taken(&field.path))
    {
        return;
    }
    if !on {
        return work.drop(&section, "it is switched off");
    }
    let disabled = |work: &mut Work<'_>, registry: &str| {
        let field = section.at(&["registries", registry, "disabled"]);
        field.is_some_and(|field| work.flag(&field) == Some(true))
    };
    if !disabled(work, "kubernetes") {
        let place = section
            .at(&["registries", "kubernetes"])
            .unwrap_or_else(|| section.clone());
        return work.refuse(
            &place,
            "no document switches on discovery by Kubernetes; set registries.kubernetes.disabled to true first",
        );
    }
    if disabled(work, "service") {
        return work.drop(&section, "no registry is switched on");
    }
    let given = section.at(&["registries", "service", "endpoint"]);
    let endpoint = given
        .as_ref()
        .and_then(|field| work.text(field))
        .filter(|text| !text.is_empty());
    if let Some(text) = &endpoint {
        let known = Url::parse(text)
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https" | "grpc") && url.has_host());
        if !known {
            return work.refuse(
                given.as_ref().unwrap_or(&section),
                "is no http, https or grpc URL with a host",
            );
        }
    }
    let value = Value::from(endpoint.unwrap_or_else(|| DEFAULT.to_owned()));
    match given {
        Some(field) => work.put(&field, KIND, "default", &["endpoint"], value),
        None => work.imply(KIND, "default", &["endpoint"], value),
    }
    work.moved(&section, KIND, "default", &[]);
}

fn manifests(work: &mut Work<'_>) {
    let mut headers = None;
    if let Some(field) = work.at(&["cluster", "extraManifestHeaders"]) {
        headers = Some(field).filter(|field| !field.node.is_empty());
    }
    let lists: [&[&str]; 2] = [
        &["cluster", "extraManifests"],
        &["cluster", "network", "cni", "urls"],
    ];
    let mut named: Option<String> = None;
    for keys in lists {
        let Some(field) = work.at(keys) else { continue };
        if field.node.is_empty() {
            work.drop(&field, "it is empty");
            continue;
        }
        for item in work.list(&field) {
            let Some(text) = work.text(&item) else {
                continue;
            };
            named = external(work, &item, &text, headers.as_ref()).or(named);
        }
    }
    if let Some(field) = work.at(&["cluster", "extraManifestHeaders"]) {
        match named {
            Some(name) => work.moved(&field, "KubeExternalManifestConfig", &name, &["headers"]),
            None => work.drop(&field, "there are no manifests to fetch"),
        }
    }
    const INLINE: &str = "KubeInlineManifestConfig";
    let Some(field) = work.at(&["cluster", "inlineManifests"]) else {
        return;
    };
    if field.node.is_empty() {
        return work.drop(&field, "it is empty");
    }
    for item in work.list(&field) {
        let name = item
            .at(&["name"])
            .and_then(|field| work.text(&field))
            .unwrap_or_default();
        if !is_subdomain(&name) {
            work.refuse(
                &item,
                format!("has the name {name:?}, which a KubeInlineManifestConfig cannot have"),
            );
        } else if work.has_draft(INLINE, &name) {
            work.refuse(&item, format!("another manifest is {name} too"));
        } else {
            match item.at(&["contents"]) {
                Some(contents) => work.copy(&contents, INLINE, &name, &["manifest"]),
                None => work.imply(INLINE, &name, &["manifest"], "".into()),
            }
            if let Some(below) = item.at(&["name"]) {
                work.moved(&below, INLINE, &name, &[]);
            }
        }
    }
}

/// Makes the document for a manifest that is fetched, named by the end of its URL.
fn external(
    work: &mut Work<'_>,
    item: &Field<'_>,
    text: &str,
    headers: Option<&Field<'_>>,
) -> Option<String> {
    const KIND: &str = "KubeExternalManifestConfig";
    let url = Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some(url) = url else {
        work.refuse(
            item,
            "is no http or https URL, which a KubeExternalManifestConfig needs",
        );
        return None;
    };
    let last = url.path_segments().and_then(|mut parts| parts.next_back());
    let stem = last
        .map(|last| last.trim_end_matches(".yaml").trim_end_matches(".yml"))
        .unwrap_or_default();
    let clean = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let stem: String = stem.chars().map(clean).collect();
    let stem = match stem.trim_matches('-') {
        "" => "manifest",
        stem => stem,
    };
    let stem: String = stem.chars().take(60).collect();
    let free = |work: &Work<'_>, name: &str| {
        !work.has_draft(KIND, name) && work.existing(KIND, name).is_none()
    };
    let used = work.stems.get(&stem).copied().unwrap_or_default();
    let (number, name) = (used + 1..)
        .map(|number| match number {
            1 => (number, stem.clone()),
            number => (number, format!("{stem}-{number}")),
        })
        .find(|(_, name)| free(work, name))?;
    work.stems.insert(stem, number);
    work.put(item, KIND, &name, &["url"], text.into());
    if let Some(headers) = headers {
        let value: Map<String, Value> = headers
            .entries()
            .into_iter()
            .filter_map(|(key, field)| Some((key, Value::from(work.text(&field)?))))
            .collect();
        work.imply(KIND, &name, &["headers"], value.into());
    }
    Some(name)
}
