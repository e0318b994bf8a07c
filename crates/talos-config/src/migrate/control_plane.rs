//! The parts of Kubernetes that run on control plane nodes.

use serde_json::{Value, json};

use super::api_server::{self, SERVER};
use super::facts::KUBERNETES;
use super::pem;
use super::work::Work;

pub(super) fn all(work: &mut Work<'_>) {
    if !work.target.has(14) {
        return;
    }
    aggregator(work);
    service_account(work);
    encryption(work);
    api_server::all(work);
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
    api_server::access(work);
}
