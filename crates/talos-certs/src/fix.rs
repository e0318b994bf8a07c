//! Repairing names that certificates miss: a pure plan of patches, and a function that carries it out node by node.

mod plan;
mod pods;
mod run;

pub use plan::{FixChange, FixConfig, FixPlan, NodeFix, NotFixable, plan_fix};
pub use run::{
    FixAccess, FixEvent, FixOptions, FixReport, FixState, FixTiming, FixedNode, VerifiedName, fix,
};

/// Tells why a plan could not be made, or what went wrong on a node.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FixError {
    /// A configuration cannot be patched.
    #[error("the configuration of {node} cannot be patched")]
    Patch {
        /// The node.
        node: String,
        /// Why.
        source: Box<talos_config::Error>,
    },
    /// A call of the node gave no answer, or a refusal.
    #[error("{what}")]
    Call {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: Box<talos_client::Error>,
    },
    /// The configuration is not the one that the plan was made from.
    #[error(
        "the configuration was changed meanwhile: it was at version {read} and is at version {now} now"
    )]
    Changed {
        /// Version that the plan was made from.
        read: String,
        /// Version that was found.
        now: String,
    },
    /// A configuration is being tried or staged, and applying another one would end that.
    #[error("a configuration is being tried or staged, and another one would replace it")]
    Pending,
    /// The certificate did not come to cover the names in time.
    #[error("the names are not served after {waited:?}: {why}")]
    NotServed {
        /// How long it was waited.
        waited: std::time::Duration,
        /// What was seen last.
        why: String,
    },
    /// A handshake with a name failed.
    #[error("a handshake with {kind} at {address} as {name} failed: {why}")]
    NotVerified {
        /// Kind of server.
        kind: &'static str,
        /// Address that was dialled.
        address: String,
        /// Name that was verified.
        name: String,
        /// What went wrong.
        why: String,
    },
}

#[cfg(test)]
mod tests;
