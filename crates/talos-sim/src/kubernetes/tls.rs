//! TLS as kube-apiserver speaks it: 1.2 and 1.3, and a client certificate that is judged later.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme, version,
};
use talos_pki::{Certificate, Purpose};

use crate::apid::tls::Identity;

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
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Gate {
    /// Accepts users with certificates of one authority.
    pub(crate) fn new(
        authority: &Certificate,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(authority.der().to_vec()))?;
        let builder =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let verifier = builder
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        Ok(Self { verifier })
    }

    /// Returns the user of a certificate chain, if the authority vouches for it now.
    pub(crate) fn user(&self, chain: &[CertificateDer<'_>], now: Timestamp) -> Option<User> {
        let (leaf, rest) = chain.split_first()?;
        let seconds = u64::try_from(now.as_second()).ok()?;
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        self.verifier.verify_client_cert(leaf, rest, now).ok()?;
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
        self.verifier.root_hint_subjects()
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
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// Presents the certificate that is current when a handshake begins.
#[derive(Debug)]
struct Current(Arc<Identity>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.current())
    }
}

/// Returns the configuration of one kube-apiserver.
pub(crate) fn server_config(
    identity: Arc<Identity>,
    gate: Arc<Gate>,
    provider: &Arc<CryptoProvider>,
) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])?
        .with_client_cert_verifier(gate)
        .with_cert_resolver(Arc::new(Current(identity)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
