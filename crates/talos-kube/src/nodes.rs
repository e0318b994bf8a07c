//! The nodes of a cluster, as Kubernetes knows them.

use k8s_openapi::api::core::v1 as core;
use kube::Api;
use kube::api::ListParams;
use serde::{Deserialize, Serialize};

use crate::{Error, Kubernetes};

/// The label that makes a node a control plane; its value does not matter.
pub const CONTROL_PLANE_LABEL: &str = "node-role.kubernetes.io/control-plane";

/// A node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// The name in Kubernetes.
    pub name: String,
    /// True for a control plane node.
    pub control_plane: bool,
    /// The address Talos tools use: the first `InternalIP`, else the first `ExternalIP`.
    pub address: Option<String>,
    /// Every address of any type, host names included.
    pub addresses: Vec<String>,
    /// The version its kubelet reports, as written (`v1.34.0`).
    pub kubelet_version: String,
    /// True when its condition `Ready` is true.
    pub ready: bool,
}

impl From<&core::Node> for Node {
    fn from(node: &core::Node) -> Self {
        let status = node.status.clone().unwrap_or_default();
        let listed = status.addresses.unwrap_or_default();
        let first = |kind: &str| {
            let found = listed.iter().find(|address| address.type_ == kind);
            found.map(|address| address.address.clone())
        };
        let labels = node.metadata.labels.as_ref();
        let conditions = status.conditions.unwrap_or_default();
        Self {
            name: node.metadata.name.clone().unwrap_or_default(),
            control_plane: labels.is_some_and(|labels| labels.contains_key(CONTROL_PLANE_LABEL)),
            address: first("InternalIP").or_else(|| first("ExternalIP")),
            kubelet_version: status
                .node_info
                .map(|info| info.kubelet_version)
                .unwrap_or_default(),
            ready: conditions
                .iter()
                .any(|condition| condition.type_ == "Ready" && condition.status == "True"),
            addresses: listed.into_iter().map(|address| address.address).collect(),
        }
    }
}

impl Kubernetes {
    /// Lists all nodes, control planes first, in the order of the API within each group.
    ///
    /// # Errors
    /// [`Error::Request`] or [`Error::Outage`].
    pub async fn nodes(&self) -> Result<Vec<Node>, Error> {
        let list = self
            .call("list nodes", |client| async move {
                Api::<core::Node>::all(client)
                    .list(&ListParams::default())
                    .await
            })
            .await?;
        let mut nodes: Vec<Node> = list.items.iter().map(Node::from).collect();
        nodes.sort_by_key(|node| !node.control_plane);
        Ok(nodes)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(labels: Value, addresses: Value) -> Node {
        let node = json!({
            "metadata": {"name": "n", "labels": labels},
            "status": {
                "addresses": addresses,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        });
        Node::from(&serde_json::from_value::<core::Node>(node).unwrap())
    }

    #[test]
    fn the_internal_address_goes_before_the_external_one() {
        let both = json!([
            {"type": "Hostname", "address": "n"},
            {"type": "ExternalIP", "address": "192.0.2.1"},
            {"type": "InternalIP", "address": "10.5.0.2"},
            {"type": "InternalIP", "address": "fd00::2"},
        ]);
        let read = node(json!({}), both);
        assert_eq!(read.address.as_deref(), Some("10.5.0.2"));
        assert_eq!(read.addresses, ["n", "192.0.2.1", "10.5.0.2", "fd00::2"]);
        let external = node(
            json!({}),
            json!([{"type": "ExternalIP", "address": "192.0.2.1"}]),
        );
        assert_eq!(external.address.as_deref(), Some("192.0.2.1"));
        assert_eq!(node(json!({}), json!([])).address, None);
    }

    #[test]
    fn the_label_makes_a_control_plane_whatever_its_value() {
        assert!(node(json!({CONTROL_PLANE_LABEL: ""}), json!([])).control_plane);
        assert!(!node(json!({"node-role.kubernetes.io/worker": ""}), json!([])).control_plane);
    }

    #[test]
    fn readiness_is_read_from_the_condition() {
        assert!(node(json!({}), json!([])).ready);
        assert!(!Node::from(&core::Node::default()).ready);
    }
}
