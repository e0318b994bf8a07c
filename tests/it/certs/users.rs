//! What users ran into, each as they meet it: the finding, what repairs it, and a check that then finds nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use talos_config::talosconfig::TalosConfig;
use talos_pki::{Authority, AuthorityKind, LeafRequest, LeafUsage, Name};
use talos_sim::{Options, ServedCertificate, Server};

use super::command::{check, one_control_plane};
use crate::cli::program::Lab;

/// Runs the repair with this exit code.
fn fix(lab: &Lab, args: &[&str], code: i32) -> Value {
    let start = [
        "certs",
        "fix",
        "--all-nodes",
        "--settle",
        "200ms",
        "-o",
        "json",
    ];
    let ran = lab.run(&[&start[..], args].concat());
    assert_eq!(ran.code, Some(code), "{ran:?}");
    ran.json()
}

/// Returns the finding with this code, of a server or of a file.
fn finding<'a>(report: &'a Value, code: &str) -> &'a Value {
    let lists = ["servers", "clients"];
    let all = lists
        .iter()
        .flat_map(|list| report[list].as_array().unwrap());
    let mut findings = all.flat_map(|entry| entry["findings"].as_array().unwrap());
    let found = findings.find(|finding| finding["code"] == code);
    found.unwrap_or_else(|| panic!("no {code} in {report:#}"))
}

fn advice(finding: &Value) -> &str {
    finding["advice"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_lost_the_addresses_of_its_certificate() {
    let lab = Lab::start(one_control_plane()).await;
    let node = &lab.cluster.nodes()[0];
    // Calls no longer get through to apid, so its own server cannot be asked; kube-apiserver's can.
    node.faults()
        .serve_certificate_on(Server::KubeApiServer, ServedCertificate::OtherNames);
    let report = check(&lab, &["--server", "kube-apiserver"], 3);
    assert_eq!(finding(&report, "name-missing")["name"], lab.nodes[0]);
    let stale = finding(&report, "not-served-yet");
    assert!(
        stale["message"].as_str().unwrap().contains(" since "),
        "{stale}"
    );
    assert!(advice(stale).contains("issues it anew"), "{stale}");
    // The names are asked for already, so no patch is the answer and none is made.
    fix(&lab, &["--server", "kube-apiserver"], 3);
    assert_eq!(lab.changes(), [""; 0]);
    node.faults()
        .serve_certificate_on(Server::KubeApiServer, ServedCertificate::Own);
    check(&lab, &["--server", "kube-apiserver"], 0);

    // An address that the node does not know, such as that of a remote host of containers.
    let remote = ["--expect", "172.19.82.101"];
    let report = check(&lab, &remote, 3);
    let missing = finding(&report, "name-missing");
    assert_eq!(missing["fix"]["setting"], "machine.certSANs");
    fix(&lab, &remote, 0);
    check(&lab, &remote, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_a_name_only() {
    let options = Options {
        endpoint: Some("https://kube.example:6443".to_owned()),
        ..one_control_plane()
    };
    let lab = Lab::start(options).await;
    // Kubernetes' certificate has the endpoint by itself, that of the Talos API does not.
    check(&lab, &[], 0);
    let by_name = ["--expect", "kube.example"];
    let report = check(&lab, &by_name, 3);
    let missing = finding(&report, "name-missing");
    assert_eq!(missing["fix"]["setting"], "machine.certSANs");
    let fixed = fix(&lab, &by_name, 0);
    assert_eq!(fixed["plan"]["nodes"][0]["restarts"], false);
    check(&lab, &by_name, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_in_the_certificate_that_nobody_wants() {
    let lab = Lab::start(one_control_plane()).await;
    check(&lab, &["--unexpected", "--server", "kube-apiserver"], 0);
    let now = Timestamp::now();
    let authority = Authority::generate(AuthorityKind::Kubernetes, now).unwrap();
    let names = ["203.0.113.7", "127.0.0.1"];
    let request = LeafRequest {
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
    let issued = authority.issue(&request, now).unwrap();
    lab.cluster.nodes()[0]
        .faults()
        .serve_chain(
            Server::KubeApiServer,
            std::slice::from_ref(&issued.certificate),
            &issued.key,
        )
        .unwrap();
    let report = check(&lab, &["--unexpected", "--server", "kube-apiserver"], 3);
    let unwanted = finding(&report, "unexpected-name");
    assert_eq!(unwanted["name"], "203.0.113.7");
    assert!(advice(unwanted).contains("reboot"), "{unwanted}");
    // Whoever wants it says so.
    let report = check(
        &lab,
        &[
            "--unexpected",
            "--server",
            "kube-apiserver",
            "--expect",
            "203.0.113.7",
        ],
        3,
    );
    assert!(!report.to_string().contains("unexpected-name"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kubelet_has_no_setting() {
    let options = Options {
        machine_cert_sans: vec!["node.example".to_owned()],
        ..one_control_plane()
    };
    let lab = Lab::start(options).await;
    check(&lab, &["--expect", "apid=node.example"], 0);
    let kubelet = ["--server", "kubelet", "--expect", "kubelet=node.example"];
    let report = check(&lab, &kubelet, 3);
    let missing = finding(&report, "name-missing");
    assert_eq!(missing["fix"], Value::Null);
    assert!(advice(missing).starts_with("no certSANs setting changes the kubelet's certificate"));
    let fixed = fix(&lab, &kubelet, 3);
    assert_eq!(fixed["plan"]["nodes"].as_array().unwrap().len(), 0);
    assert_eq!(fixed["plan"]["notFixable"][0]["kind"], "kubelet");
    assert_eq!(lab.changes(), [""; 0]);
}

/// Gives the lab's talosconfig a client certificate of an authority that nobody knows.
fn replace_client(lab: &Lab, usage: LeafUsage, since: Timestamp) {
    let authority = Authority::generate(AuthorityKind::Talos, since).unwrap();
    let request = LeafRequest {
        organizations: vec!["os:admin".to_owned()],
        usage,
        lifetime: SignedDuration::from_hours(1),
        ..LeafRequest::default()
    };
    let client = authority.issue(&request, since).unwrap();
    let text = lab.cluster.talosconfig(&["os:admin"]);
    let config = TalosConfig::parse("talosconfig", &text).unwrap();
    let (_, context) = config.select(None).unwrap();
    let old_key = context.key.as_ref().unwrap().reveal();
    let text = text
        .replace(
            context.crt.as_deref().unwrap(),
            &STANDARD.encode(client.certificate.pem()),
        )
        .replace(old_key, &STANDARD.encode(client.key.pem()));
    lab.home.file(".talos/config", &text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_of_the_old_key_usage() {
    let lab = Lab::start(one_control_plane()).await;
    let both = LeafUsage {
        server: true,
        client: true,
        ..LeafUsage::default()
    };
    replace_client(&lab, both, Timestamp::now());
    let report = check(&lab, &["-n", &lab.nodes[0]], 3);
    let usage = finding(&report, "extended-key-usage");
    assert!(advice(usage).contains("ichor certs renew"), "{usage}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_talosconfig_that_has_expired() {
    let lab = Lab::start(one_control_plane()).await;
    let client = LeafUsage {
        client: true,
        ..LeafUsage::default()
    };
    let yesterday = Timestamp::now() - SignedDuration::from_hours(24);
    replace_client(&lab, client, yesterday);
    let report = check(&lab, &["-n", &lab.nodes[0]], 3);
    let expired = finding(&report, "expired");
    assert!(advice(expired).contains("nobody renews it"), "{expired}");
    assert!(advice(expired).contains("ichor certs renew"), "{expired}");
    // Servers were judged all the same.
    assert_eq!(report["servers"][0]["source"], "served");
}

#[tokio::test(flavor = "multi_thread")]
async fn authorities_that_were_mixed_up() {
    let lab = Lab::start(one_control_plane()).await;
    lab.cluster.nodes()[0]
        .faults()
        .serve_certificate_on(Server::KubeApiServer, ServedCertificate::OtherAuthority);
    let report = check(&lab, &[], 3);
    let wrong = finding(&report, "wrong-authority");
    let message = wrong["message"].as_str().unwrap();
    assert!(
        message.contains("Talos CA") && message.contains("Kubernetes CA"),
        "{message}"
    );
    assert!(
        advice(wrong).contains("cluster.ca for Kubernetes"),
        "{wrong}"
    );
    // A kubeconfig whose authority is that of Talos.
    let encoded = |pem: String| STANDARD.encode(pem);
    let kubeconfig = lab.cluster.kubeconfig().replace(
        &encoded(lab.cluster.kubernetes_authority().pem()),
        &encoded(lab.cluster.talos_authority().pem()),
    );
    let path = lab.home.file("mixed-up", &kubeconfig);
    let report = check(&lab, &["--kubeconfig", &path], 3);
    let mixed = finding(&report, "authority-not-accepted");
    assert_eq!(
        mixed["message"],
        "it trusts the Talos CA (O=talos) where the Kubernetes CA belongs"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_in_maintenance_mode_without_insecure() {
    let options = Options {
        maintenance: 1,
        ..one_control_plane()
    };
    let lab = Lab::start(options).await;
    let waiting = lab.nodes[1].as_str();
    let args = ["--server", "apid", "-e", waiting, "-n", waiting];
    let report = check(&lab, &args, 3);
    let unknown = finding(&report, "unknown-authority");
    assert!(advice(unknown).contains("--insecure"), "{unknown}");
}
