use std::io;
use std::sync::Arc;

use super::*;
use crate::{Alert, DialError, TlsRefusal};

fn attempt(endpoint: &str, cause: DialError) -> Attempt {
    Attempt {
        endpoint: endpoint.parse().unwrap(),
        cause,
    }
}

fn refused() -> DialError {
    DialError::Connect {
        source: Arc::new(io::ErrorKind::ConnectionRefused.into()),
    }
}

fn silent() -> DialError {
    DialError::TimedOut {
        after: Duration::from_secs(10),
    }
}

fn untrusted() -> DialError {
    DialError::Tls {
        source: TlsRefusal::UnknownAuthority {
            issuer: "O=talos".to_string(),
        },
    }
}

fn check(attempts: Vec<Attempt>, kind: Kind, text: &str) {
    let error = status::from_attempts(attempts);
    assert_eq!((error.kind(), error.to_string().as_str()), (kind, text));
}

#[test]
fn every_endpoint_is_named_with_its_cause() {
    check(
        vec![attempt("a", refused())],
        Kind::NotReachable,
        "cannot use endpoint a:50000: connecting failed: connection refused",
    );
    check(
        vec![attempt("a", refused()), attempt("b", silent())],
        Kind::NotReachable,
        "cannot use any of 2 endpoints: a:50000: connecting failed: connection refused; b:50000: no answer within 10s",
    );
    check(
        vec![attempt("a", silent())],
        Kind::TimedOut,
        "cannot use endpoint a:50000: no answer within 10s",
    );
}

#[test]
fn an_endpoint_that_answered_and_refused_says_most() {
    check(
        vec![attempt("a", refused()), attempt("b", untrusted())],
        Kind::Tls,
        "cannot use any of 2 endpoints: a:50000: connecting failed: connection refused; b:50000: TLS refused: \
         the server's certificate is signed by \"O=talos\", which is not among the trusted authorities",
    );
}

#[test]
fn only_what_refused_nothing_is_worth_another_try() {
    let transient = |attempts| status::from_attempts(attempts).is_transient();
    assert!(transient(vec![attempt("a", refused())]));
    assert!(transient(vec![attempt("a", silent())]));
    assert!(!transient(vec![attempt("a", untrusted())]));
    assert!(!Error::NoEndpoints.is_transient());
}

#[test]
fn alerts_have_names_and_numbers() {
    let alert = Alert::new(rustls::AlertDescription::CertificateExpired);
    assert_eq!(
        (alert.code(), alert.to_string().as_str()),
        (45, "certificate expired")
    );
    let unknown = Alert::new(rustls::AlertDescription::Unknown(99));
    assert_eq!(unknown.to_string(), "alert 99");
}
