//! The order in which objects are applied.

use super::object::ObjectId;

/// Kinds in the order of application; what is not named comes before the webhooks, by group and kind.
const FIRST: [&str; 23] = [
    "CustomResourceDefinition",
    "Namespace",
    "ClusterRole",
    "ClusterClass",
    "RuntimeClass",
    "PriorityClass",
    "StorageClass",
    "VolumeSnapshotClass",
    "IngressClass",
    "GatewayClass",
    "ClusterRoleBinding",
    "ResourceQuota",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ConfigMap",
    "Secret",
    "Service",
    "LimitRange",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];
const LAST: [&str; 2] = [
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// The three waves of application; each is waited for before the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wave {
    /// What other objects need to exist: definitions, namespaces and cluster roles.
    Definitions,
    /// Classes.
    Classes,
    /// Everything else.
    Rest,
}

/// The wave an object belongs to.
pub(crate) fn wave(object: &ObjectId) -> Wave {
    match object.kind.as_str() {
        "CustomResourceDefinition" | "Namespace" | "ClusterRole" => Wave::Definitions,
        kind if kind.ends_with("Class") => Wave::Classes,
        _ => Wave::Rest,
    }
}

/// The key to sort objects by, within a wave and over all waves.
pub(crate) fn sort_key(object: &ObjectId) -> impl Ord + use<> {
    let kind = object.kind.as_str();
    let position = |list: &[&str]| list.iter().position(|known| *known == kind);
    let rank = match (position(&FIRST), position(&LAST)) {
        (Some(rank), _) => rank,
        (None, Some(rank)) => FIRST.len() + 1 + rank,
        (None, None) => FIRST.len(),
    };
    (wave(object), rank, object.clone())
}

#[cfg(test)]
mod tests {
    use super::super::inventory::parse;
    use super::*;

    #[test]
    fn definitions_come_first_and_webhooks_last() {
        let keys = [
            "_hook_admissionregistration.k8s.io_ValidatingWebhookConfiguration",
            "kube-system_kube-proxy_apps_DaemonSet",
            "kube-system_coredns_apps_Deployment",
            "kube-system_coredns__ConfigMap",
            "_fast_scheduling.k8s.io_PriorityClass",
            "kube-system_coredns__ServiceAccount",
            "_system__coredns_rbac.authorization.k8s.io_ClusterRole",
            "_crd_apiextensions.k8s.io_CustomResourceDefinition",
        ];
        let mut objects: Vec<ObjectId> = keys.iter().filter_map(|key| parse(key)).collect();
        objects.sort_by_cached_key(sort_key);
        let kinds: Vec<&str> = objects.iter().map(|object| object.kind.as_str()).collect();
        assert_eq!(
            kinds,
            [
                "CustomResourceDefinition",
                "ClusterRole",
                "PriorityClass",
                "ServiceAccount",
                "ConfigMap",
                "Deployment",
                "DaemonSet",
                "ValidatingWebhookConfiguration",
            ]
        );
    }
}
