//! `ichor certs list`: every certificate once, whatever some of its places do.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::PostParams;
use serde_json::Value;
use talos_config::kubeconfig::Kubeconfig;
use talos_kube::{Access, Options as Reach, reach};
use talos_pki::{Authority, AuthorityKind, Certificate, LeafRequest, LeafUsage};
use talos_sim::{Behavior, Options, Server};

use crate::cli::program::{Home, Lab};

fn two_and_one() -> Options {
    Options {
        controlplanes: 2,
        workers: 1,
        ..Options::default()
    }
}

fn certificates(inventory: &Value) -> &Vec<Value> {
    inventory["certificates"].as_array().unwrap()
}

/// Lists `node purpose` of every place of a kind.
fn places(inventory: &Value, source: &str) -> BTreeSet<String> {
    let all = certificates(inventory).iter();
    let all = all.flat_map(|listed| listed["places"].as_array().unwrap());
    all.filter(|place| place["source"] == source)
        .map(|place| {
            let text = |key: &str| place[key].as_str().unwrap_or("-").to_owned();
            format!("{} {}", text("node"), text("purpose"))
        })
        .collect()
}

fn find<'a>(inventory: &'a Value, purpose: &str) -> &'a Value {
    let mut all = certificates(inventory).iter();
    all.find(|listed| listed["purpose"] == purpose)
        .unwrap_or_else(|| panic!("{purpose}: {inventory:#}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_place_of_a_cluster_is_listed_in_one_run() {
    let lab = Lab::start(two_and_one()).await;
    let kubeconfig = lab.home.file("kubeconfig", &lab.cluster.kubeconfig());
    let inventory = lab.json(&["certs", "list", "--kubeconfig", &kubeconfig]);
    assert_eq!(
        inventory["incomplete"], false,
        "{:#}",
        inventory["notChecked"]
    );
    let mut served = BTreeSet::new();
    for (index, node) in lab.nodes.iter().enumerate() {
        let own = ["apid", "kubelet", "CA sent by kubelet", "kubeprism"];
        served.extend(own.map(|kind| format!("{node} {kind}")));
        if index < 2 {
            let own = ["trustd", "kube-apiserver", "etcd", "etcd-peer"];
            served.extend(own.map(|kind| format!("{node} {kind}")));
        }
    }
    assert_eq!(places(&inventory, "servers"), served);
    let resources = places(&inventory, "resources");
    for purpose in [
        "apid",
        "client of apid on other nodes",
        "trustd",
        "kube-apiserver",
        "kube-apiserver's client of kubelets",
        "kube-apiserver's client of etcd",
        "front proxy client",
        "kube-scheduler's client",
        "kube-controller-manager's client",
        "administrator on the node",
        "administrator of etcd",
        "etcd",
        "etcd-peer",
        "Talos CA",
        "accepted Talos CA",
        "Kubernetes CA",
        "aggregator CA",
        "etcd CA",
    ] {
        let place = format!("{} {purpose}", lab.nodes[0]);
        assert!(resources.contains(&place), "{place}: {resources:#?}");
    }
    let worker = &lab.nodes[2];
    let of_worker = resources.iter().filter(|place| place.starts_with(worker));
    let of_worker: Vec<&String> = of_worker.collect();
    assert_eq!(
        of_worker,
        [
            &format!("{worker} accepted Talos CA"),
            &format!("{worker} apid")
        ]
    );
    assert_eq!(
        places(&inventory, "files"),
        BTreeSet::from(
            [
                "- Kubernetes CA",
                "- Talos CA",
                "- client of apid (os:admin)",
                "- client of kube-apiserver"
            ]
            .map(str::to_owned)
        )
    );
    let kubernetes = places(&inventory, "kubernetes");
    assert!(kubernetes.contains("- aggregator CA"), "{kubernetes:#?}");
    assert!(kubernetes.contains("- CA of Kubernetes' clients"));

    // One authority is one row, whoever holds it.
    let fingerprints = certificates(&inventory).iter();
    let fingerprints: BTreeSet<&str> = fingerprints
        .map(|listed| listed["certificate"]["fingerprint"].as_str().unwrap())
        .collect();
    assert_eq!(fingerprints.len(), certificates(&inventory).len());
    let issued_by = |purpose: &str| find(&inventory, purpose)["issuedBy"]["name"].clone();
    assert_eq!(issued_by("apid"), "Talos CA");
    assert_eq!(issued_by("kube-apiserver"), "Kubernetes CA");
    assert_eq!(issued_by("front proxy client"), "aggregator CA");
    assert_eq!(issued_by("etcd-peer"), "etcd CA");
    assert!(lab.changes().is_empty(), "a list changes nothing");

    let ends = certificates(&inventory).iter();
    let ends: Vec<i64> = ends
        .map(|listed| listed["secondsLeft"].as_i64().unwrap())
        .collect();
    assert!(ends.is_sorted());
    let soon = lab.json(&["certs", "list", "--expiring", "30d", "--source", "servers"]);
    let purposes: BTreeSet<&str> = certificates(&soon)
        .iter()
        .map(|listed| listed["purpose"].as_str().unwrap())
        .collect();
    // Talos' own live a day, those of Kubernetes a year.
    assert_eq!(purposes, BTreeSet::from(["apid", "trustd"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_lists_what_servers_present_and_is_told_what_it_may_not_read() {
    let lab = Lab::with_roles(two_and_one(), &["os:reader"]).await;
    let inventory = lab.json(&["certs", "list"]);
    assert_eq!(inventory["incomplete"], true);
    assert!(places(&inventory, "resources").is_empty());
    assert_eq!(places(&inventory, "servers").len(), 3 * 4 + 2 * 4);
    let not_checked = inventory["notChecked"].as_array().unwrap();
    let of = |node: &str| {
        let mut why = not_checked.iter().filter(|left| left["node"] == node);
        let found = why.next().unwrap()["why"].as_str().unwrap();
        assert!(why.next().is_none(), "{not_checked:#?}");
        found
    };
    for node in &lab.nodes {
        let why = of(node);
        assert!(why.contains("ApiCertificates"), "{why}");
        assert!(why.contains("not authorized"), "{why}");
    }
    assert!(of("kubernetes").starts_with("there is no kubeconfig: "));
    let shown = lab.run(&["certs", "list"]);
    assert!(shown.stderr.contains("warning: not checked: "), "{shown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_misbehave_cost_their_own_row_only() {
    let lab = Lab::start(two_and_one()).await;
    let nodes = lab.cluster.nodes();
    let faults = nodes[0].faults();
    faults.behave(Server::Trustd, Behavior::Hang);
    faults.behave(Server::Kubelet, Behavior::PlainHttp);
    faults.behave(Server::EtcdClient, Behavior::Tls12Only);
    faults.behave(Server::EtcdPeer, Behavior::Reset);
    nodes[2]
        .faults()
        .behave(Server::Kubelet, Behavior::HugeChain);
    nodes[1].faults().behave(Server::Kubelet, Behavior::Closed);
    let odd = Authority::generate(AuthorityKind::Talos, Timestamp::now()).unwrap();
    let ders = vec![odd.certificate().der().to_vec(), vec![0x30, 2, 1, 0]];
    let trustd = nodes[1].faults();
    trustd.serve_ders(Server::Trustd, ders, odd.key()).unwrap();
    let started = Instant::now();
    let ran = lab.run(&[
        "certs",
        "list",
        "--source",
        "servers",
        "--connect-timeout",
        "3s",
        "-o",
        "json",
    ]);
    assert!(
        started.elapsed() < Duration::from_secs(30),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let inventory = ran.json();
    let why = |node: &str, kind: &str| {
        let mut all = inventory["notChecked"].as_array().unwrap().iter();
        let found = all.find(|left| left["node"] == node && left["kind"] == kind);
        let found = found.unwrap_or_else(|| panic!("{kind} of {node}: {inventory:#}"));
        found["why"].as_str().unwrap().to_owned()
    };
    let (first, second) = (lab.nodes[0].as_str(), lab.nodes[1].as_str());
    assert_eq!(why(first, "kubelet"), "the server speaks plain HTTP");
    let huge = why(&lab.nodes[2], "kubelet");
    assert!(
        huge.starts_with("the server broke the TLS protocol"),
        "{huge}"
    );
    assert_eq!(why(second, "kubelet"), "connection refused");
    let served = places(&inventory, "servers");
    for place in [
        format!("{first} apid"),
        // TLS 1.2 is enough to show a certificate.
        format!("{first} etcd"),
        format!("{first} kube-apiserver"),
        format!("{second} trustd"),
        format!("{second} etcd"),
        format!("{second} kubeprism"),
        format!("{} apid", lab.nodes[2]),
    ] {
        assert!(served.contains(&place), "{place}: {served:#?}");
    }
    // What hangs or resets is known from the node's resources.
    let held = places(&inventory, "resources");
    assert_eq!(
        held,
        BTreeSet::from([format!("{first} trustd"), format!("{first} etcd-peer")])
    );
    let reason = |purpose: &str| {
        let mut all = certificates(&inventory).iter();
        let places = all.find_map(|listed| {
            let place = &listed["places"][0];
            (place["node"] == first && place["purpose"] == purpose).then_some(place)
        });
        places.unwrap()["connection"]["reason"].clone()
    };
    assert_eq!(reason("trustd"), "handshakeTimedOut");
    assert_eq!(reason("etcd-peer"), "closed");
    let mut all = certificates(&inventory).iter();
    let damaged =
        all.find(|listed| listed["places"][0]["connection"]["reason"] == "unreadableCertificate");
    assert_eq!(damaged.unwrap()["places"][0]["node"], second);
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_and_requests_in_kubernetes_are_listed() {
    let lab = Lab::start(Options {
        workers: 0,
        ..Options::default()
    })
    .await;
    let now = Timestamp::now();
    let authority = Authority::generate(AuthorityKind::Kubernetes, now).unwrap();
    let request = LeafRequest {
        common_name: Some("web.example".to_owned()),
        names: vec!["web.example".parse().unwrap()],
        usage: LeafUsage {
            server: true,
            ..LeafUsage::default()
        },
        lifetime: SignedDuration::from_hours(24 * 90),
        ..LeafRequest::default()
    };
    let leaf = authority.issue(&request, now).unwrap();
    let text = lab.cluster.kubeconfig();
    let kubeconfig = Kubeconfig::parse("kubeconfig", &text).unwrap();
    let access = Access::from_kubeconfig(&kubeconfig, None).unwrap();
    let kubernetes = reach(&access, Reach::new(now)).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(kubernetes.client(), "default");
    let secret = |name: &str, crt: String| {
        let mut secret = Secret {
            type_: Some("kubernetes.io/tls".to_owned()),
            data: Some(
                [
                    ("tls.crt".to_owned(), ByteString(crt.into_bytes())),
                    (
                        "tls.key".to_owned(),
                        ByteString(leaf.key.pem().as_bytes().to_vec()),
                    ),
                ]
                .into(),
            ),
            ..Secret::default()
        };
        secret.metadata.name = Some(name.to_owned());
        secret.metadata.annotations = Some(
            [(
                "cert-manager.io/certificate-name".to_owned(),
                "web".to_owned(),
            )]
            .into(),
        );
        secret
    };
    let params = PostParams::default();
    let good = secret("web", leaf.certificate.pem());
    secrets.create(&params, &good).await.unwrap();
    let bad = secret("broken", "no certificate".to_owned());
    secrets.create(&params, &bad).await.unwrap();
    let inventory = lab.json(&["certs", "list", "--source", "kubernetes"]);
    let listed = find(&inventory, "TLS Secret");
    assert_eq!(
        listed["certificate"]["fingerprint"],
        leaf.certificate.fingerprint()
    );
    assert_eq!(listed["renewal"]["by"], "cert-manager (Certificate web)");
    let place = listed["places"][0]["place"].as_str().unwrap();
    assert_eq!(place, "Secret default/web tls.crt");
    let not_checked = inventory["notChecked"].to_string();
    assert!(
        not_checked.contains("Secret default/broken tls.crt holds no certificate"),
        "{not_checked}"
    );
}

#[test]
fn files_and_folders_are_listed_without_a_cluster() {
    let home = Home::new();
    let vendored = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vendor-certs");
    let pem = |name: &str| std::fs::read_to_string(format!("{vendored}/{name}.pem")).unwrap();
    home.file("pki/ca.pem", &pem("talos-ca"));
    home.file("pki/deep/apid.crt", &pem("talos-apid-controlplane"));
    home.file("pki/deep/broken.pem", "-----BEGIN CERTIFICATE-----\n!\n");
    home.file("pki/notes.txt", "no certificate\n");
    home.file(
        "kubeconfig",
        "kind: Config\nclusters:\n- name: lab\n  cluster: {server: 'https://a', certificate-authority: pki/ca.pem}\n\
         users:\n- name: admin\n  user: {client-certificate: pki/gone.pem}\ncontexts: []\n",
    );
    let ran = home.run(&["certs", "list", "-o", "json", "pki", "kubeconfig"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let inventory = ran.json();
    let purposes: Vec<&str> = certificates(&inventory)
        .iter()
        .map(|listed| listed["purpose"].as_str().unwrap())
        .collect();
    assert_eq!(purposes.len(), 2, "{purposes:?}");
    let authority = Certificate::many_from_pem(pem("talos-ca"))
        .unwrap()
        .remove(0);
    let listed = certificates(&inventory).iter();
    let mut listed = listed.filter(|listed| listed["authority"] == true);
    let listed = listed.next().unwrap();
    assert_eq!(
        listed["certificate"]["fingerprint"],
        authority.fingerprint()
    );
    assert_eq!(listed["places"].as_array().unwrap().len(), 2);
    let not_checked = inventory["notChecked"].as_array().unwrap();
    let nodes: BTreeSet<&str> = not_checked
        .iter()
        .map(|left| left["node"].as_str().unwrap())
        .collect();
    assert_eq!(nodes, BTreeSet::from(["kubeconfig", "pki/deep/broken.pem"]));

    let ran = home.run(&["certs", "list", "pki/notes.txt"]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(
        ran.stderr
            .contains("pki/notes.txt: it holds no certificate"),
        "{ran:?}"
    );
    let ran = home.run(&["certs", "list", "pki/nothing"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let ran = home.run(&["certs", "list", "--source", "elsewhere"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}
