//! Certificates that follow from changed configurations: names, and authorities that are exchanged.

use jiff::{SignedDuration, Timestamp};
use talos_pki::{Authority, AuthorityKind, Name, Purpose};
use tokio::io::AsyncReadExt as _;

use super::*;
use crate::pki::{self, DAY};

/// What stands in a configuration for the authorities of one purpose.
struct Authorities<'a> {
    issuing: &'a Authority,
    accepted: &'a [&'a Authority],
}

/// Writes the authorities of `machine` or `cluster` into a configuration that was made by the simulator.
fn with(config: &str, part: &str, authorities: &Authorities<'_>) -> String {
    let start = config.find(&format!("\n{part}:\n")).unwrap();
    let (before, rest) = config.split_at(start);
    let (head, tail) = rest.split_once("    ca:\n").unwrap();
    let head = match head.split_once("    acceptedCAs:\n") {
        Some((head, list)) => {
            let kept = list
                .lines()
                .filter(|line| !line.starts_with("        - crt: "));
            let kept: Vec<&str> = kept.collect();
            format!("{head}{}\n", kept.join("\n")).replace("\n\n", "\n")
        }
        None => head.to_owned(),
    };
    let mut lines = tail.splitn(3, '\n');
    let (_crt, key, tail) = (
        lines.next().unwrap(),
        lines.next().unwrap(),
        lines.next().unwrap(),
    );
    let has_key = !key.ends_with("\"\"");
    let crt = |authority: &Authority| STANDARD.encode(authority.certificate().pem());
    let mut accepted = String::new();
    if !authorities.accepted.is_empty() {
        accepted.push_str("    acceptedCAs:\n");
        for authority in authorities.accepted {
            accepted.push_str(&format!("        - crt: {}\n", crt(authority)));
        }
    }
    let key = match has_key {
        true => STANDARD.encode(authorities.issuing.key().pem().as_bytes()),
        false => "\"\"".to_owned(),
    };
    let ca = format!(
        "    ca:\n        crt: {}\n        key: {key}\n",
        crt(authorities.issuing)
    );
    format!("{before}{head}{accepted}{ca}{tail}")
}

async fn change(node: &Node, part: &str, authorities: &Authorities<'_>) {
    let config = node.machine_config().unwrap();
    apply(node, &with(&config, part, authorities)).await;
}

fn authority(node: &Node, kind: &str, id: &str) -> Authority {
    let held = held(node, kind, id, "issuingCA");
    Authority::new(held.certificate, held.key).unwrap()
}

/// Whether apid lets a client in: TLS 1.3 tells it after the handshake.
async fn lets_in(node: &Node, client: &Issued) -> bool {
    let found = meet(node.dial().unwrap(), Some(client), &["h2"]).await;
    let Ok(mut stream) = found.stream else {
        return false;
    };
    // The settings of HTTP/2, or an alert.
    stream.read_u8().await.is_ok()
}

fn client(authority: &Authority) -> Issued {
    let now = Timestamp::now();
    pki::talos_client(authority, None, &["os:admin"], DAY, now).unwrap()
}

#[tokio::test]
async fn the_talos_authority_is_exchanged_in_three_rounds_without_losing_anybody() {
    let cluster = cluster(2, 2).await;
    let old = authority(&cluster.nodes()[0], "OSRootSecrets", "os");
    let new = Authority::generate(AuthorityKind::Talos, Timestamp::now()).unwrap();
    let (by_old, by_new) = (client(&old), client(&new));
    let before = cluster.talosconfig(&["os:admin"]);

    for node in cluster.nodes() {
        let accept = Authorities {
            issuing: &old,
            accepted: &[&new],
        };
        change(node, "machine", &accept).await;
        assert!(lets_in(node, &by_old).await && lets_in(node, &by_new).await);
        assert!(is_of(node, Server::Apid, old.certificate()).await);
    }
    for node in cluster.nodes() {
        let issue = Authorities {
            issuing: &new,
            accepted: &[&old],
        };
        change(node, "machine", &issue).await;
        let served = async || is_of(node, Server::Apid, new.certificate()).await;
        until("apid's certificate is of the new authority", served).await;
        assert!(lets_in(node, &by_old).await && lets_in(node, &by_new).await);
        for target in cluster.nodes() {
            assert_eq!(handed_on(&cluster.nodes()[0], target).await, Ok(()));
        }
        let accepted = secret(node, "OSRootSecrets", "os")["acceptedCAs"].clone();
        assert_eq!(accepted.as_array().unwrap().len(), 2);
        assert_eq!(
            secret(node, "ApiCertificates", "api")["acceptedCAs"],
            accepted
        );
    }
    for node in cluster.nodes() {
        let drop = Authorities {
            issuing: &new,
            accepted: &[],
        };
        change(node, "machine", &drop).await;
        assert!(!lets_in(node, &by_old).await && lets_in(node, &by_new).await);
        for target in cluster.nodes() {
            assert_eq!(handed_on(&cluster.nodes()[0], target).await, Ok(()));
        }
    }
    assert!(is_of(&cluster.nodes()[0], Server::Trustd, new.certificate()).await);
    let ca = format!("ca: {}\n", STANDARD.encode(new.certificate().pem()));
    assert!(!before.contains(&ca));
    assert!(cluster.talosconfig(&["os:admin"]).contains(&ca));
}

/// Whether the apid of a node can hand a call on to that of another.
async fn handed_on(from: &Node, to: &Node) -> Result<(), String> {
    let nodes = &from.shared.nodes;
    let target = to.address().to_string();
    let reached = crate::apid::reach(&from.shared, &nodes[from.index], &target).await;
    reached
        .map(drop)
        .map_err(|status| status.message().to_owned())
}

#[tokio::test]
async fn who_drops_the_old_authority_too_early_is_lost() {
    let cluster = cluster(1, 1).await;
    let [node, worker] = cluster.nodes() else {
        unreachable!()
    };
    let old = authority(node, "OSRootSecrets", "os");
    let new = Authority::generate(AuthorityKind::Talos, Timestamp::now()).unwrap();
    let drop = Authorities {
        issuing: &new,
        accepted: &[],
    };
    change(worker, "machine", &drop).await;
    // The control plane's trustd is of the old authority, so that the worker asks it for nothing.
    assert!(is_of(worker, Server::Apid, old.certificate()).await);
    assert!(!lets_in(worker, &client(&old)).await);
    let error = handed_on(node, worker).await.unwrap_err();
    let expected = "connection error: desc = \"error reading server preface: remote error: tls: bad certificate\"";
    assert_eq!(error, expected);

    change(node, "machine", &drop).await;
    let served = async || is_of(worker, Server::Apid, new.certificate()).await;
    until("the worker gets its certificate after all", served).await;
    let reached = async || handed_on(node, worker).await.is_ok();
    until("the worker is reached again", reached).await;
}

#[tokio::test]
async fn the_kubernetes_authority_is_exchanged() {
    let cluster = cluster(1, 1).await;
    let [node, worker] = cluster.nodes() else {
        unreachable!()
    };
    let old = authority(node, "KubernetesRootSecrets", "k8s");
    let new = Authority::generate(AuthorityKind::Kubernetes, Timestamp::now()).unwrap();
    let issue = Authorities {
        issuing: &new,
        accepted: &[&old],
    };
    let restarts = version(node, "KubernetesSecrets", "k8s-certs");
    for node in [node, worker] {
        change(node, "cluster", &issue).await;
    }
    let served = async || is_of(node, Server::KubeApiServer, new.certificate()).await;
    until("kube-apiserver presents the new authority's", served).await;
    let kubeconfig = async || version(node, "KubernetesSecrets", "k8s-certs") > restarts;
    until("kubeconfigs are made anew", kubeconfig).await;
    let both = old.certificate().pem() + &new.certificate().pem();
    let published = async |namespace: &str, name: &str, key: &str| {
        let maps = cluster.kube_objects("v1", "ConfigMap");
        let map = maps.iter().find(|map| {
            map["metadata"]["name"] == name && map["metadata"]["namespace"] == namespace
        });
        map.unwrap()["data"][key] == *both
    };
    let name = "extension-apiserver-authentication";
    until("clients' authorities are published", async || {
        published("kube-system", name, "client-ca-file").await
            && published("default", "kube-root-ca.crt", "ca.crt").await
    })
    .await;
    let encoded = format!("certificate-authority-data: {}\n", STANDARD.encode(&both));
    assert!(cluster.kubeconfig().contains(&encoded));

    // The worker's kubelet restarted and accepts clients of the new authority.
    let now = Timestamp::now();
    let lifetime = SignedDuration::from_hours(1);
    let admin = pki::kube_client(&new, "admin", "system:masters", lifetime, now).unwrap();
    let kubelet = worker.dial_server(Server::Kubelet).unwrap();
    let state = &worker.shared.nodes[worker.index];
    let knows = async || {
        let chain = [CertificateDer::from(admin.certificate.der().to_vec())];
        meet(kubelet, Some(&admin), &["h2"]).await.stream.is_ok()
            && state.kubernetes_user(&worker.shared, &chain).is_some()
    };
    until("the kubelet accepts the new authority's clients", knows).await;
    assert_eq!(version(worker, "KubeletSecrets", "kubelet"), 2);
}

#[tokio::test]
async fn names_of_apid_restart_nothing_and_those_of_kube_apiserver_three_static_pods() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let name = Name::Dns("lb.example.com".to_owned());
    let covers = async |server| {
        let chain = chain(node, server).await;
        chain[0].names().contains(&name)
    };
    let pods = |node: &Node| -> Vec<u64> {
        let pods = node.store().list("k8s", "StaticPods.kubernetes.talos.dev");
        pods.iter().map(|pod| pod.metadata.version).collect()
    };
    let config = node.machine_config().unwrap();
    let start = pods(node);
    let changed = config.replacen("    certSANs: []", "    certSANs: [lb.example.com]", 1);
    apply(node, &changed).await;
    for server in [Server::Apid, Server::Trustd] {
        until("the name is served", async || covers(server).await).await;
    }
    // Issued twice for one change (facts/real-upgrade.md §4).
    let twice = async || version(node, "ApiCertificates", "api") == 3;
    until("certificates are issued twice", twice).await;
    assert_eq!(version(node, "CertSANs", "k8s"), 1);
    assert_eq!(pods(node), start);

    let outages = node.kube_outages();
    let changed = changed.replacen(
        "        certSANs: []",
        "        certSANs: [lb.example.com]",
        1,
    );
    apply(node, &changed).await;
    let restarted = async || pods(node).iter().zip(&start).all(|(now, then)| now > then);
    until("all static pods are rendered anew", restarted).await;
    until("kube-apiserver restarts", async || {
        node.kube_outages() > outages
    })
    .await;
    until("the name is served", async || {
        TcpStream::connect(node.kube_dial().unwrap()).await.is_ok()
            && covers(Server::KubeApiServer).await
    })
    .await;
    let (kind, id) = ("KubernetesDynamicCerts", "k8s-dynamic-certs");
    assert_eq!(version(node, kind, id), 3);
    assert_eq!(version(node, "ApiCertificates", "api"), 3);
}

#[tokio::test]
async fn certificates_are_of_the_time_that_their_machine_believes() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let hour = SignedDuration::from_hours(1);
    node.set_clock_offset(hour);
    let config = node.machine_config().unwrap();
    let changed = config.replacen("    certSANs: []", "    certSANs: [lb.example.com]", 1);
    apply(node, &changed).await;
    let ahead = async || {
        let leaf = chain(node, Server::Apid).await.remove(0);
        leaf.not_before() > Timestamp::now()
    };
    until("a certificate of the future is served", ahead).await;
    // Clients are judged by the same clock: one that has expired for the machine is refused.
    let authority = authority(node, "OSRootSecrets", "os");
    let issue = |lifetime| {
        let now = Timestamp::now();
        pki::talos_client(&authority, None, &["os:admin"], lifetime, now).unwrap()
    };
    assert!(!lets_in(node, &issue(hour / 2)).await);
    assert!(lets_in(node, &issue(hour * 2)).await);
    assert_eq!(
        authority.certificate().extended_key_usage(),
        Some(&[Purpose::ServerAuth, Purpose::ClientAuth][..])
    );
}
