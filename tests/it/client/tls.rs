//! TLS: who refuses whom, and the keys and certificates that are accepted.

use std::sync::OnceLock;

use jiff::{SignedDuration, Timestamp};
use rustls_pki_types::CertificateDer;
use talos_client::{Client, Error, Kind, Security, TlsRefusal};
use talos_config::talosconfig::{Credentials, Identity, TalosConfig};
use talos_pki::{
    Algorithm, Authority, AuthorityKind, Certificate, LeafRequest, LeafUsage, PrivateKey,
};
use talos_sim::{Cluster, ServedCertificate};

use super::{address, client, cluster, node, options, text};

async fn refusal(cluster: &Cluster, served: ServedCertificate) -> (Error, TlsRefusal) {
    cluster.nodes()[0].faults().serve_certificate(served);
    let client = client(cluster);
    let error = node(&client, cluster, 0).version().await.unwrap_err();
    assert_eq!(error.kind(), Kind::Tls, "{error}");
    match &error {
        Error::Tls { refusal, .. } => {
            let refusal = refusal.clone();
            (error, refusal)
        }
        _ => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn an_expired_server_says_when_it_expired() {
    let cluster = cluster(1, 0).await;
    let (_, refusal) = refusal(&cluster, ServedCertificate::Expired).await;
    let TlsRefusal::ServerExpired { not_after } = refusal else {
        panic!("{refusal:?}");
    };
    assert!(not_after.unwrap() < Timestamp::now());
}

#[tokio::test]
async fn a_server_of_another_authority_names_that_authority() {
    let cluster = cluster(1, 0).await;
    let (error, refusal) = refusal(&cluster, ServedCertificate::ForeignAuthority).await;
    assert!(
        matches!(refusal, TlsRefusal::UnknownAuthority { .. }),
        "{refusal:?}"
    );
    assert!(error.to_string().contains(&address(&cluster, 0)), "{error}");
}

#[tokio::test]
async fn a_server_under_other_names_lists_them() {
    let cluster = cluster(1, 0).await;
    let (_, refusal) = refusal(&cluster, ServedCertificate::OtherNames).await;
    let TlsRefusal::NameNotCovered { wanted, names } = refusal else {
        panic!("{refusal:?}");
    };
    assert_eq!(wanted, address(&cluster, 0));
    assert!(!names.is_empty() && !names.contains(&wanted), "{names:?}");
}

#[tokio::test]
async fn without_authorities_only_the_system_roots_that_are_passed_in_count() {
    static ROOT: OnceLock<CertificateDer<'static>> = OnceLock::new();
    let cluster = cluster(1, 0).await;
    let mut options = options(&cluster, &["os:admin"]);
    let Security::Mutual(credentials) = &mut options.security else {
        panic!("{options:?}");
    };
    let authority = credentials.authorities.swap_remove(0);
    assert!(credentials.authorities.is_empty());
    let error = Client::new(options.clone()).unwrap_err();
    assert!(matches!(error, Error::NoSystemRoots), "{error:?}");

    ROOT.set(CertificateDer::from(authority.der().to_vec()))
        .unwrap();
    options.system_roots = || ROOT.get().cloned().into_iter().collect();
    let client = Client::new(options).unwrap();
    node(&client, &cluster, 0).version().await.unwrap();
}

async fn refused_client(cluster: &Cluster, credentials: Credentials) -> String {
    let mut options = options(cluster, &["os:admin"]);
    options.security = Security::Mutual(credentials);
    let client = Client::new(options).unwrap();
    let error = node(&client, cluster, 0).version().await.unwrap_err();
    let Error::Tls { refusal, .. } = &error else {
        panic!("{error:?}");
    };
    assert!(
        matches!(refusal, TlsRefusal::ClientRefused { .. }),
        "{refusal:?}"
    );
    text(&error)
}

fn own_credentials(cluster: &Cluster) -> Credentials {
    let config = TalosConfig::parse("talosconfig", &cluster.talosconfig(&["os:admin"])).unwrap();
    config.credentials("cluster-1").unwrap()
}

#[tokio::test]
async fn a_client_that_the_server_refuses_after_the_handshake_hears_why() {
    let (cluster, other) = (cluster(1, 0).await, cluster(1, 0).await);
    let mut foreign = own_credentials(&other);
    foreign.authorities = own_credentials(&cluster).authorities;
    refused_client(&cluster, foreign).await;

    let mut nobody = own_credentials(&cluster);
    nobody.identity = None;
    let said = refused_client(&cluster, nobody).await;
    assert!(
        said.ends_with("the server refused the client certificate: a certificate is required"),
        "{said}"
    );
}

#[tokio::test]
async fn several_authorities_are_all_trusted() {
    let (cluster, other) = (cluster(1, 0).await, cluster(1, 0).await);
    let mut credentials = own_credentials(&cluster);
    credentials
        .authorities
        .insert(0, other.talos_authority().clone());
    let mut options = options(&cluster, &["os:admin"]);
    options.security = Security::Mutual(credentials);
    let client = Client::new(options).unwrap();
    node(&client, &cluster, 0).version().await.unwrap();
}

fn now() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

fn identity(usage: LeafUsage, lifetime: SignedDuration, at: Timestamp) -> Identity {
    let authority =
        Authority::generate(AuthorityKind::Talos, now() - SignedDuration::from_hours(24)).unwrap();
    let request = LeafRequest {
        common_name: None,
        organizations: vec!["os:admin".to_string()],
        names: Vec::new(),
        usage,
        lifetime,
        backdate: SignedDuration::ZERO,
    };
    let issued = authority.issue(&request, at).unwrap();
    Identity {
        chain: vec![issued.certificate],
        key: issued.key,
    }
}

const CLIENT: LeafUsage = LeafUsage {
    key_encipherment: false,
    server: false,
    client: true,
};

fn refused_before_dialling(identity: Identity) -> Error {
    let security = Security::Mutual(Credentials {
        authorities: identity.chain.clone(),
        identity: Some(identity),
    });
    // Nothing listens there, and nothing is dialled.
    let options = talos_client::Options::new(vec!["127.0.0.1:1".to_string()], security, now());
    Client::new(options).unwrap_err()
}

#[test]
fn an_unusable_client_certificate_is_reported_before_dialling() {
    let hour = SignedDuration::from_hours(1);
    let error = refused_before_dialling(identity(CLIENT, hour, now() - hour - hour));
    assert_eq!(error.kind(), Kind::ClientCertificate);
    assert_eq!(
        error.to_string(),
        "the client certificate expired at 2026-11-30T11:00:00Z"
    );

    let error = refused_before_dialling(identity(CLIENT, hour, now() + hour));
    assert_eq!(error.kind(), Kind::ClientCertificate);
    assert_eq!(
        error.to_string(),
        "the client certificate is valid from 2026-11-30T13:00:00Z only"
    );

    let server = LeafUsage {
        server: true,
        client: false,
        ..CLIENT
    };
    let error = refused_before_dialling(identity(server, hour, now()));
    assert_eq!(error.kind(), Kind::ClientCertificate);
    assert_eq!(
        error.to_string(),
        "the client certificate is not made for clients: its extended key usage lacks clientAuth"
    );
}

#[test]
fn a_key_that_does_not_match_is_reported_before_dialling() {
    let hour = SignedDuration::from_hours(1);
    let mut wrong = identity(CLIENT, hour, now());
    wrong.key = PrivateKey::generate(Algorithm::Ed25519).unwrap();
    assert_eq!(refused_before_dialling(wrong).kind(), Kind::Input);
}

async fn works_with(algorithm: Algorithm, pem: impl Fn(&PrivateKey) -> String) {
    let cluster = cluster(1, 0).await;
    let key = PrivateKey::generate(algorithm).unwrap();
    let certificate: Certificate = cluster.sign_client(&["os:reader"], &key);
    let mut credentials = own_credentials(&cluster);
    credentials.identity = Some(Identity {
        chain: vec![certificate],
        key: PrivateKey::from_pem(pem(&key)).unwrap(),
    });
    let mut options = options(&cluster, &["os:admin"]);
    options.security = Security::Mutual(credentials);
    let client = Client::new(options).unwrap();
    let version = node(&client, &cluster, 0).version().await;
    assert_eq!(version.unwrap().tag, "v1.13.9", "{algorithm}");
}

#[tokio::test]
async fn keys_of_every_kind_and_label_work() {
    for (algorithm, label) in [
        (Algorithm::Ed25519, "BEGIN ED25519 PRIVATE KEY"),
        (Algorithm::EcdsaP256, "BEGIN EC PRIVATE KEY"),
        (Algorithm::Rsa(2048), "BEGIN RSA PRIVATE KEY"),
    ] {
        works_with(algorithm, |key| {
            let pem = key.pem().to_string();
            assert!(pem.contains(label), "{label}");
            pem
        })
        .await;
        works_with(algorithm, |key| {
            let pem = key.pkcs8_pem().to_string();
            assert!(pem.contains("BEGIN PRIVATE KEY"), "{label}");
            pem
        })
        .await;
    }
}

#[tokio::test]
async fn what_does_not_speak_tls_is_said_so() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut stream, _) = listener.accept().await.unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.ok();
    });
    let cluster = cluster(1, 0).await;
    let mut options = options(&cluster, &["os:admin"]);
    options.endpoints = vec![format!("127.0.0.1:{port}")];
    let client = Client::new(options).unwrap();
    let error = client.endpoint().version().await.unwrap_err();
    let refused = matches!(
        &error,
        Error::Tls {
            refusal: TlsRefusal::NotTls,
            ..
        }
    );
    assert!(refused, "{error:?}");
    server.await.unwrap();
}

#[tokio::test]
async fn a_server_that_hangs_up_is_not_reachable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move { drop(listener.accept().await.unwrap()) });
    let cluster = cluster(1, 0).await;
    let mut options = options(&cluster, &["os:admin"]);
    options.endpoints = vec![format!("127.0.0.1:{port}")];
    let client = Client::new(options).unwrap();
    let error = client.endpoint().version().await.unwrap_err();
    assert_eq!(error.kind(), Kind::NotReachable, "{error:?}");
    server.await.unwrap();
}
