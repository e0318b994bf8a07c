//! What a probe makes of servers that present a certificate, refuse us, or do neither.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use talos_certs::{Failure, Outcome, ProbeOptions, probe, probe_any, verified_handshake};
use talos_pki::{Authority, AuthorityKind, Certificate, Issued, LeafRequest, LeafUsage, Name};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsAcceptor;

fn now() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

fn authority() -> Authority {
    Authority::generate(AuthorityKind::Talos, now()).unwrap()
}

fn server(authority: &Authority, names: &[&str]) -> Issued {
    let request = LeafRequest {
        common_name: Some("cp-1".to_owned()),
        names: names
            .iter()
            .map(|name| Name::parse(name).unwrap())
            .collect(),
        usage: LeafUsage {
            server: true,
            ..LeafUsage::default()
        },
        lifetime: SignedDuration::from_hours(24),
        ..LeafRequest::default()
    };
    authority.issue(&request, now()).unwrap()
}

/// How a server of these tests behaves.
struct Server {
    version: &'static SupportedProtocolVersion,
    protocols: &'static [&'static str],
    clients: Option<Certificate>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            version: &version::TLS13,
            protocols: &["h2"],
            clients: None,
        }
    }
}

/// Serves TLS on a free port until the test ends.
async fn serve(chain: Vec<Vec<u8>>, key: &[u8], server: Server) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.to_vec()));
    let key = provider.key_provider.load_private_key(key).unwrap();
    let chain = chain.into_iter().map(CertificateDer::from).collect();
    let resolver = Arc::new(Fixed(Arc::new(CertifiedKey::new(chain, key))));
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[server.version])
        .unwrap();
    let builder = match server.clients {
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            let der = CertificateDer::from(authority.der().to_vec());
            roots.add(der).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(resolver);
    let protocols = server.protocols.iter();
    config.alpn_protocols = protocols.map(|name| name.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    answer(move |socket| {
        let acceptor = acceptor.clone();
        async move {
            if let Ok(mut stream) = acceptor.accept(socket).await {
                let _ = stream.read(&mut [0]).await;
            }
        }
    })
    .await
}

/// Hands every connection on a free port to `handle` until the test ends.
async fn answer<F>(handle: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(handle(socket));
        }
    });
    address
}

#[derive(Debug)]
struct Fixed(Arc<CertifiedKey>);

impl ResolvesServerCert for Fixed {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

async fn serve_leaf(authority: &Authority, leaf: &Issued, server: Server) -> SocketAddr {
    let chain = vec![
        leaf.certificate.der().to_vec(),
        authority.certificate().der().to_vec(),
    ];
    serve(chain, leaf.key.pkcs8_der(), server).await
}

async fn check(server: Server, expected: &str) {
    let authority = authority();
    let leaf = server_leaf(&authority);
    let address = serve_leaf(&authority, &leaf, server).await;
    let probe = probe(address, &ProbeOptions::default()).await;
    assert_eq!(
        serde_json::to_string(&probe.outcome).unwrap(),
        expected.replace('\'', "\"")
    );
    assert_eq!(
        probe.chain,
        [leaf.certificate, authority.certificate().clone()]
    );
}

fn server_leaf(authority: &Authority) -> Issued {
    server(authority, &["127.0.0.1", "cp-1"])
}

#[tokio::test]
async fn a_server_that_accepts_us_shows_its_chain() {
    check(
        Server::default(),
        "{'kind':'completed','version':'1.3','http2':true,'asksForClientCertificate':false}",
    )
    .await;
    check(
        Server {
            version: &version::TLS12,
            protocols: &[],
            ..Server::default()
        },
        "{'kind':'completed','version':'1.2','http2':false,'asksForClientCertificate':false}",
    )
    .await;
}

#[tokio::test]
async fn a_server_that_refuses_us_shows_its_chain_first() {
    let clients = || Some(authority().certificate().clone());
    check(
        Server {
            clients: clients(),
            ..Server::default()
        },
        "{'kind':'refused','alert':'CertificateRequired'}",
    )
    .await;
    check(
        Server {
            version: &version::TLS12,
            clients: clients(),
            ..Server::default()
        },
        "{'kind':'refused','alert':'CertificateRequired'}",
    )
    .await;
}

#[tokio::test]
async fn a_server_without_our_protocol_is_named_so() {
    let authority = authority();
    let leaf = server_leaf(&authority);
    let only_http1 = Server {
        protocols: &["http/1.1"],
        ..Server::default()
    };
    let address = serve_leaf(&authority, &leaf, only_http1).await;
    let refused = probe(address, &ProbeOptions::default()).await;
    assert_eq!(
        serde_json::to_string(&refused.outcome).unwrap(),
        "{\"kind\":\"failed\",\"reason\":\"alert\",\"alert\":\"NoApplicationProtocol\"}"
    );
    let options = ProbeOptions {
        http2: false,
        ..ProbeOptions::default()
    };
    assert_eq!(probe(address, &options).await.chain.len(), 2);
}

/// Probes whatever answers with these bytes and then closes.
async fn outcome_of(bytes: &'static [u8]) -> Outcome {
    let address = answer(move |mut socket| async move {
        let _ = socket.read(&mut [0; 1024]).await;
        let _ = socket.write_all(bytes).await;
    })
    .await;
    probe(address, &ProbeOptions::default()).await.outcome
}

#[tokio::test]
async fn what_is_not_tls_is_named_so() {
    let http = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
    assert_eq!(outcome_of(http).await, Outcome::Failed(Failure::PlainHttp));
    assert_eq!(
        outcome_of(b"SSH-2.0-OpenSSH_9.2\r\n").await,
        Outcome::Failed(Failure::NotTls)
    );
    assert_eq!(outcome_of(b"").await, Outcome::Failed(Failure::Closed));
    assert!(matches!(
        outcome_of(&[22, 3, 3, 0, 4, 2, 0, 0, 0]).await,
        Outcome::Failed(Failure::Protocol { .. })
    ));
    // The alert "protocol version", what servers without TLS 1.2 answer.
    assert_eq!(
        serde_json::to_string(&outcome_of(&[21, 3, 1, 0, 2, 2, 70]).await).unwrap(),
        "{\"kind\":\"failed\",\"reason\":\"alert\",\"alert\":\"ProtocolVersion\"}"
    );
}

#[tokio::test]
async fn a_reset_is_a_closed_connection() {
    let address = answer(|socket| async move {
        // Closing with unread bytes resets.
        let _ = socket.readable().await;
    })
    .await;
    let outcome = probe(address, &ProbeOptions::default()).await.outcome;
    assert_eq!(outcome, Outcome::Failed(Failure::Closed));
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_refuses() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let outcome = probe(address, &ProbeOptions::default()).await.outcome;
    assert_eq!(outcome, Outcome::Failed(Failure::ConnectionRefused));
}

#[tokio::test]
async fn an_address_that_is_silent_or_closed_does_not_hide_the_next_one() {
    let authority = authority();
    let leaf = server_leaf(&authority);
    let serving = serve_leaf(&authority, &leaf, Server::default()).await;
    let silent = answer(|socket| async move {
        let _kept_open = socket;
        std::future::pending().await
    })
    .await;
    // Bound, so that nobody else gets it, and not listened on.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = socket.local_addr().unwrap();
    let options = ProbeOptions {
        timeout: Duration::from_secs(3),
        ..ProbeOptions::default()
    };
    let probe = probe_any(&[closed, silent, serving], &options)
        .await
        .unwrap();
    assert_eq!((probe.address, probe.chain.len()), (serving, 2));
    let probe = probe_any(&[closed], &options).await.unwrap();
    assert_eq!(probe.outcome, Outcome::Failed(Failure::ConnectionRefused));
    assert!(probe_any(&[], &options).await.is_none());
}

#[tokio::test]
async fn a_server_that_hangs_is_left_after_the_timeout() {
    let address = answer(|mut socket| async move {
        let mut bytes = Vec::new();
        let _ = socket.read_to_end(&mut bytes).await;
    })
    .await;
    let options = ProbeOptions {
        timeout: Duration::from_millis(100),
        ..ProbeOptions::default()
    };
    let outcome = probe(address, &options).await.outcome;
    assert_eq!(outcome, Outcome::Failed(Failure::HandshakeTimedOut));
}

#[tokio::test]
async fn certificates_that_cannot_be_used_are_named_so() {
    let authority = authority();
    let leaf = server_leaf(&authority);
    let der = leaf.certificate.der().to_vec();
    let key = leaf.key.pkcs8_der();
    let garbage = vec![der.clone(), vec![1, 2, 3]];
    let address = serve(garbage, key, Server::default()).await;
    let malformed = probe(address, &ProbeOptions::default()).await;
    assert_eq!(malformed.chain, [leaf.certificate]);
    assert_eq!(
        malformed.outcome,
        Outcome::Failed(Failure::UnreadableCertificate {
            message: "certificate 2: certificate 1 cannot be read".to_owned()
        })
    );
    let huge = vec![der; 4000];
    let address = serve(huge, key, Server::default()).await;
    let outcome = probe(address, &ProbeOptions::default()).await.outcome;
    assert!(
        matches!(outcome, Outcome::Failed(Failure::Protocol { .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_handshake_verifies_names_authorities_and_dates() {
    let trusted = authority();
    let other = authority();
    let clients = other.certificate().clone();
    let leaf = server(&trusted, &["127.0.0.1", "cp-1", "*.example.com"]);
    let demanding = Server {
        clients: Some(clients),
        ..Server::default()
    };
    let address = serve_leaf(&trusted, &leaf, demanding).await;
    let day = SignedDuration::from_hours(24);
    let both = [&other, &trusted];
    for (name, authorities, at, expected) in [
        ("127.0.0.1", &both[..], now(), true),
        ("cp-1", &both, now(), true),
        ("CP-1.", &both, now(), true),
        ("a.example.com", &both, now(), true),
        ("172.30.0.11", &both, now(), false),
        ("cp-2", &both, now(), false),
        ("cp-1", &both[..1], now(), false),
        ("cp-1", &both, now() + day * 2, false),
        ("cp-1", &both, now() - day, false),
    ] {
        let name = Name::parse(name).unwrap();
        let authorities: Vec<Certificate> = authorities
            .iter()
            .map(|authority| authority.certificate().clone())
            .collect();
        let options = ProbeOptions::default();
        let handshake = verified_handshake(address, &name, &authorities, at, &options).await;
        let handshake = handshake.unwrap();
        assert_eq!(
            handshake.is_verified(),
            expected,
            "{name} {at} {handshake:?}"
        );
        // The server refuses us all the same, which says nothing about its certificate.
        assert!(matches!(handshake.probe.outcome, Outcome::Refused { .. }));
    }
}

#[tokio::test]
async fn a_handshake_with_nobody_is_not_verified() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let name = Name::parse("127.0.0.1").unwrap();
    let authorities = [authority().certificate().clone()];
    let options = ProbeOptions::default();
    let handshake = verified_handshake(address, &name, &authorities, now(), &options).await;
    assert!(!handshake.unwrap().is_verified());
    let none = verified_handshake(address, &name, &[], now(), &options).await;
    assert_eq!(
        none.unwrap_err().to_string(),
        "none of the 0 given authorities can verify a certificate"
    );
}
