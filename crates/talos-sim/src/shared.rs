//! What all parts of one simulated cluster share.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::calls::{Call, Record};
use crate::kubernetes::Kubernetes;
use crate::node::NodeState;
use crate::options::Options;
use crate::pki::ClusterPki;
use crate::trust::Trust;

/// One simulated cluster, as its tasks see it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    /// `cluster.controlPlane.endpoint`, such as `https://10.5.10.2:6443`.
    pub(crate) endpoint: String,
    /// `cluster.id`.
    pub(crate) cluster_id: String,
    pub(crate) pki: ClusterPki,
    pub(crate) nodes: Vec<Arc<NodeState>>,
    pub(crate) calls: Record<Call>,
    pub(crate) kubernetes: Kubernetes,
    pub(crate) stop: CancellationToken,
}

impl Shared {
    /// The cluster's time.
    pub(crate) fn now(&self) -> Timestamp {
        now(&self.options)
    }

    /// Runs work until it is done or the cluster is dropped.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        tokio::spawn(async move {
            let _stopped = stop.run_until_cancelled_owned(work).await;
        });
    }

    /// Finds a node by what a request may call it: its address or its host name.
    pub(crate) fn find(&self, target: &str) -> Option<&Arc<NodeState>> {
        let address = target.parse::<IpAddr>().ok();
        self.nodes
            .iter()
            .find(|node| Some(node.address) == address || node.name == target)
    }

    /// The authorities that sign for a node: its own, or on a worker those of the first control plane.
    pub(crate) fn signing_trust(&self, node: &NodeState) -> Arc<Trust> {
        let own = node.trust();
        if own.talos.signer.is_some() {
            return own;
        }
        let first = self.control_planes().next();
        first.map_or(own, |first| first.trust())
    }

    /// The authorities of the first control plane.
    pub(crate) fn current_trust(&self) -> Arc<Trust> {
        let first = self.control_planes().next().unwrap_or(&self.nodes[0]);
        first.trust()
    }

    /// All control planes that have a configuration, in order.
    pub(crate) fn control_planes(&self) -> impl Iterator<Item = &Arc<NodeState>> {
        self.nodes.iter().filter(|node| node.is_control_plane())
    }
}

/// The time in a cluster of these options.
pub(crate) fn now(options: &Options) -> Timestamp {
    let real = Timestamp::now();
    real.checked_add(options.clock_offset).unwrap_or(real)
}
