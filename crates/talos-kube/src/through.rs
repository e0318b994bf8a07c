//! Reaching Kubernetes by way of a Talos node.

use std::net::IpAddr;

use talos_client::Node;
use talos_config::kubeconfig::Kubeconfig;

use crate::{Access, Error, Kubernetes, Options, reach};

/// Reaches the Kubernetes that a kubeconfig leads to, knowing the control plane node that handed it out.
///
/// The node's own addresses, as it tells them over the Talos API, count as known: they are dialed after the kubeconfig's
/// server unless an endpoint is given, and its certificate may be for one of them.
///
/// # Errors
/// [`Error::Context`] when the text is no kubeconfig, else as [`reach`].
pub async fn reach_through(
    node: &Node,
    kubeconfig: &str,
    mut options: Options,
) -> Result<Kubernetes, Error> {
    let kubeconfig = Kubeconfig::parse("the node's kubeconfig", kubeconfig);
    let kubeconfig = kubeconfig.map_err(|source| Error::Context {
        source: Box::new(source),
    })?;
    let access = Access::from_kubeconfig(&kubeconfig, None)?;
    options.nodes.extend(node.name().map(str::to_owned));
    // A node that does not tell its addresses only costs candidates.
    let addresses = node.addresses().await.unwrap_or_default();
    options
        .nodes
        .extend(addresses.iter().map(IpAddr::to_string));
    reach(&access, options).await
}
