//! What a node holds when it has booted: definitions, namespaces and the recorded instances.

use std::net::IpAddr;

use jiff::Timestamp;

use crate::TalosVersion;
use crate::store::Store;

/// What a node's own resources say about it.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// The host name, which is also its Kubernetes node name.
    pub(crate) name: String,
    /// The address it is reached by.
    pub(crate) address: IpAddr,
    /// Whether it is a control plane node.
    pub(crate) controlplane: bool,
    /// The addresses of the cluster's control plane nodes, this one included.
    pub(crate) controlplane_addresses: Vec<IpAddr>,
    /// The addresses of all nodes of the cluster.
    pub(crate) cluster_addresses: Vec<IpAddr>,
    /// The cluster's endpoint, such as `https://10.5.0.2:6443`.
    pub(crate) endpoint: String,
    /// The Kubernetes version, such as `1.36.3`.
    pub(crate) kubernetes_version: String,
}

/// The resources of a freshly booted node of one Talos version, shared between nodes where equal.
pub(crate) struct Seeds {}

impl Seeds {
    /// Prepares the resources of a Talos version; `now` is their creation time.
    pub(crate) fn new(version: TalosVersion, now: Timestamp) -> Self {
        let _ = (version, now);
        Self {}
    }

    /// Fills a store, leaving out instances of the types in `without`, which others provide.
    pub(crate) fn install(&self, store: &Store, node: &Identity, without: &[&str]) {
        let _ = (store, node, without);
    }
}
