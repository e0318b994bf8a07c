//! What happens during an upgrade, as data.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use semver::Version;
use serde::Serialize;
use talos_kube::{Component, Progress};

/// Receives every [`Event`] as it happens.
pub type Observer = Arc<dyn Fn(Event) + Send + Sync>;

/// Something that happened. Serialized, it is one object with the field `event`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(
    tag = "event",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Event {
    /// The upgrade began.
    Started {
        /// The version it starts from.
        #[schemars(with = "String")]
        from: Version,
        /// The version to reach.
        #[schemars(with = "String")]
        to: Version,
    },
    /// A node pulls an image.
    Pulling {
        /// The node.
        node: String,
        /// The image.
        image: String,
    },
    /// A node has an image.
    Pulled {
        /// The node.
        node: String,
        /// The image.
        image: String,
    },
    /// A node cannot pull on request.
    PullUnsupported {
        /// The node.
        node: String,
    },
    /// A component on a node is being changed.
    Changing {
        /// The component.
        component: Component,
        /// The node.
        node: String,
        /// The image until now.
        from: Option<String>,
        /// The image to be.
        to: String,
    },
    /// A machine configuration was written.
    Written {
        /// The component whose image changed.
        component: Component,
        /// The node.
        node: String,
        /// What the node remarked.
        warnings: Vec<String>,
    },
    /// Something is waited for; sent when it changes, not at every look.
    Waiting {
        /// The component.
        component: Component,
        /// The node.
        node: String,
        /// What is missing.
        state: String,
    },
    /// A component on a node is what it should be.
    Done {
        /// The component.
        component: Component,
        /// The node.
        node: String,
        /// True when this run changed it, false when nothing had to be done.
        changed: bool,
    },
    /// The Kubernetes API is away or back.
    Api {
        /// Which of both, and for how long.
        #[serde(flatten)]
        progress: Progress,
    },
    /// An object of the manifests was looked at.
    Manifest {
        /// The object as `Kind/namespace/name`.
        object: String,
        /// What was done with it.
        change: ObjectChange,
        /// The fields that differ, secrets without their values.
        fields: Vec<String>,
    },
    /// Changed objects are not ready yet.
    ManifestsWaiting {
        /// The objects and what each lacks.
        objects: Vec<Unready>,
    },
    /// The user asked to stop; the step that runs is finished first.
    Stopping,
    /// The upgrade is complete.
    Finished {
        /// What was done.
        report: Report,
    },
}

/// What was done, or would be done, with an object of the manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ObjectChange {
    /// It did not exist.
    Created,
    /// It differed.
    Configured,
    /// It was as it should be.
    Unchanged,
    /// It was deleted and created again.
    Recreated,
    /// It left the manifests and was deleted.
    Pruned,
}

/// An object that is not ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unready {
    /// The object as `Kind/namespace/name`.
    pub object: String,
    /// What it lacks.
    pub state: String,
}

impl fmt::Display for Unready {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.object, self.state)
    }
}

/// A component on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The component.
    pub component: Component,
    /// The node.
    pub node: String,
}

/// What an upgrade did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What was changed.
    pub changed: Vec<Place>,
    /// What needed no change.
    pub skipped: Vec<Place>,
    /// Objects of the manifests that were created, configured, recreated or pruned.
    pub manifests_changed: Vec<String>,
    /// How many objects of the manifests were as they should be.
    pub manifests_unchanged: usize,
    /// How often the Kubernetes API was away.
    pub api_outages: u32,
    /// How long it was away in all, in milliseconds.
    pub api_away_ms: u64,
}

impl fmt::Display for Event {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { from, to } => write!(out, "upgrading Kubernetes {from} to {to}"),
            Self::Pulling { node, image } => write!(out, "{node}: pulling {image}"),
            Self::Pulled { node, image } => write!(out, "{node}: has {image}"),
            Self::PullUnsupported { node } => {
                write!(out, "{node}: cannot pull images on request, skipped")
            }
            Self::Changing {
                component,
                node,
                from,
                to,
            } => match from {
                Some(from) => write!(out, "{node}: {component}: {from} -> {to}"),
                None => write!(out, "{node}: {component}: -> {to}"),
            },
            Self::Written {
                component,
                node,
                warnings,
            } => {
                write!(out, "{node}: {component}: machine configuration written")?;
                for warning in warnings {
                    write!(out, "\n{node}: warning: {warning}")?;
                }
                Ok(())
            }
            Self::Waiting {
                component,
                node,
                state,
            } => write!(out, "{node}: {component}: waiting: {state}"),
            Self::Done {
                component,
                node,
                changed: true,
            } => write!(out, "{node}: {component}: done"),
            Self::Done {
                component, node, ..
            } => write!(out, "{node}: {component}: nothing to do"),
            Self::Api { progress } => api(progress, out),
            Self::Manifest {
                object,
                change,
                fields,
            } => {
                write!(out, "{change} {object}")?;
                for field in fields {
                    write!(out, "\n  {field}")?;
                }
                Ok(())
            }
            Self::ManifestsWaiting { objects } => {
                let list: Vec<String> = objects.iter().map(ToString::to_string).collect();
                write!(out, "waiting for {}", list.join(", "))
            }
            Self::Stopping => write!(out, "stopping after this step; once more stops at once"),
            Self::Finished { report } => write!(
                out,
                "done: {} changed, {} skipped, {} objects changed, {} unchanged",
                report.changed.len(),
                report.skipped.len(),
                report.manifests_changed.len(),
                report.manifests_unchanged
            ),
        }
    }
}

fn api(progress: &Progress, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let seconds = |ms: &u64| *ms as f64 / 1000.0;
    match progress {
        Progress::Away {
            address,
            cause,
            away_ms,
            ..
        } => write!(
            out,
            "the Kubernetes API at {address} is away for {:.1} s: {cause}",
            seconds(away_ms)
        ),
        Progress::Back {
            address, away_ms, ..
        } => write!(
            out,
            "the Kubernetes API at {address} is back after {:.1} s",
            seconds(away_ms)
        ),
    }
}

impl fmt::Display for ObjectChange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
            Self::Recreated => "recreated",
            Self::Pruned => "pruned",
        })
    }
}
