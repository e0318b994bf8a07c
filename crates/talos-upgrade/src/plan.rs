//! The plan of an upgrade: what will be done where, and what forbids it.

mod blocked;
mod detect;
mod steps;

use schemars::JsonSchema;
use semver::Version;
use serde::Serialize;
use talos_kube::Component;

pub use blocked::{Blocked, Warning};
pub use detect::Source;

use crate::{Error, Facts, ManifestOptions, Request, removed, rules};

/// Everything an upgrade will do, in order. Printing it is a dry run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The version to start from.
    #[schemars(with = "String")]
    pub from: Version,
    /// The version to reach.
    #[schemars(with = "String")]
    pub to: Version,
    /// The pod with the lowest version found, if any has one.
    pub lowest: Option<Source>,
    /// The nodes of the cluster that the upgrade looks at, control planes first.
    pub nodes: Vec<PlannedNode>,
    /// Images to pull before anything is changed.
    pub pulls: Vec<Pull>,
    /// The changes of machine configurations, in order.
    pub steps: Vec<Step>,
    /// The last stage.
    pub manifests: ManifestPlan,
    /// What forbids the upgrade; empty if nothing does.
    pub blocked: Vec<Blocked>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
}

/// A node as planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedNode {
    /// Its name in Kubernetes.
    pub name: String,
    /// The address by which Talos targets it.
    pub address: String,
    /// True for a control plane node.
    pub control_plane: bool,
    /// Its Talos version, if it was asked.
    #[schemars(with = "Option<String>")]
    pub talos: Option<Version>,
    /// The version its kubelet reports.
    pub kubelet: String,
    /// The components whose image changes in its machine configuration.
    pub changes: Vec<Component>,
}

/// An image to pull on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pull {
    /// The node's name.
    pub node: String,
    /// Its address.
    pub address: String,
    /// The image.
    pub image: String,
    /// Where the node keeps it.
    pub store: ImageStore,
}

/// The two places where a node keeps images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ImageStore {
    /// Images of pods (containerd namespace `k8s.io`).
    Pods,
    /// Images of Talos' own services such as the kubelet (containerd namespace `system`).
    System,
}

/// One component on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The component.
    pub component: Component,
    /// The node's name.
    pub node: String,
    /// Its address.
    pub address: String,
    /// The image now, if known.
    pub from: Option<String>,
    /// The image to be.
    pub to: String,
    /// What to do.
    pub action: Action,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Write the machine configuration and wait until the new image runs.
    Change,
    /// Write the machine configuration; the component is turned off, so nothing will run.
    Record,
    /// The configuration has the image already, but it does not run yet: wait for it.
    Wait,
    /// The image runs already.
    Done,
    /// The component is turned off on this cluster.
    Off,
}

impl Action {
    /// Tells whether the step writes a machine configuration.
    pub fn writes(self) -> bool {
        matches!(self, Self::Change | Self::Record)
    }
}

/// The stage that brings the bootstrap manifests up to date.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestPlan {
    /// How objects are written.
    pub method: ManifestMethod,
    /// The address of the node whose list of manifests is used.
    pub read_from: Option<String>,
    /// The image of kube-proxy that must appear in the list first; `None` when kube-proxy is off.
    pub proxy_image: Option<String>,
    /// The user's choices.
    pub options: ManifestOptions,
}

/// How objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ManifestMethod {
    /// Server-side apply with an inventory, when every node runs Talos 1.13 or newer.
    ServerSideApply,
    /// Replacing whole objects, without an inventory.
    Replace,
}

impl Plan {
    /// Tells whether something forbids the upgrade.
    pub fn is_blocked(&self) -> bool {
        !self.blocked.is_empty()
    }

    /// The nodes whose machine configuration will be written.
    pub fn touched(&self) -> impl Iterator<Item = &PlannedNode> {
        self.nodes.iter().filter(|node| !node.changes.is_empty())
    }
}

/// Makes the plan. Nothing but its arguments counts, so the same facts give the same plan.
///
/// # Errors
/// [`Error::NoSource`] when no version can be detected and none is given, [`Error::NoTarget`] when none is given and
/// the Talos release is unknown. Everything that merely forbids the upgrade is in [`Plan::blocked`].
pub fn plan(facts: &Facts, request: &Request) -> Result<Plan, Error> {
    let (lowest, mut warnings) = detect::lowest(&facts.pods);
    let from = match (&request.from, &lowest) {
        (Some(from), _) => from.clone(),
        (None, Some(source)) => source.version.clone(),
        (None, None) => return Err(Error::NoSource),
    };
    let to = target(facts, request)?;
    if let Some(source) = lowest.as_ref().filter(|source| source.version != from) {
        warnings.push(Warning::FromDiffers {
            from: from.clone(),
            lowest: source.clone(),
        });
    }
    let planned = steps::steps(facts, request, &to, &mut warnings);
    let pulls = if request.pre_pull {
        steps::pulls(facts, &planned, &to)
    } else {
        warnings.push(Warning::ImagesUnchecked);
        Vec::new()
    };
    let nodes = facts
        .nodes
        .iter()
        .filter(|node| node.talos.is_some())
        .map(|facts| PlannedNode {
            name: facts.node.name.clone(),
            address: facts.node.address.clone().unwrap_or_default(),
            control_plane: facts.node.control_plane,
            talos: facts.talos.as_ref().map(|talos| talos.version.clone()),
            kubelet: facts.node.kubelet_version.clone(),
            changes: planned
                .iter()
                .filter(|step| step.node == facts.node.name && step.action.writes())
                .map(|step| step.component)
                .collect(),
        })
        .collect();
    let not_ready = facts.nodes.iter().filter(|node| !node.node.ready);
    warnings.extend(not_ready.map(|node| Warning::NotReady {
        node: node.node.name.clone(),
    }));
    let mut blocked = blocked::find(facts, request, (&from, &to), lowest.as_ref(), &planned);
    if let Some(list) = rules::removed(&from, &to) {
        blocked.extend(removed::find(facts, list).into_iter().map(Blocked::Removed));
    }
    Ok(Plan {
        manifests: manifests(facts, request, &planned),
        from,
        to,
        lowest,
        nodes,
        pulls,
        steps: planned,
        blocked,
        warnings,
    })
}

/// The version to start from and the one to reach, as [`plan`] will see them.
pub(crate) fn versions(facts: &Facts, request: &Request) -> Result<(Version, Version), Error> {
    let (lowest, _) = detect::lowest(&facts.pods);
    let from = match (&request.from, lowest) {
        (Some(from), _) => from.clone(),
        (None, Some(source)) => source.version,
        (None, None) => return Err(Error::NoSource),
    };
    Ok((from, target(facts, request)?))
}

fn target(facts: &Facts, request: &Request) -> Result<Version, Error> {
    let default = || rules::default_kubernetes(facts.oldest_talos()?);
    request.to.clone().or_else(default).ok_or(Error::NoTarget)
}

fn manifests(facts: &Facts, request: &Request, steps: &[Step]) -> ManifestPlan {
    let applies = |talos: &Version| (talos.major, talos.minor) >= (1, 13);
    let proxy = steps
        .iter()
        .find(|step| step.component == Component::KubeProxy && step.action != Action::Off);
    let first = facts.control_planes().next();
    ManifestPlan {
        method: if facts.oldest_talos().is_some_and(applies) {
            ManifestMethod::ServerSideApply
        } else {
            ManifestMethod::Replace
        },
        read_from: first.and_then(|node| node.node.address.clone()),
        proxy_image: proxy.map(|step| step.to.clone()),
        options: request.manifests,
    }
}

#[cfg(test)]
mod tests;
