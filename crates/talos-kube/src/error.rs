//! What can go wrong on the way to Kubernetes.

use std::time::Duration;

use crate::Address;

/// A failure to reach or to use a Kubernetes API.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text is no address of an API server.
    #[error("invalid address {text:?}: {problem}")]
    Address {
        /// The text as given.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A kubeconfig has no such context, or the context leads nowhere.
    #[error("the kubeconfig cannot be used")]
    Context {
        /// The cause.
        source: Box<talos_config::kubeconfig::Error>,
    },
    /// A kubeconfig lacks something or holds something unreadable.
    #[error("kubeconfig: {field}: {problem}")]
    Kubeconfig {
        /// The field, with the entry it belongs to.
        field: String,
        /// What is wrong with it, without its value.
        problem: String,
    },
    /// No candidate address answered.
    #[error("the Kubernetes API is not reachable: {}", list(.attempts))]
    Unreachable {
        /// Every address tried, in order.
        attempts: Vec<Attempt>,
    },
    /// A server answered, but its certificate cannot be trusted under any expected name.
    #[error(
        "the certificate of the Kubernetes API at {address} is not trusted: {problem}; expected one of {}; the certificate is valid for {}",
        .expected.join(", "),
        names(.presented)
    )]
    Certificate {
        /// The address that presented it.
        address: Address,
        /// Why it is refused.
        problem: String,
        /// The names it was verified for, in order.
        expected: Vec<String>,
        /// The names in the certificate.
        presented: Vec<String>,
        /// True when only the name is wrong, so that another name or a further SAN helps.
        name_only: bool,
    },
    /// The API answered, but does not accept the credentials.
    #[error("the Kubernetes API at {address} refuses these credentials (HTTP {status})")]
    Refused {
        /// The address that answered.
        address: Address,
        /// The HTTP status.
        status: u16,
    },
    /// One request failed for a reason that trying again does not cure.
    #[error("failed to {action}")]
    Request {
        /// What was asked, as an infinitive.
        action: String,
        /// The cause.
        source: Box<kube::Error>,
    },
    /// The API stayed away longer than allowed.
    #[error(
        "failed to {action}: the Kubernetes API at {address} did not answer for {:.0?} ({attempts} attempts)",
        .lasted
    )]
    Outage {
        /// What was asked, as an infinitive.
        action: String,
        /// The address that was asked.
        address: String,
        /// How long it was away.
        lasted: Duration,
        /// How often it was asked.
        attempts: u32,
        /// The last cause, if a request ended at all.
        source: Option<Box<kube::Error>>,
    },
}

impl Error {
    /// The HTTP status with which the API refused a request, if it did.
    pub fn status(&self) -> Option<u16> {
        self.refusal().map(|status| status.code)
    }

    /// What the API said when it refused a request, if it did.
    pub fn refusal(&self) -> Option<&kube::core::Status> {
        match self {
            Self::Request { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status),
                _ => None,
            },
            _ => None,
        }
    }

    /// Says what the user can do about it, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unreachable { .. } => Some(
                "name an address that answers from here with --k8s-endpoint HOST:PORT, \
                 for example a forwarded port such as 127.0.0.1:49153"
                    .to_owned(),
            ),
            Self::Certificate {
                address,
                presented,
                name_only: true,
                ..
            } => {
                let add = format!("add {} to cluster.apiServer.certSANs", address.host);
                Some(match presented.first() {
                    Some(name) => format!(
                        "{add}, or use an address that is in the certificate, such as --k8s-endpoint {name}:{}",
                        address.port
                    ),
                    None => add,
                })
            }
            Self::Certificate { .. } => Some(
                "check that the kubeconfig belongs to the cluster that answers at this address"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// One address that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The address.
    pub address: Address,
    /// Why it did not serve.
    pub cause: Cause,
}

/// Why an address did not serve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// Nothing listens there.
    #[error("connection refused")]
    ConnectionRefused,
    /// The name has no address.
    #[error("name not found")]
    NameNotFound,
    /// No answer within the time given.
    #[error("timed out")]
    TimedOut,
    /// The proxy does not let us through.
    #[error("proxy {proxy}: {problem}")]
    Proxy {
        /// The proxy, without its password.
        proxy: String,
        /// What it does instead.
        problem: String,
    },
    /// The connection was closed or failed in another way.
    #[error("{0}")]
    Connection(String),
    /// The server's certificate starts in the future: one of the clocks is wrong, or it has just been renewed.
    #[error("its certificate is not valid yet")]
    NotYetValid,
    /// The server spoke TLS and refused, or does not speak TLS.
    #[error("TLS: {0}")]
    Tls(String),
    /// The server answered with an error of its own.
    #[error("HTTP {0}")]
    Http(u16),
}

fn list(attempts: &[Attempt]) -> String {
    if attempts.is_empty() {
        return "no address is known".to_owned();
    }
    let shown = |attempt: &Attempt| format!("{} ({})", attempt.address, attempt.cause);
    attempts.iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn names(presented: &[String]) -> String {
    if presented.is_empty() {
        "no name at all".to_owned()
    } else {
        presented.join(", ")
    }
}
