//! What Talos makes of a machine configuration for Kubernetes: component configs, static pods, manifests, certificates.

mod configs;
mod manifests;
mod secrets;
mod settings;
mod static_pods;
mod template;

use std::sync::Arc;

use serde_json::Value;

use crate::node::NodeState;
use crate::shared::Shared;
use crate::store::{Draft, Resource};

pub(crate) use configs::{kubelet, kubelet_image, render, render_manifests};
pub(crate) use secrets::{
    install as install_secrets, issue_serving, kubelet_secrets, names, publish_names, reissue,
    roots_differ,
};
pub(crate) use settings::{Component, Settings, tag};
pub(crate) use template::{Template, fill};

/// Namespace of component configs and manifests.
pub(crate) const CONTROL_PLANE: &str = "controlplane";
/// Namespace of static pods and the kubelet.
pub(crate) const K8S: &str = "k8s";
/// Namespace of certificates and keys.
pub(crate) const SECRETS: &str = "secrets";
/// Type of rendered static pods.
pub(crate) const STATIC_PODS: &str = "StaticPods.kubernetes.talos.dev";
/// Type of what the kubelet says about static pods.
pub(crate) const STATIC_POD_STATUSES: &str = "StaticPodStatuses.kubernetes.talos.dev";
/// Type of rendered manifests.
pub(crate) const MANIFESTS: &str = "Manifests.kubernetes.talos.dev";

/// Types of resources that this module provides completely.
pub(crate) const PROVIDED: &[&str] = &[
    "APIServerConfigs.kubernetes.talos.dev",
    "AdmissionControlConfigs.kubernetes.talos.dev",
    "AuditPolicyConfigs.kubernetes.talos.dev",
    "AuthorizationConfigs.kubernetes.talos.dev",
    "BootstrapManifestsConfigs.kubernetes.talos.dev",
    "ConfigStatuses.kubernetes.talos.dev",
    "ControllerManagerConfigs.kubernetes.talos.dev",
    "KubeletConfigs.kubernetes.talos.dev",
    "KubeletSpecs.kubernetes.talos.dev",
    "KubeletSecrets.secrets.talos.dev",
    "KubernetesDynamicCerts.secrets.talos.dev",
    "KubernetesRootSecrets.secrets.talos.dev",
    "KubernetesSecrets.secrets.talos.dev",
    "ManifestStatuses.kubernetes.talos.dev",
    MANIFESTS,
    "SchedulerConfigs.kubernetes.talos.dev",
    "SecretStatuses.kubernetes.talos.dev",
    STATIC_PODS,
    STATIC_POD_STATUSES,
];

/// Writes one resource of a node; unchanged content changes nothing.
pub(crate) fn put(
    shared: &Shared,
    node: &NodeState,
    (namespace, kind, id): (&str, &str, &str),
    owner: &str,
    spec: Value,
) -> Arc<Resource> {
    let draft = Draft::new(namespace, kind, id, owner, spec);
    node.store.put(draft, shared.now())
}
