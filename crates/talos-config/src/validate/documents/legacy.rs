//! What the main document must not say if a document of its own says it.

use super::volumes;
use crate::validate::at::{At, Document};
use crate::validate::sink::Sink;
use crate::validate::target::Context;
use crate::validate::value;

/// When a field of the main document counts as said.
#[derive(Clone, Copy)]
enum When {
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

/// Kind of document, the first version that minds, a path in the main document, and when it counts.
const SAID_TWICE: &[(&str, u64, &str, When)] = &[
    ("HostnameConfig", 12, "machine.network.hostname", Text),
    (
        "HostnameConfig",
        12,
        "machine.features.stableHostname",
        True,
    ),
    ("KubeSpanConfig", 12, "machine.network.kubespan", Set),
    ("ResolverConfig", 12, "machine.network.searchDomains", Set),
    (
        "ResolverConfig",
        12,
        "machine.network.nameservers",
        Addresses,
    ),
    (
        "ResolverConfig",
        12,
        "machine.network.disableSearchDomain",
        True,
    ),
    ("TimeSyncConfig", 12, "machine.time.disabled", True),
    ("TimeSyncConfig", 12, "machine.time.servers", Filled),
    ("TimeSyncConfig", 12, "machine.time.bootTimeout", Duration),
    (
        "CRIBaseRuntimeSpecConfig",
        14,
        "machine.baseRuntimeSpecOverrides",
        Filled,
    ),
    ("DiscoveryIdentityConfig", 14, "cluster.id", Text),
    ("DiscoveryIdentityConfig", 14, "cluster.secret", Text),
    ("DiscoveryServiceConfig", 14, "cluster.discovery", Set),
    ("ImageCacheConfig", 14, "machine.features.imageCache", Set),
    ("KubeAPIServerCAConfig", 14, "cluster.ca", Set),
    ("KubeAPIServerConfig", 14, "cluster.apiServer", Set),
    (
        "KubeAPIServerConfig",
        14,
        "cluster.controlPlane.localAPIServerPort",
        Text,
    ),
    (
        "KubeAdmissionControlConfig",
        14,
        "cluster.apiServer.admissionControl",
        Filled,
    ),
    ("KubeAggregatorCAConfig", 14, "cluster.aggregatorCA", Set),
    (
        "KubeAuditPolicyConfig",
        14,
        "cluster.apiServer.auditPolicy",
        Filled,
    ),
    (
        "KubeAuthorizerConfig",
        14,
        "cluster.apiServer.admissionControl",
        Filled,
    ),
    ("KubeClusterConfig", 14, "cluster.clusterName", Text),
    (
        "KubeClusterConfig",
        14,
        "cluster.controlPlane.endpoint",
        Set,
    ),
    (
        "KubeControllerManagerConfig",
        14,
        "cluster.controllerManager",
        Set,
    ),
    (
        "KubeControllerManagerConfig",
        14,
        "machine.controlPlane.controllerManager",
        Set,
    ),
    ("KubeCoreDNSConfig", 14, "cluster.coreDNS", Set),
    ("KubeCredentialProviderConfig", 14, "machine.kubelet", Set),
    (
        "KubeEtcdEncryptionConfig",
        14,
        "cluster.secretboxEncryptionSecret",
        Text,
    ),
    (
        "KubeEtcdEncryptionConfig",
        14,
        "cluster.aescbcEncryptionSecret",
        Text,
    ),
    ("KubeFlannelCNIConfig", 14, "cluster.network", Set),
    ("KubeNetworkConfig", 14, "cluster.network", Set),
    (
        "KubeNodeConfig",
        14,
        "cluster.allowSchedulingOnControlPlanes",
        Set,
    ),
    (
        "KubeNodeConfig",
        14,
        "cluster.allowSchedulingOnMasters",
        Set,
    ),
    (
        "KubeNodeConfig",
        14,
        "machine.kubelet.skipNodeRegistration",
        Set,
    ),
    (
        "KubeNodeConfig",
        14,
        "machine.kubelet.registerWithFQDN",
        Set,
    ),
    ("KubeNodeConfig", 14, "machine.kubelet.nodeIP", Set),
    ("KubeNodeConfig", 14, "machine.nodeLabels", Set),
    ("KubeNodeConfig", 14, "machine.nodeAnnotations", Set),
    ("KubeNodeConfig", 14, "machine.nodeTaints", Set),
    ("KubePrismConfig", 14, "machine.features.kubePrism", Set),
    ("KubeProxyConfig", 14, "cluster.proxy", Set),
    ("KubeSchedulerConfig", 14, "cluster.scheduler", Set),
    (
        "KubeSchedulerConfig",
        14,
        "machine.controlPlane.scheduler",
        Set,
    ),
    (
        "KubeServiceAccountConfig",
        14,
        "cluster.serviceAccount",
        Set,
    ),
    (
        "KubeTalosAPIAccessConfig",
        14,
        "machine.features.kubernetesTalosAPIAccess",
        Set,
    ),
    ("KubeletConfig", 14, "machine.kubelet", Set),
    ("UnattendedInstallConfig", 14, "machine.install", Set),
];

/// Checks every document against the main one.
pub(super) fn check(
    main: &Document<'_>,
    documents: &[Document<'_>],
    context: &Context<'_>,
    sink: &mut Sink<'_>,
) {
    let root = main.root();
    for document in documents.iter().filter(|document| !document.is_main()) {
        let rows = SAID_TWICE.iter();
        for (_, since, path, when) in rows.filter(|(kind, ..)| *kind == document.kind) {
            let keys: Vec<&str> = path.split('.').collect();
            let at = root.fields(&keys);
            if context.at_least(*since) && is_said(&at, *when) {
                said_twice(&at, document, sink);
            }
        }
        match document.kind {
            "VolumeConfig" => encryption(&root, document, sink),
            "ResolverConfig" => host_dns(&root, document, sink),
            _ => {}
        }
    }
}

fn is_said(at: &At<'_>, when: When) -> bool {
    match when {
        Set => at.is_set(),
        Text => !at.is_blank() && at.number() != Some(0),
        True => at.is_true(),
        Filled => at.len() > 0,
        Addresses => at
            .items()
            .any(|item| value::address(&item.text()).is_some()),
        Duration => value::duration(&at.text()).is_some_and(|duration| duration != 0),
    }
}

fn said_twice(at: &At<'_>, document: &Document<'_>, sink: &mut Sink<'_>) {
    let label = document.label();
    let finding = sink.error(
        "conflict",
        at,
        format!("the document {label} is there too, which excludes it"),
    );
    finding.hint("keep it in one of the two; `machineconfig migrate` moves it to the document");
}

fn encryption(root: &At<'_>, document: &Document<'_>, sink: &mut Sink<'_>) {
    let key = match document.name {
        "STATE" => "state",
        "EPHEMERAL" => "ephemeral",
        _ => return,
    };
    let keys = ["machine", "systemDiskEncryption", key];
    let at = root.fields(&keys);
    let own = document.root();
    if at.is_set() && !volumes::is_none(&own.fields(&["encryption", "provider"])) {
        said_twice(&at, document, sink);
    }
}

fn host_dns(root: &At<'_>, document: &Document<'_>, sink: &mut Sink<'_>) {
    let own = document.root();
    let own = own.field("hostDNS");
    let any = own.entries().any(|(_, at)| at.is_set());
    let at = root.fields(&["machine", "features", "hostDNS"]);
    if any && at.is_set() {
        said_twice(&at, document, sink);
    }
}
