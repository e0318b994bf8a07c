//! TLS as kube-apiserver speaks it: 1.2 and 1.3, and a client certificate that is judged later.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, SignatureScheme};
use talos_pki::{Certificate, Purpose};

use crate::apid::tls;

/// Who a client certificate belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    /// Common name of the certificate.
    pub(crate) name: String,
    /// Organizations of the certificate.
    pub(crate) groups: Vec<String>,
}

/// Accepts every client certificate in the handshake; whose it is is found out with [`Gate::user`].
///
/// That is what kube-apiserver does: a certificate of another authority is answered with `401`.
#[derive(Debug)]
pub(crate) struct Gate {
    verifier: RwLock<Arc<dyn ClientCertVerifier>>,
}

impl Gate {
    /// Accepts users with certificates of these authorities.
    pub(crate) fn new(
        authorities: &[Certificate],
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, rustls::Error> {
        Ok(Self {
            verifier: RwLock::new(tls::verifier(authorities, provider)?),
        })
    }

    /// Replaces the accepted authorities for connections to come.
    pub(crate) fn replace(
        &self,
        authorities: &[Certificate],
        provider: &Arc<CryptoProvider>,
    ) -> Result<(), rustls::Error> {
        let new = tls::verifier(authorities, provider)?;
        *self
            .verifier
            .write()
            .unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    fn current(&self) -> Arc<dyn ClientCertVerifier> {
        let verifier = self.verifier.read();
        verifier.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the user of a certificate chain, if the authority vouches for it now.
    pub(crate) fn user(&self, chain: &[CertificateDer<'_>], now: Timestamp) -> Option<User> {
        let (leaf, rest) = chain.split_first()?;
        let seconds = u64::try_from(now.as_second()).ok()?;
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        self.current().verify_client_cert(leaf, rest, now).ok()?;
        let certificate = Certificate::from_der(leaf).ok()?;
        let purposes = certificate.extended_key_usage()?;
        purposes.contains(&Purpose::ClientAuth).then(|| User {
            name: certificate.common_name().unwrap_or_default().to_owned(),
            groups: certificate.organizations().to_vec(),
        })
    }
}

impl ClientCertVerifier for Gate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.current().verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.current().verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.current().supported_verify_schemes()
    }
}
