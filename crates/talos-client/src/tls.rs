//! TLS with nodes: whom we trust, how we prove who calls, and what was said when one side refused.

mod refusal;
mod verify;
mod watched;

use std::io;
use std::sync::Arc;

use jiff::Timestamp;
use rustls::client::Resumption;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use talos_config::talosconfig::{Credentials, Identity};
use talos_pki::{Certificate, Name, Purpose};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::dial::Io;
use crate::{Error, Options, ProxyFailure, Security, SystemRoots};

pub use refusal::{Alert, TlsRefusal};
pub use verify::{Presented, ServerVerifier, VerifierError, server_name};
pub(crate) use watched::{Record, Watched};

/// Everything about TLS that does not depend on the endpoint.
pub(crate) struct TlsSetup {
    base: ClientConfig,
    verifier: Arc<ServerVerifier>,
}

impl TlsSetup {
    /// Prepares TLS; a client certificate that a node would refuse is an error here, before anything is dialled.
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        let now = options.now;
        let verifier = Arc::new(match &options.security {
            Security::Mutual(credentials) => {
                let roots = roots(credentials, options.system_roots)?;
                ServerVerifier::new(roots, &[], now).map_err(|_| Error::NoSystemRoots)?
            }
            Security::Maintenance { fingerprints } => {
                ServerVerifier::of_keys(fingerprints.clone(), now)
            }
        });
        let identity = match &options.security {
            Security::Mutual(credentials) => credentials.identity.as_ref(),
            Security::Maintenance { .. } => None,
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
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
        name: Name,
        server: ServerName<'static>,
        stream: Box<dyn Io>,
    ) -> Result<Watched, Result<TlsRefusal, io::Error>> {
        let verifier = Arc::new(self.verifier.for_name(name, server.clone()));
        let mut config = self.base.clone();
        config
            .dangerous()
            .set_certificate_verifier(verifier.clone());
        match TlsConnector::from(Arc::new(config))
            .connect(server, stream)
            .await
        {
            Ok(stream) => Ok(Watched::new(stream)),
            Err(error) => {
                let leaf = verifier.presented().leaf;
                Err(TlsRefusal::from_handshake(error, leaf.as_deref()))
            }
        }
    }
}

/// Collects the authorities of the credentials; only those that name none trust the system's.
fn roots(credentials: &Credentials, system_roots: SystemRoots) -> Result<RootCertStore, Error> {
    if credentials.authorities.is_empty() {
        return read_system_roots(system_roots);
    }
    let mut roots = RootCertStore::empty();
    for authority in &credentials.authorities {
        roots
            .add(CertificateDer::from(authority.der().to_vec()))
            .map_err(|_| Error::Authority {
                subject: authority.subject().to_string(),
            })?;
    }
    Ok(roots)
}

fn read_system_roots(system_roots: SystemRoots) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(system_roots());
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
    system_roots: SystemRoots,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, ProxyFailure> {
    let failed = |source: io::Error| ProxyFailure::Tls {
        source: Arc::new(source),
    };
    let roots = read_system_roots(system_roots).map_err(|error| failed(io::Error::other(error)))?;
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
