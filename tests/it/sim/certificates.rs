//! Certificates and credentials that clients get from a simulated cluster over its APIs.

use std::io::Read as _;

use futures::StreamExt as _;
use jiff::SignedDuration;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use talos_api::time::TimeRequest;
use talos_api::time::time_service_client::TimeServiceClient;
use talos_sim::{KubeRequestState, Options};

use super::*;

async fn kube_client(cluster: &Cluster) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&cluster.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.unwrap()).unwrap()
}

/// The Secrets, requests and authorities that a cluster keeps are listed by kube's own client.
#[tokio::test]
async fn kubernetes_keeps_certificates_that_clients_can_list() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let credentials = Credentials::of(&cluster, &["os:admin"]);
    cluster.put_tls_secret("default", "web", &credentials.crt, &credentials.key);
    for (name, state) in [
        ("csr-pending", KubeRequestState::Pending),
        ("csr-denied", KubeRequestState::Denied),
        ("csr-approved", KubeRequestState::Approved),
        ("csr-issued", KubeRequestState::Issued),
    ] {
        cluster.put_signing_request(name, node.name(), state);
    }
    let client = kube_client(&cluster).await;

    let secrets: Api<Secret> = Api::all(client.clone());
    let only_tls = ListParams::default().fields("type=kubernetes.io/tls");
    let listed = secrets.list(&only_tls).await.unwrap().items;
    assert_eq!(listed.len(), 1);
    let chain = &listed[0].data.as_ref().unwrap()["tls.crt"].0;
    assert_eq!(
        Certificate::many_from_pem(chain).unwrap(),
        credentials.crt[..]
    );

    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let listed = requests.list(&ListParams::default()).await.unwrap().items;
    let found: Vec<(&str, Vec<&str>, bool)> = listed
        .iter()
        .map(|request| {
            let status = request.status.as_ref();
            let conditions = status.and_then(|status| status.conditions.as_ref());
            let kinds = conditions.into_iter().flatten();
            (
                request.metadata.name.as_deref().unwrap(),
                kinds.map(|condition| condition.type_.as_str()).collect(),
                status.is_some_and(|status| status.certificate.is_some()),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("csr-approved", vec!["Approved"], false),
            ("csr-denied", vec!["Denied"], false),
            ("csr-issued", vec!["Approved"], true),
            ("csr-pending", vec![], false),
        ]
    );

    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let map = maps.get("extension-apiserver-authentication").await;
    let data = map.unwrap().data.unwrap();
    let of = |key: &str| Certificate::many_from_pem(&data[key]).unwrap();
    let kubernetes = cluster.kubernetes_authority();
    assert_eq!(of("client-ca-file"), std::slice::from_ref(kubernetes));
    // The aggregator's authority has an empty subject.
    assert_eq!(of("requestheader-client-ca-file")[0].subject(), "");
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let data = maps.get("kube-root-ca.crt").await.unwrap().data.unwrap();
    assert_eq!(data["ca.crt"], kubernetes.pem());
}

#[tokio::test]
async fn a_kubeconfig_lives_as_long_as_the_configuration_says() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let channel = admin(&cluster, node).await;
    let mut client = MachineServiceClient::new(channel);
    assert_eq!(
        lifetime(&mut client).await,
        SignedDuration::from_hours(8760)
    );
    let config = node.machine_config().unwrap();
    let short = "\ncluster:\n    adminKubeconfig:\n        certLifetime: 12h0m0s\n";
    let request = machine::ApplyConfigurationRequest {
        data: config.replacen("\ncluster:\n", short, 1).into_bytes(),
        mode: machine::apply_configuration_request::Mode::NoReboot.into(),
        ..<_>::default()
    };
    client.apply_configuration(request).await.unwrap();
    assert_eq!(lifetime(&mut client).await, SignedDuration::from_hours(12));
}

/// Time from now until the client certificate of a fresh kubeconfig expires; it begins ten seconds before.
async fn lifetime(client: &mut MachineServiceClient<Channel>) -> SignedDuration {
    let mut pieces = client.kubeconfig(()).await.unwrap().into_inner();
    let mut packed = Vec::new();
    while let Some(piece) = pieces.next().await {
        packed.extend(piece.unwrap().bytes);
    }
    let mut text = String::new();
    let mut unpacked = flate2::read::GzDecoder::new(packed.as_slice());
    unpacked.read_to_string(&mut text).unwrap();
    let mark = "client-certificate-data: ";
    let line = text.lines().find_map(|line| line.split_once(mark));
    let pem = STANDARD.decode(line.unwrap().1).unwrap();
    let certificate = Certificate::many_from_pem(pem).unwrap().remove(0);
    let all = certificate
        .not_after()
        .duration_since(certificate.not_before());
    all - SignedDuration::from_secs(10)
}

#[tokio::test]
async fn a_clock_that_is_wrong_shows_beside_the_right_time() {
    let options = Options {
        workers: 0,
        ..Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let node = &cluster.nodes()[0];
    let hour = SignedDuration::from_hours(1);
    // Ahead, since a machine that is behind refuses certificates that were issued after its time.
    node.set_clock_offset(hour);
    let channel = admin(&cluster, node).await;
    let mut client = TimeServiceClient::new(channel);
    let request = TimeRequest {
        server: "ntp.example.com".to_owned(),
    };
    for answer in [
        client.time(()).await.unwrap().into_inner(),
        client.time_check(request).await.unwrap().into_inner(),
    ] {
        let entry = &answer.messages[0];
        let seconds = |time: &Option<prost_types::Timestamp>| time.unwrap().seconds;
        let ahead = seconds(&entry.localtime) - seconds(&entry.remotetime);
        assert!((hour.as_secs() - 1..=hour.as_secs() + 1).contains(&ahead));
    }
}
