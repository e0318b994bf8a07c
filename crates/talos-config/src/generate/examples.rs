//! Settings that many want, for configurations to show as comments.

use serde_json::Value;

use super::Contract;
use crate::machine::MachineType;

/// Whose configuration it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Audience {
    pub(super) contract: Contract,
    pub(super) kind: MachineType,
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Example {
    only: Only,
    pub(super) kind: &'static str,
    pub(super) path: &'static str,
    /// A comment and the setting; one level of commenting out is added when it is written.
    pub(super) text: &'static str,
}

/// Which configurations show it.
#[derive(Clone, Copy, Debug)]
struct Only {
    since: u64,
    until: u64,
    control_plane: bool,
    worker: bool,
}

impl Example {
    /// Returns the key that the setting is about.
    pub(super) fn key(&self) -> &'static str {
        let line = self.text.lines().find(|line| !line.starts_with('#'));
        line.and_then(|line| line.split(':').next())
            .unwrap_or_default()
    }

    /// Tells whether there is such a document already.
    pub(super) fn repeats(&self, document: &Value) -> bool {
        document.get("kind").and_then(Value::as_str) == Some(self.kind)
    }

    fn is_for(&self, audience: Audience) -> bool {
        let Only { since, until, .. } = self.only;
        let releases = Contract::of(since)..Contract::of(until);
        let for_machine = match audience.kind {
            MachineType::ControlPlane => self.only.control_plane,
            MachineType::Worker => self.only.worker,
        };
        for_machine && releases.contains(&audience.contract)
    }
}

/// Returns what belongs at the end of a mapping.
pub(super) fn fields(
    audience: Audience,
    kind: &str,
    path: &str,
) -> impl Iterator<Item = &'static Example> {
    FIELDS.iter().filter(move |example| {
        example.kind == kind && example.path == path && example.is_for(audience)
    })
}

/// Returns documents that belong at the end of a configuration.
pub(super) fn documents(audience: Audience) -> impl Iterator<Item = &'static Example> {
    DOCUMENTS
        .iter()
        .filter(move |example| example.is_for(audience))
}

const fn all(since: u64, until: u64) -> Only {
    Only {
        since,
        until,
        control_plane: true,
        worker: true,
    }
}

const fn control_planes(since: u64, until: u64) -> Only {
    Only {
        since,
        until,
        control_plane: true,
        worker: false,
    }
}

const fn example(
    only: Only,
    kind: &'static str,
    path: &'static str,
    text: &'static str,
) -> Example {
    Example {
        only,
        kind,
        path,
        text,
    }
}

/// No release is this new.
const EVER: u64 = u64::MAX;

/// Fields.
pub(super) const FIELDS: &[Example] = &[
    example(
        all(0, 14),
        "",
        "machine.kubelet",
        "# Further arguments of the kubelet.
extraArgs:
    rotate-server-certificates: \"true\"",
    ),
    example(
        all(0, 14),
        "",
        "machine.kubelet",
        "# The networks from which the node's address is chosen.
nodeIP:
    validSubnets:
        - 10.5.0.0/24",
    ),
    example(
        all(0, 14),
        "",
        "machine.kubelet",
        "# Folders of the machine that the kubelet sees too.
extraMounts:
    - destination: /var/mnt/storage
      type: bind
      source: /var/mnt/storage
      options:
        - bind
        - rshared
        - rw",
    ),
    example(
        all(0, 14),
        "",
        "machine",
        "# Labels of the node in Kubernetes.
nodeLabels:
    topology.kubernetes.io/zone: zone-a",
    ),
    example(
        all(0, 14),
        "",
        "machine",
        "# What keeps pods away that do not tolerate it.
nodeTaints:
    example.org/reserved: backup:NoSchedule",
    ),
    example(
        all(0, 14),
        "",
        "machine",
        "# Kernel parameters.
sysctls:
    vm.max_map_count: \"262144\"",
    ),
    example(
        all(0, 14),
        "",
        "machine",
        "# Kernel modules to load.
kernel:
    modules:
        - name: br_netfilter",
    ),
    example(
        all(0, 12),
        "",
        "machine",
        "# Where the time comes from.
time:
    servers:
        - time.example.org",
    ),
    example(
        control_planes(0, 14),
        "",
        "machine.features",
        "# Lets pods in these namespaces use the Talos API.
kubernetesTalosAPIAccess:
    enabled: true
    allowedRoles:
        - os:reader
    allowedKubernetesNamespaces:
        - kube-system",
    ),
    example(
        control_planes(0, 14),
        "",
        "cluster.network",
        "# The network plugin; with none you install one yourself.
cni:
    name: none",
    ),
    example(
        control_planes(0, 14),
        "",
        "cluster.apiServer",
        "# Further arguments of kube-apiserver.
extraArgs:
    feature-gates: ServerSideApply=true",
    ),
    example(
        control_planes(0, 14),
        "",
        "cluster.proxy",
        "# Leaves kube-proxy out, for network plugins that replace it.
disabled: true",
    ),
    example(
        control_planes(0, 14),
        "",
        "cluster.etcd",
        "# The networks from which the address for other members is chosen.
advertisedSubnets:
    - 10.5.0.0/24",
    ),
    example(
        control_planes(0, 14),
        "",
        "cluster",
        "# Lets ordinary pods run on control planes.
allowSchedulingOnControlPlanes: true",
    ),
    example(
        control_planes(0, 14),
        "",
        "cluster",
        "# Manifests that are applied when the cluster starts.
inlineManifests:
    - name: namespace-ci
      contents: |
        apiVersion: v1
        kind: Namespace
        metadata:
            name: ci",
    ),
    example(
        all(14, EVER),
        "KubeNodeConfig",
        "",
        "# Labels of the node in Kubernetes.
labels:
    topology.kubernetes.io/zone: zone-a",
    ),
    example(
        all(14, EVER),
        "KubeletConfig",
        "",
        "# Further arguments of the kubelet.
extraArgs:
    rotate-server-certificates: \"true\"",
    ),
    example(
        control_planes(14, EVER),
        "KubeAPIServerConfig",
        "",
        "# Further arguments of kube-apiserver.
extraArgs:
    feature-gates: ServerSideApply=true",
    ),
    example(
        control_planes(14, EVER),
        "",
        "cluster.etcd",
        "# The networks from which the address for other members is chosen.
advertisedSubnets:
    - 10.5.0.0/24",
    ),
    example(
        all(14, EVER),
        "ResolverConfig",
        "",
        "# DNS servers of the machine.
nameservers:
    - address: 10.5.0.1",
    ),
];

/// Documents.
pub(super) const DOCUMENTS: &[Example] = &[
    example(
        all(12, EVER),
        "LinkConfig",
        "",
        "# A fixed address; addresses come from DHCP only where no link has a document.
apiVersion: v1alpha1
kind: LinkConfig
name: enp0s1
addresses:
    - address: 10.5.0.2/24
routes:
    - gateway: 10.5.0.1",
    ),
    example(
        all(12, 14),
        "ResolverConfig",
        "",
        "# DNS servers of the machine.
apiVersion: v1alpha1
kind: ResolverConfig
nameservers:
    - address: 10.5.0.1",
    ),
    example(
        all(12, EVER),
        "TimeSyncConfig",
        "",
        "# Where the time comes from.
apiVersion: v1alpha1
kind: TimeSyncConfig
ntp:
    servers:
        - time.example.org",
    ),
    example(
        all(11, EVER),
        "UserVolumeConfig",
        "",
        "# A volume for data, mounted at /var/mnt/storage.
apiVersion: v1alpha1
kind: UserVolumeConfig
name: storage
provisioning:
    diskSelector:
        match: disk.transport == \"nvme\" && !system_disk
    minSize: 100GiB",
    ),
    example(
        all(14, EVER),
        "SysctlConfig",
        "",
        "# Kernel parameters.
apiVersion: v1alpha1
kind: SysctlConfig
params:
    vm.max_map_count: \"262144\"",
    ),
    example(
        all(14, EVER),
        "KernelModuleConfig",
        "",
        "# A kernel module to load.
apiVersion: v1alpha1
kind: KernelModuleConfig
name: br_netfilter",
    ),
];
