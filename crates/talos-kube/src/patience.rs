//! How long to wait for an API server that restarts, and how to say so.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

/// Time limits and pauses of requests to Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Limit of one attempt to connect.
    pub connect: Duration,
    /// Limit of one request.
    pub request: Duration,
    /// Pause after the first failure; it doubles up to `longest_pause`.
    pub pause: Duration,
    /// Longest pause between two attempts.
    pub longest_pause: Duration,
    /// How long the API may stay away before the request is given up.
    pub outage: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            request: Duration::from_secs(30),
            pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(5),
            outage: Duration::from_secs(600),
        }
    }
}

impl Patience {
    /// The pause after attempt number `attempt`, counted from zero.
    pub(crate) fn pause_after(&self, attempt: u32) -> Duration {
        let doubled = self.pause.saturating_mul(1 << attempt.min(16));
        doubled.min(self.longest_pause)
    }
}

/// What the API does while a caller waits for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(
    tag = "state",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum Progress {
    /// A request failed and is tried again.
    Away {
        /// The address that does not answer.
        address: String,
        /// The failure.
        cause: String,
        /// How often it was asked since it went away.
        attempts: u32,
        /// How long it has been away, in milliseconds.
        away_ms: u64,
    },
    /// The API answers again.
    Back {
        /// The address that answers.
        address: String,
        /// How often it was asked in vain.
        attempts: u32,
        /// How long it was away, in milliseconds.
        away_ms: u64,
    },
}

/// Receives [`Progress`].
pub type Watcher = Arc<dyn Fn(Progress) + Send + Sync>;

/// Tells whether a failure may pass by itself: refused, reset or closed connections, time-outs, 429 and 5xx answers.
pub fn is_transient(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => {
            status.code == 429 || (500..600).contains(&status.code) && status.code != 501
        }
        kube::Error::HyperError(_) | kube::Error::ReadEvents(_) => true,
        kube::Error::Service(error) => !is_certificate(error.as_ref()),
        // An API server that goes away in the middle of an answer leaves half a document.
        kube::Error::SerdeError(error) => error.is_eof(),
        _ => false,
    }
}

/// The words of the innermost cause: the layers above it repeat themselves.
pub(crate) fn innermost(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return format!("HTTP {}: {}", status.code, status.message);
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => "connection refused".to_owned(),
        Some(io::ErrorKind::ConnectionReset) => "connection reset".to_owned(),
        Some(io::ErrorKind::UnexpectedEof) => "connection closed".to_owned(),
        Some(io::ErrorKind::TimedOut) => "timed out".to_owned(),
        _ => cause.to_string(),
    }
}

fn is_certificate(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(current) = cause {
        if let Some(rustls::Error::InvalidCertificate(_)) = current.downcast_ref::<rustls::Error>()
        {
            return true;
        }
        // An I/O error hides the error it was made from; `source` would skip it.
        let wrapped = current
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        cause = match wrapped {
            Some(inner) => Some(inner),
            None => current.source(),
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn api(code: u16) -> kube::Error {
        let status = Status {
            code,
            ..Status::default()
        };
        kube::Error::Api(Box::new(status))
    }

    #[test]
    fn only_failures_that_may_pass_are_transient() {
        for (code, expected) in [
            (404, false),
            (403, false),
            (409, false),
            (429, true),
            (500, true),
            (501, false),
            (503, true),
        ] {
            assert_eq!(is_transient(&api(code)), expected, "{code}");
        }
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert!(is_transient(&kube::Error::Service(Box::new(refused))));
    }

    #[test]
    fn a_certificate_that_is_not_trusted_is_not_tried_again() {
        let expired = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let wrapped = io::Error::new(io::ErrorKind::InvalidData, expired);
        assert!(!is_transient(&kube::Error::Service(Box::new(wrapped))));
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let patience = Patience {
            pause: Duration::from_millis(10),
            longest_pause: Duration::from_millis(35),
            ..Patience::default()
        };
        let pauses = [0, 1, 2, 60].map(|attempt| patience.pause_after(attempt).as_millis());
        assert_eq!(pauses, [10, 20, 35, 35]);
    }
}
