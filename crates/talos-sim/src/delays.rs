//! How long simulated work takes.

use std::time::Duration;

/// How long simulated work takes; milliseconds by default, so that tests need no patience.
#[derive(Clone, Debug)]
pub struct Delays {
    /// How long a machine works on a configuration that it is given.
    pub apply: Duration,
    /// Between a change of names and each of the two certificates issued for it.
    pub certificate: Duration,
    /// Until dialling a node that is not there fails.
    pub dial_failure: Duration,
    /// Until dialling a node that does not answer fails.
    pub dial_timeout: Duration,
    /// An image pull.
    pub image_pull: Duration,
    /// From a changed static pod until its old container stops.
    pub static_pod_poll: Duration,
    /// How long kube-apiserver does not answer while it restarts.
    pub api_server_outage: Duration,
    /// From a started static pod until its mirror pod is replaced.
    pub mirror_pod: Duration,
    /// From a replaced pod until it is ready.
    pub pod_ready: Duration,
    /// How long the kubelet is down while it restarts.
    pub kubelet_restart: Duration,
    /// From a started kubelet until it is healthy.
    pub kubelet_healthy: Duration,
    /// From a healthy kubelet until its node object shows the new version.
    pub node_status: Duration,
    /// From a changed manifest until it is rendered.
    pub manifest: Duration,
    /// A pod of a DaemonSet being replaced on one node.
    pub daemon_set_pod: Duration,
    /// How long a rebooting node is away.
    pub reboot: Duration,
    /// Between two phases of a sequence such as reboot.
    pub phase: Duration,
    /// Replaces the requested rollback timeout of try mode, except a timeout of zero.
    pub try_rollback: Option<Duration>,
}

impl Default for Delays {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            apply: Duration::ZERO,
            certificate: ms(2),
            dial_failure: ms(1),
            dial_timeout: ms(50),
            image_pull: ms(1),
            static_pod_poll: ms(5),
            api_server_outage: ms(10),
            mirror_pod: ms(5),
            pod_ready: ms(5),
            kubelet_restart: ms(5),
            kubelet_healthy: ms(5),
            node_status: ms(5),
            manifest: ms(2),
            daemon_set_pod: ms(5),
            reboot: ms(20),
            phase: ms(1),
            try_rollback: None,
        }
    }
}
