//! What a simulated cluster is made of.

use jiff::SignedDuration;

use crate::Delays;

/// The shape of a simulated cluster.
#[derive(Clone, Debug)]
pub struct Options {
    /// Cluster name, as in the machine configuration and the talosconfig's context.
    pub name: String,
    /// Number of control plane nodes.
    pub controlplanes: usize,
    /// Number of worker nodes.
    pub workers: usize,
    /// Number of further nodes without a machine configuration, which wait in maintenance mode.
    pub maintenance: usize,
    /// Whether etcd has data already, so that `Bootstrap` is refused.
    pub bootstrapped: bool,
    /// Gives nodes addresses that cannot be dialled; only forwarded loopback ports can.
    pub nat: bool,
    /// In NAT mode, forwards the ports of every node instead of the first control plane's only.
    pub forward_all: bool,
    /// The Talos version that nodes report and behave as.
    pub talos_version: TalosVersion,
    /// The Kubernetes version that the cluster starts with, without a leading `v`.
    pub kubernetes_version: String,
    /// Where the machines claim to run.
    pub platform: Platform,
    /// `machine.certSANs` of the generated configurations.
    pub machine_cert_sans: Vec<String>,
    /// `cluster.apiServer.certSANs` of the generated configurations.
    pub api_server_cert_sans: Vec<String>,
    /// `cluster.controlPlane.endpoint`; the first control plane's own address when absent.
    pub endpoint: Option<String>,
    /// The machine configurations to boot with; made from the other options when absent.
    pub configs: Option<BootConfigs>,
    /// How long things take.
    pub delays: Delays,
    /// What is added to the real time to get the cluster's time.
    pub clock_offset: SignedDuration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "cluster-1".to_owned(),
            controlplanes: 1,
            workers: 1,
            maintenance: 0,
            bootstrapped: true,
            nat: false,
            forward_all: false,
            talos_version: TalosVersion::V1_13_9,
            kubernetes_version: "1.33.4".to_owned(),
            platform: Platform::Metal,
            machine_cert_sans: Vec::new(),
            api_server_cert_sans: Vec::new(),
            endpoint: None,
            configs: None,
            delays: Delays::default(),
            clock_offset: SignedDuration::ZERO,
        }
    }
}

/// The machine configurations that a cluster boots with.
///
/// Authorities, the cluster's name, identity and endpoint, and the Kubernetes version come from them.
#[derive(Clone)]
pub struct BootConfigs {
    /// That of every control plane.
    pub control_plane: String,
    /// That of every worker; needed if there are any.
    pub worker: Option<String>,
}

/// Configurations hold keys, so none is shown.
impl std::fmt::Debug for BootConfigs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BootConfigs").finish_non_exhaustive()
    }
}

/// A Talos version that nodes can behave as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TalosVersion {
    /// Talos 1.11.5: before the image service, with the older encoding of machine configurations.
    V1_11_5,
    /// Talos 1.13.9, the version that the recordings come from.
    V1_13_9,
    /// Talos 1.14: applies everything without a reboot.
    V1_14,
}

impl TalosVersion {
    /// All versions, oldest first.
    pub const ALL: [Self; 3] = [Self::V1_11_5, Self::V1_13_9, Self::V1_14];

    /// The version tag that `Version` answers.
    pub fn tag(self) -> &'static str {
        match self {
            Self::V1_11_5 => "v1.11.5",
            Self::V1_13_9 => "v1.13.9",
            Self::V1_14 => "v1.14.1",
        }
    }

    /// The name of this version in tables of facts.
    pub(crate) fn table(self) -> &'static str {
        match self {
            Self::V1_11_5 => "v1.11.5",
            Self::V1_13_9 => "v1.13.9",
            Self::V1_14 => "v1.14.0-rc.1",
        }
    }

    /// Finds the profile for a version as people type it, such as `1.13` or `v1.13.9`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts = text.split('.');
        let (major, minor) = (parts.next()?, parts.next()?);
        match (major, minor) {
            ("1", "11") => Some(Self::V1_11_5),
            ("1", "13") => Some(Self::V1_13_9),
            ("1", "14") => Some(Self::V1_14),
            _ => None,
        }
    }
}

/// Where a machine claims to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// A machine of its own, which can reboot.
    Metal,
    /// A container, where reboot, shutdown and upgrade are refused.
    Container,
}
