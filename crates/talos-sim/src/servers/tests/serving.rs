//! What well-behaved servers present and answer.

use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::SignedDuration;
use prost::bytes::Bytes;
use talos_api::securityapi::CertificateRequest;
use talos_api::securityapi::security_service_client::SecurityServiceClient;
use talos_pki::{Algorithm, Name, Purpose, SigningRequest};
use tokio::io::AsyncReadExt as _;
use tonic::Code;
use tonic::transport::Endpoint;

use super::*;
use crate::TalosVersion;

/// One GET over a connection that is already secured.
async fn get(found: Found, path: &str) -> (u16, String) {
    let io = TokioIo::new(found.stream.unwrap());
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), io);
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let request = Request::get(format!("https://node{path}"))
        .body(Full::new(Bytes::new()))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn names(certificate: &Certificate) -> Vec<String> {
    let mut names: Vec<String> = certificate.names().iter().map(Name::to_string).collect();
    names.sort();
    names
}

fn sorted<const N: usize>(names: [&str; N]) -> Vec<String> {
    let mut names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    names.sort();
    names
}

fn kinds(node: &Node) -> Vec<Server> {
    node.servers().into_iter().map(|(kind, _)| kind).collect()
}

#[tokio::test]
async fn every_server_presents_what_a_real_one_does() {
    let cluster = cluster(1, 1).await;
    let [node, worker] = cluster.nodes() else {
        unreachable!()
    };
    let (host, address) = (node.name(), node.address().to_string());
    let server_only = &[Purpose::ServerAuth][..];
    let both = &[Purpose::ServerAuth, Purpose::ClientAuth][..];
    let talos = cluster.talos_authority();
    let kubernetes = cluster.kubernetes_authority();
    let etcd = &held(node, "EtcdRootSecrets", "etcd", "etcdCA").certificate;
    let own = sorted([host, &address, "127.0.0.1"]);
    let of_kubernetes = sorted([
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "localhost",
        host,
        &address,
        "10.96.0.1",
        "127.0.0.1",
    ]);
    let of_etcd = sorted([host, "localhost", &address, "127.0.0.1", "::1"]);
    let of_peer = sorted([host, &address]);
    // Issuer, common name, names, purposes and hours of life, as facts/config.md §2.3 has them.
    for (server, issuer, common_name, expected, purposes, hours) in [
        (Server::Apid, talos, host, own.clone(), server_only, 24),
        (Server::Trustd, talos, host, own, server_only, 24),
        (
            Server::KubeApiServer,
            kubernetes,
            "kube-apiserver",
            of_kubernetes,
            server_only,
            8760,
        ),
        (Server::EtcdClient, etcd, host, of_etcd, both, 87_600),
        (Server::EtcdPeer, etcd, host, of_peer, both, 87_600),
    ] {
        let dial = node.dial_server(server).unwrap();
        assert_eq!(dial, (node.address(), server.port()).into(), "{server:?}");
        let chain = chain(node, server).await;
        assert_eq!(chain.len(), 1, "{server:?}");
        let leaf = &chain[0];
        assert!(is_issued_by(leaf, issuer), "{server:?}");
        assert_eq!(leaf.common_name(), Some(common_name), "{server:?}");
        assert_eq!(names(leaf), expected, "{server:?}");
        assert_eq!(leaf.extended_key_usage(), Some(purposes), "{server:?}");
        let lifetime = leaf.not_after().duration_since(leaf.not_before());
        assert_eq!(lifetime, SignedDuration::from_hours(hours), "{server:?}");
    }
    let prism = chain(worker, Server::KubePrism).await;
    assert_eq!(prism, chain(node, Server::KubeApiServer).await);
    let expected = [Server::Apid, Server::Kubelet, Server::KubePrism];
    assert_eq!(kinds(worker), expected);
}

#[tokio::test]
async fn a_kubelet_makes_its_own_certificate_unless_it_is_told_to_rotate() {
    let cluster = cluster(1, 1).await;
    let worker = &cluster.nodes()[1];
    let host = worker.name();
    let found = chain(worker, Server::Kubelet).await;
    let (leaf, ca) = (&found[0], &found[1]);
    // As that of kube-apiserver in vendor-certs: NAME@TIME of NAME-ca@TIME, for a year from an hour before.
    let stamp = leaf.not_before().as_second() + 3600;
    assert_eq!(leaf.common_name(), Some(&*format!("{host}@{stamp}")));
    assert_eq!(ca.common_name(), Some(&*format!("{host}-ca@{stamp}")));
    assert!(is_issued_by(leaf, ca));
    assert_eq!(names(leaf), [host]);
    assert_eq!(leaf.algorithm(), Algorithm::Rsa(2048));
    assert_eq!(chain(worker, Server::Kubelet).await, found);

    let config = worker.machine_config().unwrap();
    let rotating =
        "    kubelet:\n        extraArgs:\n            rotate-server-certificates: \"true\"\n";
    apply(worker, &config.replacen("    kubelet:\n", rotating, 1)).await;
    let found = chain(worker, Server::Kubelet).await;
    assert!(is_issued_by(&found[0], cluster.kubernetes_authority()));
    let expected = format!("system:node:{host}");
    assert_eq!(found[0].common_name(), Some(&*expected));
    assert_eq!(found[0].organizations(), ["system:nodes"]);
}

#[tokio::test]
async fn kubelet_and_etcd_know_their_clients() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let kubelet = node.dial_server(Server::Kubelet).unwrap();
    let found = meet(kubelet, None, &["h2"]).await;
    let expected = (401, "Unauthorized".to_owned());
    assert_eq!(get(found, "/healthz").await, expected);
    let (kind, id) = ("KubernetesDynamicCerts", "k8s-dynamic-certs");
    let admin = held(node, kind, id, "apiServerKubeletClient");
    let found = meet(kubelet, Some(&admin), &["h2"]).await;
    assert_eq!(get(found, "/healthz").await, (200, "ok".to_owned()));

    let client = held(node, "EtcdSecrets", "etcd", "etcdAdmin");
    let etcd = node.dial_server(Server::EtcdClient).unwrap();
    let found = meet(etcd, Some(&client), &["h2"]).await;
    let expected = r#"{"health":"true","reason":""}"#.to_owned();
    assert_eq!(get(found, "/health").await, (200, expected));
    for wrong in [None, Some(&admin)] {
        let found = meet(etcd, wrong, &["h2"]).await;
        // TLS 1.3 shows the server's certificate before it refuses the client.
        assert_eq!(found.chain.len(), 1);
        assert!(found.stream.unwrap().read_u8().await.is_err());
    }
}

#[tokio::test]
async fn trustd_signs_for_those_who_know_the_token() {
    let cluster = cluster(1, 1).await;
    let node = &cluster.nodes()[0];
    let trustd = node.dial_server(Server::Trustd).unwrap();
    let found = meet(trustd, None, &["h2"]).await;
    let mut stream = Some(TokioIo::new(found.stream.unwrap()));
    let channel = Endpoint::from_static("http://trustd")
        .connect_with_connector(tower::service_fn(move |_| {
            let stream = stream.take().ok_or(std::io::ErrorKind::NotConnected);
            async move { Ok::<_, std::io::Error>(stream?) }
        }))
        .await
        .unwrap();
    let key = PrivateKey::generate(Algorithm::Ed25519).unwrap();
    let wanted = [Name::Dns("anything.example.com".to_owned())];
    let csr = SigningRequest::write_pem(&key, &["os:admin".to_owned()], &wanted).unwrap();
    let ask = async |token: Option<&str>| {
        let csr = csr.clone().into_bytes();
        let mut request = tonic::Request::new(CertificateRequest { csr });
        if let Some(token) = token {
            let token = token.parse().unwrap();
            request.metadata_mut().insert("token", token);
        }
        let mut client = SecurityServiceClient::new(channel.clone());
        client.certificate(request).await
    };
    for wrong in [None, Some("abcdef.0123456789abcdef")] {
        let refused = ask(wrong).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
    }
    let roots = secret(&cluster.nodes()[1], "OSRootSecrets", "os");
    let answer = ask(roots["token"].as_str()).await.unwrap().into_inner();
    let signed = Certificate::many_from_pem(&answer.crt).unwrap().remove(0);
    assert!(is_issued_by(&signed, cluster.talos_authority()));
    assert!(key.matches(&signed));
    assert_eq!(names(&signed), ["anything.example.com"]);
    // A server only, whatever was asked for (facts/config.md §4.3).
    assert!(signed.organizations().is_empty());
    let server_only = &[Purpose::ServerAuth][..];
    assert_eq!(signed.extended_key_usage(), Some(server_only));
    assert_eq!(answer.ca, cluster.talos_authority().pem().into_bytes());
}

#[tokio::test]
async fn resources_hold_what_servers_present() {
    let cluster = cluster(1, 1).await;
    for node in cluster.nodes() {
        let apid = held(node, "ApiCertificates", "api", "server").certificate;
        assert_eq!(chain(node, Server::Apid).await, [apid]);
    }
    let node = &cluster.nodes()[0];
    let dynamic = ("KubernetesDynamicCerts", "k8s-dynamic-certs");
    for (server, (kind, id), field) in [
        (Server::Trustd, ("TrustdCertificates", "trustd"), "server"),
        (Server::KubeApiServer, dynamic, "apiServer"),
        (Server::EtcdClient, ("EtcdSecrets", "etcd"), "etcd"),
        (Server::EtcdPeer, ("EtcdSecrets", "etcd"), "etcdPeer"),
    ] {
        let kept = held(node, kind, id, field).certificate;
        assert_eq!(chain(node, server).await, [kept], "{kind}");
    }
    let roots = held(node, "OSRootSecrets", "os", "issuingCA");
    assert_eq!(&roots.certificate, cluster.talos_authority());
    assert!(roots.key.matches(&roots.certificate));
    let of_worker = secret(&cluster.nodes()[1], "OSRootSecrets", "os");
    assert!(of_worker["issuingCA"].is_null());
    let roots = held(node, "KubernetesRootSecrets", "k8s", "issuingCA");
    assert_eq!(&roots.certificate, cluster.kubernetes_authority());
    let maintenance = secret(node, "CertSANs", "maintenance");
    assert_eq!(maintenance["fqdn"], "maintenance-service.talos.dev");
    assert_eq!(maintenance["dnsNames"], serde_json::json!([node.name()]));
}

#[tokio::test]
async fn since_talos_1_14_kube_apiserver_sends_its_authority_too() {
    let options = Options {
        talos_version: TalosVersion::V1_14,
        workers: 0,
        ..Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let found = chain(&cluster.nodes()[0], Server::KubeApiServer).await;
    assert_eq!(found[1..], [cluster.kubernetes_authority().clone()]);
}

#[tokio::test]
async fn behind_nat_servers_are_forwarded_as_docker_does_or_all_of_them() {
    let nat = |forward_all| Options {
        nat: true,
        forward_all,
        ..Options::default()
    };
    let cluster = Cluster::start(nat(false)).await.unwrap();
    let apis = [Server::Apid, Server::KubeApiServer];
    assert_eq!(kinds(&cluster.nodes()[0]), apis);
    assert_eq!(kinds(&cluster.nodes()[1]), []);
    let cluster = Cluster::start(nat(true)).await.unwrap();
    assert_eq!(kinds(&cluster.nodes()[0]), Server::ALL);
    let etcd = chain(&cluster.nodes()[0], Server::EtcdClient).await;
    assert_eq!(etcd.len(), 1);
}
