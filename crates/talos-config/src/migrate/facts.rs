//! What Talos versions have: which fields of the main document have a document instead, and what documents imply.

pub(super) use crate::facts::{CONTROL_PLANE_ONLY, DEPRECATED, LINKS, Section};

/// A Talos version that configurations are moved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    minor: u8,
}

impl Target {
    /// Reads a version such as `1.14`, `v1.14` or `v1.14.1`; there are documents to move to since 1.12.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
        let major = parts.next()?;
        let minor: u8 = parts.next()?.parse().ok()?;
        let rest = parts
            .next()
            .is_none_or(|patch| patch.parse::<u32>().is_ok());
        (major == "1" && (12..=14).contains(&minor) && rest && parts.next().is_none())
            .then_some(Self { minor })
    }

    /// Returns whether the version has what came with a minor version.
    pub(super) fn has(self, minor: u8) -> bool {
        self.minor >= minor
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "1.{}", self.minor)
    }
}

/// The Kubernetes version that Talos 1.14 runs if no image says otherwise.
pub(super) const KUBERNETES: &str = "1.37.0";

/// The order in which new documents are written.
pub(super) const ORDER: &[&str] = &[
    "DiscoveryServiceConfig",
    "DiscoveryIdentityConfig",
    "UnattendedInstallConfig",
    "VolumeConfig",
    "EnvironmentConfig",
    "TimeSyncConfig",
    "HostnameConfig",
    "ResolverConfig",
    "StaticHostConfig",
    "LinkAliasConfig",
    "LinkConfig",
    "DummyLinkConfig",
    "BondConfig",
    "BridgeConfig",
    "VLANConfig",
    "WireguardConfig",
    "DHCPv4Config",
    "DHCPv6Config",
    "Layer2VIPConfig",
    "HCloudVIPConfig",
    "KubeSpanConfig",
    "RegistryMirrorConfig",
    "RegistryTLSConfig",
    "RegistryAuthConfig",
    "SysctlConfig",
    "SysfsConfig",
    "UdevRulesConfig",
    "KernelModuleConfig",
    "EtcFileConfig",
    "CRICustomizationConfig",
    "CRIBaseRuntimeSpecConfig",
    "ImageCacheConfig",
    "KubeClusterConfig",
    "KubeNodeConfig",
    "KubeletConfig",
    "KubeCredentialProviderConfig",
    "KubeNetworkConfig",
    "KubeAPIServerCAConfig",
    "KubePrismConfig",
    "KubeTalosAPIAccessConfig",
    "KubeStaticPodConfig",
    "KubeAggregatorCAConfig",
    "KubeAdmissionControlConfig",
    "KubeAuditPolicyConfig",
    "KubeAuthenticationConfig",
    "KubeAuthorizerConfig",
    "KubeEtcdEncryptionConfig",
    "KubeServiceAccountConfig",
    "KubeAPIServerConfig",
    "KubeControllerManagerConfig",
    "KubeSchedulerConfig",
    "KubeProxyConfig",
    "KubeFlannelCNIConfig",
    "KubeCoreDNSConfig",
    "KubeExternalManifestConfig",
    "KubeInlineManifestConfig",
];
