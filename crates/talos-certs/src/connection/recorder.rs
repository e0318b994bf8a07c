//! A verifier that writes down what the server presents.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::sync::Arc;

use super::Trust;

/// Signatures that a probe lets a server choose from: all, for it believes none.
const SCHEMES: [SignatureScheme; 13] = [
    SignatureScheme::ED25519,
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ECDSA_NISTP521_SHA512,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA512,
    SignatureScheme::RSA_PKCS1_SHA256,
    SignatureScheme::RSA_PKCS1_SHA384,
    SignatureScheme::RSA_PKCS1_SHA512,
    SignatureScheme::ED448,
    SignatureScheme::ECDSA_SHA1_Legacy,
    SignatureScheme::RSA_PKCS1_SHA1,
];

/// Writes down the chain and whether a client certificate is asked for; lets every server pass.
pub(super) struct Recorder {
    trust: Trust,
    seen: Mutex<Seen>,
}

/// What a [`Recorder`] wrote down.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) presented: Vec<Vec<u8>>,
    pub(super) rejection: Option<rustls::Error>,
    asked: bool,
}

impl Recorder {
    pub(super) fn new(trust: Trust) -> Self {
        Self {
            trust,
            seen: Mutex::default(),
        }
    }

    /// Takes out what was written down.
    pub(super) fn take(&self) -> Seen {
        std::mem::take(&mut self.seen())
    }

    pub(super) fn has_chain(&self) -> bool {
        !self.seen().presented.is_empty()
    }

    /// Tells whether the server asked for a client certificate.
    pub(super) fn was_asked(&self) -> bool {
        self.seen().asked
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the first thing that speaks against the server.
    fn note(&self, result: Result<(), rustls::Error>) {
        if let Err(error) = result {
            self.seen().rejection.get_or_insert(error);
        }
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Recorder")
    }
}

impl ServerCertVerifier for Recorder {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        rest: &[CertificateDer<'_>],
        asked_for: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let chain = std::iter::once(leaf).chain(rest);
        self.seen().presented = chain.map(|certificate| certificate.to_vec()).collect();
        if let Trust::Verified(verifier) = &self.trust {
            let verdict = verifier.verify_server_cert(leaf, rest, asked_for, ocsp, now);
            self.note(verdict.map(|_| ()));
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if let Trust::Verified(verifier) = &self.trust {
            let verdict = verifier.verify_tls12_signature(message, leaf, signature);
            self.note(verdict.map(|_| ()));
        }
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if let Trust::Verified(verifier) = &self.trust {
            let verdict = verifier.verify_tls13_signature(message, leaf, signature);
            self.note(verdict.map(|_| ()));
        }
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        match &self.trust {
            Trust::Nobody => SCHEMES.to_vec(),
            Trust::Verified(verifier) => verifier.supported_verify_schemes(),
        }
    }
}

impl ResolvesClientCert for Recorder {
    fn resolve(
        &self,
        _root_hints: &[&[u8]],
        _schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        self.seen().asked = true;
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}
