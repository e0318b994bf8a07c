//! `ichor certs check`: findings, the commands that repair them, exit codes.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use talos_config::talosconfig::TalosConfig;
use talos_pki::{Authority, AuthorityKind, Issued, LeafRequest, LeafUsage};
use talos_sim::{Options, ServedCertificate, TalosVersion};

use crate::cli::program::{Lab, Ran};

/// The cluster of the demonstration: two control planes, the ports of the first forwarded.
fn behind_nat() -> Options {
    Options {
        controlplanes: 2,
        workers: 0,
        nat: true,
        ..Options::default()
    }
}

pub(super) fn one_control_plane() -> Options {
    Options {
        workers: 0,
        ..Options::default()
    }
}

/// Runs the check with JSON output and compares its exit code.
pub(super) fn check(lab: &Lab, args: &[&str], code: i32) -> Value {
    let ran = lab.run(&[&["certs", "check", "-o", "json"], args].concat());
    assert_eq!(ran.code, Some(code), "{ran:?}");
    ran.json()
}

/// Lists `kind code name` of every finding on servers.
fn findings(report: &Value) -> Vec<String> {
    let servers = report["servers"].as_array().unwrap().iter();
    servers
        .flat_map(|server| {
            let kind = server["kind"].as_str().unwrap();
            let findings = server["findings"].as_array().unwrap().iter();
            findings.map(move |finding| {
                let code = finding["code"].as_str().unwrap();
                let name = finding["name"].as_str().unwrap_or_default();
                format!("{kind} {code} {name}").trim().to_owned()
            })
        })
        .collect()
}

fn server<'report>(report: &'report Value, node: &str, kind: &str) -> &'report Value {
    let servers = report["servers"].as_array().unwrap();
    let mut found = servers
        .iter()
        .filter(|server| server["node"] == node && server["kind"] == kind);
    let server = found.next().unwrap();
    assert!(found.next().is_none(), "{kind} of {node} is there twice");
    server
}

/// Runs the check until it finds nothing: a patched certificate is served a moment later.
fn check_until_clean(lab: &Lab, args: &[&str]) -> Ran {
    let give_up = Instant::now() + Duration::from_secs(30);
    loop {
        let ran = lab.run(&[&["certs", "check"], args].concat());
        if ran.code == Some(0) || Instant::now() > give_up {
            return ran;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_name_is_found_and_the_printed_command_repairs_it() {
    let lab = Lab::start(behind_nat()).await;
    let forwarded = lab.cluster.nodes()[0].kube_dial().unwrap().to_string();
    let check_of_two = [
        "--server",
        "kube-apiserver",
        "--expect",
        "172.30.0.11,127.0.0.1",
        "--k8s-endpoint",
        &forwarded,
    ];
    let report = check(&lab, &check_of_two, 3);
    assert_eq!(
        findings(&report),
        ["kube-apiserver name-missing 172.30.0.11"; 2]
    );
    assert_eq!(report["incomplete"], false);
    assert_eq!(report["endpoint"]["url"], lab.cluster.endpoint());
    assert_eq!(report["endpoint"]["source"], "MachineConfig");
    let first = server(&report, &lab.nodes[0], "kube-apiserver");
    assert_eq!(first["source"], "served");
    assert_eq!(first["address"], forwarded);
    assert_eq!(
        server(&report, &lab.nodes[1], "kube-apiserver")["source"],
        "resource"
    );
    let verdict = |name: &str| {
        let names = first["names"].as_array().unwrap();
        let found = names.iter().find(|verdict| verdict["name"] == name);
        found.unwrap()["coveredBy"].clone()
    };
    assert_eq!(verdict("127.0.0.1"), "127.0.0.1");
    assert_eq!(verdict("172.30.0.11"), Value::Null);
    assert_eq!(
        first["findings"][0]["fix"]["setting"],
        "cluster.apiServer.certSANs"
    );

    let shown = lab.run(&[&["certs", "check"], &check_of_two[..]].concat());
    assert_eq!(shown.code, Some(3), "{shown:?}");
    assert!(lab.changes().is_empty(), "a check changes nothing");
    for node in &lab.nodes {
        let patch = r#"{"cluster":{"apiServer":{"certSANs":["172.30.0.11"]}}}"#;
        let command = format!("ichor patch mc -n {node} --patch '{patch}'");
        assert!(shown.stdout.contains(&command), "{command} in {shown:?}");
        let patched = lab.run(&["patch", "mc", "-n", node, "--patch", patch]);
        assert_eq!(patched.code, Some(0), "{patched:?}");
    }
    let clean = check_until_clean(&lab, &check_of_two);
    assert_eq!(clean.code, Some(0), "{clean:?}");
    assert!(clean.stdout.contains("No findings."), "{clean:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_server_has_its_own_setting() {
    let lab = Lab::start(one_control_plane()).await;
    let report = check(&lab, &["--expect", "lb.example"], 3);
    assert_eq!(
        findings(&report),
        [
            "apid name-missing lb.example",
            "kube-apiserver name-missing lb.example"
        ]
    );
    let apid = server(&report, &lab.nodes[0], "apid");
    assert_eq!(apid["fix"]["setting"], "machine.certSANs");
    let patch = apid["fix"]["patch"].as_str().unwrap();
    let patched = lab.run(&["patch", "mc", "-n", &lab.nodes[0], "--patch", patch]);
    assert_eq!(patched.code, Some(0), "{patched:?}");
    // The other server's certificate has nothing to do with that setting.
    let clean = check_until_clean(&lab, &["--expect", "apid=lb.example"]);
    assert_eq!(clean.code, Some(0), "{clean:?}");
    let report = check(&lab, &["--expect", "lb.example"], 3);
    assert_eq!(
        findings(&report),
        ["kube-apiserver name-missing lb.example"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_in_order_is_no_finding_until_its_certificates_are_about_to_end() {
    let lab = Lab::start(Options::default()).await;
    let report = check(&lab, &[], 0);
    assert_eq!(report["servers"].as_array().unwrap().len(), 3);
    assert_eq!(report["incomplete"], false);
    // apid's certificate lives a day, that of kube-apiserver and the client's a year.
    let report = check(&lab, &["--warn-within", "30d"], 3);
    assert_eq!(findings(&report), ["apid expiring"; 2]);
    let report = check(&lab, &["--expiring", "9000h"], 3);
    assert_eq!(findings(&report).len(), 3);
    assert_eq!(report["clients"][0]["findings"][0]["code"], "expiring");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_apid_presents_is_judged_although_nobody_trusts_it() {
    let lab = Lab::start(one_control_plane()).await;
    let node = &lab.cluster.nodes()[0];
    for (served, expected) in [
        (ServedCertificate::Expired, "apid expired"),
        (
            ServedCertificate::ForeignAuthority,
            "apid unknown-authority",
        ),
        (ServedCertificate::OtherNames, "apid name-missing"),
    ] {
        node.faults().serve_certificate(served);
        let report = check(&lab, &["--server", "apid"], 3);
        let found = findings(&report);
        assert!(
            found.iter().any(|found| found.starts_with(expected)),
            "{report:#}"
        );
        // No call gets through to such a server, and the report says so.
        assert_eq!(report["incomplete"], true);
        assert_eq!(report["notChecked"][0]["node"], lab.nodes[0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_talos_covers_loopback_in_one_certificate_only() {
    let old = Options {
        talos_version: TalosVersion::V1_11_5,
        ..one_control_plane()
    };
    let lab = Lab::start(old).await;
    let report = check(&lab, &["--expect", "127.0.0.1"], 3);
    assert_eq!(findings(&report), ["apid name-missing 127.0.0.1"]);
    let fix = &report["servers"][0]["fix"];
    assert_eq!(fix["patch"], "{\"machine\":{\"certSANs\":[\"127.0.0.1\"]}}");
    let cost = fix["cost"].as_str().unwrap();
    assert!(cost.starts_with("nothing restarts"), "{cost}");
}

/// Gives the lab's talosconfig another client certificate.
fn replace_client(lab: &Lab, client: &Issued) {
    let text = lab.cluster.talosconfig(&["os:admin"]);
    let config = TalosConfig::parse("talosconfig", &text).unwrap();
    let (_, context) = config.select(None).unwrap();
    let encode = |pem: &str| STANDARD.encode(pem);
    let old = context.crt.as_deref().unwrap();
    let old_key = context.key.as_ref().unwrap().reveal();
    let text = text
        .replace(old, &encode(&client.certificate.pem()))
        .replace(old_key, &encode(&client.key.pem()));
    lab.home.file(".talos/config", &text);
}

fn client_of(authority: &Authority, since: Timestamp) -> Issued {
    let request = LeafRequest {
        organizations: vec!["os:admin".to_owned()],
        usage: LeafUsage {
            client: true,
            ..LeafUsage::default()
        },
        lifetime: SignedDuration::from_hours(1),
        ..LeafRequest::default()
    };
    authority.issue(&request, since).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_client_certificate_is_a_finding_and_servers_are_judged_all_the_same() {
    let lab = Lab::start(one_control_plane()).await;
    let yesterday = Timestamp::now() - SignedDuration::from_hours(24);
    let authority = Authority::generate(AuthorityKind::Talos, yesterday).unwrap();
    replace_client(&lab, &client_of(&authority, yesterday));
    let report = check(&lab, &["-n", &lab.nodes[0]], 3);
    assert_eq!(report["clients"][0]["findings"][0]["code"], "expired");
    assert_eq!(findings(&report), [""; 0]);
    let apid = server(&report, &lab.nodes[0], "apid");
    assert_eq!(apid["source"], "served");
    assert_eq!(apid["connection"]["kind"], "refused");
    assert_eq!(report["incomplete"], true);
    let why = report["notChecked"][0]["why"].as_str().unwrap();
    assert!(why.contains("expired"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_refused_sees_the_certificate_all_the_same() {
    let lab = Lab::start(one_control_plane()).await;
    let now = Timestamp::now();
    let stranger = Authority::generate(AuthorityKind::Talos, now).unwrap();
    replace_client(&lab, &client_of(&stranger, now));
    let args = ["-n", &lab.nodes[0], "--expect", "lb.example"];
    let report = check(&lab, &args, 3);
    assert_eq!(
        findings(&report),
        [
            "apid name-missing lb.example",
            "kube-apiserver name-missing lb.example"
        ]
    );
    assert_eq!(report["incomplete"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_of_a_kubeconfig_is_a_name_too() {
    let lab = Lab::start(one_control_plane()).await;
    let kubeconfig = lab.cluster.kubeconfig();
    let moved = kubeconfig.replace(lab.cluster.endpoint(), "https://localhost:6444");
    let same = lab.home.file("same", &kubeconfig);
    let moved = lab
        .home
        .file("moved", &moved.replace("localhost", "127.0.0.99"));
    let report = check(&lab, &["--kubeconfig", &same], 0);
    let clients = report["clients"].as_array().unwrap();
    assert_eq!(clients[1]["place"], "kubeconfig user \"admin@cluster-1\"");
    let report = check(&lab, &["--kubeconfig", &moved], 3);
    assert_eq!(
        findings(&report),
        ["kube-apiserver name-missing 127.0.0.99"]
    );
    // Nothing answers there, which is said.
    assert_eq!(report["incomplete"], true);
    assert_eq!(report["notChecked"][0]["node"], "127.0.0.99:6444");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_to_look_at_is_not_reachable() {
    let lab = Lab::start(one_control_plane()).await;
    let node = &lab.nodes[0];
    let args = [
        "certs",
        "check",
        "--server",
        "apid",
        "-e",
        "127.0.0.1:1",
        "-n",
        "127.0.0.1",
    ];
    let ran = lab.run(&args);
    assert_eq!(ran.code, Some(7), "{ran:?} {node}");
    assert!(
        ran.stderr
            .contains("not checked: 127.0.0.1 apid: connection refused"),
        "{ran:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_arguments_are_named() {
    let lab = Lab::start(one_control_plane()).await;
    let wrong = |args: &[&str], words: &str| {
        let ran = lab.run(&[&["certs", "check"], args].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(words), "{words:?} in {ran:?}");
    };
    wrong(
        &["--expect", "https://lb.example"],
        "neither a DNS name nor an IP address",
    );
    wrong(
        &["--expect", "nothing=lb.example"],
        "`nothing` is no kind of server",
    );
    wrong(
        &["--server", "nothing"],
        "apid, trustd, kube-apiserver, kubelet, etcd, etcd-peer, kubeprism",
    );
    wrong(&["--warn-within", "soon"], "soon");
    wrong(&["--k8s-endpoint", "http://lb.example"], "--k8s-endpoint");
    wrong(&["--kubeconfig", "missing"], "missing");
}
