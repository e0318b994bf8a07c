//! The documents about the machine itself that follow the main one.

use serde_json::{Value, json};

use super::main_document::Fields;
use super::{Params, Secrets};

/// The discovery service that Talos uses unless told otherwise.
const DISCOVERY: &str = "https://discovery.talos.dev/";

/// Starts a document of a kind; the fields of `content` follow.
pub(super) fn document(kind: &str, content: &Value) -> Value {
    let mut fields = Fields::default();
    fields.put("apiVersion", "v1alpha1");
    fields.put("kind", kind);
    for (key, value) in content.as_object().into_iter().flatten() {
        fields.put(key, value.clone());
    }
    fields.into()
}

/// Makes the documents that control planes and workers have alike.
pub(super) fn general(params: &Params, secrets: &Secrets) -> Vec<Value> {
    let contract = params.release.contract();
    let mut made = Vec::new();
    if contract.has_kubernetes_documents() {
        made.extend(machine(params, secrets));
    }
    if contract.has_network_documents() {
        made.extend(params.registry_mirrors.iter().map(|(host, urls)| {
            let endpoints: Vec<Value> = urls.iter().map(|url| json!({"url": url})).collect();
            document(
                "RegistryMirrorConfig",
                &json!({"name": host, "endpoints": endpoints}),
            )
        }));
        made.push(document("HostnameConfig", &json!({"auto": "stable"})));
    }
    if contract.has_kube_span_document() && params.kube_span {
        made.push(document("KubeSpanConfig", &json!({"enabled": true})));
    }
    made
}

/// Makes the documents that took over from the main one in Talos 1.14.
fn machine(params: &Params, secrets: &Secrets) -> Vec<Value> {
    let mut made = Vec::new();
    if params.discovery {
        let service = json!({"name": "default", "endpoint": DISCOVERY});
        made.push(document("DiscoveryServiceConfig", &service));
    }
    made.push(document(
        "DiscoveryIdentityConfig",
        &json!({"clusterID": secrets.cluster_id, "clusterSecret": secrets.cluster_secret}),
    ));
    if !params.install_disk.is_empty() {
        // A string of CEL is written like one of JSON.
        let disk = Value::from(params.install_disk.as_str());
        made.push(document(
            "UnattendedInstallConfig",
            &json!({
                "installer": {"image": params.install_image},
                "provisioning": {
                    "diskSelector": {"match": format!("disk.dev_path == {disk}")},
                    "wipe": false,
                },
            }),
        ));
    }
    let rest = [
        (
            "ResolverConfig",
            json!({"hostDNS": {"enabled": true, "forwardKubeDNSToHost": true}}),
        ),
        (
            "VolumeConfig",
            json!({"name": "EPHEMERAL", "mount": {"secure": true}}),
        ),
        ("FilesystemTrimConfig", json!({"interval": "168h0m0s"})),
        ("SecurityProfileConfig", json!({"workloadIsolation": true})),
    ];
    made.extend(rest.iter().map(|(kind, content)| document(kind, content)));
    made
}
