//! What can go wrong with a call, and what kind of trouble that is.

mod kind;
mod status;

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use talos_config::talosconfig;

use crate::dial::Attempt;
use crate::{EndpointError, ProxyError, TlsRefusal};

pub use kind::Kind;
pub(crate) use status::{Context, from_metadata, from_status};

/// One request to one node, for errors to name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The node as the caller named it; none is the endpoint itself.
    pub node: Option<String>,
    /// The endpoint that took the request; empty if none did.
    pub endpoint: String,
    /// The full method name, such as `machine.MachineService/Version`.
    pub method: String,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = self.node.as_deref().unwrap_or(&self.endpoint);
        let method = self.method.rsplit('.').next().unwrap_or_default();
        write!(f, "{method} on {node}")
    }
}

/// What a node said about a refusal, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NodeMessage(pub String);

/// Tells why a call gave no answer, or a client could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no endpoint to dial.
    #[error("no endpoint is given")]
    NoEndpoints,
    /// A text is no endpoint.
    #[error("{text:?} is not an endpoint")]
    Endpoint {
        /// The text as given.
        text: String,
        /// What is wrong with it.
        source: EndpointError,
    },
    /// A text cannot be the name or address of a node.
    #[error("{text:?} cannot be the name or address of a node")]
    Node {
        /// The text as given.
        text: String,
    },
    /// The name of the cluster cannot be sent.
    #[error("the cluster name {text:?} cannot be sent as metadata")]
    Cluster {
        /// The name as given.
        text: String,
    },
    /// A text is no fingerprint.
    #[error("{text:?} is not a fingerprint: it must be base64 of 32 bytes")]
    Fingerprint {
        /// The text as given.
        text: String,
    },
    /// A proxy setting cannot be used.
    #[error("the proxy setting cannot be used")]
    Proxy {
        /// What is wrong with it.
        source: ProxyError,
    },
    /// The talosconfig cannot be used.
    #[error("the talosconfig cannot be used")]
    TalosConfig {
        /// What is wrong with it.
        source: Box<talosconfig::Error>,
    },
    /// The context wants signed requests, which this client does not make.
    #[error(
        "context {context:?} signs its requests as {identity:?} (auth.siderov1), which is not supported"
    )]
    SideroV1 {
        /// The context.
        context: String,
        /// Whose key would sign.
        identity: String,
    },
    /// The context names no authority, and the system has no usable roots.
    #[error("the context has no ca, and the system's certificate authorities cannot be read")]
    NoSystemRoots,
    /// An authority certificate cannot serve as a root.
    #[error("the authority {subject:?} cannot serve as a root")]
    Authority {
        /// Subject of the certificate.
        subject: String,
    },
    /// The client certificate is past its end.
    #[error("the client certificate expired at {not_after}")]
    ClientExpired {
        /// End of its validity.
        not_after: Timestamp,
    },
    /// The client certificate is not valid yet.
    #[error("the client certificate is valid from {not_before} only")]
    ClientNotYetValid {
        /// Start of its validity.
        not_before: Timestamp,
    },
    /// The client certificate is not made for clients.
    #[error(
        "the client certificate is not made for clients: its extended key usage lacks clientAuth"
    )]
    ClientPurpose,
    /// The client certificate or its key cannot be used for TLS.
    #[error("the client certificate and its key cannot be used")]
    ClientKey {
        /// What the TLS library says.
        source: rustls::Error,
    },
    /// No endpoint answers.
    #[error("{}", attempts_text(attempts))]
    NotReachable {
        /// Each endpoint that was tried, with what went wrong.
        attempts: Vec<Attempt>,
    },
    /// An endpoint answered, but one side refused the other's certificate.
    #[error("{}", attempts_text(attempts))]
    Tls {
        /// The endpoint that answered.
        endpoint: String,
        /// Who refused what.
        refusal: TlsRefusal,
        /// Each endpoint that was tried, with what went wrong.
        attempts: Vec<Attempt>,
    },
    /// The connection broke while the call was under way.
    #[error("{call}: the connection to {} broke", call.endpoint)]
    ConnectionLost {
        /// The request.
        call: Box<Call>,
        /// What the transport says.
        source: NodeMessage,
    },
    /// The endpoint cannot reach the node.
    #[error("{call}: the endpoint {} cannot reach the node{}", call.endpoint, before_text(attempts))]
    NodeNotReachable {
        /// The request.
        call: Box<Call>,
        /// Endpoints that were tried before, such as the node's own.
        attempts: Vec<Attempt>,
        /// What the endpoint said.
        source: NodeMessage,
    },
    /// No answer came in time.
    #[error("{call}: no answer within {after:?}")]
    TimedOut {
        /// The request.
        call: Box<Call>,
        /// How long it was waited.
        after: Duration,
    },
    /// The node, or an endpoint on the way, ran out of time.
    #[error("{call}: the node ran out of time")]
    NodeTimedOut {
        /// The request.
        call: Box<Call>,
        /// What it said.
        source: NodeMessage,
    },
    /// The caller's roles do not suffice.
    #[error("{call} is not allowed{}", held_text(held, roles))]
    NotAllowed {
        /// The request.
        call: Box<Call>,
        /// Roles of which one would do.
        roles: &'static [String],
        /// Roles that the client certificate gives; empty if unknown.
        held: Vec<String>,
        /// What the node said.
        source: NodeMessage,
    },
    /// The caller is not known.
    #[error("{call}: the caller is not known to the server")]
    NotAuthenticated {
        /// The request.
        call: Box<Call>,
        /// What the server said.
        source: NodeMessage,
    },
    /// This Talos version, or this kind of node, does not have the method.
    #[error("{call}: not implemented by this node")]
    NotImplemented {
        /// The request.
        call: Box<Call>,
        /// What the node said.
        source: NodeMessage,
    },
    /// What was asked for does not exist.
    #[error("{call}: not found")]
    NotFound {
        /// The request.
        call: Box<Call>,
        /// What the node said.
        source: NodeMessage,
    },
    /// The node refused the content of the request.
    #[error("{call}: refused as invalid")]
    Invalid {
        /// The request.
        call: Box<Call>,
        /// What the node said: one problem each.
        problems: Vec<String>,
    },
    /// The node is not in a state in which it does this.
    #[error("{call}: the node is not in a state for this")]
    Precondition {
        /// The request.
        call: Box<Call>,
        /// What the node said.
        source: NodeMessage,
    },
    /// Another change stands in the way, or the thing exists already.
    #[error("{call}: in conflict with what is there")]
    Conflict {
        /// The request.
        call: Box<Call>,
        /// What the node said.
        source: NodeMessage,
    },
    /// The request was cancelled at the other side.
    #[error("{call}: cancelled")]
    Cancelled {
        /// The request.
        call: Box<Call>,
        /// What the node said.
        source: NodeMessage,
    },
    /// The node failed in a way that has no kind of its own.
    #[error("{call} failed")]
    Failed {
        /// The request.
        call: Box<Call>,
        /// The name of the gRPC status code.
        code: &'static str,
        /// What the node said.
        source: NodeMessage,
    },
    /// The node gave a watch up.
    #[error("{call}: the node gave the watch up")]
    WatchBroken {
        /// The request.
        call: Box<Call>,
        /// What the node said.
        source: NodeMessage,
    },
    /// The node's answer cannot be understood.
    #[error("{call}: the answer {problem}")]
    Answer {
        /// The request.
        call: Box<Call>,
        /// What is wrong with it; reads after "the answer".
        problem: &'static str,
    },
    /// No resource type has this name.
    #[error("no resource type is called {name:?}{}", near_text(near))]
    NoSuchType {
        /// The name that was asked for.
        name: String,
        /// Names that are written almost like it.
        near: Vec<String>,
    },
    /// Several resource types have this name.
    #[error("{name:?} can mean several resource types: {}", types.join(", "))]
    AmbiguousType {
        /// The name that was asked for.
        name: String,
        /// The types it can mean.
        types: Vec<String>,
    },
}

impl Error {
    pub(crate) fn from_talosconfig(source: talosconfig::Error) -> Self {
        Self::TalosConfig {
            source: Box::new(source),
        }
    }
}

/// Names the one endpoint that was tried, or all of them; their causes are no one chain, so they stand here.
fn attempts_text(attempts: &[Attempt]) -> String {
    match attempts {
        [one] => format!("cannot use endpoint {one}"),
        several => format!(
            "cannot use any of {} endpoints: {}",
            several.len(),
            list(several)
        ),
    }
}

fn before_text(attempts: &[Attempt]) -> String {
    match attempts {
        [] => String::new(),
        tried => format!(", and before that it was not reached at {}", list(tried)),
    }
}

fn list(attempts: &[Attempt]) -> String {
    let list: Vec<String> = attempts.iter().map(Attempt::to_string).collect();
    list.join("; ")
}

fn held_text(held: &[String], roles: &[String]) -> String {
    let needed = roles.join(" or ");
    if held.is_empty() {
        return format!(" for this caller: it takes the role {needed}");
    }
    format!(" with the role {}: it takes {needed}", held.join(", "))
}

fn near_text(near: &[String]) -> String {
    if near.is_empty() {
        return String::new();
    }
    format!("; near names: {}", near.join(", "))
}

#[cfg(test)]
mod tests;
