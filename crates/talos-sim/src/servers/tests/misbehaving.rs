//! What servers do when a test tells them to do wrong.

use std::io::ErrorKind;

use jiff::{SignedDuration, Timestamp};
use talos_pki::{Authority, AuthorityKind, LeafRequest, LeafUsage, Name, Purpose};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::{Behavior, Reach, ServedCertificate as Served};

/// The servers that have a certificate of their own.
const SECURED: [Server; 6] = [
    Server::Apid,
    Server::Trustd,
    Server::KubeApiServer,
    Server::Kubelet,
    Server::EtcdClient,
    Server::EtcdPeer,
];
/// How a TLS client begins.
const HELLO: [u8; 6] = [22, 3, 1, 0, 1, 0];

async fn present(node: &Node, server: Server, kind: Served) -> Certificate {
    node.faults().serve_certificate_on(server, kind);
    chain(node, server).await.remove(0)
}

async fn greet(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&HELLO).await.unwrap();
    stream
}

#[tokio::test]
async fn each_server_can_present_each_wrong_certificate() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let now = Timestamp::now();
    let known = [cluster.talos_authority(), cluster.kubernetes_authority()];
    for server in SECURED {
        let own = chain(node, server).await;
        let leaf = present(node, server, Served::Expired).await;
        assert!(leaf.not_after() < now, "{server:?}");
        let leaf = present(node, server, Served::NotYetValid).await;
        assert!(leaf.not_before() > now, "{server:?}");
        let leaf = present(node, server, Served::OtherNames).await;
        let elsewhere = Name::Dns("elsewhere.example.com".to_owned());
        assert_eq!(leaf.names(), [elsewhere], "{server:?}");
        let leaf = present(node, server, Served::CommonNameOnly).await;
        assert!(leaf.names().is_empty(), "{server:?}");
        assert_eq!(leaf.common_name(), Some(node.name()), "{server:?}");
        let leaf = present(node, server, Served::ClientOnly).await;
        let client_only = &[Purpose::ClientAuth][..];
        assert_eq!(leaf.extended_key_usage(), Some(client_only), "{server:?}");
        let other = match server {
            Server::KubeApiServer | Server::Kubelet => known[0],
            _ => known[1],
        };
        let leaf = present(node, server, Served::OtherAuthority).await;
        assert!(is_issued_by(&leaf, other), "{server:?}");
        let leaf = present(node, server, Served::ForeignAuthority).await;
        assert!(!known.iter().any(|known| is_issued_by(&leaf, known)));
        present(node, server, Served::Own).await;
        assert_eq!(chain(node, server).await, own, "{server:?}");
    }
}

#[tokio::test]
async fn any_chain_can_be_presented() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let now = Timestamp::now();
    let authority = Authority::generate(AuthorityKind::Etcd, now).unwrap();
    let request = LeafRequest {
        names: vec![Name::Dns("given.example.com".to_owned())],
        usage: LeafUsage {
            server: true,
            ..LeafUsage::default()
        },
        lifetime: SignedDuration::from_hours(1),
        ..LeafRequest::default()
    };
    let issued = authority.issue(&request, now).unwrap();
    let given = [issued.certificate.clone(), authority.certificate().clone()];
    for server in SECURED {
        let faults = node.faults();
        faults.serve_chain(server, &given, &issued.key).unwrap();
        assert_eq!(chain(node, server).await, given, "{server:?}");
    }
}

#[tokio::test]
async fn each_server_can_misbehave() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    for server in Server::ALL {
        let dial = node.dial_server(server).unwrap();
        node.faults().behave(server, Behavior::PlainHttp);
        let mut text = Vec::new();
        greet(dial).await.read_to_end(&mut text).await.unwrap();
        assert!(text.starts_with(b"HTTP/1.1 400 Bad Request\r\n"));

        node.faults().behave(server, Behavior::Reset);
        let error = greet(dial).await.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{server:?}");

        node.faults().behave(server, Behavior::Hang);
        let mut stream = greet(dial).await;
        let silence = Duration::from_millis(30);
        let silence = tokio::time::timeout(silence, stream.read_u8()).await;
        assert!(silence.is_err(), "{server:?}");

        node.faults().behave(server, Behavior::Normal);
        assert!(!chain(node, server).await.is_empty(), "{server:?}");
    }
}

#[tokio::test]
async fn old_tls_and_long_chains_are_offered() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    for server in SECURED {
        let dial = node.dial_server(server).unwrap();
        node.faults().behave(server, Behavior::Tls12Only);
        let found = meet(dial, None, &["h2"]).await;
        assert!(!found.chain.is_empty(), "{server:?}");
        // Those that want a client certificate end the handshake of TLS 1.2 without one.
        if let Ok(stream) = &found.stream {
            let version = stream.get_ref().1.protocol_version();
            let old = Some(rustls::ProtocolVersion::TLSv1_2);
            assert_eq!(version, old, "{server:?}");
        }

        node.faults().behave(server, Behavior::HugeChain);
        let found = meet(dial, None, &["h2"]).await;
        // rustls takes no more than 64 KiB.
        assert!(found.stream.is_err(), "{server:?}");
        assert!(found.chain.is_empty(), "{server:?}");
    }
}

#[tokio::test]
async fn servers_go_down_with_their_machine_or_alone() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let dial = node.dial_server(Server::Trustd).unwrap();
    let refuses = async || TcpStream::connect(dial).await.is_err();
    let faults = node.faults();
    faults.behave(Server::Trustd, Behavior::Closed);
    until("trustd goes down", refuses).await;
    faults.behave(Server::Trustd, Behavior::Normal);
    until("trustd comes up", async || !refuses().await).await;
    faults.set_reach(Reach::Refusing);
    until("the machine goes down", refuses).await;
    faults.set_reach(Reach::Up);
    until("the machine comes up", async || !refuses().await).await;
}
