//! The servers of simulated nodes, seen by a TLS client that takes whatever is presented.

mod misbehaving;
mod rotation;
mod serving;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use serde_json::Value;
use talos_api::machine::ApplyConfigurationRequest;
use talos_api::machine::apply_configuration_request::Mode;
use talos_pki::{Certificate, Issued, PrivateKey, is_issued_by};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::apid::Context;
use crate::apid::tls::provider;
use crate::machine;
use crate::{Cluster, Node, Options, Server};

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// Takes every certificate and keeps the chain.
#[derive(Debug, Default)]
struct TakesAll(Mutex<Vec<Vec<u8>>>);

impl ServerCertVerifier for TakesAll {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let chain = std::iter::once(end_entity).chain(intermediates);
        *self.0.lock().unwrap() = chain.map(|der| der.to_vec()).collect();
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = provider().signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

/// What a client found at a server.
struct Found {
    chain: Vec<Certificate>,
    stream: std::io::Result<TlsStream<TcpStream>>,
}

/// Connects as a client that may have a certificate and speaks a protocol.
async fn meet(address: SocketAddr, client: Option<&Issued>, alpn: &[&str]) -> Found {
    let taken = Arc::new(TakesAll::default());
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(taken.clone());
    let mut config = match client {
        Some(issued) => {
            let chain = vec![CertificateDer::from(issued.certificate.der().to_vec())];
            let key = PrivatePkcs8KeyDer::from(issued.key.pkcs8_der().to_vec());
            let key = PrivateKeyDer::Pkcs8(key);
            builder.with_client_auth_cert(chain, key).unwrap()
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::from(address.ip());
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await;
    let chain = taken.0.lock().unwrap();
    Found {
        chain: Certificate::many_from_der(&chain).unwrap(),
        stream,
    }
}

async fn chain(node: &Node, server: Server) -> Vec<Certificate> {
    let address = node.dial_server(server).unwrap();
    meet(address, None, &["h2"]).await.chain
}

async fn cluster(controlplanes: usize, workers: usize) -> Cluster {
    let options = Options {
        controlplanes,
        workers,
        ..Options::default()
    };
    Cluster::start(options).await.unwrap()
}

/// Applies a configuration without a reboot, as an administrator does.
async fn apply(node: &Node, text: &str) {
    let context = context(node);
    let request = ApplyConfigurationRequest {
        data: text.as_bytes().to_vec(),
        mode: Mode::NoReboot.into(),
        ..ApplyConfigurationRequest::default()
    };
    machine::apply(context, request).await.unwrap();
}

fn context(node: &Node) -> Context {
    Context {
        shared: node.shared.clone(),
        node: node.shared.nodes[node.index].clone(),
        roles: vec!["os:admin".to_owned()].into(),
        compress: false,
    }
}

/// A certificate and its key in a resource.
fn held(node: &Node, kind: &str, id: &str, field: &str) -> Issued {
    let pair = secret(node, kind, id)[field].clone();
    let pem = |key: &str| STANDARD.decode(pair[key].as_str().unwrap()).unwrap();
    Issued {
        certificate: Certificate::many_from_pem(pem("crt")).unwrap().remove(0),
        key: PrivateKey::from_pem(pem("key")).unwrap(),
    }
}

/// The spec of a secret.
fn secret(node: &Node, kind: &str, id: &str) -> Value {
    let kind = format!("{kind}.secrets.talos.dev");
    let found = node.store().get("secrets", &kind, id).unwrap();
    found.spec.value().clone()
}

/// Version of a secret, 0 when there is none.
fn version(node: &Node, kind: &str, id: &str) -> u64 {
    let kind = format!("{kind}.secrets.talos.dev");
    let found = node.store().get("secrets", &kind, id);
    found.map_or(0, |found| found.metadata.version)
}

/// Waits until something holds, which the simulator does by itself.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("{what}"));
}

/// Whether a server presents a certificate of an authority.
async fn is_of(node: &Node, server: Server, authority: &Certificate) -> bool {
    let Some(address) = node.dial_server(server) else {
        return false;
    };
    if TcpStream::connect(address).await.is_err() {
        return false;
    }
    let found = meet(address, None, &["h2"]).await;
    found
        .chain
        .first()
        .is_some_and(|leaf| is_issued_by(leaf, authority))
}
