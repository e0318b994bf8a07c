//! Sections of the main document that the target version has documents for.

use crate::validate::at::At;
use crate::validate::sink::Sink;
use crate::validate::target::Context;

/// The sections with the minor version of Talos 1 that first has documents for them, and the kinds of these.
const SECTIONS: [(&[&str], u64, &str); 42] = [
    (&["machine", "network", "hostname"], 12, "HostnameConfig"),
    (
        &["machine", "network", "interfaces"],
        12,
        "LinkConfig, DHCPv4Config and others",
    ),
    (&["machine", "network", "nameservers"], 12, "ResolverConfig"),
    (
        &["machine", "network", "searchDomains"],
        12,
        "ResolverConfig",
    ),
    (
        &["machine", "network", "disableSearchDomain"],
        12,
        "ResolverConfig",
    ),
    (
        &["machine", "network", "extraHostEntries"],
        12,
        "StaticHostConfig",
    ),
    (&["machine", "network", "kubespan"], 13, "KubeSpanConfig"),
    (&["machine", "time"], 12, "TimeSyncConfig"),
    (&["machine", "env"], 13, "EnvironmentConfig"),
    (
        &["machine", "registries", "mirrors"],
        12,
        "RegistryMirrorConfig",
    ),
    (
        &["machine", "registries", "config"],
        12,
        "RegistryAuthConfig and RegistryTLSConfig",
    ),
    (&["machine", "disks"], 11, "UserVolumeConfig"),
    (&["machine", "systemDiskEncryption"], 11, "VolumeConfig"),
    (&["machine", "install"], 14, "UnattendedInstallConfig"),
    (&["machine", "sysctls"], 14, "SysctlConfig"),
    (&["machine", "sysfs"], 14, "SysfsConfig"),
    (&["machine", "udev"], 14, "UdevRulesConfig"),
    (&["machine", "kernel", "modules"], 14, "KernelModuleConfig"),
    (&["machine", "features", "hostDNS"], 14, "ResolverConfig"),
    (&["machine", "features", "kubePrism"], 14, "KubePrismConfig"),
    (
        &["machine", "features", "imageCache"],
        14,
        "ImageCacheConfig",
    ),
    (
        &["machine", "features", "kubernetesTalosAPIAccess"],
        14,
        "KubeTalosAPIAccessConfig",
    ),
    (&["machine", "kubelet"], 14, "KubeletConfig"),
    (&["machine", "pods"], 14, "KubeStaticPodConfig"),
    (&["machine", "nodeLabels"], 14, "KubeNodeConfig"),
    (&["machine", "nodeAnnotations"], 14, "KubeNodeConfig"),
    (&["machine", "nodeTaints"], 14, "KubeNodeConfig"),
    (&["cluster", "id"], 14, "DiscoveryIdentityConfig"),
    (&["cluster", "discovery"], 14, "DiscoveryServiceConfig"),
    (&["cluster", "controlPlane"], 14, "KubeClusterConfig"),
    (&["cluster", "network"], 14, "KubeNetworkConfig"),
    (&["cluster", "ca"], 14, "KubeAPIServerCAConfig"),
    (&["cluster", "aggregatorCA"], 14, "KubeAggregatorCAConfig"),
    (
        &["cluster", "serviceAccount"],
        14,
        "KubeServiceAccountConfig",
    ),
    (
        &["cluster", "secretboxEncryptionSecret"],
        14,
        "KubeEtcdEncryptionConfig",
    ),
    (&["cluster", "apiServer"], 14, "KubeAPIServerConfig"),
    (
        &["cluster", "controllerManager"],
        14,
        "KubeControllerManagerConfig",
    ),
    (&["cluster", "scheduler"], 14, "KubeSchedulerConfig"),
    (&["cluster", "proxy"], 14, "KubeProxyConfig"),
    (&["cluster", "coreDNS"], 14, "KubeCoreDNSConfig"),
    (
        &["cluster", "extraManifests"],
        14,
        "KubeExternalManifestConfig",
    ),
    (
        &["cluster", "inlineManifests"],
        14,
        "KubeInlineManifestConfig",
    ),
];

/// Notes the sections of the main document.
pub(super) fn check(root: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    for (path, minor, kinds) in &SECTIONS {
        let section = root.fields(path);
        let scalar = section.node().as_scalar().is_some();
        let used = match scalar {
            true => !section.is_blank(),
            false => section.len() > 0,
        };
        if used && context.at_least(*minor) {
            sink.note(
                "newer-way",
                &section,
                format!("since Talos 1.{minor} there is {kinds} for this"),
            )
            .hint("`ichor machineconfig migrate` moves it");
        }
    }
}
