//! `ichor certs renew`: other client certificates in the same place, tried before the old ones go.

use jiff::{SignedDuration, Timestamp};
use talos_config::generate::Secrets;
use talos_config::kubeconfig::{Kubeconfig, Material};
use talos_config::talosconfig::TalosConfig;
use talos_pki::{Certificate, is_issued_by};
use talos_sim::{Cluster, Options, Reach};

use crate::cli::program::{Lab, Ran};

/// Where the talosconfig of a lab is.
const TALOSCONFIG: &str = ".talos/config";

fn read(lab: &Lab, name: &str) -> String {
    std::fs::read_to_string(lab.home.path().join(name)).unwrap()
}

#[cfg(unix)]
fn mode(lab: &Lab, name: &str) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    let path = lab.home.path().join(name);
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// The client certificate of a talosconfig's current context.
fn talos_leaf(text: &str) -> Certificate {
    let config = TalosConfig::parse("talosconfig", text).unwrap();
    let (name, _) = config.select(None).unwrap();
    let identity = config.credentials(name).unwrap().identity.unwrap();
    identity.chain[0].clone()
}

/// The client certificate of a kubeconfig's current context.
fn kubernetes_leaf(text: &str) -> Certificate {
    let config = Kubeconfig::parse("kubeconfig", text).unwrap();
    let access = config.access(None).unwrap();
    let Some(Material::Inline(pem)) = &access.user.certificate else {
        panic!("the certificate is in the file")
    };
    Certificate::many_from_pem(pem).unwrap().swap_remove(0)
}

/// Writes the secrets bundle of a cluster into the lab's home.
fn bundle(lab: &Lab, cluster: &Cluster, name: &str) -> String {
    let config = cluster.nodes()[0].machine_config().unwrap();
    let found = Secrets::from_config(&config).unwrap();
    lab.home.file(name, &found.secrets.text())
}

fn renew(lab: &Lab, args: &[&str]) -> Ran {
    lab.run(&[&["certs", "renew"], args, &["-o", "json"]].concat())
}

/// Gives the talosconfig a comment and a context of its own, which have to survive.
fn with_others(lab: &Lab) -> String {
    let text = read(lab, TALOSCONFIG);
    let text = format!("# mine\n{text}    other: # theirs\n        endpoints: [10.9.9.9]\n");
    lab.home.file(TALOSCONFIG, &text);
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_talosconfig_is_renewed_in_its_place_by_a_node_or_by_a_bundle() {
    let lab = Lab::start(Options::default()).await;
    let secrets = bundle(&lab, &lab.cluster, "secrets.yaml");
    let before = with_others(&lab);
    for (source, ttl, hours) in [
        (&[][..], "24h", 24),
        (&["--from-secrets", &secrets][..], "48h", 48),
    ] {
        let now = Timestamp::now();
        let old = talos_leaf(&read(&lab, TALOSCONFIG));
        let ran = renew(&lab, &[&["talosconfig", "--ttl", ttl], source].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let document = ran.json();
        assert_eq!(document["changed"], true);
        assert_eq!(document["verified"], true);
        assert_eq!(document["old"]["fingerprint"], old.fingerprint());
        let text = read(&lab, TALOSCONFIG);
        let new = talos_leaf(&text);
        assert_eq!(document["new"]["fingerprint"], new.fingerprint());
        assert!(is_issued_by(&new, lab.cluster.talos_authority()));
        assert_eq!(new.organizations(), ["os:admin"]);
        let left = new.not_after().duration_since(now).as_secs();
        assert!((left - hours * 3600).abs() < 60, "{left}");
        // Only the lines of the certificate and the key are others.
        let lines = before.lines().zip(text.lines());
        let other = lines
            .filter(|(one, two)| one != two)
            .map(|(one, _)| one.trim());
        let other: Vec<&str> = other.map(|line| line.split(':').next().unwrap()).collect();
        assert_eq!(other, ["crt", "key"], "{text}");
        assert!(!format!("{ran:?}").contains("PRIVATE KEY"));
        #[cfg(unix)]
        assert_eq!(mode(&lab, TALOSCONFIG), 0o600);
    }
    assert_eq!(lab.run(&["version"]).code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_are_those_of_the_old_certificate_unless_others_are_given() {
    let lab = Lab::with_roles(Options::default(), &["os:reader"]).await;
    let secrets = bundle(&lab, &lab.cluster, "secrets.yaml");
    // Only an administrator may have certificates issued.
    let before = read(&lab, TALOSCONFIG);
    let ran = renew(&lab, &["talosconfig"]);
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert_eq!(read(&lab, TALOSCONFIG), before);
    let offline = ["talosconfig", "--from-secrets", &secrets];
    assert_eq!(renew(&lab, &offline).code, Some(0));
    assert_eq!(
        talos_leaf(&read(&lab, TALOSCONFIG)).organizations(),
        ["os:reader"]
    );
    let ran = renew(
        &lab,
        &[&offline[..], &["--roles", "os:operator,os:etcd:backup"]].concat(),
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let leaf = talos_leaf(&read(&lab, TALOSCONFIG));
    assert_eq!(leaf.organizations(), ["os:operator", "os:etcd:backup"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cron_renews_only_what_ends_soon_and_is_told_by_the_exit_code() {
    let lab = Lab::start(Options::default()).await;
    let before = read(&lab, TALOSCONFIG);
    lab.cluster.clear_calls();
    // The certificate of the lab lives for a year.
    let soon = ["talosconfig", "--if-expiring", "30d", "--exit-code"];
    let ran = renew(&lab, &soon);
    assert_eq!(
        (ran.code, ran.json()["changed"].as_bool()),
        (Some(0), Some(false)),
        "{ran:?}"
    );
    let later = ["talosconfig", "--if-expiring", "366d", "--exit-code"];
    let ran = renew(&lab, &[&later[..], &["--dry-run"]].concat());
    assert_eq!(
        (ran.code, ran.json()["changed"].as_bool()),
        (Some(3), Some(true)),
        "{ran:?}"
    );
    assert_eq!(read(&lab, TALOSCONFIG), before);
    assert!(lab.cluster.calls().is_empty(), "neither asked a node");
    assert_eq!(renew(&lab, &later).code, Some(3));
    assert_ne!(read(&lab, TALOSCONFIG), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_certificate_stays_when_the_new_one_cannot_be_tried_or_is_not_of_the_cluster() {
    let lab = Lab::start(Options::default()).await;
    let secrets = bundle(&lab, &lab.cluster, "secrets.yaml");
    let other = Cluster::start(Options::default()).await.unwrap();
    let theirs = bundle(&lab, &other, "theirs.yaml");
    let before = read(&lab, TALOSCONFIG);
    let ran = renew(&lab, &["talosconfig", "--from-secrets", &theirs]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    lab.cluster.nodes()[0].faults().set_reach(Reach::Refusing);
    let ran = renew(&lab, &["talosconfig", "--from-secrets", &secrets]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(
        ran.error()["hint"]
            .as_str()
            .unwrap()
            .contains("--verify=false"),
        "{ran:?}"
    );
    assert_eq!(read(&lab, TALOSCONFIG), before);
    let ran = renew(
        &lab,
        &["talosconfig", "--from-secrets", &secrets, "--verify=false"],
    );
    assert_eq!(
        (ran.code, ran.json()["verified"].as_bool()),
        (Some(0), Some(false)),
        "{ran:?}"
    );
    lab.home.file("broken.yaml", "certs: {os: {crt: x}}");
    let ran = renew(&lab, &["talosconfig", "--from-secrets", "broken.yaml"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr.contains("broken.yaml") && ran.stderr.contains("certs.os"),
        "{ran:?}"
    );
    assert_eq!(renew(&lab, &["talosconfig", "--ttl", "0"]).code, Some(2));
}

/// Writes the cluster's kubeconfig into the lab's home, among the entries of another cluster.
fn kubeconfig(lab: &Lab) -> String {
    let text = lab.cluster.kubeconfig();
    let text = format!(
        "# mine\n{}",
        text.replace(
            "users:\n",
            "users:\n- name: other # theirs\n  user: {token: keep}\n"
        )
    );
    lab.home.file("kube", &text);
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_is_renewed_in_its_place_by_a_node_or_by_a_bundle() {
    let lab = Lab::start(Options::default()).await;
    let secrets = bundle(&lab, &lab.cluster, "secrets.yaml");
    kubeconfig(&lab);
    let node = lab.nodes[0].clone();
    for (source, hours) in [
        (&["-n", &node][..], 8760),
        (&["--from-secrets", &secrets, "--ttl", "48h"][..], 48),
    ] {
        let now = Timestamp::now();
        let old = kubernetes_leaf(&read(&lab, "kube"));
        let ran = renew(&lab, &[&["kubeconfig", "kube"], source].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let text = read(&lab, "kube");
        let new = kubernetes_leaf(&text);
        assert_eq!(ran.json()["verified"], true);
        assert_ne!(new.fingerprint(), old.fingerprint());
        assert!(is_issued_by(&new, lab.cluster.kubernetes_authority()));
        assert_eq!(new.common_name(), Some("admin"));
        assert_eq!(new.organizations(), ["system:masters"]);
        let left = new.not_after().duration_since(now);
        let off = (left - SignedDuration::from_hours(hours)).abs();
        assert!(off < SignedDuration::from_mins(1), "{left}");
        assert!(
            text.starts_with("# mine\n")
                && text.contains("- name: other # theirs\n  user: {token: keep}\n"),
            "{text}"
        );
        assert!(!format!("{ran:?}").contains("PRIVATE KEY"));
        #[cfg(unix)]
        assert_eq!(mode(&lab, "kube"), 0o600);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_decides_how_long_its_kubeconfigs_live() {
    let lab = Lab::start(Options::default()).await;
    let before = kubeconfig(&lab);
    let ran = renew(
        &lab,
        &["kubeconfig", "kube", "-n", &lab.nodes[0], "--ttl", "48h"],
    );
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stderr.contains("certLifetime"), "{ran:?}");
    assert_eq!(read(&lab, "kube"), before);
    let patch = "{\"cluster\": {\"adminKubeconfig\": {\"certLifetime\": \"48h0m0s\"}}}";
    let patched = lab.run(&["patch", "mc", "-n", &lab.nodes[0], "-p", patch]);
    assert_eq!(patched.code, Some(0), "{patched:?}");
    let ran = renew(
        &lab,
        &["kubeconfig", "kube", "-n", &lab.nodes[0], "--ttl", "48h"],
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kubeconfig_of_another_cluster_is_left_alone() {
    let lab = Lab::start(Options::default()).await;
    let other = Cluster::start(Options::default()).await.unwrap();
    let before = other.kubeconfig();
    lab.home.file("kube", &before);
    let ran = renew(&lab, &["kubeconfig", "kube", "-n", &lab.nodes[0]]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stderr.contains("of another cluster"), "{ran:?}");
    assert_eq!(read(&lab, "kube"), before);
}
