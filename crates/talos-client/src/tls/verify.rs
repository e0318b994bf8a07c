//! Judging the certificate that a server presents.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use talos_pki::Certificate;

use crate::Fingerprint;

/// How far a node's clock may be ahead: it issues itself new certificates from the very moment they are needed.
const SKEW: Duration = Duration::from_secs(30);

/// Where the certificate that a server presented is kept for the error that may follow.
pub(super) type Seen = Arc<Mutex<Option<Vec<u8>>>>;

/// Judges as another verifier does, and remembers the server's certificate.
#[derive(Debug)]
pub(super) struct Witness {
    inner: Arc<dyn ServerCertVerifier>,
    seen: Seen,
}

impl Witness {
    pub(super) fn new(inner: Arc<dyn ServerCertVerifier>, seen: Seen) -> Self {
        Self { inner, seen }
    }
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Ok(mut seen) = self.seen.lock() {
            *seen = Some(leaf.to_vec());
        }
        let judge = |now| {
            self.inner
                .verify_server_cert(leaf, intermediates, name, ocsp, now)
        };
        match judge(now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
            )) => judge(UnixTime::since_unix_epoch(
                Duration::from_secs(now.as_secs()) + SKEW,
            )),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, leaf, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, leaf, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Accepts any server, or only those whose key has one of the given fingerprints: maintenance mode.
#[derive(Debug)]
pub(super) struct AnyServer {
    fingerprints: Vec<Fingerprint>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl AnyServer {
    pub(super) fn new(fingerprints: Vec<Fingerprint>, provider: &CryptoProvider) -> Self {
        Self {
            fingerprints,
            algorithms: provider.signature_verification_algorithms,
        }
    }
}

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.fingerprints.is_empty() {
            return Ok(ServerCertVerified::assertion());
        }
        let known = Certificate::from_der(leaf).is_ok_and(|leaf| {
            self.fingerprints
                .contains(&Fingerprint::new(leaf.spki_sha256()))
        });
        if known {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, leaf, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, leaf, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
