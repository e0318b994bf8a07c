//! What is known of documents and their kinds, beside the fields they have.

pub(crate) mod exclusive;

use crate::yaml::Node;

/// The keys that tell the main document, which has no `kind`.
pub(crate) const MAIN_KEYS: [&str; 4] = ["machine", "cluster", "debug", "persist"];

/// Returns whether a document is the main one to Talos; `version` alone does not make it one.
pub(crate) fn is_main(root: &Node) -> bool {
    !root.contains("kind") && has_main_key(root)
}

/// Returns whether a document has a key that tells the main one.
pub(crate) fn has_main_key(root: &Node) -> bool {
    MAIN_KEYS.iter().any(|key| root.contains(key))
}

/// A part of the main document that newer versions have documents for, or no equal.
pub(crate) struct Section {
    pub(crate) path: &'static [&'static str],
    /// The minor version of Talos 1 since which all below has a document or no equal.
    pub(crate) since: u8,
    /// The kinds of the documents, in words; empty where the rows before this one say them.
    pub(crate) kinds: &'static str,
}

impl Section {
    const fn new(path: &'static [&'static str], since: u8, kinds: &'static str) -> Self {
        Self { path, since, kinds }
    }
}

/// The deprecated parts of the main document; a part of a part stands before it.
pub(crate) const DEPRECATED: [Section; 56] = [
    Section::new(&["machine", "network", "hostname"], 12, "HostnameConfig"),
    Section::new(
        &["machine", "network", "interfaces"],
        12,
        "LinkConfig, DHCPv4Config and others",
    ),
    Section::new(&["machine", "network", "nameservers"], 12, "ResolverConfig"),
    Section::new(
        &["machine", "network", "searchDomains"],
        12,
        "ResolverConfig",
    ),
    Section::new(
        &["machine", "network", "disableSearchDomain"],
        12,
        "ResolverConfig",
    ),
    Section::new(
        &["machine", "network", "extraHostEntries"],
        12,
        "StaticHostConfig",
    ),
    Section::new(&["machine", "time"], 12, "TimeSyncConfig"),
    Section::new(
        &["machine", "registries", "mirrors"],
        12,
        "RegistryMirrorConfig",
    ),
    Section::new(
        &["machine", "registries", "config"],
        12,
        "RegistryAuthConfig and RegistryTLSConfig",
    ),
    Section::new(&["machine", "registries"], 12, ""),
    Section::new(&["machine", "systemDiskEncryption"], 11, "VolumeConfig"),
    Section::new(&["machine", "disks"], 11, "UserVolumeConfig"),
    Section::new(
        &["machine", "features", "stableHostname"],
        12,
        "HostnameConfig",
    ),
    Section::new(&["machine", "network", "kubespan"], 13, "KubeSpanConfig"),
    Section::new(&["machine", "network"], 13, ""),
    Section::new(&["machine", "env"], 13, "EnvironmentConfig"),
    Section::new(
        &["machine", "controlPlane"],
        14,
        "KubeControllerManagerConfig and KubeSchedulerConfig",
    ),
    Section::new(&["machine", "kubelet"], 14, "KubeletConfig"),
    Section::new(&["machine", "pods"], 14, "KubeStaticPodConfig"),
    Section::new(&["machine", "install"], 14, "UnattendedInstallConfig"),
    Section::new(
        &["machine", "files"],
        14,
        "EtcFileConfig and CRICustomizationConfig",
    ),
    Section::new(&["machine", "sysctls"], 14, "SysctlConfig"),
    Section::new(&["machine", "sysfs"], 14, "SysfsConfig"),
    Section::new(&["machine", "udev"], 14, "UdevRulesConfig"),
    Section::new(&["machine", "kernel", "modules"], 14, "KernelModuleConfig"),
    Section::new(&["machine", "kernel"], 14, ""),
    Section::new(
        &["machine", "baseRuntimeSpecOverrides"],
        14,
        "CRIBaseRuntimeSpecConfig",
    ),
    Section::new(&["machine", "nodeLabels"], 14, "KubeNodeConfig"),
    Section::new(&["machine", "nodeAnnotations"], 14, "KubeNodeConfig"),
    Section::new(&["machine", "nodeTaints"], 14, "KubeNodeConfig"),
    Section::new(
        &["machine", "features", "kubernetesTalosAPIAccess"],
        14,
        "KubeTalosAPIAccessConfig",
    ),
    Section::new(&["machine", "features", "kubePrism"], 14, "KubePrismConfig"),
    Section::new(&["machine", "features", "hostDNS"], 14, "ResolverConfig"),
    Section::new(
        &["machine", "features", "imageCache"],
        14,
        "ImageCacheConfig",
    ),
    Section::new(&["cluster", "id"], 14, "DiscoveryIdentityConfig"),
    Section::new(&["cluster", "secret"], 14, "DiscoveryIdentityConfig"),
    Section::new(&["cluster", "controlPlane"], 14, "KubeClusterConfig"),
    Section::new(&["cluster", "clusterName"], 14, "KubeClusterConfig"),
    Section::new(&["cluster", "network"], 14, "KubeNetworkConfig"),
    Section::new(
        &["cluster", "aescbcEncryptionSecret"],
        14,
        "KubeEtcdEncryptionConfig",
    ),
    Section::new(
        &["cluster", "secretboxEncryptionSecret"],
        14,
        "KubeEtcdEncryptionConfig",
    ),
    Section::new(&["cluster", "ca"], 14, "KubeAPIServerCAConfig"),
    Section::new(&["cluster", "acceptedCAs"], 14, "KubeAPIServerCAConfig"),
    Section::new(&["cluster", "aggregatorCA"], 14, "KubeAggregatorCAConfig"),
    Section::new(
        &["cluster", "serviceAccount"],
        14,
        "KubeServiceAccountConfig",
    ),
    Section::new(&["cluster", "apiServer"], 14, "KubeAPIServerConfig"),
    Section::new(
        &["cluster", "controllerManager"],
        14,
        "KubeControllerManagerConfig",
    ),
    Section::new(&["cluster", "proxy"], 14, "KubeProxyConfig"),
    Section::new(&["cluster", "scheduler"], 14, "KubeSchedulerConfig"),
    Section::new(&["cluster", "discovery"], 14, "DiscoveryServiceConfig"),
    Section::new(&["cluster", "coreDNS"], 14, "KubeCoreDNSConfig"),
    Section::new(
        &["cluster", "extraManifests"],
        14,
        "KubeExternalManifestConfig",
    ),
    Section::new(
        &["cluster", "extraManifestHeaders"],
        14,
        "KubeExternalManifestConfig",
    ),
    Section::new(
        &["cluster", "inlineManifests"],
        14,
        "KubeInlineManifestConfig",
    ),
    Section::new(
        &["cluster", "allowSchedulingOnMasters"],
        14,
        "KubeNodeConfig",
    ),
    Section::new(
        &["cluster", "allowSchedulingOnControlPlanes"],
        14,
        "KubeNodeConfig",
    ),
];

/// The kinds that only control plane nodes may have.
pub(crate) const CONTROL_PLANE_ONLY: [&str; 14] = [
    "KubeAPIServerConfig",
    "KubeAdmissionControlConfig",
    "KubeAggregatorCAConfig",
    "KubeAuditPolicyConfig",
    "KubeAuthenticationConfig",
    "KubeAuthorizerConfig",
    "KubeControllerManagerConfig",
    "KubeCoreDNSConfig",
    "KubeEtcdEncryptionConfig",
    "KubeFlannelCNIConfig",
    "KubeProxyConfig",
    "KubeSchedulerConfig",
    "KubeServiceAccountConfig",
    "KubeTalosAPIAccessConfig",
];

/// The kinds that make a link.
pub(crate) const LINKS: [&str; 8] = [
    "BondConfig",
    "BridgeConfig",
    "DummyLinkConfig",
    "LinkConfig",
    "VLANConfig",
    "VRFConfig",
    "VethConfig",
    "WireguardConfig",
];

/// Kinds that describe the same thing in different ways: one name can belong to one document of a group only.
pub(crate) const RIVALS: [&[&str]; 3] = [
    &LINKS,
    &["HCloudVIPConfig", "Layer2VIPConfig"],
    &["ExistingVolumeConfig", "UserVolumeConfig"],
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schema;
    use crate::schema::MAIN;

    #[test]
    fn the_kinds_of_all_groups_are_ones_that_talos_has() {
        let groups = RIVALS.into_iter().flatten();
        for kind in groups.chain(&CONTROL_PLANE_ONLY) {
            assert!(Schema::newest().kind(kind).is_some(), "{kind}");
        }
    }

    #[test]
    fn deprecated_parts_are_fields_of_the_main_document_with_kinds_that_their_version_has() {
        for (index, section) in DEPRECATED.iter().enumerate() {
            let since = Schema::for_talos(&format!("1.{}", section.since));
            let path = section.path;
            assert!(since.version_with(MAIN, path).is_some(), "{path:?}");
            let around = DEPRECATED[..index].iter();
            assert!(
                !around.clone().any(|before| path.starts_with(before.path)),
                "{path:?}"
            );
            let words = section.kinds.split([',', ' ']);
            for kind in words.filter(|word| word.ends_with("Config")) {
                assert!(since.kind(kind).is_some(), "{kind} of {path:?}");
            }
        }
    }
}
