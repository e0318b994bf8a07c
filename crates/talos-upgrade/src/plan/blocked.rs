//! What forbids an upgrade, and what merely deserves a word.

use schemars::JsonSchema;
use semver::Version;
use serde::Serialize;
use talos_kube::Component;

use super::{Source, Step};
use crate::removed::Finding;
use crate::rules::{self, Compatibility};
use crate::{Facts, Request};

/// How many minors a kubelet may be behind the API server.
const KUBELET_SKEW: u64 = 3;

/// A reason why the upgrade must not start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(
    tag = "code",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Blocked {
    /// The version to reach is newer than what is known here.
    UnknownKubernetes {
        /// The version to reach.
        #[schemars(with = "String")]
        to: Version,
        /// The newest minor that is known.
        newest: String,
    },
    /// The version to reach is a lower minor than the one that runs.
    Downgrade {
        /// The version to start from.
        #[schemars(with = "String")]
        from: Version,
        /// The version to reach.
        #[schemars(with = "String")]
        to: Version,
    },
    /// The versions are more than one minor apart.
    UnsupportedPath {
        /// The version to start from.
        #[schemars(with = "String")]
        from: Version,
        /// The version to reach.
        #[schemars(with = "String")]
        to: Version,
        /// The pod that set `from`, when it was detected.
        lowest: Option<Source>,
    },
    /// No node carries the control plane label.
    NoControlPlane,
    /// Kubernetes knows no address of a node.
    NoAddress {
        /// The node.
        node: String,
    },
    /// Kubernetes would be too old for a node's Talos.
    TooOld {
        /// The node.
        node: String,
        /// Its Talos version.
        #[schemars(with = "String")]
        talos: Version,
        /// The oldest Kubernetes it runs.
        oldest: String,
    },
    /// Kubernetes would be too new for a node's Talos.
    TooNew {
        /// The node.
        node: String,
        /// Its Talos version.
        #[schemars(with = "String")]
        talos: Version,
        /// The newest Kubernetes minor it runs.
        newest: String,
    },
    /// A node runs a Talos version that is not known here.
    UnknownTalos {
        /// The node.
        node: String,
        /// Its Talos version.
        #[schemars(with = "String")]
        talos: Version,
    },
    /// A kubelet would be too far behind the API server.
    KubeletSkew {
        /// The node.
        node: String,
        /// The version its kubelet reports.
        #[schemars(with = "String")]
        kubelet: Version,
    },
    /// A control plane node lacks static pods that its configuration does not turn off.
    NotRendered {
        /// The node.
        node: String,
        /// The components without a static pod.
        components: Vec<Component>,
    },
    /// A try or staged machine configuration is pending on a node that would be changed.
    Pending {
        /// The node.
        node: String,
    },
    /// Something in use is gone in the target version.
    Removed(Finding),
}

impl std::fmt::Display for Blocked {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownKubernetes { to, newest } => {
                write!(
                    out,
                    "Kubernetes {to} is not known here, {newest} is the newest"
                )
            }
            Self::Downgrade { from, to } => {
                write!(out, "Kubernetes cannot go back from {from} to {to}")
            }
            Self::UnsupportedPath { from, to, lowest } => {
                write!(out, "Kubernetes {from} cannot go to {to} in one upgrade")?;
                match lowest {
                    Some(source) => write!(out, "; {source}"),
                    None => Ok(()),
                }
            }
            Self::NoControlPlane => write!(out, "no control plane node was found"),
            Self::NoAddress { node } => {
                write!(out, "node {node}: Kubernetes knows no address of it")
            }
            Self::TooOld {
                node,
                talos,
                oldest,
            } => write!(
                out,
                "node {node}: Talos {talos} needs Kubernetes {oldest} or newer"
            ),
            Self::TooNew {
                node,
                talos,
                newest,
            } => write!(
                out,
                "node {node}: Talos {talos} runs Kubernetes up to {newest}"
            ),
            Self::UnknownTalos { node, talos } => write!(
                out,
                "node {node}: which Kubernetes Talos {talos} runs is not known here"
            ),
            Self::KubeletSkew { node, kubelet } => write!(
                out,
                "node {node}: its kubelet {kubelet} is more than {KUBELET_SKEW} minors behind"
            ),
            Self::NotRendered { node, components } => {
                let names: Vec<&str> = components.iter().map(|one| one.name()).collect();
                write!(
                    out,
                    "node {node} has not rendered its static pods: {} {} missing",
                    names.join(", "),
                    if names.len() == 1 { "is" } else { "are" }
                )
            }
            Self::Pending { node } => write!(
                out,
                "node {node}: a try or staged machine configuration is pending"
            ),
            Self::Removed(finding) => finding.fmt(out),
        }
    }
}

impl Blocked {
    /// Says what the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::UnsupportedPath { .. } => {
                "go one minor at a time; if the pod named here is a left-over, remove it or give --from"
            }
            Self::UnknownKubernetes { .. } => "use a newer release of this program",
            Self::Downgrade { .. } => "choose a version that is not older with --to",
            Self::NoControlPlane | Self::NoAddress { .. } => "look at `kubectl get nodes -o wide`",
            Self::TooOld { .. } => "choose a newer Kubernetes with --to",
            Self::TooNew { .. } => "upgrade Talos on this node first, or choose an older --to",
            Self::UnknownTalos { .. } => "use a newer release of this program",
            Self::KubeletSkew { .. } => "upgrade this node's kubelet first",
            Self::NotRendered { .. } => {
                "wait until the node has started, and look at its services and logs if it does not"
            }
            Self::Pending { .. } => {
                "wait for the try to end, reboot the node into the staged configuration, or apply it again"
            }
            Self::Removed(_) => "remove it from the machine configuration or the cluster first",
        }
    }
}

/// Something the user should know, that forbids nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(
    tag = "code",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Warning {
    /// A component's image names no version, so it does not count in the detection.
    UnknownVersion {
        /// The pod.
        pod: String,
        /// The node it runs on.
        node: Option<String>,
        /// Its image.
        image: String,
    },
    /// The version given is not the lowest that runs.
    FromDiffers {
        /// The version given.
        #[schemars(with = "String")]
        from: Version,
        /// The pod with the lowest version.
        lowest: Source,
    },
    /// An image is pinned by digest; the upgrade drops the digest.
    DigestDropped {
        /// The node.
        node: String,
        /// The component.
        component: Component,
        /// The image now.
        image: String,
    },
    /// An image reference cannot be read; the default repository is used.
    UnreadableImage {
        /// The node.
        node: String,
        /// The component.
        component: Component,
        /// The image now.
        image: String,
    },
    /// Pulling beforehand is off, so a missing image shows only when a component is restarted.
    ImagesUnchecked,
    /// A node is not ready before the upgrade.
    NotReady {
        /// The node.
        node: String,
    },
}

impl std::fmt::Display for Warning {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownVersion { pod, node, image } => {
                write!(out, "pod {pod}")?;
                if let Some(node) = node {
                    write!(out, " on node {node}")?;
                }
                write!(out, ": the version of its image {image} is unknown")
            }
            Self::FromDiffers { from, lowest } => {
                write!(out, "--from says {from}, but {lowest}")
            }
            Self::DigestDropped {
                node,
                component,
                image,
            } => write!(
                out,
                "node {node}: the digest of {component} ({image}) is dropped"
            ),
            Self::UnreadableImage {
                node,
                component,
                image,
            } => write!(
                out,
                "node {node}: the image of {component} ({image}) cannot be read, the default repository is used"
            ),
            Self::ImagesUnchecked => write!(
                out,
                "images are not pulled beforehand: a missing one shows only when a component restarts"
            ),
            Self::NotReady { node } => write!(out, "node {node} is not ready"),
        }
    }
}

pub(super) fn find(
    facts: &Facts,
    request: &Request,
    (from, to): (&Version, &Version),
    lowest: Option<&Source>,
    steps: &[Step],
) -> Vec<Blocked> {
    let mut blocked = Vec::new();
    let (newest_major, newest_minor) = rules::newest();
    if (to.major, to.minor) > (newest_major, newest_minor) {
        blocked.push(Blocked::UnknownKubernetes {
            to: to.clone(),
            newest: format!("{newest_major}.{newest_minor}"),
        });
    } else if (to.major, to.minor) < (from.major, from.minor) {
        blocked.push(Blocked::Downgrade {
            from: from.clone(),
            to: to.clone(),
        });
    } else if !rules::is_supported(from, to) {
        blocked.push(Blocked::UnsupportedPath {
            from: from.clone(),
            to: to.clone(),
            lowest: lowest.filter(|_| request.from.is_none()).cloned(),
        });
    }
    if facts.control_planes().next().is_none() {
        blocked.push(Blocked::NoControlPlane);
    }
    for facts in &facts.nodes {
        let node = || facts.node.name.clone();
        let concerned = facts.node.control_plane || request.upgrade_kubelet;
        if facts.node.address.is_none() && concerned {
            blocked.push(Blocked::NoAddress { node: node() });
        }
        blocked.extend(
            skew(&facts.node.kubelet_version, to).map(|kubelet| Blocked::KubeletSkew {
                node: node(),
                kubelet,
            }),
        );
        let Some(talos) = &facts.talos else {
            continue;
        };
        let version = talos.version.clone();
        match rules::compatibility(&talos.version, to) {
            Compatibility::Suits => {}
            Compatibility::TooOld { oldest } => blocked.push(Blocked::TooOld {
                node: node(),
                talos: version,
                oldest,
            }),
            Compatibility::TooNew { newest } => blocked.push(Blocked::TooNew {
                node: node(),
                talos: version,
                newest,
            }),
            Compatibility::Unknown => blocked.push(Blocked::UnknownTalos {
                node: node(),
                talos: version,
            }),
        }
        if !talos.unrendered.is_empty() {
            blocked.push(Blocked::NotRendered {
                node: node(),
                components: talos.unrendered.clone(),
            });
        }
        let written = steps
            .iter()
            .any(|step| step.node == facts.node.name && step.action.writes());
        if talos.pending && written {
            blocked.push(Blocked::Pending { node: node() });
        }
    }
    blocked
}

fn skew(kubelet: &str, to: &Version) -> Option<Version> {
    let kubelet = rules::parse_version(kubelet).ok()?;
    (kubelet.major == to.major && kubelet.minor + KUBELET_SKEW < to.minor).then_some(kubelet)
}
