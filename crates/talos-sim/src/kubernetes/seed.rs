//! The objects of a cluster that has been up for a while.

use serde_json::{Value, json};

use super::Kubernetes;
use super::objects::{random_uid, seconds, suffix};
use super::pods::{Container, mirror, report};
use super::talos::{CONTROL_PLANE, K8S, MANIFESTS, STATIC_PODS, Settings, Template, fill, tag};
use super::verbs::{PatchKind, Write, key};
use super::workloads::place;
use crate::node::NodeState;
use crate::options::TalosVersion;
use crate::shared::Shared;

/// ConfigMap in `kube-system` that lists what Talos manages.
pub(crate) const INVENTORY: &str = "talos-bootstrap-manifests-inventory";
/// Annotation that says which inventory an object belongs to.
const OWNER: &str = "config.k8s.io/owning-inventory";
/// Name under which Talos applies manifests.
const MANAGER: &str = "talos";

static NODE: Template = Template::new(|| {
    serde_saphyr::from_str(include_str!("../../data/kubernetes-node.yaml")).unwrap_or_default()
});

/// Creates what every cluster has: namespaces, the API's service, leases, roles, certificates.
pub(crate) fn basics(shared: &Shared, settings: &Settings) {
    let kubernetes = &shared.kubernetes;
    let store = |object: Value| kubernetes.store(object, shared.now());
    let now = shared.now();
    let trust = shared.current_trust();
    let aggregator = trust.aggregator.as_ref();
    let aggregator = aggregator.map(|aggregator| aggregator.certificate().pem());
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        store(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }));
        store(config_map(
            name,
            "kube-root-ca.crt",
            json!({
                "ca.crt": trust.kubernetes.all_pem(),
            }),
        ));
        let account = json!({ "name": "default", "namespace": name });
        store(json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": account }));
    }
    store(config_map(
        "kube-system",
        "extension-apiserver-authentication",
        json!({
            "client-ca-file": trust.kubernetes.all_pem(),
            "requestheader-allowed-names": "[\"front-proxy-client\"]",
            "requestheader-client-ca-file": aggregator,
            "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
            "requestheader-group-headers": "[\"X-Remote-Group\"]",
            "requestheader-username-headers": "[\"X-Remote-User\"]",
        }),
    ));
    let since = now.strftime("%Y-%m-%d").to_string();
    let name = "kube-apiserver-legacy-service-account-token-tracking";
    store(config_map("kube-system", name, json!({ "since": since })));
    store(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": {
            "clusterIP": settings.service_address,
            "ports": [{ "name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443 }],
        },
    }));
    for (name, rules) in [
        (
            "cluster-admin",
            json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }]),
        ),
        (
            "system:node-proxier",
            json!([{
                "apiGroups": [""],
                "resources": ["endpoints", "nodes", "services"],
                "verbs": ["list", "watch"],
            }]),
        ),
        (
            "system:node-bootstrapper",
            json!([{
                "apiGroups": ["certificates.k8s.io"],
                "resources": ["certificatesigningrequests"],
                "verbs": ["create", "get", "list", "watch"],
            }]),
        ),
    ] {
        store(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {
                "name": name,
                "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" },
                "annotations": { "rbac.authorization.kubernetes.io/autoupdate": "true" },
            },
            "rules": rules,
        }));
    }
    let holder = shared
        .control_planes()
        .next()
        .map(|node| node.name.clone())
        .unwrap_or_default();
    for name in ["kube-controller-manager", "kube-scheduler"] {
        let holder = format!("{holder}_{}", random_uid());
        store(lease(shared, "kube-system", name, &holder, 15));
    }
}

/// Shows in the cluster which authorities a kube-apiserver that has just started and its controllers work with.
pub(crate) fn publish_authorities(shared: &Shared, node: &NodeState) {
    let kubernetes = &shared.kubernetes;
    let authorities = node.trust().kubernetes.all_pem();
    for map in kubernetes.all("v1", "ConfigMap") {
        let key = match map["metadata"]["name"].as_str() {
            Some("kube-root-ca.crt") => "ca.crt",
            Some("extension-apiserver-authentication") => "client-ca-file",
            _ => continue,
        };
        if map["data"][key] != *authorities {
            kubernetes.change(&map, shared.now(), |map| {
                map["data"][key] = json!(authorities);
            });
        }
    }
}

/// Creates a machine's Node object and its lease.
pub(crate) fn node(shared: &Shared, node: &NodeState, settings: &Settings) {
    let kubernetes = &shared.kubernetes;
    let now = seconds(shared.now());
    let identity = random_uid().replace('-', "");
    let marks = [
        ("name", node.name.as_str()),
        ("address", &node.address.to_string()),
        (
            "kubelet-version",
            &format!("v{}", tag(&settings.kubelet_image)),
        ),
        ("talos-version", shared.options.talos_version.tag()),
        (
            "pod-subnet",
            &format!(
                "10.{}.{}.0/24",
                244 + node.index / 256 % 8,
                node.index % 256
            ),
        ),
        ("machine-id", &identity),
        ("boot-id", &random_uid()),
        ("now", &now),
    ];
    let mut object = fill(NODE.value(), &marks);
    if node.is_control_plane() {
        let labels = &mut object["metadata"]["labels"];
        labels["node-role.kubernetes.io/control-plane"] = json!("");
        labels["node.kubernetes.io/exclude-from-external-load-balancers"] = json!("");
        let annotations = &mut object["metadata"]["annotations"];
        annotations["talos.dev/owned-labels"] = json!(
            "[\"node-role.kubernetes.io/control-plane\",\"node.kubernetes.io/exclude-from-external-load-balancers\"]"
        );
        annotations["talos.dev/owned-taints"] =
            json!("[\"node-role.kubernetes.io/control-plane\"]");
        object["spec"]["taints"] =
            json!([{ "effect": "NoSchedule", "key": "node-role.kubernetes.io/control-plane" }]);
    }
    kubernetes.store(object, shared.now());
    kubernetes.store(
        lease(shared, "kube-node-lease", &node.name, &node.name, 40),
        shared.now(),
    );
    if node.is_control_plane() {
        let name = format!("apiserver-{}", suffix(26));
        let mut lease = lease(
            shared,
            "kube-system",
            &name,
            &format!("{name}_{}", random_uid()),
            3600,
        );
        lease["metadata"]["labels"] = json!({
            "apiserver.kubernetes.io/identity": "kube-apiserver",
            "kubernetes.io/hostname": node.name,
        });
        kubernetes.store(lease, shared.now());
    }
}

/// Applies the manifests of a control plane, as its node did when the cluster was bootstrapped.
pub(crate) fn manifests(shared: &Shared, node: &NodeState) {
    let kubernetes = &shared.kubernetes;
    // Before Talos 1.13 manifests had no owner and no inventory.
    let owned = shared.options.talos_version >= TalosVersion::V1_13_9;
    let write = Write {
        objects: &kubernetes.objects,
        now: shared.now(),
        dry_run: false,
        manager: MANAGER,
        status: false,
    };
    let mut inventory = json!({});
    for resource in node.store.list(CONTROL_PLANE, MANIFESTS) {
        for object in resource.spec.value().as_array().into_iter().flatten() {
            let mut object = object.clone();
            if owned {
                object["metadata"]["annotations"][OWNER] = json!(INVENTORY);
            }
            inventory[inventory_key(&object)] = json!("");
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let kind = kubernetes
                .catalog
                .by_kind(&text(&object["apiVersion"]), &text(&object["kind"]));
            let Some(kind) = kind else { continue };
            let metadata = &object["metadata"];
            let key = key(
                &kind,
                &text(&metadata["namespace"]),
                &text(&metadata["name"]),
            );
            // Built-in manifests are valid, so this cannot be refused.
            if let Ok(applied) = write.patch(&key, PatchKind::Apply { force: true }, &object) {
                kubernetes.notice(&applied);
            }
        }
    }
    if owned {
        kubernetes.store(
            config_map("kube-system", INVENTORY, inventory),
            shared.now(),
        );
    }
}

/// Starts the static pods of a control plane as they are rendered.
pub(crate) fn mirror_pods(shared: &Shared, node: &NodeState) {
    let kubernetes = &shared.kubernetes;
    let Some(object) = kubernetes.node(&node.name) else {
        return;
    };
    let place = place(&object);
    for resource in node.store.list(K8S, STATIC_PODS) {
        let mut pod = mirror(resource.spec.value(), &place, shared.now());
        report(
            &mut pod,
            &place,
            &Container::Running { ready: true },
            shared.now(),
        );
        let pod = kubernetes.store(pod, shared.now());
        super::kubelet::report_static_pod(shared, node, &pod);
    }
}

/// Returns the key of an object in the inventory: namespace, name, group and kind.
fn inventory_key(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&object["apiVersion"]);
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let kind = text(&object["kind"]);
    let mut name = text(&object["metadata"]["name"]);
    if group == "rbac.authorization.k8s.io" {
        name = name.replace(':', "__");
    }
    format!(
        "{}_{name}_{group}_{kind}",
        text(&object["metadata"]["namespace"])
    )
}

fn config_map(namespace: &str, name: &str, data: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": namespace },
        "data": data,
    })
}

fn lease(shared: &Shared, namespace: &str, name: &str, holder: &str, duration: u64) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": name, "namespace": namespace },
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": duration,
            "renewTime": shared.now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
        },
    })
}

impl Kubernetes {
    /// Returns a Node object.
    pub(crate) fn node(&self, name: &str) -> Option<std::sync::Arc<Value>> {
        let kind = self.catalog.by_kind("v1", "Node")?;
        self.objects.get(&key(&kind, "", name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inventory_keys_are_those_of_a_real_cluster() {
        for (version, kind, namespace, name, expected) in [
            (
                "rbac.authorization.k8s.io/v1",
                "ClusterRole",
                "",
                "system:coredns",
                "_system__coredns_rbac.authorization.k8s.io_ClusterRole",
            ),
            (
                "v1",
                "ConfigMap",
                "kube-system",
                "coredns",
                "kube-system_coredns__ConfigMap",
            ),
            (
                "apps/v1",
                "DaemonSet",
                "kube-system",
                "kube-proxy",
                "kube-system_kube-proxy_apps_DaemonSet",
            ),
        ] {
            let object = json!({
                "apiVersion": version,
                "kind": kind,
                "metadata": { "name": name, "namespace": namespace },
            });
            assert_eq!(inventory_key(&object), expected);
        }
    }
}
