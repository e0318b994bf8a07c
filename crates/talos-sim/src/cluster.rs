//! A running simulated cluster.

use std::sync::Arc;

use talos_pki::Certificate;

use crate::calls::Call;
use crate::error::Error;
use crate::kubernetes::KubeRequest;
use crate::node::Node;
use crate::options::Options;
use crate::shared::Shared;

/// A running simulated cluster; dropping it stops all of it.
#[derive(Debug)]
pub struct Cluster {
    shared: Arc<Shared>,
    nodes: Vec<Node>,
}

impl Cluster {
    /// Starts a cluster and returns when all of its servers listen.
    ///
    /// # Errors
    /// Options that make no cluster, or no free addresses.
    pub async fn start(_options: Options) -> Result<Self, Error> {
        Err(Error::NoControlPlane)
    }

    /// All machines: control planes, then workers, then those in maintenance mode.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A talosconfig whose client certificate has these roles.
    pub fn talosconfig(&self, _roles: &[&str]) -> String {
        String::new()
    }

    /// An administrator's kubeconfig whose server is the cluster endpoint.
    pub fn kubeconfig(&self) -> String {
        String::new()
    }

    /// The cluster endpoint, such as `https://10.5.10.2:6443`.
    pub fn endpoint(&self) -> &str {
        &self.shared.endpoint
    }

    /// The authority that signs what apid presents and accepts.
    pub fn talos_authority(&self) -> &Certificate {
        self.shared.pki.talos.certificate()
    }

    /// The authority that signs what kube-apiserver presents and accepts.
    pub fn kubernetes_authority(&self) -> &Certificate {
        self.shared.pki.kubernetes.certificate()
    }

    /// Calls that nodes handled so far.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.calls.all()
    }

    /// Forgets the calls so far.
    pub fn clear_calls(&self) {
        self.shared.calls.clear();
    }

    /// Requests that kube-apiservers received so far.
    pub fn kube_requests(&self) -> Vec<KubeRequest> {
        self.shared.kubernetes.requests()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}
