//! What is known of the kinds of documents, beside the fields they have.

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

    #[test]
    fn the_kinds_of_all_groups_are_ones_that_talos_has() {
        let groups = RIVALS.into_iter().flatten();
        for kind in groups.chain(&CONTROL_PLANE_ONLY) {
            assert!(Schema::newest().kind(kind).is_some(), "{kind}");
        }
    }
}
