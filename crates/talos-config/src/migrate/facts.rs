//! What Talos versions have: which fields of the main document have a document instead, and what documents imply.

pub(super) use crate::facts::{CONTROL_PLANE_ONLY, LINKS};

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

/// The deprecated parts of the main document, and the minor version since which all below has a document or no equal.
pub(super) const DEPRECATED: &[(&[&str], u8)] = &[
    (&["machine", "network", "hostname"], 12),
    (&["machine", "network", "interfaces"], 12),
    (&["machine", "network", "nameservers"], 12),
    (&["machine", "network", "searchDomains"], 12),
    (&["machine", "network", "disableSearchDomain"], 12),
    (&["machine", "network", "extraHostEntries"], 12),
    (&["machine", "time"], 12),
    (&["machine", "registries"], 12),
    (&["machine", "systemDiskEncryption"], 12),
    (&["machine", "disks"], 12),
    (&["machine", "features", "stableHostname"], 12),
    (&["machine", "network"], 13),
    (&["machine", "env"], 13),
    (&["machine", "controlPlane"], 14),
    (&["machine", "kubelet"], 14),
    (&["machine", "pods"], 14),
    (&["machine", "install"], 14),
    (&["machine", "files"], 14),
    (&["machine", "sysctls"], 14),
    (&["machine", "sysfs"], 14),
    (&["machine", "udev"], 14),
    (&["machine", "kernel"], 14),
    (&["machine", "baseRuntimeSpecOverrides"], 14),
    (&["machine", "nodeLabels"], 14),
    (&["machine", "nodeAnnotations"], 14),
    (&["machine", "nodeTaints"], 14),
    (&["machine", "features", "kubernetesTalosAPIAccess"], 14),
    (&["machine", "features", "kubePrism"], 14),
    (&["machine", "features", "hostDNS"], 14),
    (&["machine", "features", "imageCache"], 14),
    (&["cluster", "id"], 14),
    (&["cluster", "secret"], 14),
    (&["cluster", "controlPlane"], 14),
    (&["cluster", "clusterName"], 14),
    (&["cluster", "network"], 14),
    (&["cluster", "aescbcEncryptionSecret"], 14),
    (&["cluster", "secretboxEncryptionSecret"], 14),
    (&["cluster", "ca"], 14),
    (&["cluster", "acceptedCAs"], 14),
    (&["cluster", "aggregatorCA"], 14),
    (&["cluster", "serviceAccount"], 14),
    (&["cluster", "apiServer"], 14),
    (&["cluster", "controllerManager"], 14),
    (&["cluster", "proxy"], 14),
    (&["cluster", "scheduler"], 14),
    (&["cluster", "discovery"], 14),
    (&["cluster", "coreDNS"], 14),
    (&["cluster", "extraManifests"], 14),
    (&["cluster", "extraManifestHeaders"], 14),
    (&["cluster", "inlineManifests"], 14),
    (&["cluster", "allowSchedulingOnMasters"], 14),
    (&["cluster", "allowSchedulingOnControlPlanes"], 14),
];

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
