//! Resources that follow from a machine configuration: component configs, static pods, manifests, kubelet.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::manifests::{bootstrap_config, manifests};
use super::settings::{Component, Settings};
use super::static_pods::StaticPod;
use super::template::{Template, fill};
use super::{CONTROL_PLANE, K8S, MANIFESTS, STATIC_PODS, put};
use crate::node::NodeState;
use crate::options::TalosVersion;
use crate::shared::Shared;

const ADMISSION: &str = "AdmissionControlConfigs.kubernetes.talos.dev";
const AUDIT_POLICY: &str = "AuditPolicyConfigs.kubernetes.talos.dev";
const AUTHORIZATION: &str = "AuthorizationConfigs.kubernetes.talos.dev";
const CONFIG_STATUSES: &str = "ConfigStatuses.kubernetes.talos.dev";

static KUBELET: Template = Template::new(|| {
    serde_saphyr::from_str(include_str!("../../../data/kubernetes-kubelet.yaml"))
        .unwrap_or_default()
});

/// Writes component configs and static pods of a control plane, in the order of a real machine.
///
/// `pause` lies between the configs and the static pods. Resources whose content stays the same
/// keep their versions, so that only what changed restarts.
pub(crate) async fn render(
    shared: &Shared,
    node: &NodeState,
    settings: &Settings,
    pause: Duration,
) {
    let mut changed = Vec::new();
    for component in Component::ALL {
        let (kind, owner) = config_type(component);
        let id = (CONTROL_PLANE, kind, component.name());
        let before = version(node, id);
        let written = put(shared, node, id, owner, config(component, settings));
        if written.metadata.version != before {
            changed.push(component);
        }
        if shared.options.talos_version >= TalosVersion::V1_14 {
            let id = (CONTROL_PLANE, kind, final_id(component));
            put(shared, node, id, owner, config(component, settings));
        }
    }
    let authorization = json!({
        "image": settings.image(Component::ApiServer),
        "config": [
            { "type": "Node", "name": "node", "webhook": {} },
            { "type": "RBAC", "name": "rbac", "webhook": {} },
        ],
    });
    let admission = json!({ "config": settings.admission });
    let owner = "k8s.ControlPlaneAdmissionControlController";
    put(
        shared,
        node,
        (CONTROL_PLANE, ADMISSION, "admission-control"),
        owner,
        admission,
    );
    let audit_policy = json!({ "config": settings.audit_policy });
    let owner = "k8s.ControlPlaneAuditPolicyController";
    put(
        shared,
        node,
        (CONTROL_PLANE, AUDIT_POLICY, "audit-policy"),
        owner,
        audit_policy,
    );
    let owner = "k8s.ControlPlaneAuthorizationPolicyController";
    put(
        shared,
        node,
        (CONTROL_PLANE, AUTHORIZATION, "authorization"),
        owner,
        authorization,
    );
    sleep(pause).await;

    let old_files = files_version(node);
    static_pod(shared, node, settings, Component::ControllerManager, None);
    static_pod(shared, node, settings, Component::Scheduler, None);
    let owner = "k8s.RenderConfigsStaticPodController";
    let status = json!({ "ready": true, "version": config_files(node) });
    put(
        shared,
        node,
        (CONTROL_PLANE, CONFIG_STATUSES, "static-pods"),
        owner,
        status,
    );
    let new_files = files_version(node);
    // The pod is rendered for the new config first and for the new config files after that.
    if changed.contains(&Component::ApiServer) && old_files.is_some() && old_files != new_files {
        static_pod(shared, node, settings, Component::ApiServer, old_files);
    }
    static_pod(shared, node, settings, Component::ApiServer, new_files);
}

/// Writes the manifests of a control plane and tells whether any of them changed.
pub(crate) fn render_manifests(shared: &Shared, node: &NodeState, settings: &Settings) -> bool {
    let id = (
        CONTROL_PLANE,
        "BootstrapManifestsConfigs.kubernetes.talos.dev",
        "manifests",
    );
    let owner = "k8s.ControlPlaneBootstrapManifestsController";
    put(shared, node, id, owner, bootstrap_config(settings));
    let wanted = manifests(settings);
    let mut changed = false;
    for old in node.store.list(CONTROL_PLANE, MANIFESTS) {
        if !wanted.iter().any(|(id, _)| **id == *old.metadata.id) {
            node.store
                .destroy(CONTROL_PLANE, MANIFESTS, &old.metadata.id);
            changed = true;
        }
    }
    for (id, objects) in &wanted {
        let id = (CONTROL_PLANE, MANIFESTS, id.as_str());
        let before = version(node, id);
        let written = put(shared, node, id, "k8s.ManifestController", objects.clone());
        changed |= written.metadata.version != before;
    }
    let ids: Vec<&String> = wanted.iter().map(|(id, _)| id).collect();
    let id = (
        CONTROL_PLANE,
        "ManifestStatuses.kubernetes.talos.dev",
        "manifests",
    );
    put(
        shared,
        node,
        id,
        "k8s.ManifestApplyController",
        json!({ "manifestsApplied": ids }),
    );
    changed
}

/// Writes what the kubelet is started with and tells whether it has to be restarted.
pub(crate) fn kubelet(shared: &Shared, node: &NodeState, settings: &Settings) -> bool {
    let control_plane = node.is_control_plane();
    let mut config = json!({
        "image": settings.kubelet_image,
        "clusterDNS": [settings.dns_address],
        "clusterDomain": settings.dns_domain,
        "cloudProviderExternal": false,
        "defaultRuntimeSeccompEnabled": true,
        "skipNodeRegistration": false,
        "staticPodListURL": "http://127.0.0.1:36391",
        "disableManifestsDirectory": true,
        "enableFSQuotaMonitoring": true,
    });
    config["allowSchedulingOnControlPlane"] = json!(false);
    let id = (K8S, "KubeletConfigs.kubernetes.talos.dev", "kubelet");
    put(shared, node, id, "k8s.KubeletConfigController", config);

    let marks = [
        ("image", settings.kubelet_image.as_str()),
        ("name", &node.name),
        ("address", &node.address.to_string()),
        ("dns-address", &settings.dns_address),
        ("dns-domain", &settings.dns_domain),
    ];
    let mut spec = fill(KUBELET.value(), &marks);
    if let (false, Some(config)) = (control_plane, spec["config"].as_object_mut()) {
        config.shift_remove("registerWithTaints");
    }
    let id = (K8S, "KubeletSpecs.kubernetes.talos.dev", "kubelet");
    let before = version(node, id);
    put(shared, node, id, "k8s.KubeletSpecController", spec)
        .metadata
        .version
        != before
}

/// Returns the image that the kubelet is started with.
pub(crate) fn kubelet_image(node: &NodeState) -> Option<String> {
    let spec = node
        .store
        .get(K8S, "KubeletSpecs.kubernetes.talos.dev", "kubelet")?;
    spec.spec.value()["image"].as_str().map(str::to_owned)
}

/// Renders one static pod for the present versions of its inputs.
fn static_pod(
    shared: &Shared,
    node: &NodeState,
    settings: &Settings,
    component: Component,
    files: Option<String>,
) {
    if !settings.enabled.contains(&component) {
        node.store.destroy(K8S, STATIC_PODS, component.name());
        return;
    }
    let (kind, _) = config_type(component);
    let config_id = if shared.options.talos_version >= TalosVersion::V1_14 {
        final_id(component)
    } else {
        component.name()
    };
    let secrets = node.store.get(
        CONTROL_PLANE,
        "SecretStatuses.kubernetes.talos.dev",
        "static-pods",
    );
    let secrets =
        secrets.and_then(|status| status.spec.value()["version"].as_str().map(str::to_owned));
    let pod = StaticPod {
        component,
        config: version(node, (CONTROL_PLANE, kind, config_id)),
        files,
        secrets: secrets.unwrap_or_else(|| "1".to_owned()),
    };
    let id = (K8S, STATIC_PODS, component.name());
    put(
        shared,
        node,
        id,
        "k8s.ControlPlaneStaticPodController",
        pod.render(settings),
    );
}

/// Returns the version of a resource, 0 if it does not exist.
fn version(node: &NodeState, (namespace, kind, id): (&str, &str, &str)) -> u64 {
    node.store
        .get(namespace, kind, id)
        .map_or(0, |found| found.metadata.version)
}

/// Concatenates the versions of what the config files are made of.
fn config_files(node: &NodeState) -> String {
    [
        (ADMISSION, "admission-control"),
        (AUDIT_POLICY, "audit-policy"),
        (AUTHORIZATION, "authorization"),
        ("SchedulerConfigs.kubernetes.talos.dev", "kube-scheduler"),
    ]
    .map(|(kind, id)| version(node, (CONTROL_PLANE, kind, id)).max(1).to_string())
    .concat()
}

fn files_version(node: &NodeState) -> Option<String> {
    let status = node
        .store
        .get(CONTROL_PLANE, CONFIG_STATUSES, "static-pods")?;
    status.spec.value()["version"].as_str().map(str::to_owned)
}

fn config_type(component: Component) -> (&'static str, &'static str) {
    match component {
        Component::ApiServer => (
            "APIServerConfigs.kubernetes.talos.dev",
            "k8s.ControlPlaneAPIServerController",
        ),
        Component::ControllerManager => (
            "ControllerManagerConfigs.kubernetes.talos.dev",
            "k8s.ControlPlaneControllerManagerController",
        ),
        Component::Scheduler => (
            "SchedulerConfigs.kubernetes.talos.dev",
            "k8s.ControlPlaneSchedulerController",
        ),
    }
}

/// Talos 1.14 derives a second resource from each component config, and counts pods by that one.
fn final_id(component: Component) -> &'static str {
    match component {
        Component::ApiServer => "final-kube-apiserver",
        Component::ControllerManager => "final-kube-controller-manager",
        Component::Scheduler => "final-kube-scheduler",
    }
}

/// Returns the spec of a component's config resource.
fn config(component: Component, settings: &Settings) -> Value {
    let resources = json!({ "requests": { "cpu": "", "memory": "" }, "limits": {} });
    let image = settings.image(component);
    let extra_args = settings
        .extra_args
        .get(&component)
        .cloned()
        .unwrap_or_else(|| json!({}));
    match component {
        Component::ApiServer => json!({
            "image": image,
            "cloudProvider": "",
            "controlPlaneEndpoint": settings.endpoint,
            "etcdServers": ["https://127.0.0.1:2379"],
            "localPort": 6443,
            "serviceCIDR": settings.service_subnets,
            "extraArgs": extra_args,
            "extraVolumes": [],
            "environmentVariables": {},
            "advertisedAddress": "$(POD_IP)",
            "resources": resources,
        }),
        Component::ControllerManager => json!({
            "enabled": settings.enabled.contains(&component),
            "image": image,
            "cloudProvider": "",
            "podCIDRs": settings.pod_subnets,
            "serviceCIDRs": settings.service_subnets,
            "extraArgs": extra_args,
            "extraVolumes": [],
            "environmentVariables": {},
            "resources": resources,
        }),
        Component::Scheduler => json!({
            "enabled": settings.enabled.contains(&component),
            "image": image,
            "extraArgs": extra_args,
            "extraVolumes": [],
            "environmentVariables": {},
            "resources": resources,
            "config": {},
        }),
    }
}
