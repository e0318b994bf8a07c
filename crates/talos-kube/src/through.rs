//! Reaching Kubernetes by way of a Talos node.

use serde_json::Value;
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
    options.nodes.extend(addresses(node).await);
    reach(&access, options).await
}

/// The addresses of a node without those of its pods; none when it does not tell, which only costs candidates.
async fn addresses(node: &Node) -> Vec<String> {
    for id in ["current-no-k8s", "default"] {
        let found = node.get("network", "NodeAddresses.net.talos.dev", id).await;
        let Ok(Ok(spec)) = found.map(|found| found.spec()) else {
            continue;
        };
        let list = spec.get("addresses").and_then(Value::as_array);
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        return texts
            .map(|text| text.split('/').next().unwrap_or(text).to_owned())
            .collect();
    }
    Vec::new()
}
