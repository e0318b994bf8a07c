//! What a cluster looks like before an upgrade, as data.

use std::collections::BTreeMap;

use semver::Version;
use serde::Serialize;
use talos_kube::{Component, ComponentPod, Node};

/// Everything a plan is made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// The nodes, control planes first.
    pub nodes: Vec<NodeFacts>,
    /// The pods of Kubernetes' own components.
    pub pods: Vec<ComponentPod>,
    /// How many objects there are of each API resource that the step takes away, by `resource.version.group`.
    pub removed_resources: BTreeMap<String, u64>,
}

/// A node, seen from Kubernetes and from Talos.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeFacts {
    /// What Kubernetes says about it.
    #[serde(flatten)]
    pub node: Node,
    /// What Talos says about it; `None` for a node without an address and for workers that are not upgraded.
    pub talos: Option<TalosFacts>,
}

/// What Talos says about a node.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TalosFacts {
    /// The Talos version.
    pub version: Version,
    /// True when the machine configuration in use is not the one on disk: a try or staged change is pending.
    pub pending: bool,
    /// The image each component was told to run, where one runs.
    pub running: BTreeMap<Component, String>,
    /// The command line of each component, where one runs.
    pub arguments: BTreeMap<Component, Vec<String>>,
    /// The image each component has in the machine configuration, where it names one.
    pub configured: BTreeMap<Component, String>,
    /// The components the machine configuration turns off.
    pub disabled: Vec<Component>,
    /// The components of a control plane that should run and that the node has not rendered a static pod for.
    pub unrendered: Vec<Component>,
}

impl TalosFacts {
    /// Tells whether it is in order that the node has no static pod of a component: only where the configuration turns
    /// it off, and never for kube-apiserver.
    pub(crate) fn may_lack(&self, component: Component) -> bool {
        component != Component::KubeApiserver && self.disabled.contains(&component)
    }
}

impl Facts {
    /// The control plane nodes.
    pub fn control_planes(&self) -> impl Iterator<Item = &NodeFacts> {
        self.nodes.iter().filter(|node| node.node.control_plane)
    }

    /// The oldest Talos version among the nodes.
    pub fn oldest_talos(&self) -> Option<&Version> {
        let versions = self.nodes.iter().filter_map(|node| node.talos.as_ref());
        versions.map(|talos| &talos.version).min()
    }

    /// The pod of a component on a node; of several the one that is not being deleted.
    pub fn pod_on(&self, node: &Node, component: Component) -> Option<&ComponentPod> {
        let found = self
            .pods
            .iter()
            .filter(|pod| pod.component == component && is_on(pod, node));
        found.min_by_key(|pod| pod.deleting)
    }
}

/// Tells whether a pod runs on a node, by the node's name or by an address of it.
pub(crate) fn is_on(pod: &ComponentPod, node: &Node) -> bool {
    match &pod.node {
        Some(name) => *name == node.name,
        None => pod
            .host_addresses
            .iter()
            .any(|address| node.addresses.contains(address)),
    }
}
