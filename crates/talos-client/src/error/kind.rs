//! What kind of trouble an error is.

use std::fmt;

use super::{Call, Error};
use crate::Attempt;

/// What kind of trouble an error is; scripts can rely on the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// An argument, endpoint, proxy or credential is not what it should be; nothing was sent.
    Input,
    /// The client certificate cannot be used; nothing was sent.
    ClientCertificate,
    /// One side refused the other's certificate.
    Tls,
    /// No endpoint answers.
    NotReachable,
    /// The endpoint answers, but cannot reach the node behind it.
    NodeNotReachable,
    /// An answer did not come in time.
    TimedOut,
    /// The caller's roles do not suffice, or the caller is not known.
    NotAllowed,
    /// This Talos version, or this kind of node, does not have the method.
    NotImplemented,
    /// What was asked for does not exist.
    NotFound,
    /// The node refused the content of the request.
    Invalid,
    /// The node is not in a state in which it does this.
    Precondition,
    /// Another change stands in the way, or the thing exists already.
    Conflict,
    /// The request was cancelled.
    Cancelled,
    /// Anything else.
    Failed,
}

impl Kind {
    /// The stable word for this kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Input => "invalid-input",
            Self::ClientCertificate => "client-certificate",
            Self::Tls => "tls-refused",
            Self::NotReachable => "not-reachable",
            Self::NodeNotReachable => "node-not-reachable",
            Self::TimedOut => "timed-out",
            Self::NotAllowed => "not-allowed",
            Self::NotImplemented => "not-implemented",
            Self::NotFound => "not-found",
            Self::Invalid => "invalid",
            Self::Precondition => "precondition",
            Self::Conflict => "conflict",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Error {
    /// Returns what kind of trouble this is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::NoEndpoints
            | Self::Endpoint { .. }
            | Self::Node { .. }
            | Self::Cluster { .. }
            | Self::Fingerprint { .. }
            | Self::Proxy { .. }
            | Self::TalosConfig { .. }
            | Self::SideroV1 { .. }
            | Self::NoSystemRoots
            | Self::Authority { .. }
            | Self::ClientKey { .. }
            | Self::AmbiguousType { .. } => Kind::Input,
            Self::ClientExpired { .. } | Self::ClientNotYetValid { .. } | Self::ClientPurpose => {
                Kind::ClientCertificate
            }
            Self::NotReachable { attempts } if attempts.iter().all(Attempt::timed_out) => {
                Kind::TimedOut
            }
            Self::NotReachable { .. } | Self::ConnectionLost { .. } => Kind::NotReachable,
            Self::Tls { .. } => Kind::Tls,
            Self::NodeNotReachable { .. } => Kind::NodeNotReachable,
            Self::TimedOut { .. } | Self::NodeTimedOut { .. } => Kind::TimedOut,
            Self::NotAllowed { .. } | Self::NotAuthenticated { .. } => Kind::NotAllowed,
            Self::NotImplemented { .. } => Kind::NotImplemented,
            Self::NotFound { .. } | Self::NoSuchType { .. } => Kind::NotFound,
            Self::Invalid { .. } => Kind::Invalid,
            Self::Precondition { .. } => Kind::Precondition,
            Self::Conflict { .. } => Kind::Conflict,
            Self::Cancelled { .. } => Kind::Cancelled,
            Self::Failed { .. } | Self::WatchBroken { .. } | Self::Answer { .. } => Kind::Failed,
        }
    }

    /// Returns the request this is about, if one was made.
    pub fn call(&self) -> Option<&Call> {
        match self {
            Self::ConnectionLost { call, .. }
            | Self::NodeNotReachable { call, .. }
            | Self::TimedOut { call, .. }
            | Self::NodeTimedOut { call, .. }
            | Self::NotAllowed { call, .. }
            | Self::NotAuthenticated { call, .. }
            | Self::NotImplemented { call, .. }
            | Self::NotFound { call, .. }
            | Self::Invalid { call, .. }
            | Self::Precondition { call, .. }
            | Self::Conflict { call, .. }
            | Self::Cancelled { call, .. }
            | Self::Failed { call, .. }
            | Self::WatchBroken { call, .. }
            | Self::Answer { call, .. } => Some(call),
            _ => None,
        }
    }

    /// Returns the endpoints that were tried in vain, each with its cause.
    pub fn attempts(&self) -> &[Attempt] {
        match self {
            Self::NotReachable { attempts }
            | Self::Tls { attempts, .. }
            | Self::NodeNotReachable { attempts, .. } => attempts,
            _ => &[],
        }
    }

    /// Returns whether trying again later can help: nothing refused the request, an answer only failed to come.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.kind(),
            Kind::NotReachable | Kind::NodeNotReachable | Kind::TimedOut | Kind::Cancelled
        )
    }
}
