//! Trusting a server's certificate under one of several expected names.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, IpAddr, ServerName, UnixTime};
use talos_pki::Name;

/// Verifies the chain as usual and the name against a list, in order; the first that fits counts.
///
/// The names are the caller's. A name read out of the certificate would make the check worthless.
#[derive(Debug)]
pub(crate) struct AnyOf {
    inner: Arc<WebPkiServerVerifier>,
    names: Vec<Name>,
    seen: Mutex<Seen>,
}

/// What the last handshake showed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The server's own certificate.
    pub(crate) leaf: Option<CertificateDer<'static>>,
    /// The name it was trusted for.
    pub(crate) verified: Option<Name>,
    /// The last refusal.
    pub(crate) refused: Option<rustls::Error>,
}

impl AnyOf {
    pub(crate) fn new(
        authorities: &[CertificateDer<'static>],
        names: Vec<Name>,
        provider: Arc<rustls::crypto::CryptoProvider>,
    ) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots
                .add(authority.clone())
                .map_err(|error| error.to_string())?;
        }
        let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            inner,
            names,
            seen: Mutex::default(),
        })
    }

    pub(crate) fn names(&self) -> &[Name] {
        &self.names
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl ServerCertVerifier for AnyOf {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _dialed: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let mut refused = rustls::Error::InvalidCertificate(CertificateError::NotValidForName);
        let mut verified = None;
        for name in &self.names {
            let expected = server_name(name);
            match self.inner.verify_server_cert(
                end_entity,
                intermediates,
                &expected,
                ocsp_response,
                now,
            ) {
                Ok(_) => {
                    verified = Some(name.clone());
                    break;
                }
                Err(error) => refused = error,
            }
        }
        let outcome = match &verified {
            Some(_) => Ok(ServerCertVerified::assertion()),
            None => Err(refused.clone()),
        };
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Seen {
            leaf: Some(end_entity.clone().into_owned()),
            refused: verified.is_none().then_some(refused),
            verified,
        };
        outcome
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// The name as rustls wants it. A [`Name`] was checked when it was read, so the fallback is never used.
pub(crate) fn server_name(name: &Name) -> ServerName<'static> {
    let fallback = ServerName::IpAddress(IpAddr::from(std::net::Ipv4Addr::UNSPECIFIED));
    match name {
        Name::Ip(address) => ServerName::IpAddress(IpAddr::from(*address)),
        Name::Dns(name) => ServerName::try_from(name.clone()).unwrap_or(fallback),
    }
}

/// Tells whether a refusal is about the name alone, so that another name would do.
pub(crate) fn is_name_only(error: &rustls::Error) -> bool {
    matches!(
        error,
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
        )
    )
}

/// A refusal in words, without the list of names that rustls adds.
pub(crate) fn in_words(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(error) = error else {
        return error.to_string();
    };
    match error {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for other names".to_owned()
        }
        // Every cluster's authority has the same subject; then only the signature tells them apart.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "it is not signed by a certificate authority of the kubeconfig".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet".to_owned()
        }
        other => other.to_string(),
    }
}
