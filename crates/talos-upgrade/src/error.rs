//! What can go wrong in an upgrade.

use std::time::Duration;

use talos_kube::Component;

/// A failure of planning or of carrying out an upgrade.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text is no image reference.
    #[error("invalid image {text:?}: {problem}")]
    Image {
        /// The text.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A text is no version.
    #[error("invalid version {text:?}")]
    Version {
        /// The text.
        text: String,
        /// The cause.
        source: semver::Error,
    },
    /// No pod of a Kubernetes component names a version.
    #[error("the Kubernetes version that runs cannot be detected: no pod of kube-system names one")]
    NoSource,
    /// No version to reach was given, and none follows from the Talos release.
    #[error("no Kubernetes version to reach was given, and the Talos release is not known here")]
    NoTarget,
    /// The plan forbids itself.
    #[error("the upgrade is blocked: {}", list(.reasons))]
    Blocked {
        /// Why.
        reasons: Vec<crate::Blocked>,
    },
    /// Images are missing; nothing was changed.
    #[error("{} could not be pulled, nothing was changed: {}", images(.failures.len()), list(.failures))]
    Pull {
        /// What failed where.
        failures: Vec<PullFailure>,
    },
    /// A call to a node failed.
    #[error("node {node}: failed to {action}")]
    Talos {
        /// The node.
        node: String,
        /// What was asked, as an infinitive.
        action: &'static str,
        /// The cause.
        source: Box<talos_client::Error>,
    },
    /// Kubernetes could not be used.
    #[error("failed to {action}")]
    Kubernetes {
        /// What was done, as an infinitive.
        action: &'static str,
        /// The cause.
        source: Box<talos_kube::Error>,
    },
    /// A node's machine configuration cannot be read or changed.
    #[error("node {node}: failed to change its machine configuration")]
    Config {
        /// The node.
        node: String,
        /// The cause.
        source: Box<talos_config::Error>,
    },
    /// A resource of a node cannot be read.
    #[error("node {node}: the content of {resource} cannot be read")]
    Content {
        /// The node.
        node: String,
        /// The resource.
        resource: String,
        /// The cause.
        source: Box<talos_config::Error>,
    },
    /// A resource of a node lacks what is expected of it.
    #[error("node {node}: {resource} has no {field}")]
    Resource {
        /// The node.
        node: String,
        /// The resource.
        resource: String,
        /// The field.
        field: &'static str,
    },
    /// A try or staged configuration is pending, which a write would destroy.
    #[error("node {node}: a try or staged machine configuration is pending")]
    Pending {
        /// The node.
        node: String,
    },
    /// Somebody else keeps changing a node's configuration.
    #[error("node {node}: its machine configuration is being changed by someone else")]
    Contended {
        /// The node.
        node: String,
    },
    /// A node left Kubernetes during the upgrade.
    #[error("node {node} is no longer known to Kubernetes")]
    NodeGone {
        /// The node.
        node: String,
    },
    /// Something did not happen in time.
    #[error("node {node}: {component} did not run {image} within {waited:.0?}: {last}")]
    TimedOut {
        /// The node.
        node: String,
        /// The component.
        component: Component,
        /// The image it was to run.
        image: String,
        /// How long it was waited for, outages of the API not counted.
        waited: Duration,
        /// What was seen last.
        last: String,
    },
    /// The list of manifests did not follow the configuration in time.
    #[error("node {node}: its manifests do not have kube-proxy as {image}")]
    ManifestsStale {
        /// The node.
        node: String,
        /// The image expected.
        image: String,
    },
    /// A node has no manifests at all, such as one that has not started completely.
    #[error("node {node} has no manifests")]
    ManifestsMissing {
        /// The node.
        node: String,
    },
    /// Objects that left the manifests could not be deleted.
    #[error("{}", list(.failures))]
    NotPruned {
        /// What failed, an error for each object.
        failures: Vec<Self>,
    },
    /// An object of the manifests could not be brought up to date.
    #[error("{object}: {problem}")]
    Manifest {
        /// The object as `Kind/namespace/name`.
        object: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Objects did not become ready in time.
    #[error("not ready within {waited:.0?}: {}", list(.objects))]
    NotReconciled {
        /// The objects and what each lacks.
        objects: Vec<crate::Unready>,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The user asked to stop.
    #[error("interrupted before {next}, with {} steps done", .report.changed.len())]
    Interrupted {
        /// What would have come next.
        next: String,
        /// What was done until then.
        report: Box<crate::Report>,
    },
}

impl Error {
    /// Says what the user can do about it, where there is something.
    pub fn hint(&self) -> Option<String> {
        let again = "run the same command again: what is done is skipped";
        match self {
            Self::NoSource => Some("give the version with --from".to_owned()),
            Self::NoTarget => Some("give the version with --to".to_owned()),
            Self::Blocked { reasons } => reasons.first().map(|reason| reason.hint().to_owned()),
            Self::Kubernetes { source, .. } => source.hint().or_else(|| Some(again.to_owned())),
            Self::Pending { .. } => Some(
                "wait for the try to end, reboot the node into the staged configuration, or apply it again".to_owned(),
            ),
            Self::TimedOut { .. }
            | Self::NotReconciled { .. }
            | Self::Contended { .. }
            | Self::ManifestsStale { .. }
            | Self::ManifestsMissing { .. }
            | Self::Interrupted { .. } => Some(again.to_owned()),
            _ => None,
        }
    }
}

/// An image that could not be pulled.
#[derive(Debug)]
pub struct PullFailure {
    /// The node.
    pub node: String,
    /// The image.
    pub image: String,
    /// The cause.
    pub error: Box<talos_client::Error>,
}

impl std::fmt::Display for PullFailure {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} on node {} ({})", self.image, self.node, self.error)
    }
}

fn images(count: usize) -> String {
    match count {
        1 => "one image".to_owned(),
        count => format!("{count} images"),
    }
}

fn list<T: ToString>(items: &[T]) -> String {
    items
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}
