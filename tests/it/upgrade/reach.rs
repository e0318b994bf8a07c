//! Finding the Kubernetes API, and the name to trust it for.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use talos_kube::{Access, Address, Error, Options, Patience, reach};
use talos_pki::{Authority, AuthorityKind, LeafRequest, LeafUsage, Name};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::lab::silent;

/// An API server that knows its version and nothing else.
struct Server {
    authority: Authority,
    port: u16,
}

impl Server {
    /// Listens on 127.0.0.1 with a certificate for `names`.
    async fn start(names: &[&str]) -> Self {
        let now = Timestamp::now();
        let authority = Authority::generate(AuthorityKind::Kubernetes, now).unwrap();
        let server = Self { port: 0, authority };
        let port = server.listen(names).await;
        Self { port, ..server }
    }

    async fn listen(&self, names: &[&str]) -> u16 {
        let request = LeafRequest {
            common_name: Some("kube-apiserver".to_owned()),
            organizations: Vec::new(),
            names: names
                .iter()
                .map(|name| Name::parse(name).unwrap())
                .collect(),
            usage: LeafUsage {
                key_encipherment: true,
                server: true,
                client: false,
            },
            lifetime: SignedDuration::from_hours(24),
            backdate: SignedDuration::from_mins(5),
        };
        let issued = self.authority.issue(&request, Timestamp::now()).unwrap();
        let chain = vec![CertificateDer::from(issued.certificate.der().to_vec())];
        let key = PrivatePkcs8KeyDer::from(issued.key.pkcs8_der().to_vec());
        let config = ServerConfig::builder_with_provider(Arc::new(
            tokio_rustls::rustls::crypto::aws_lc_rs::default_provider(),
        ));
        let config = config
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::from(key))
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    if let Ok(mut tls) = acceptor.accept(stream).await {
                        let _ = answer(&mut tls).await;
                    }
                });
            }
        });
        port
    }

    /// What a kubeconfig with this server's URL grants.
    fn access(&self, server: &str) -> Access {
        Access {
            servers: Address::from_server(server).unwrap(),
            authorities: vec![self.authority.certificate().der().to_vec().into()],
            identity: None,
            token: Some("secret".to_owned()),
            server_name: None,
            proxy: None,
        }
    }

    fn here(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

async fn answer(
    tls: &mut tokio_rustls::server::TlsStream<tokio::net::TcpStream>,
) -> std::io::Result<()> {
    let mut request = [0; 4096];
    let read = tls.read(&mut request).await?;
    let request = String::from_utf8_lossy(&request[..read]).into_owned();
    assert!(request.starts_with("GET /version "), "{request}");
    assert!(
        request.contains("authorization: Bearer secret"),
        "{request}"
    );
    let version = r#"{"major":"1","minor":"34","gitVersion":"v1.34.0","gitCommit":"","gitTreeState":"","buildDate":"","goVersion":"","compiler":"","platform":""}"#;
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        version.len()
    );
    tls.write_all(head.as_bytes()).await?;
    tls.write_all(version.as_bytes()).await?;
    tls.shutdown().await
}

fn options(endpoint: Option<String>, nodes: &[&str]) -> Options {
    Options {
        endpoint,
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        patience: Patience {
            pause: Duration::from_millis(1),
            longest_pause: Duration::from_millis(2),
            ..Patience::default()
        },
        search: Duration::from_millis(20),
        ..Options::new(Timestamp::now())
    }
}

async fn check(names: &[&str], nodes: &[&str], expected: &str) {
    let server = Server::start(names).await;
    let access = server.access("https://cp.example:6443");
    let reached = reach(&access, options(Some(server.here()), nodes)).await;
    let shown = match reached {
        Ok(kubernetes) => {
            assert_eq!(kubernetes.version(), "v1.34.0");
            assert_eq!(kubernetes.address().to_string(), server.here());
            kubernetes.verified_name().to_string()
        }
        Err(error) => error.to_string().replace(&server.here(), "HERE"),
    };
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn the_certificate_is_trusted_for_the_first_name_that_fits() {
    let nodes = &["10.5.10.2", "cp-1"];
    check(&["127.0.0.1", "10.5.10.2"], nodes, "127.0.0.1").await;
    check(&["cp.example", "10.5.10.2"], nodes, "10.5.10.2").await;
    check(&["cp.example", "cp-1"], nodes, "cp-1").await;
    check(
        &["cp.example", "kubernetes.default.svc"],
        nodes,
        "cp.example",
    )
    .await;
    check(
        &["other", "kubernetes.default.svc"],
        nodes,
        "kubernetes.default.svc",
    )
    .await;
}

#[tokio::test]
async fn a_name_is_never_taken_from_the_certificate() {
    check(
        &["other", "10.9.9.9"],
        &["10.5.10.2"],
        "the certificate of the Kubernetes API at HERE is not trusted: it is for other names; \
         expected one of 127.0.0.1, 10.5.10.2, cp.example, kubernetes.default.svc; \
         the certificate is valid for other, 10.9.9.9",
    )
    .await;
}

#[tokio::test]
async fn a_wrong_name_comes_with_what_to_add_or_use() {
    let server = Server::start(&["cp-1"]).await;
    let access = server.access("https://cp.example:6443");
    let error = reach(&access, options(Some(server.here()), &[]))
        .await
        .unwrap_err();
    assert_eq!(
        error.hint().unwrap(),
        format!(
            "add 127.0.0.1 to cluster.apiServer.certSANs, or use an address that is in the certificate, \
             such as --k8s-endpoint cp-1:{}",
            server.port
        )
    );
}

#[tokio::test]
async fn another_authority_is_not_trusted_under_any_name() {
    let server = Server::start(&["127.0.0.1"]).await;
    let other = Server::start(&[]).await;
    let access = other.access("https://cp.example:6443");
    let error = reach(&access, options(Some(server.here()), &[]))
        .await
        .unwrap_err();
    let Error::Certificate {
        problem, name_only, ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(
        problem,
        "it is not signed by a certificate authority of the kubeconfig"
    );
    assert!(!name_only);
    assert!(!error.hint().unwrap().contains("certSANs"));
}

#[tokio::test]
async fn every_address_that_does_not_answer_is_named_with_the_flag_that_helps() {
    let server = Server::start(&["127.0.0.1"]).await;
    let socket = silent();
    let first = socket.local_addr().unwrap();
    let access = server.access(&format!("https://{first}"));
    let error = reach(&access, options(None, &["127.0.0.2"]))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the Kubernetes API is not reachable: {first} (connection refused), \
             127.0.0.2:6443 (connection refused)"
        )
    );
    assert_eq!(
        error.hint().unwrap(),
        "name an address that answers from here with --k8s-endpoint HOST:PORT, \
         for example a forwarded port such as 127.0.0.1:49153"
    );
}

#[tokio::test]
async fn a_given_endpoint_is_the_only_one_dialed() {
    let server = Server::start(&["127.0.0.1"]).await;
    let access = server.access(&format!("https://{}", server.here()));
    let socket = silent();
    let wrong = socket.local_addr().unwrap().to_string();
    let error = reach(&access, options(Some(wrong.clone()), &[]))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the Kubernetes API is not reachable: {wrong} (connection refused)")
    );
}

#[tokio::test]
async fn a_server_that_restarts_is_waited_for() {
    let server = Server::start(&["127.0.0.1"]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let here = server.here();
    // The first two connections are closed at once, as by a port forwarder whose target is away.
    tokio::spawn(async move {
        for turn in 0.. {
            let Ok((mut stream, _)) = listener.accept().await else {
                return;
            };
            if turn < 2 {
                continue;
            }
            let here = here.clone();
            tokio::spawn(async move {
                let mut target = tokio::net::TcpStream::connect(here).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut target).await;
            });
        }
    });
    let access = server.access("https://cp.example:6443");
    let mut options = options(Some(format!("127.0.0.1:{port}")), &[]);
    options.search = Duration::from_secs(10);
    let reached = reach(&access, options).await.unwrap();
    assert_eq!(reached.address().port, port);
}
