//! Securing a connection as each server does, and misbehaving on it as a test wants.

use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::CryptoProvider;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, SupportedProtocolVersion, version};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Server;
use crate::apid::tls::provider;
use crate::faults::Behavior;
use crate::node::NodeState;
use crate::shared::Shared;

/// What a server without TLS says to a client that begins with TLS.
const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n\
    Connection: close\r\n\r\n400 Bad Request";
/// Least size of a chain that is told to be huge, in bytes.
const HUGE: usize = 1 << 20;
/// How long a client may take for its first bytes before a reset comes all the same.
const PATIENCE: Duration = Duration::from_secs(5);

/// Presents one certificate, whatever name the client asks for.
#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// Secures a connection; `None` when that fails or the server was told to misbehave.
pub(crate) async fn secure(
    shared: &Shared,
    node: &NodeState,
    server: Server,
    stream: TcpStream,
) -> Option<TlsStream<TcpStream>> {
    let stream = misbehave(node, server, stream).await?;
    let config = config(shared, node, server)?;
    TlsAcceptor::from(Arc::new(config))
        .accept(stream)
        .await
        .ok()
}

/// Gives a connection back unless the server was told to misbehave before TLS begins.
pub(crate) async fn misbehave(
    node: &NodeState,
    server: Server,
    mut stream: TcpStream,
) -> Option<TcpStream> {
    match node.faults.behavior(server) {
        Behavior::Normal | Behavior::Tls12Only | Behavior::HugeChain => return Some(stream),
        Behavior::Hang => std::future::pending().await,
        Behavior::PlainHttp => {
            first_bytes(&mut stream).await;
            // The client may have gone.
            let _gone = stream.write_all(PLAIN).await;
            let _gone = stream.shutdown().await;
            // What the client still sends would turn the end into a reset.
            let mut rest = [0; 1024];
            while let Ok(1..) = stream.read(&mut rest).await {}
        }
        Behavior::Reset => {
            first_bytes(&mut stream).await;
            let _unsupported = stream.set_zero_linger();
        }
        Behavior::Closed => {}
    }
    None
}

async fn first_bytes(stream: &mut TcpStream) {
    let mut start = [0; 64];
    let _late = tokio::time::timeout(PATIENCE, stream.read(&mut start)).await;
}

/// How the next connection to a server is secured.
fn config(shared: &Shared, node: &NodeState, server: Server) -> Option<ServerConfig> {
    let provider = provider();
    let behavior = node.faults.behavior(server);
    let versions: &[&'static SupportedProtocolVersion] = match (behavior, server) {
        (Behavior::Tls12Only, _) => &[&version::TLS12],
        (_, Server::Apid | Server::Trustd | Server::Kubelet) => &[&version::TLS13],
        _ => &[&version::TLS13, &version::TLS12],
    };
    let mut identity = node.presented(shared, server)?;
    if behavior == Behavior::HugeChain {
        identity = huge(&identity);
    }
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .ok()?;
    let builder = match verifier(shared, node, server, &provider) {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(Always(identity)));
    let http1 = !matches!(server, Server::Apid | Server::Trustd);
    config.alpn_protocols = vec![b"h2".to_vec()];
    if http1 {
        config.alpn_protocols.push(b"http/1.1".to_vec());
    }
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Some(config)
}

/// Whose client certificates a server wants in the handshake.
fn verifier(
    shared: &Shared,
    node: &NodeState,
    server: Server,
    provider: &Arc<CryptoProvider>,
) -> Option<Arc<dyn ClientCertVerifier>> {
    match server {
        Server::Apid => (!node.configs.in_maintenance()).then(|| node.certificates.clients() as _),
        Server::KubeApiServer | Server::Kubelet => Some(node.kubernetes_gate()?),
        Server::EtcdClient | Server::EtcdPeer => node.etcd_clients(shared, provider),
        Server::Trustd | Server::KubePrism => None,
    }
}

/// Lengthens a chain with its last certificate until it is a megabyte long.
fn huge(identity: &CertifiedKey) -> Arc<CertifiedKey> {
    let mut long = identity.clone();
    let last = long.cert.last().cloned();
    let mut size = 0;
    while let (Some(last), true) = (&last, size < HUGE) {
        size += last.len();
        long.cert.push(last.clone());
    }
    Arc::new(long)
}
