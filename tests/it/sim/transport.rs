//! What apid's TLS accepts, refuses and presents.

use std::io;

use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig};
use talos_pki::{AuthorityKind, LeafRequest, LeafUsage, Name};
use talos_sim::{Options, TalosVersion};
use tokio::io::AsyncReadExt as _;

use super::*;

/// Handshakes and reads until the server says what it thinks of the client.
async fn alert(node: &Node, config: ClientConfig) -> Option<AlertDescription> {
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::from(node.address());
    let stream = TcpStream::connect(node.dial().unwrap()).await.unwrap();
    let outcome = match connector.connect(name, stream).await {
        Ok(mut stream) => stream.read_u8().await.map(drop),
        Err(error) => Err(error),
    };
    let error: io::Error = outcome.err()?;
    match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::AlertReceived(alert) => Some(*alert),
        other => panic!("{other}"),
    }
}

fn request(usage: LeafUsage) -> LeafRequest {
    LeafRequest {
        organizations: vec!["os:admin".to_owned()],
        usage,
        lifetime: SignedDuration::from_hours(1),
        ..LeafRequest::default()
    }
}

const CLIENT: LeafUsage = LeafUsage {
    key_encipherment: false,
    server: false,
    client: true,
};

#[tokio::test]
async fn clients_are_refused_for_what_is_wrong_with_them() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let authority = talos_authority(&cluster);
    let now = Timestamp::now();

    let both = LeafUsage {
        server: true,
        ..CLIENT
    };
    let issued = authority.issue(&request(both), now).unwrap();
    let found = alert(node, with_client(&cluster, issued).config()).await;
    assert_eq!(found, Some(AlertDescription::BadCertificate));

    let issued = authority
        .issue(&request(CLIENT), now - SignedDuration::from_hours(2))
        .unwrap();
    let found = alert(node, with_client(&cluster, issued).config()).await;
    assert_eq!(found, Some(AlertDescription::CertificateExpired));

    let stranger = Authority::generate(AuthorityKind::Talos, now).unwrap();
    let issued = stranger.issue(&request(CLIENT), now).unwrap();
    let found = alert(node, with_client(&cluster, issued).config()).await;
    // A stranger with the same subject is found out by the signature, one with another by the name.
    let expected = [
        AlertDescription::UnknownCA,
        AlertDescription::DecryptError,
        AlertDescription::BadCertificate,
    ];
    assert!(expected.contains(&found.unwrap()), "{found:?}");

    let credentials = Credentials::of(&cluster, &["os:admin"]);
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from(credentials.ca[0].der().to_vec()))
        .unwrap();
    let anonymous = ClientConfig::builder_with_provider(Arc::new(
        rustls::crypto::aws_lc_rs::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_root_certificates(roots)
    .with_no_client_auth();
    assert_eq!(
        alert(node, anonymous).await,
        Some(AlertDescription::CertificateRequired)
    );
}

#[tokio::test]
async fn only_tls_1_3_and_h2_are_spoken() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let credentials = Credentials::of(&cluster, &["os:admin"]);
    let mut other_protocol = credentials.config();
    other_protocol.alpn_protocols = vec![b"http/1.1".to_vec()];
    let found = alert(node, other_protocol).await;
    assert_eq!(found, Some(AlertDescription::NoApplicationProtocol));

    let mut without_alpn = credentials.config();
    without_alpn.alpn_protocols.clear();
    let channel = connect(
        node.dial().unwrap(),
        &node.address().to_string(),
        without_alpn,
    )
    .await;
    assert_eq!(tag(&channel, &[]).await.unwrap(), "v1.13.9");

    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let old = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    assert_eq!(
        alert(node, old).await,
        Some(AlertDescription::ProtocolVersion)
    );
}

async fn served(node: &Node, credentials: &Credentials) -> Certificate {
    let connector = TlsConnector::from(Arc::new(credentials.config()));
    let stream = TcpStream::connect(node.dial().unwrap()).await.unwrap();
    let name = ServerName::from(node.address());
    let stream = connector.connect(name, stream).await.unwrap();
    let chain = stream.get_ref().1.peer_certificates().unwrap();
    assert_eq!(chain.len(), 1);
    Certificate::from_der(&chain[0]).unwrap()
}

#[tokio::test]
async fn the_server_certificate_covers_what_the_version_covers() {
    for (version, loopback) in [
        (TalosVersion::V1_11_5, false),
        (TalosVersion::V1_13_9, true),
    ] {
        let options = Options {
            workers: 0,
            talos_version: version,
            machine_cert_sans: vec!["172.30.0.11".to_owned(), "talos.example.com".to_owned()],
            ..Options::default()
        };
        let cluster = Cluster::start(options).await.unwrap();
        let node = &cluster.nodes()[0];
        let found = served(node, &Credentials::of(&cluster, &["os:admin"])).await;
        let has = |name: &str| found.names().contains(&name.parse::<Name>().unwrap());
        assert!(has(&node.address().to_string()) && has(node.name()));
        assert!(has("172.30.0.11") && has("talos.example.com"));
        assert_eq!(has("127.0.0.1"), loopback, "{version:?}");
        assert_eq!(found.common_name(), Some(node.name()));
        assert_eq!(
            found.not_after() - found.not_before(),
            SignedDuration::from_hours(24)
        );
    }
}

#[tokio::test]
async fn messages_of_more_than_four_megabytes_arrive() {
    let cluster = cluster(1, 0).await;
    let channel = admin(&cluster, &cluster.nodes()[0]).await;
    let mut client = MachineServiceClient::new(channel);
    let comments = format!("# {}\n", "x".repeat(100)).repeat(60_000);
    let data = (cluster.nodes()[0].machine_config().unwrap() + &comments).into_bytes();
    let request = machine::ApplyConfigurationRequest {
        data,
        dry_run: true,
        ..<_>::default()
    };
    let answer = client
        .apply_configuration(request)
        .await
        .unwrap()
        .into_inner();
    assert!(answer.messages[0].mode_details.ends_with("No changes."));
}

#[tokio::test]
async fn gzip_is_answered_with_gzip() {
    use tonic::codec::CompressionEncoding::Gzip;
    let cluster = cluster(1, 0).await;
    let channel = admin(&cluster, &cluster.nodes()[0]).await;
    let mut client = MachineServiceClient::new(channel)
        .send_compressed(Gzip)
        .accept_compressed(Gzip);
    let answer = client.service_list(()).await.unwrap();
    assert_eq!(answer.metadata().get("grpc-encoding").unwrap(), "gzip");
    let services = &answer.get_ref().messages[0].services;
    let ids: Vec<&str> = services.iter().map(|service| service.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "apid",
            "containerd",
            "cri",
            "etcd",
            "kubelet",
            "machined",
            "trustd"
        ]
    );
}

#[tokio::test]
async fn roles_come_from_the_certificate() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let as_role = async |roles: &[&str]| {
        let config = Credentials::of(&cluster, roles).config();
        connect(node.dial().unwrap(), &node.address().to_string(), config).await
    };
    let reader = as_role(&["os:reader"]).await;
    assert_eq!(
        tag(&reader, &[("talos-role", "os:admin")]).await.unwrap(),
        "v1.13.9"
    );
    let mut client = MachineServiceClient::new(reader.clone());
    let request = machine::ApplyConfigurationRequest {
        dry_run: true,
        ..<_>::default()
    };
    let denied = client
        .apply_configuration(ask(request.clone(), &[("talos-role", "os:admin")]))
        .await;
    refused(denied, Code::PermissionDenied, "not authorized");
    let place = ("config", "MachineConfigs.config.talos.dev", "v1alpha1");
    refused(
        resource(&reader, place, &[]).await,
        Code::PermissionDenied,
        "not authorized",
    );

    let impersonator = as_role(&["os:impersonator"]).await;
    refused(
        tag(&impersonator, &[]).await,
        Code::PermissionDenied,
        "not authorized",
    );
    tag(&impersonator, &[("talos-role", "os:reader")])
        .await
        .unwrap();
    let nobody = as_role(&[]).await;
    refused(
        tag(&nobody, &[]).await,
        Code::PermissionDenied,
        "not authorized",
    );
}

#[tokio::test]
async fn a_method_that_the_version_lacks_is_unimplemented_for_everybody() {
    use talos_api::machine::image_service_client::ImageServiceClient;
    let options = Options {
        talos_version: TalosVersion::V1_11_5,
        workers: 0,
        ..Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let node = &cluster.nodes()[0];
    let config = Credentials::of(&cluster, &[]).config();
    let channel = connect(node.dial().unwrap(), &node.address().to_string(), config).await;
    let mut client = ImageServiceClient::new(channel);
    let listed = client
        .list(machine::ImageServiceListRequest::default())
        .await;
    refused(
        listed,
        Code::Unimplemented,
        "unknown service machine.ImageService",
    );
}

#[tokio::test]
async fn a_hundred_nodes_have_a_hundred_addresses_and_certificates() {
    let cluster = cluster(3, 97).await;
    let mut seen = std::collections::BTreeSet::new();
    let credentials = Credentials::of(&cluster, &["os:reader"]);
    for node in cluster.nodes() {
        let certificate = served(node, &credentials).await;
        assert!(seen.insert((node.address(), certificate.fingerprint())));
    }
    assert_eq!(seen.len(), 100);
}
