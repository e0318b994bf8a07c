//! What errors of a rotation of authorities are called here.

use talos_certs::RotateError;

use super::{Code, Error};

/// How to go on after a rotation that ended early.
const AGAIN: &str = "run the same command again to go on where it stopped";

impl From<RotateError> for Error {
    fn from(error: RotateError) -> Self {
        let made = match &error {
            RotateError::Talos { source, .. } | RotateError::Client { source } => {
                Self::of(super::below::code_of(source), &error)
            }
            RotateError::Config { .. } | RotateError::Damaged { .. } => {
                Self::of(Code::Invalid, &error)
            }
            RotateError::Blocked { .. }
            | RotateError::Disturbed { .. }
            | RotateError::NoMembers
            | RotateError::Pending { .. } => Self::of(Code::Precondition, &error),
            RotateError::Contended { .. } => Self::of(Code::Conflict, &error),
            RotateError::TimedOut { .. } => Self::of(Code::TimedOut, &error),
            RotateError::Stopped { .. } => Self::of(Code::Interrupted, &error),
            _ => Self::of(Code::Failed, &error),
        };
        match &error {
            RotateError::Blocked { reasons } => reasons
                .iter()
                .fold(made, |made, reason| made.cause(reason.clone())),
            RotateError::NoMembers => made.hint(
                "name all nodes with --control-plane-nodes and --worker-nodes",
            ),
            RotateError::Disturbed { node, .. } => made.node(node.clone()).hint(
                "nothing was changed in this step; let the other rotation end, or undo what was changed, then run the same command again",
            ),
            RotateError::Damaged { .. } => made.hint(
                "the file holds the only copy of a new authority's key: do not remove it before you know that no node has that authority",
            ),
            RotateError::Talos { node, .. }
            | RotateError::TimedOut { node, .. }
            | RotateError::Contended { node }
            | RotateError::Pending { node } => made.node(node.clone()).hint(AGAIN),
            RotateError::Stopped { .. } | RotateError::Keep { .. } => made.hint(AGAIN),
            _ => made,
        }
    }
}
