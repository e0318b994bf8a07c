//! One simulated machine.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::certificates::Certificates;
use crate::config::{Configs, Documents};
use crate::faults::Faults;
use crate::machine::{self, MachineState};
use crate::net::Port;
use crate::shared::Shared;
use crate::store::Store;

/// What a machine is in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineType {
    /// It waits for a configuration.
    Unknown,
    /// It runs the control plane.
    ControlPlane,
    /// It runs workloads only.
    Worker,
}

/// A handle on one machine of a simulated cluster.
#[derive(Clone, Debug)]
pub struct Node {
    pub(crate) shared: Arc<Shared>,
    pub(crate) index: usize,
}

impl Node {
    /// Host name of the machine.
    pub fn name(&self) -> &str {
        &self.state().name
    }

    /// What the machine is in its cluster.
    pub fn machine_type(&self) -> MachineType {
        self.state().machine_type()
    }

    /// The machine's own address, which is what `-n` takes.
    pub fn address(&self) -> IpAddr {
        self.state().address
    }

    /// Where its apid can be dialled; `None` for a node behind NAT that is not forwarded.
    pub fn dial(&self) -> Option<SocketAddr> {
        self.state().apid_port.as_ref().map(Port::address)
    }

    /// Where its kube-apiserver can be dialled, on a control plane that is reachable.
    pub fn kube_dial(&self) -> Option<SocketAddr> {
        self.state().kube_port.as_ref().map(Port::address)
    }

    /// What goes wrong on this machine.
    pub fn faults(&self) -> &Faults {
        &self.state().faults
    }

    /// Its resources.
    pub fn store(&self) -> &Store {
        &self.state().store
    }

    /// The text of its active machine configuration.
    pub fn machine_config(&self) -> Option<String> {
        self.state().configs.active_text()
    }

    /// Adds a line to the log of one of its services.
    pub fn append_log(&self, service: &str, line: &str) {
        let state = self.state();
        state
            .machine
            .logs
            .append(state, service, &format!("{line}\n"));
    }

    /// Puts a file onto the machine, for `Read` to find.
    pub fn write_file(&self, path: &str, content: &[u8]) {
        self.state().machine.write_file(path, content.to_vec());
    }

    /// Lets the time of a configuration on trial run out now; tells whether there was one.
    pub fn expire_trial(&self) -> bool {
        machine::roll_back(&self.shared, &self.shared.nodes[self.index])
    }

    /// Public key fingerprint of what apid presents in maintenance mode, as `--cert-fingerprint` takes it.
    pub fn maintenance_fingerprint(&self) -> Option<String> {
        self.state().maintenance_fingerprint(&self.shared)
    }

    fn state(&self) -> &NodeState {
        &self.shared.nodes[self.index]
    }
}

/// One machine, as the cluster's tasks see it.
#[derive(Debug)]
pub(crate) struct NodeState {
    pub(crate) index: usize,
    /// Host name, which is also the name of its Kubernetes node.
    pub(crate) name: String,
    pub(crate) address: IpAddr,
    pub(crate) apid_port: Option<Port>,
    pub(crate) kube_port: Option<Port>,
    pub(crate) configs: Configs,
    pub(crate) store: Store,
    pub(crate) faults: Faults,
    pub(crate) certificates: Certificates,
    pub(crate) machine: MachineState,
}

impl NodeState {
    /// What the active configuration makes of the machine.
    pub(crate) fn machine_type(&self) -> MachineType {
        self.configs.machine_type()
    }

    /// Whether a request that names a target means this machine.
    pub(crate) fn is_called(&self, target: &str) -> bool {
        target == self.name
            || target
                .parse::<IpAddr>()
                .is_ok_and(|address| address == self.address)
    }

    pub(crate) fn is_control_plane(&self) -> bool {
        self.machine_type() == MachineType::ControlPlane
    }

    /// The active machine configuration, if there is one.
    pub(crate) fn documents(&self) -> Option<Arc<Documents>> {
        self.configs.active()
    }
}
