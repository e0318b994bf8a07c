//! Parts of the main document that a document excludes.

/// When a field of the main document counts as said.
#[derive(Clone, Copy)]
pub(crate) enum When {
    /// It is there.
    Set,
    /// It is text other than empty, or a number other than zero.
    Text,
    /// It is `true`.
    True,
    /// It has an item or a key.
    Filled,
    /// It has an address.
    Addresses,
    /// It is a duration other than zero.
    Duration,
}

use When::{Addresses, Duration, Filled, Set, Text, True};

/// A part of the main document that must not be said beside a document of a kind.
pub(crate) struct Exclusive {
    pub(crate) kind: &'static str,
    /// The first minor version of Talos 1 that minds.
    pub(crate) since: u64,
    pub(crate) path: &'static str,
    pub(crate) when: When,
}

impl Exclusive {
    const fn new(kind: &'static str, since: u64, path: &'static str, when: When) -> Self {
        Self {
            kind,
            since,
            path,
            when,
        }
    }
}

/// What excludes what; each path is one of [`super::DEPRECATED`], or below one or above one.
pub(crate) const EXCLUSIVE: [Exclusive; 47] = [
    Exclusive::new("HostnameConfig", 12, "machine.network.hostname", Text),
    Exclusive::new(
        "HostnameConfig",
        12,
        "machine.features.stableHostname",
        True,
    ),
    Exclusive::new("KubeSpanConfig", 12, "machine.network.kubespan", Set),
    Exclusive::new("ResolverConfig", 12, "machine.network.searchDomains", Set),
    Exclusive::new(
        "ResolverConfig",
        12,
        "machine.network.nameservers",
        Addresses,
    ),
    Exclusive::new(
        "ResolverConfig",
        12,
        "machine.network.disableSearchDomain",
        True,
    ),
    Exclusive::new("TimeSyncConfig", 12, "machine.time.disabled", True),
    Exclusive::new("TimeSyncConfig", 12, "machine.time.servers", Filled),
    Exclusive::new("TimeSyncConfig", 12, "machine.time.bootTimeout", Duration),
    Exclusive::new(
        "CRIBaseRuntimeSpecConfig",
        14,
        "machine.baseRuntimeSpecOverrides",
        Filled,
    ),
    Exclusive::new("DiscoveryIdentityConfig", 14, "cluster.id", Text),
    Exclusive::new("DiscoveryIdentityConfig", 14, "cluster.secret", Text),
    Exclusive::new("DiscoveryServiceConfig", 14, "cluster.discovery", Set),
    Exclusive::new("ImageCacheConfig", 14, "machine.features.imageCache", Set),
    Exclusive::new("KubeAPIServerCAConfig", 14, "cluster.ca", Set),
    Exclusive::new("KubeAPIServerConfig", 14, "cluster.apiServer", Set),
    Exclusive::new(
        "KubeAPIServerConfig",
        14,
        "cluster.controlPlane.localAPIServerPort",
        Text,
    ),
    Exclusive::new(
        "KubeAdmissionControlConfig",
        14,
        "cluster.apiServer.admissionControl",
        Filled,
    ),
    Exclusive::new("KubeAggregatorCAConfig", 14, "cluster.aggregatorCA", Set),
    Exclusive::new(
        "KubeAuditPolicyConfig",
        14,
        "cluster.apiServer.auditPolicy",
        Filled,
    ),
    Exclusive::new(
        "KubeAuthorizerConfig",
        14,
        "cluster.apiServer.admissionControl",
        Filled,
    ),
    Exclusive::new("KubeClusterConfig", 14, "cluster.clusterName", Text),
    Exclusive::new(
        "KubeClusterConfig",
        14,
        "cluster.controlPlane.endpoint",
        Set,
    ),
    Exclusive::new(
        "KubeControllerManagerConfig",
        14,
        "cluster.controllerManager",
        Set,
    ),
    Exclusive::new(
        "KubeControllerManagerConfig",
        14,
        "machine.controlPlane.controllerManager",
        Set,
    ),
    Exclusive::new("KubeCoreDNSConfig", 14, "cluster.coreDNS", Set),
    Exclusive::new("KubeCredentialProviderConfig", 14, "machine.kubelet", Set),
    Exclusive::new(
        "KubeEtcdEncryptionConfig",
        14,
        "cluster.secretboxEncryptionSecret",
        Text,
    ),
    Exclusive::new(
        "KubeEtcdEncryptionConfig",
        14,
        "cluster.aescbcEncryptionSecret",
        Text,
    ),
    Exclusive::new("KubeFlannelCNIConfig", 14, "cluster.network", Set),
    Exclusive::new("KubeNetworkConfig", 14, "cluster.network", Set),
    Exclusive::new(
        "KubeNodeConfig",
        14,
        "cluster.allowSchedulingOnControlPlanes",
        Set,
    ),
    Exclusive::new(
        "KubeNodeConfig",
        14,
        "cluster.allowSchedulingOnMasters",
        Set,
    ),
    Exclusive::new(
        "KubeNodeConfig",
        14,
        "machine.kubelet.skipNodeRegistration",
        Set,
    ),
    Exclusive::new(
        "KubeNodeConfig",
        14,
        "machine.kubelet.registerWithFQDN",
        Set,
    ),
    Exclusive::new("KubeNodeConfig", 14, "machine.kubelet.nodeIP", Set),
    Exclusive::new("KubeNodeConfig", 14, "machine.nodeLabels", Set),
    Exclusive::new("KubeNodeConfig", 14, "machine.nodeAnnotations", Set),
    Exclusive::new("KubeNodeConfig", 14, "machine.nodeTaints", Set),
    Exclusive::new("KubePrismConfig", 14, "machine.features.kubePrism", Set),
    Exclusive::new("KubeProxyConfig", 14, "cluster.proxy", Set),
    Exclusive::new("KubeSchedulerConfig", 14, "cluster.scheduler", Set),
    Exclusive::new(
        "KubeSchedulerConfig",
        14,
        "machine.controlPlane.scheduler",
        Set,
    ),
    Exclusive::new(
        "KubeServiceAccountConfig",
        14,
        "cluster.serviceAccount",
        Set,
    ),
    Exclusive::new(
        "KubeTalosAPIAccessConfig",
        14,
        "machine.features.kubernetesTalosAPIAccess",
        Set,
    ),
    Exclusive::new("KubeletConfig", 14, "machine.kubelet", Set),
    Exclusive::new("UnattendedInstallConfig", 14, "machine.install", Set),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schema;
    use crate::facts::DEPRECATED;
    use crate::schema::MAIN;

    #[test]
    fn what_excludes_a_part_of_the_main_document_is_a_kind_and_the_part_is_deprecated() {
        for row in &EXCLUSIVE {
            let since = Schema::for_talos(&format!("1.{}", row.since));
            assert!(since.kind(row.kind).is_some(), "{}", row.kind);
            let path: Vec<&str> = row.path.split('.').collect();
            assert!(since.version_with(MAIN, &path).is_some(), "{}", row.path);
            let mut deprecated = DEPRECATED.iter();
            let is_there = deprecated.any(|section| path.starts_with(section.path));
            assert!(is_there, "{}", row.path);
        }
    }
}
