//! What can go wrong in a rotation.

use std::time::Duration;

use super::ConfigProblem;

/// Why something could not be kept; the caller's own error.
pub type KeepError = Box<dyn std::error::Error + Send + Sync>;

/// A failure of planning or carrying out a rotation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RotateError {
    /// The plan forbids itself.
    #[error("the rotation is blocked")]
    Blocked {
        /// All that stands in the way.
        reasons: Vec<String>,
    },
    /// No node says who the members of the cluster are.
    #[error("the members of the cluster are not known: none of the nodes tells them")]
    NoMembers,
    /// A node could not be asked or changed.
    #[error("{node}: failed to {action}")]
    Talos {
        /// The node.
        node: String,
        /// What was tried.
        action: &'static str,
        /// Why not.
        source: Box<talos_client::Error>,
    },
    /// A client for the nodes could not be made.
    #[error("the credentials cannot be used")]
    Client {
        /// Why not.
        source: Box<talos_client::Error>,
    },
    /// The configuration of a node cannot be used.
    #[error("{node}: the authorities of its machine configuration cannot be used")]
    Config {
        /// The node.
        node: String,
        /// What is wrong.
        source: Box<ConfigProblem>,
    },
    /// A configuration is being tried or staged, which a change would end.
    #[error("{node}: a configuration is being tried or staged")]
    Pending {
        /// The node.
        node: String,
    },
    /// Somebody else changes the configuration too.
    #[error("{node}: its machine configuration is changed again and again by somebody else")]
    Contended {
        /// The node.
        node: String,
    },
    /// A node is not where this rotation left it.
    #[error("{node}: {what}: another rotation is under way, or somebody changed the configuration")]
    Disturbed {
        /// The node.
        node: String,
        /// What is other than it was.
        what: String,
    },
    /// A node did not get where it should in time.
    #[error("{node}: not verified within {}s: {last}", waited.as_secs())]
    TimedOut {
        /// The node.
        node: String,
        /// How long it was waited for.
        waited: Duration,
        /// What was seen last.
        last: String,
    },
    /// A stop was asked for.
    #[error("stopped before {next}")]
    Stopped {
        /// What would come next.
        next: String,
    },
    /// The new authority could not be made.
    #[error("failed to make the new authority")]
    Make {
        /// Why not.
        source: talos_pki::Error,
    },
    /// What an earlier run left cannot be read.
    #[error("the state of the rotation is damaged: {reason}")]
    Damaged {
        /// What is wrong, without any value.
        reason: String,
    },
    /// The state or the talosconfig could not be written.
    #[error("failed to keep {what}")]
    Keep {
        /// What was to be kept.
        what: &'static str,
        /// Why not.
        source: KeepError,
    },
}
