//! TLS as apid speaks it: version 1.3 only, `h2`, client certificates against a pool that can change.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme,
};
use talos_pki::{Certificate, Issued, PrivateKey, Purpose};

/// What a node's apid presents right now.
pub(crate) struct Identity(RwLock<Arc<CertifiedKey>>);

impl Identity {
    pub(crate) fn new(issued: &Issued, chain: &[Certificate]) -> Result<Self, rustls::Error> {
        Ok(Self(RwLock::new(certified(issued, chain)?)))
    }

    /// Replaces the certificate for handshakes to come, and what follows it; open connections stay.
    pub(crate) fn replace(
        &self,
        issued: &Issued,
        chain: &[Certificate],
    ) -> Result<(), rustls::Error> {
        let new = certified(issued, chain)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    pub(crate) fn current(&self) -> Arc<CertifiedKey> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// The authorities whose clients a node accepts; can change while the node runs.
#[derive(Debug)]
pub(crate) struct Pool {
    provider: Arc<CryptoProvider>,
    verifier: Mutex<Arc<dyn ClientCertVerifier>>,
    /// Added to the real time when certificates are judged, in seconds.
    clock_offset: AtomicI64,
    /// Whether clients may be nothing but clients, as apid wants it.
    clients_only: bool,
}

impl Pool {
    pub(crate) fn new(
        accepted: &[Certificate],
        clock_offset: i64,
        clients_only: bool,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, rustls::Error> {
        let verifier = Mutex::new(verifier(accepted, provider)?);
        Ok(Self {
            provider: provider.clone(),
            verifier,
            clock_offset: AtomicI64::new(clock_offset),
            clients_only,
        })
    }

    /// Sets the clock by which certificates are judged, as seconds to add to the real time.
    pub(crate) fn set_clock(&self, clock_offset: i64) {
        self.clock_offset.store(clock_offset, Ordering::Relaxed);
    }

    /// Replaces the accepted authorities for handshakes to come.
    pub(crate) fn replace(&self, accepted: &[Certificate]) -> Result<(), rustls::Error> {
        let new = verifier(accepted, &self.provider)?;
        *self.verifier.lock().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    fn current(&self) -> Arc<dyn ClientCertVerifier> {
        self.verifier
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl ClientCertVerifier for Pool {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let seconds = now
            .as_secs()
            .saturating_add_signed(self.clock_offset.load(Ordering::Relaxed));
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        let verified = self
            .current()
            .verify_client_cert(end_entity, intermediates, now)?;
        if !self.clients_only {
            return Ok(verified);
        }
        for der in std::iter::once(end_entity).chain(intermediates) {
            let certificate = Certificate::from_der(der).map_err(|_| bad_certificate())?;
            let is_leaf = !certificate.is_ca();
            if is_leaf && certificate.extended_key_usage() != Some(&[Purpose::ClientAuth]) {
                return Err(bad_certificate());
            }
        }
        Ok(verified)
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

/// Makes of an issued certificate and what follows it in the chain what rustls presents.
pub(crate) fn certified(
    issued: &Issued,
    chain: &[Certificate],
) -> Result<Arc<CertifiedKey>, rustls::Error> {
    let leaf = std::iter::once(&issued.certificate);
    let ders = leaf.chain(chain).map(|part| part.der().to_vec());
    certified_ders(ders.collect(), &issued.key)
}

/// Makes of the parts of a chain what rustls presents.
pub(crate) fn certified_ders(
    chain: Vec<Vec<u8>>,
    key: &PrivateKey,
) -> Result<Arc<CertifiedKey>, rustls::Error> {
    let chain = chain.into_iter().map(CertificateDer::from).collect();
    let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.pkcs8_der().to_vec()));
    let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&der)?;
    Ok(Arc::new(CertifiedKey::new(chain, key)))
}

/// The one cryptographic provider of the simulator.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Accepts the clients of some authorities.
pub(crate) fn verifier(
    accepted: &[Certificate],
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, rustls::Error> {
    let mut roots = RootCertStore::empty();
    for authority in accepted {
        roots.add(CertificateDer::from(authority.der().to_vec()))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    builder
        .build()
        .map_err(|error| rustls::Error::General(error.to_string()))
}

/// Becomes the alert `bad_certificate`, which apid sends for a wrong extended key usage.
fn bad_certificate() -> rustls::Error {
    rustls::Error::InvalidCertificate(CertificateError::BadEncoding)
}
