//! The servers of a node besides apid and kube-apiserver: trustd, kubelet, etcd and KubePrism.

mod http;
mod identity;
mod prism;
mod secure;
mod trustd;

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use crate::error::Error;
use crate::faults::{Behavior, Reach};
use crate::net::Port;
use crate::node::{MachineType, NodeState};
use crate::shared::Shared;

pub(crate) use identity::{Identities, issue_etcd, kube_chain};
pub(crate) use secure::{misbehave, secure};

/// How long a failed accept pauses, for instance when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(5);

/// A server of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Server {
    /// The Talos API; on every node.
    Apid,
    /// Signs the certificates of workers; on control planes.
    Trustd,
    /// The Kubernetes API; on control planes.
    KubeApiServer,
    /// The kubelet; on every configured node.
    Kubelet,
    /// etcd for its clients; on control planes.
    EtcdClient,
    /// etcd for its peers; on control planes.
    EtcdPeer,
    /// Forwards to a kube-apiserver; on every configured node.
    KubePrism,
}

impl Server {
    /// All servers, those first that a client meets first.
    pub const ALL: [Self; 7] = [
        Self::Apid,
        Self::Trustd,
        Self::KubeApiServer,
        Self::Kubelet,
        Self::EtcdClient,
        Self::EtcdPeer,
        Self::KubePrism,
    ];

    /// The port that Talos gives this server.
    pub fn port(self) -> u16 {
        match self {
            Self::Apid => 50_000,
            Self::Trustd => 50_001,
            Self::KubeApiServer => 6443,
            Self::Kubelet => 10_250,
            Self::EtcdClient => 2379,
            Self::EtcdPeer => 2380,
            Self::KubePrism => 7445,
        }
    }

    /// The name by which people know this server.
    pub fn name(self) -> &'static str {
        match self {
            Self::Apid => "apid",
            Self::Trustd => "trustd",
            Self::KubeApiServer => "kube-apiserver",
            Self::Kubelet => "kubelet",
            Self::EtcdClient => "etcd",
            Self::EtcdPeer => "etcd-peer",
            Self::KubePrism => "kubeprism",
        }
    }

    /// Whether a machine of this type runs the server.
    pub(crate) fn runs_on(self, machine_type: MachineType) -> bool {
        match self {
            Self::Apid => true,
            Self::Kubelet | Self::KubePrism => machine_type != MachineType::Unknown,
            Self::Trustd | Self::KubeApiServer | Self::EtcdClient | Self::EtcdPeer => {
                machine_type == MachineType::ControlPlane
            }
        }
    }
}

/// Starts the servers of a configured node, besides apid and kube-apiserver; those that run already go on.
pub(crate) fn start(shared: &Arc<Shared>, node: &Arc<NodeState>) -> Result<(), Error> {
    for (&server, port) in &node.ports {
        let is_other = matches!(server, Server::Apid | Server::KubeApiServer);
        if is_other || !server.runs_on(node.machine_type()) || !node.identities.begin(server) {
            continue;
        }
        let address = port.address();
        let listener = port
            .listen()
            .map_err(|source| Error::Listen { address, source })?;
        shared.spawn(serve(shared.clone(), node.clone(), server, listener));
    }
    Ok(())
}

/// Accepts connections for as long as the node is up and the server is not told to be closed.
async fn serve(shared: Arc<Shared>, node: Arc<NodeState>, server: Server, first: TcpListener) {
    let mut reach = node.faults.watch_reach();
    let mut behaviors = node.faults.watch_behaviors();
    let mut listener = Some(first);
    loop {
        let behavior = behaviors.borrow_and_update().get(&server).copied();
        let now = *reach.borrow_and_update();
        if now == Reach::Refusing || behavior == Some(Behavior::Closed) {
            listener = None;
        } else if listener.is_none() {
            listener = node
                .ports
                .get(&server)
                .map(Port::listen)
                .and_then(Result::ok);
        }
        let accepting = async {
            match &listener {
                Some(listener) if now == Reach::Up => {
                    accept(&shared, &node, server, listener).await
                }
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            () = accepting => {}
            changed = reach.changed() => if changed.is_err() { return },
            changed = behaviors.changed() => if changed.is_err() { return },
        }
    }
}

async fn accept(
    shared: &Arc<Shared>,
    node: &Arc<NodeState>,
    server: Server,
    listener: &TcpListener,
) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let mut drops = node.faults.watch_drops();
        drops.mark_unchanged();
        let (work_shared, node) = (shared.clone(), node.clone());
        shared.spawn(async move {
            tokio::select! {
                () = connection(work_shared, node, server, stream) => {}
                _ = drops.changed() => {}
            }
        });
    }
}

async fn connection(shared: Arc<Shared>, node: Arc<NodeState>, server: Server, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    if server == Server::KubePrism {
        if let Some(stream) = misbehave(&node, server, stream).await {
            prism::forward(&shared, &node, stream).await;
        }
        return;
    }
    let Some(stream) = secure(&shared, &node, server, stream).await else {
        return;
    };
    match server {
        Server::Trustd => trustd::speak(shared, node, stream).await,
        _ => http::speak(shared, node, server, stream).await,
    }
}

#[cfg(test)]
mod tests;
