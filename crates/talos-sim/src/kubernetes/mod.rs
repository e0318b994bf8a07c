//! The simulated Kubernetes API, and what a node does about a changed configuration.

use std::sync::Arc;

use crate::config::Documents;
use crate::error::Error;
use crate::shared::Shared;

/// One request that a kube-apiserver received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeRequest {
    /// Name of the node whose kube-apiserver was asked.
    pub node: String,
    /// HTTP method.
    pub method: String,
    /// Path with query.
    pub path: String,
}

/// The Kubernetes side of one cluster.
#[derive(Debug, Default)]
pub(crate) struct Kubernetes {}

impl Kubernetes {
    /// All requests that arrived so far.
    pub(crate) fn requests(&self) -> Vec<KubeRequest> {
        Vec::new()
    }
}

/// Fills the objects and serves the API on the `kube_port` of every control plane.
pub(crate) async fn start(_shared: &Arc<Shared>) -> Result<(), Error> {
    Ok(())
}

/// Reacts to a machine configuration that has become active on a node.
pub(crate) fn config_applied(_shared: &Arc<Shared>, _node: usize, _old: &Documents, _new: &Documents) {}
