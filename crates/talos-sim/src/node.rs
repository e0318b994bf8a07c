//! One simulated machine.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};

use crate::certificates::Certificates;
use crate::config::{Configs, Documents};
use crate::faults::Faults;
use crate::machine::{self, MachineState};
use crate::net::Port;
use crate::servers::{Identities, Server};
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
        self.dial_server(Server::Apid)
    }

    /// Where its kube-apiserver can be dialled, on a control plane that is reachable.
    pub fn kube_dial(&self) -> Option<SocketAddr> {
        self.dial_server(Server::KubeApiServer)
    }

    /// Where one of its servers can be dialled; `None` where the machine has none, or none that is forwarded.
    pub fn dial_server(&self, server: Server) -> Option<SocketAddr> {
        let state = self.state();
        let port = state.ports.get(&server)?;
        server.runs_on(state.machine_type()).then(|| port.address())
    }

    /// All of its servers that can be dialled.
    pub fn servers(&self) -> Vec<(Server, SocketAddr)> {
        let dialled = |server| Some((server, self.dial_server(server)?));
        Server::ALL.into_iter().filter_map(dialled).collect()
    }

    /// Sets the machine's clock wrong by an amount that is added to the cluster's time.
    ///
    /// It shows in what the machine says about its time, and in certificates that it issues and judges from now on.
    pub fn set_clock_offset(&self, offset: SignedDuration) {
        self.state().set_clock_offset(&self.shared, offset);
    }

    /// The machine's own idea of the time.
    pub fn now(&self) -> Timestamp {
        self.state().now(&self.shared)
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
    /// Ports of the servers that it may come to run, as far as they can be dialled.
    pub(crate) ports: BTreeMap<Server, Port>,
    pub(crate) configs: Configs,
    pub(crate) store: Store,
    pub(crate) faults: Faults,
    pub(crate) certificates: Certificates,
    pub(crate) identities: Identities,
    /// What is added to the cluster's time to get the machine's, in milliseconds.
    pub(crate) clock_offset: AtomicI64,
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

    /// The machine's own idea of the time.
    pub(crate) fn now(&self, shared: &Shared) -> Timestamp {
        let offset = SignedDuration::from_millis(self.clock_offset.load(Ordering::Relaxed));
        let right = shared.now();
        right.checked_add(offset).unwrap_or(right)
    }

    fn set_clock_offset(&self, shared: &Shared, offset: SignedDuration) {
        let millis = i64::try_from(offset.as_millis()).unwrap_or_default();
        self.clock_offset.store(millis, Ordering::Relaxed);
        let all = shared.options.clock_offset.saturating_add(offset);
        self.certificates.clients().set_clock(all.as_secs());
    }

    /// The active machine configuration, if there is one.
    pub(crate) fn documents(&self) -> Option<Arc<Documents>> {
        self.configs.active()
    }
}
