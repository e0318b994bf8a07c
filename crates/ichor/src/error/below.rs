//! What errors of the crates below are called here: their code word, and the hint that goes with them.

use talos_client::{Kind, TlsRefusal};

use super::{Code, Error};

impl From<talos_client::Error> for Error {
    fn from(error: talos_client::Error) -> Self {
        let mut made = Self::of(code_of(&error), &error);
        if let talos_client::Error::Invalid { problems, .. } = &error {
            for problem in problems {
                made = made.cause(problem.clone());
            }
        }
        if let Some(call) = error.call() {
            if let Some(node) = &call.node {
                made = made.node(node.clone());
            }
            if !call.endpoint.is_empty() {
                made = made.endpoint(call.endpoint.clone());
            }
        } else if let [attempt] = error.attempts() {
            made = made.endpoint(attempt.endpoint.to_string());
        }
        match hint_for(&error) {
            Some(hint) => made.hint(hint),
            None => made,
        }
    }
}

impl From<talos_config::talosconfig::Error> for Error {
    fn from(error: talos_config::talosconfig::Error) -> Self {
        use talos_config::talosconfig::Error as Source;
        let made = Self::of(Code::Invalid, &error);
        match &error {
            Source::NoCurrentContext { .. } | Source::NoSuchContext { .. } => made.hint(
                "choose one with --context, or make one current with `ichor config context NAME`",
            ),
            _ => made,
        }
    }
}

pub(super) fn code_of(error: &talos_client::Error) -> Code {
    if matches!(error, talos_client::Error::SideroV1 { .. }) {
        return Code::Unimplemented;
    }
    match error.kind() {
        Kind::Input => Code::Invalid,
        Kind::ClientCertificate => Code::ClientCertificate,
        Kind::Tls => match refusal(error) {
            Some(TlsRefusal::ClientRefused { .. }) => Code::ClientCertificate,
            _ => Code::Untrusted,
        },
        Kind::NotReachable | Kind::NodeNotReachable => Code::Unreachable,
        Kind::TimedOut => Code::TimedOut,
        Kind::NotAllowed => Code::NotAllowed,
        Kind::NotImplemented => Code::Unimplemented,
        Kind::NotFound => Code::NotFound,
        Kind::Invalid => Code::RefusedByNode,
        Kind::Precondition => Code::Precondition,
        Kind::Conflict => Code::Conflict,
        _ => Code::Failed,
    }
}

fn refusal(error: &talos_client::Error) -> Option<&TlsRefusal> {
    match error {
        talos_client::Error::Tls { refusal, .. } => Some(refusal),
        _ => None,
    }
}

fn hint_for(error: &talos_client::Error) -> Option<String> {
    use talos_client::Error as Source;
    let hint = match error {
        Source::NoEndpoints => {
            "give the context endpoints with `ichor config endpoint`, or name some with -e"
        }
        Source::ClientExpired { .. } | Source::ClientNotYetValid { .. } | Source::ClientPurpose => {
            "the talosconfig needs a new client certificate from the cluster's Talos authority"
        }
        Source::NotReachable { .. } => {
            "see that the endpoints are right and up (`ichor config info`), or name others with -e"
        }
        Source::NodeNotReachable { .. } => {
            "nodes are named as the endpoint sees them, without a port"
        }
        Source::TimedOut { .. } => "--request-timeout waits longer",
        Source::NotAllowed { .. } => {
            "use a context whose client certificate has one of these roles"
        }
        Source::NotImplemented { .. } => {
            "this takes another version of Talos, or another kind of node"
        }
        Source::NoSuchType { .. } => "`ichor get rd` lists all resource types",
        Source::AmbiguousType { .. } => "use one of the full names",
        Source::SideroV1 { .. } => "use a context with a client certificate",
        Source::Tls { refusal, .. } => return tls_hint(refusal),
        _ => return None,
    };
    Some(hint.to_owned())
}

fn tls_hint(refusal: &TlsRefusal) -> Option<String> {
    let hint = match refusal {
        TlsRefusal::ServerExpired { .. } | TlsRefusal::ServerNotYetValid { .. } => {
            "compare the clocks of this machine and the node"
        }
        TlsRefusal::UnknownAuthority { .. } => {
            "the context belongs to another cluster, or the node waits for a configuration (then --insecure reaches it)"
        }
        TlsRefusal::NameNotCovered { wanted, .. } => {
            return Some(format!(
                "dial a name that is covered, or add {wanted} to machine.certSANs of the node"
            ));
        }
        TlsRefusal::Fingerprint { .. } => {
            "this is another machine than expected, or something stands in between"
        }
        TlsRefusal::ClientRefused { .. } => {
            "the context belongs to another cluster, or its certificate has expired or is not for clients only"
        }
        TlsRefusal::NotTls => "see that the endpoint's port is that of the Talos API (50000)",
        _ => return None,
    };
    Some(hint.to_owned())
}
