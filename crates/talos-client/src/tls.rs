//! TLS with nodes: whom we trust, how we prove who calls, and what was said when one side refused.

mod refusal;
mod verify;
mod watched;

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use talos_config::talosconfig::{Credentials, Identity};
use talos_pki::{Certificate, Purpose};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::dial::Io;
use crate::{Error, ProxyFailure, Security};
use verify::{AnyServer, Witness};

pub use refusal::{Alert, TlsRefusal};
pub(crate) use watched::{Record, Watched};

/// Everything about TLS that does not depend on the endpoint.
pub(crate) struct TlsSetup {
    base: ClientConfig,
    verifier: Arc<dyn ServerCertVerifier>,
}

impl TlsSetup {
    /// Prepares TLS; a client certificate that a node would refuse is an error here, before anything is dialled.
    pub(crate) fn new(security: &Security, now: Timestamp) -> Result<Self, Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let clock = Arc::new(Clock {
            now,
            started: Instant::now(),
        });
        let verifier: Arc<dyn ServerCertVerifier> = match security {
            Security::Mutual(credentials) => verifier_for(credentials, provider.clone())?,
            Security::Maintenance { fingerprints } => {
                Arc::new(AnyServer::new(fingerprints.clone(), &provider))
            }
        };
        let identity = match security {
            Security::Mutual(credentials) => credentials.identity.as_ref(),
            Security::Maintenance { .. } => None,
        };
        let builder = ClientConfig::builder_with_details(provider, clock)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|source| Error::ClientKey { source })?
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone());
        let mut base = match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                check_identity(identity, now)?;
                let key = PrivatePkcs8KeyDer::from(identity.key.pkcs8_der().to_vec());
                builder
                    .with_client_auth_cert(to_der(&identity.chain), PrivateKeyDer::Pkcs8(key))
                    .map_err(|source| Error::ClientKey { source })?
            }
        };
        base.alpn_protocols = vec![b"h2".to_vec()];
        base.resumption = Resumption::disabled();
        Ok(Self { base, verifier })
    }

    /// Runs the handshake; an error is a refusal, or else trouble with the connection below.
    pub(crate) async fn handshake(
        &self,
        name: ServerName<'static>,
        stream: Box<dyn Io>,
    ) -> Result<Watched, Result<TlsRefusal, io::Error>> {
        let seen = Arc::new(Mutex::new(None));
        let mut config = self.base.clone();
        config
            .dangerous()
            .set_certificate_verifier(Arc::new(Witness::new(self.verifier.clone(), seen.clone())));
        match TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
        {
            Ok(stream) => Ok(Watched::new(stream)),
            Err(error) => {
                let leaf = seen.lock().ok().and_then(|mut seen| seen.take());
                Err(TlsRefusal::from_handshake(error, leaf.as_deref()))
            }
        }
    }
}

fn verifier_for(
    credentials: &Credentials,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let mut roots = RootCertStore::empty();
    if credentials.authorities.is_empty() {
        roots = system_roots()?;
    }
    for authority in &credentials.authorities {
        roots
            .add(CertificateDer::from(authority.der().to_vec()))
            .map_err(|_| Error::Authority {
                subject: authority.subject().to_string(),
            })?;
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|_| Error::NoSystemRoots)?;
    Ok(verifier)
}

fn system_roots() -> Result<RootCertStore, Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err(Error::NoSystemRoots);
    }
    Ok(roots)
}

/// Nodes refuse these certificates only after the handshake, and then hardly say why.
fn check_identity(identity: &Identity, now: Timestamp) -> Result<(), Error> {
    let Some(leaf) = identity.chain.first() else {
        return Err(Error::ClientPurpose);
    };
    if leaf.not_after() < now {
        return Err(Error::ClientExpired {
            not_after: leaf.not_after(),
        });
    }
    if leaf.not_before() > now {
        return Err(Error::ClientNotYetValid {
            not_before: leaf.not_before(),
        });
    }
    let purposes = leaf.extended_key_usage().unwrap_or_default();
    if !purposes
        .iter()
        .any(|purpose| matches!(purpose, Purpose::ClientAuth))
    {
        return Err(Error::ClientPurpose);
    }
    Ok(())
}

fn to_der(chain: &[Certificate]) -> Vec<CertificateDer<'static>> {
    chain
        .iter()
        .map(|certificate| CertificateDer::from(certificate.der().to_vec()))
        .collect()
}

/// Runs TLS with a proxy, which must have a certificate of the system's authorities.
pub(crate) async fn to_proxy(
    host: &str,
    stream: TcpStream,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, ProxyFailure> {
    let failed = |source: io::Error| ProxyFailure::Tls {
        source: Arc::new(source),
    };
    let roots = system_roots().map_err(|error| failed(io::Error::other(error)))?;
    let name =
        ServerName::try_from(host.to_string()).map_err(|error| failed(io::Error::other(error)))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(io::Error::other(error)))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .map_err(failed)
}

/// The caller's time, going on at the pace of this machine's clock.
#[derive(Debug)]
struct Clock {
    now: Timestamp,
    started: Instant,
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        let start = self.now.duration_since(Timestamp::UNIX_EPOCH);
        let since_epoch = Duration::try_from(start).ok()? + self.started.elapsed();
        Some(UnixTime::since_unix_epoch(since_epoch))
    }
}
