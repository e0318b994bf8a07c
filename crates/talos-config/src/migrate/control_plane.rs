//! The parts of Kubernetes that run on control plane nodes.

use serde_json::{Value, json};

use super::facts::KUBERNETES;
use super::pem;
use super::work::{Role, Work};

const SERVER: &str = "KubeAPIServerConfig";
const AUTHENTICATION: &str = "KubeAuthenticationConfig";
const AUTHORIZER: &str = "KubeAuthorizerConfig";

pub(super) fn all(work: &mut Work<'_>) {
    if !work.target.has(14) {
        return;
    }
    aggregator(work);
    service_account(work);
    encryption(work);
    admission(work);
    authorizers(work);
    arguments(work);
    small(work);
    proxy_arguments(work);
}

fn aggregator(work: &mut Work<'_>) {
    let Some(field) = work.at(&["cluster", "aggregatorCA"]) else {
        return;
    };
    let cert = field.at(&["crt"]).and_then(|field| pem::of(work, &field));
    let key = field.at(&["key"]).and_then(|field| pem::of(work, &field));
    match (cert, key) {
        (Some(cert), Some(key)) => {
            let value = json!({ "cert": cert, "key": key });
            work.put(&field, "KubeAggregatorCAConfig", "", &["issuingCA"], value);
        }
        _ => work.refuse(
            &field,
            "has not both a certificate and a key, and a KubeAggregatorCAConfig needs both",
        ),
    }
}

/// Tokens name the endpoint of the cluster as their issuer.
fn service_account(work: &mut Work<'_>) {
    const KIND: &str = "KubeServiceAccountConfig";
    let Some(section) = work.at(&["cluster", "serviceAccount"]) else {
        return;
    };
    let Some(field) = section.at(&["key"]) else {
        return work.drop(&section, "it is empty");
    };
    let endpoint = work.root.at(&["cluster", "controlPlane", "endpoint"]);
    let Some(endpoint) = endpoint
        .and_then(|field| work.text(&field))
        .filter(|text| !text.is_empty())
    else {
        return work.refuse(
            &field,
            "stands without `cluster.controlPlane.endpoint`, which issues its tokens",
        );
    };
    match pem::of(work, &field) {
        Some(pem) => {
            work.put(&field, KIND, "", &["issuer", "privateKey"], pem.into());
            if work.has_draft(KIND, "") {
                work.imply(KIND, "", &["issuer", "issuerURL"], endpoint.into());
            }
        }
        None if work.is_taken(&field.path) => {}
        None => work.refuse(&field, "is empty"),
    }
}

/// Talos wrote the configuration of the API server with these names, and let it read what is not encrypted.
fn encryption(work: &mut Work<'_>) {
    const KIND: &str = "KubeEtcdEncryptionConfig";
    let mut providers: Vec<Value> = Vec::new();
    let mut moved = Vec::new();
    for (field, provider, name) in [
        ("secretboxEncryptionSecret", "secretbox", "key2"),
        ("aescbcEncryptionSecret", "aescbc", "key1"),
    ] {
        let Some(field) = work.at(&["cluster", field]) else {
            continue;
        };
        let Some(secret) = work.text(&field) else {
            continue;
        };
        if secret.is_empty() {
            work.drop(&field, "it is empty");
        } else if work.admits(&field, KIND) {
            providers.push(json!({ provider: { "keys": [{ "name": name, "secret": secret }] } }));
            moved.push(field);
        }
    }
    if providers.is_empty() {
        return;
    }
    providers.push(json!({ "identity": {} }));
    let resources = json!([{ "providers": providers, "resources": ["secrets"] }]);
    work.imply(KIND, "", &["config", "resources"], resources);
    for field in moved {
        work.moved(&field, KIND, "", &["config"]);
    }
}

fn admission(work: &mut Work<'_>) {
    const KIND: &str = "KubeAdmissionControlConfig";
    let Some(field) = work.at(&["cluster", "apiServer", "admissionControl"]) else {
        return;
    };
    if field.node.is_empty() {
        return work.drop(&field, "it is empty");
    }
    for plugin in work.list(&field) {
        let name = plugin
            .at(&["name"])
            .and_then(|field| work.text(&field))
            .unwrap_or_default();
        if name.is_empty() {
            work.refuse(&plugin, "has no `name`");
        } else if work.has_draft(KIND, &name) {
            work.refuse(&plugin, format!("another entry is for {name} too"));
        } else if work.admits(&plugin, KIND) {
            match plugin.at(&["configuration"]) {
                Some(below) => work.put(&below, KIND, &name, &["configuration"], below.value()),
                None => work.imply(KIND, &name, &["configuration"], json!({})),
            }
            if let Some(below) = plugin.at(&["name"]) {
                work.moved(&below, KIND, &name, &[]);
            }
        }
    }
}

/// The old form puts Node and RBAC first where they are not named.
fn authorizers(work: &mut Work<'_>) {
    let Some(field) = work.at(&["cluster", "apiServer", "authorizationConfig"]) else {
        return;
    };
    if field.node.is_empty() {
        return work.drop(&field, "it is empty");
    }
    let items = work.list(&field);
    let has = |kind: &str| {
        items
            .iter()
            .any(|item| item.node.get("type").and_then(|node| node.as_str()) == Some(kind))
    };
    let (node, rbac) = (has("Node"), has("RBAC"));
    if node != rbac {
        let missing = if node { "RBAC" } else { "Node" };
        return work.refuse(
            &field,
            format!(
                "leaves {missing} out, which Talos adds in the midst of it; name it here first"
            ),
        );
    }
    if !work.admits(&field, AUTHORIZER) {
        return;
    }
    if !node {
        default_authorizers(work);
    }
    for item in items {
        let name = item
            .at(&["name"])
            .and_then(|field| work.text(&field))
            .unwrap_or_default();
        let kind = item
            .at(&["type"])
            .and_then(|field| work.text(&field))
            .unwrap_or_default();
        if name.is_empty() || work.has_draft(AUTHORIZER, &name) {
            work.refuse(&item, "has no `name` of its own");
            continue;
        }
        work.draft(AUTHORIZER, &name);
        work.imply(AUTHORIZER, &name, &["type"], kind.into());
        for key in ["name", "type"] {
            if let Some(below) = item.at(&[key]) {
                work.moved(
                    &below,
                    AUTHORIZER,
                    &name,
                    if key == "type" { &["type"] } else { &[] },
                );
            }
        }
        if let Some(below) = item.at(&["webhook"]) {
            work.put(&below, AUTHORIZER, &name, &["webhook"], below.value());
        }
    }
}

fn default_authorizers(work: &mut Work<'_>) {
    for (name, kind) in [("node", "Node"), ("rbac", "RBAC")] {
        work.imply(AUTHORIZER, name, &["type"], kind.into());
    }
}

/// Arguments of the API server that have documents of their own.
fn arguments(work: &mut Work<'_>) {
    let Some(section) = work.at(&["cluster", "apiServer", "extraArgs"]) else {
        return;
    };
    if work.role != Role::ControlPlane {
        return;
    }
    let mut kept = work.as_written(&section);
    let mut gone = false;
    for (key, field) in work.map(&section) {
        let reason = match key.as_str() {
            "anonymous-auth" => {
                let on = match field.node.value() {
                    Value::Bool(on) => Some(on),
                    Value::String(text) => text.parse().ok(),
                    _ => None,
                };
                match on {
                    Some(on) => {
                        work.draft(AUTHENTICATION, "");
                        work.imply(AUTHENTICATION, "", &["configuration"], anonymous(on));
                        work.moved(
                            &field,
                            AUTHENTICATION,
                            "",
                            &["configuration", "anonymous", "enabled"],
                        );
                        gone = true;
                        if let Value::Object(kept) = &mut kept {
                            kept.shift_remove(&key);
                        }
                        continue;
                    }
                    None => "is neither true nor false",
                }
            }
            "authorization-mode" => {
                let modes = field.node.as_str().unwrap_or("?");
                if modes
                    .split(',')
                    .all(|mode| matches!(mode.trim(), "Node" | "RBAC"))
                {
                    work.drop(&field, "it is the default");
                    gone = true;
                    if let Value::Object(kept) = &mut kept {
                        kept.shift_remove(&key);
                    }
                    continue;
                }
                "names modes that belong into KubeAuthorizerConfig documents"
            }
            key if key.starts_with("oidc-") => {
                "belongs into a KubeAuthenticationConfig, whose `jwt` has to be written by hand"
            }
            key if key.starts_with("authentication-config") => {
                "belongs into a KubeAuthenticationConfig, whose content is in a file here"
            }
            key if key.starts_with("authorization-") => {
                "belongs into KubeAuthorizerConfig documents, which have to be written by hand"
            }
            _ => continue,
        };
        work.refuse(&field, reason);
    }
    if !gone {
        return;
    }
    // The rest goes as a whole.
    match kept.as_object().is_some_and(|kept| !kept.is_empty()) {
        true => work.put(&section, SERVER, "", &["extraArgs"], kept),
        false => {
            work.draft(SERVER, "");
            work.taken.push(section.path);
        }
    }
}

fn anonymous(enabled: bool) -> Value {
    json!({ "anonymous": { "enabled": enabled } })
}

/// Settings without effect or without equal.
fn small(work: &mut Work<'_>) {
    if let Some(field) = work.at(&["cluster", "apiServer", "disablePodSecurityPolicy"]) {
        work.drop(&field, "it has had no effect since Kubernetes 1.25");
    }
    for (part, kind) in [
        ("apiServer", SERVER),
        ("controllerManager", "KubeControllerManagerConfig"),
        ("scheduler", "KubeSchedulerConfig"),
    ] {
        let Some(field) = work.at(&["cluster", part, "extraVolumes"]) else {
            continue;
        };
        if field.node.is_empty() {
            work.drop(&field, "it is empty");
        } else if work.admits(&field, kind) {
            work.refuse(&field, format!("a {kind} mounts no folders of the host"));
        }
    }
}

/// With a document kube-proxy reads a file, beside which it ignores arguments that the file could have.
fn proxy_arguments(work: &mut Work<'_>) {
    const KIND: &str = "KubeProxyConfig";
    const FIELDS: [(&str, &[&str]); 6] = [
        ("metrics-bind-address", &["metricsBindAddress"]),
        ("bind-address", &["bindAddress"]),
        ("healthz-bind-address", &["healthzBindAddress"]),
        ("nodeport-addresses", &["nodePortAddresses"]),
        ("ipvs-strict-arp", &["ipvs", "strictARP"]),
        ("ipvs-scheduler", &["ipvs", "scheduler"]),
    ];
    let Some(section) = work.at(&["cluster", "proxy", "extraArgs"]) else {
        return;
    };
    if section.node.is_empty() {
        return work.drop(&section, "it is empty");
    }
    if !work.admits(&section, KIND) {
        return;
    }
    for (key, field) in work.map(&section) {
        let Some((_, to)) = FIELDS.iter().find(|(name, _)| *name == key) else {
            work.refuse(&field, "is an argument that kube-proxy ignores beside a file; write it into `config` of a KubeProxyConfig");
            continue;
        };
        let Some(text) = work.text(&field) else {
            continue;
        };
        let value = match (key.as_str(), text.as_str()) {
            ("nodeport-addresses", text) => text.split(',').map(Value::from).collect(),
            ("ipvs-strict-arp", "true" | "false") => Value::Bool(text == "true"),
            ("ipvs-strict-arp", _) => {
                work.refuse(&field, "is neither true nor false");
                continue;
            }
            (_, text) => text.into(),
        };
        work.put(&field, KIND, "", &[&["config"], *to].concat(), value);
    }
}

/// Writes out the images that documents need, and what else the old form of the API server implied.
pub(super) fn images(work: &mut Work<'_>) {
    for (kind, section, image) in [
        (SERVER, "cluster.apiServer", "kube-apiserver"),
        (
            "KubeControllerManagerConfig",
            "cluster.controllerManager",
            "kube-controller-manager",
        ),
        ("KubeSchedulerConfig", "cluster.scheduler", "kube-scheduler"),
        ("KubeProxyConfig", "cluster.proxy", "kube-proxy"),
    ] {
        let Some(draft) = work.drafts.iter().find(|draft| draft.kind == kind) else {
            continue;
        };
        let off = draft.fields.get("enabled") == Some(&Value::Bool(false));
        if off || draft.fields.contains_key("image") || work.existing(kind, "").is_some() {
            continue;
        }
        let image = format!("registry.k8s.io/{image}:v{KUBERNETES}");
        work.imply(kind, "", &["image"], image.into());
        work.notes.push(format!(
            "{section} names no image, so the one of Talos {} is written out: Kubernetes {KUBERNETES}",
            work.target
        ));
    }
    if !work.has_draft(SERVER, "") {
        return;
    }
    work.imply(SERVER, "", &["startupProbes"], false.into());
    access(work);
}

/// A document for the API server takes these documents as they are; without one Talos adds what it has always had.
fn access(work: &mut Work<'_>) {
    let section = work
        .draft(SERVER, "")
        .copies
        .first()
        .map(|(from, _)| from.clone());
    let section = section.unwrap_or_default();
    match work.existing(AUTHENTICATION, "") {
        Some((index, _)) => {
            let line = work.stream.line(index, &[]).unwrap_or(1);
            let reason = format!(
                "with a {SERVER} the {AUTHENTICATION} at line {line} would take effect, which it does not now"
            );
            work.refuse_at(&section, reason);
        }
        None => work.imply(AUTHENTICATION, "", &["configuration"], anonymous(false)),
    }
    let kinds: Vec<&str> = work
        .stream
        .roots()
        .filter(|node| node.get("kind").and_then(|kind| kind.as_str()) == Some(AUTHORIZER))
        .filter_map(|node| node.get("type")?.as_str())
        .collect();
    if kinds.is_empty() {
        if !work.drafts.iter().any(|draft| draft.kind == AUTHORIZER) {
            default_authorizers(work);
        }
    } else if !kinds.contains(&"Node") || !kinds.contains(&"RBAC") {
        let reason = format!(
            "with a {SERVER} Talos does not add Node and RBAC to the {AUTHORIZER} documents any more; add them first"
        );
        work.refuse_at(&section, reason);
    }
}
