//! Turning what came back from a call into an error: the one catalogue.

use std::sync::Arc;
use std::time::Duration;

use talos_api::common;
use tonic::{Code, Status};

use super::{Call, Error, NodeMessage};
use crate::access;
use crate::dial::{Attempt, DialError};
use crate::wire::{Trace, TransportError, chain};

/// What an error needs to know about the request it is about.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) trace: Arc<Trace>,
    pub(crate) node: Option<String>,
    pub(crate) roles: Vec<String>,
    pub(crate) resource_type: Option<String>,
}

impl Context {
    pub(crate) fn call(&self) -> Box<Call> {
        self.trace.call(self.node.as_deref())
    }

    pub(crate) fn answer(&self, problem: &'static str) -> Error {
        Error::Answer {
            call: self.call(),
            problem,
        }
    }

    /// The time is up: while dialling, the endpoints that did not answer say more than the clock.
    pub(crate) fn timed_out(&self, after: Duration) -> Error {
        let attempts = self.trace.attempts();
        if self.trace.connection().is_none() && !attempts.is_empty() {
            return from_attempts(attempts);
        }
        Error::TimedOut {
            call: self.call(),
            after,
        }
    }
}

/// Turns endpoints that were tried in vain into an error; one that answered and refused says most.
pub(crate) fn from_attempts(attempts: Vec<Attempt>) -> Error {
    let refused = attempts.iter().find_map(|attempt| match &attempt.cause {
        DialError::Tls { source } => Some((attempt.endpoint.to_string(), source.clone())),
        _ => None,
    });
    match refused {
        Some((endpoint, refusal)) => Error::Tls {
            endpoint,
            refusal,
            attempts,
        },
        None => Error::NotReachable { attempts },
    }
}

pub(crate) fn from_status(status: Status, context: &Context) -> Error {
    let source = std::error::Error::source(&status);
    if let Some(error) = source.and_then(|source| source.downcast_ref::<TransportError>()) {
        return from_transport(error, context);
    }
    match source {
        // A status that the server sent has no source.
        Some(source) => broken(chain(source), context),
        None => from_code(status.code(), status.message().to_string(), context),
    }
}

/// Reads the error that a node's entry of an answer holds in place of content.
pub(crate) fn from_metadata(
    metadata: Option<&common::Metadata>,
    context: &Context,
) -> Option<Error> {
    let metadata = metadata?;
    if let Some(status) = &metadata.status
        && status.code != 0
    {
        let code = Code::from_i32(status.code);
        return Some(from_code(code, status.message.clone(), context));
    }
    if metadata.error.is_empty() {
        return None;
    }
    Some(from_code(Code::Unknown, metadata.error.clone(), context))
}

fn from_transport(error: &TransportError, context: &Context) -> Error {
    match error {
        TransportError::NoEndpoint => from_attempts(context.trace.attempts()),
        TransportError::UnknownNode | TransportError::NodeName(_) => Error::Node {
            text: context.node.clone().unwrap_or_default(),
        },
        TransportError::Lost(text) => broken(text.clone(), context),
    }
}

/// The connection broke; perhaps the server said why in TLS.
fn broken(text: String, context: &Context) -> Error {
    let connection = context.trace.connection();
    let refusal = connection.and_then(|live| Some((live.record.refusal()?, live.endpoint.clone())));
    match refusal {
        None => Error::ConnectionLost {
            call: context.call(),
            source: NodeMessage(text),
        },
        Some((source, endpoint)) => {
            let mut attempts = context.trace.attempts();
            attempts.push(Attempt {
                endpoint,
                cause: DialError::Tls { source },
            });
            from_attempts(attempts)
        }
    }
}

fn from_code(code: Code, message: String, context: &Context) -> Error {
    let call = context.call();
    let source = NodeMessage(message);
    match code {
        Code::Unavailable => Error::NodeNotReachable {
            call,
            attempts: context.trace.attempts(),
            source,
        },
        Code::PermissionDenied => denied(call, source, context),
        Code::Unauthenticated => Error::NotAuthenticated { call, source },
        Code::Unimplemented => Error::NotImplemented { call, source },
        Code::NotFound => Error::NotFound { call, source },
        Code::InvalidArgument => Error::Invalid {
            call,
            problems: problems(&source.0),
        },
        Code::FailedPrecondition => Error::Precondition { call, source },
        Code::AlreadyExists | Code::Aborted => Error::Conflict { call, source },
        Code::Cancelled => Error::Cancelled { call, source },
        Code::DeadlineExceeded => Error::NodeTimedOut { call, source },
        other => Error::Failed {
            call,
            code: code_name(other),
            source,
        },
    }
}

/// The state API answers "permission denied" for a type or namespace that does not exist, too. Where our roles
/// suffice, that is what it means.
fn denied(call: Box<Call>, source: NodeMessage, context: &Context) -> Error {
    let roles = access::roles_for(&context.trace.method(), context.resource_type.as_deref());
    let held = context.roles.clone();
    let suffices = held.iter().any(|role| roles.contains(role));
    if suffices && context.resource_type.is_some() {
        return Error::NotFound { call, source };
    }
    Error::NotAllowed {
        call,
        roles,
        held,
        source,
    }
}

/// Takes a node's list of problems apart, one line each.
///
/// Lists look like `2 errors occurred:`, then lines with a tab and a star; a list can stand in a line of another.
fn problems(message: &str) -> Vec<String> {
    let lines: Vec<&str> = message.lines().map(str::trim).collect();
    let starred = lines.iter().any(|line| line.starts_with("* "));
    let kept = lines
        .into_iter()
        .filter(|line| !(line.is_empty() || starred && is_heading(line)));
    if !starred {
        return vec![message.trim().to_string()];
    }
    let mut problems: Vec<String> = Vec::new();
    for line in kept {
        match line.strip_prefix("* ") {
            Some(problem) => problems.push(problem.to_string()),
            None => match problems.last_mut() {
                Some(last) => {
                    last.push('\n');
                    last.push_str(line);
                }
                None => problems.push(line.to_string()),
            },
        }
    }
    problems
}

/// Tells whether a line only announces a list, such as `1 error occurred:` or `* v1alpha1.Config: 5 errors occurred:`.
fn is_heading(line: &str) -> bool {
    line.ends_with("error occurred:") || line.ends_with("errors occurred:")
}

fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Unknown => "Unknown",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::OutOfRange => "OutOfRange",
        Code::Internal => "Internal",
        Code::DataLoss => "DataLoss",
        Code::Cancelled => "Canceled",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::Unimplemented => "Unimplemented",
        Code::Unavailable => "Unavailable",
        Code::Unauthenticated => "Unauthenticated",
    }
}

#[cfg(test)]
mod tests {
    use talos_api::google::rpc;

    use super::*;
    use crate::Kind;

    fn in_metadata(error: &str, status: Option<(i32, &str)>) -> Option<Error> {
        let context = Context {
            trace: Arc::default(),
            node: Some("n".to_string()),
            roles: Vec::new(),
            resource_type: None,
        };
        let metadata = common::Metadata {
            hostname: "n".to_string(),
            error: error.to_string(),
            status: status.map(|(code, message)| rpc::Status {
                code,
                message: message.to_string(),
                details: Vec::new(),
            }),
        };
        from_metadata(Some(&metadata), &context)
    }

    #[test]
    fn an_error_in_the_metadata_of_an_answer_is_an_error() {
        assert!(in_metadata("", None).is_none());
        assert!(in_metadata("", Some((0, ""))).is_none());
        let check = |error: Option<Error>, kind: Kind| assert_eq!(error.unwrap().kind(), kind);
        check(in_metadata("broke off", None), Kind::Failed);
        check(
            in_metadata("rpc error", Some((12, "not here"))),
            Kind::NotImplemented,
        );
        check(in_metadata("", Some((14, "gone"))), Kind::NodeNotReachable);
    }

    #[test]
    fn a_list_of_problems_is_taken_apart() {
        let message = "1 error occurred:\n\t* v1alpha1.Config: 2 errors occurred:\n\t* first: bad\n\t* second\n\t  goes on\n\n";
        assert_eq!(problems(message), ["first: bad", "second\ngoes on"]);
    }

    #[test]
    fn a_message_without_a_list_stays_whole() {
        let message = "unknown keys found during decoding:\nmachine:\n    bogus: 1\n";
        assert_eq!(problems(message), [message.trim_end()]);
    }
}
