//! `ichor apply-config`.

use talos_sim::Options;

use super::{active, done, refused};
use crate::cli::program::Lab;

#[tokio::test(flavor = "multi_thread")]
async fn a_file_and_its_patches_become_the_configuration() {
    let lab = Lab::start(Options::default()).await;
    let text = active(&lab, 0);
    let file = lab.home.file("node.yaml", &text);
    let args = [
        "apply-config",
        "-n",
        &lab.nodes[0],
        "-f",
        &file,
        "-p",
        "cluster: {clusterName: other}",
    ];
    let dry = lab.run(&[&args[..], &["--dry-run"]].concat());
    done(&dry);
    assert!(dry.stdout.contains("+    clusterName: other"), "{dry:?}");
    assert_eq!(lab.changes(), Vec::<String>::new());
    done(&lab.run(&args));
    assert_eq!(
        active(&lab, 0),
        text.replace("clusterName: cluster-1", "clusterName: other")
    );
    let again = lab.run(&[
        "apply",
        "machineconfig",
        "-n",
        &lab.nodes[0],
        "--file",
        &file,
        "--config-patch",
        "cluster: {clusterName: other}",
    ]);
    done(&again);
    assert!(again.stdout.contains("nothing changes"), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_used_is_refused_before_the_node_is_asked() {
    let lab = Lab::start(Options::default()).await;
    let empty = lab.home.file("empty.yaml", "\n");
    let broken = lab.home.file("broken.yaml", "machine: [\n");
    let doubled = lab.home.file("doubled.yaml", "machine: {}\nmachine: {}\n");
    for (file, words) in [
        (&empty, &["empty.yaml is empty"][..]),
        (&broken, &["broken.yaml", "not valid YAML"]),
        (&doubled, &["doubled.yaml", "line 2", "duplicate"]),
    ] {
        let ran = lab.run(&["apply-config", "-n", &lab.nodes[0], "-f", file]);
        refused(&ran, 2, words);
    }
    refused(
        &lab.run(&["apply-config", "-n", &lab.nodes[0], "-f", "/nowhere"]),
        2,
        &["/nowhere"],
    );
    refused(&lab.run(&["apply-config", "-f", &empty]), 2, &["-n"]);
    assert_eq!(lab.changes(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_in_maintenance_mode_gets_its_first_configuration() {
    let lab = Lab::start(Options {
        maintenance: 1,
        ..Options::default()
    })
    .await;
    let waiting = lab.cluster.nodes().last().unwrap();
    let dial = waiting.dial().unwrap().to_string();
    let fingerprint = waiting.maintenance_fingerprint().unwrap();
    let file = lab.home.file("node.yaml", &active(&lab, 1));
    let other = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let wrong = lab.run(&[
        "apply-config",
        "-n",
        &dial,
        "-f",
        &file,
        "--insecure",
        "--cert-fingerprint",
        other,
    ]);
    refused(&wrong, 6, &["fingerprint"]);
    assert_eq!(waiting.machine_config(), None);
    let without = lab.run(&[
        "apply-config",
        "-n",
        &dial,
        "-f",
        &file,
        "--cert-fingerprint",
        &fingerprint,
    ]);
    refused(&without, 2, &["--cert-fingerprint needs --insecure"]);
    let ran = lab.run(&[
        "apply-config",
        "-n",
        &dial,
        "-f",
        &file,
        "-i",
        "--cert-fingerprint",
        &fingerprint,
    ]);
    done(&ran);
    assert_eq!(waiting.machine_config(), Some(active(&lab, 1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_is_staged_for_the_next_boot() {
    let lab = Lab::start(Options::default()).await;
    let before = active(&lab, 0);
    let node = &lab.nodes[0];
    let patch = "machine: {nodeLabels: {staged: a}}";
    let document = lab.json(&["patch", "mc", "-n", node, "-p", patch, "-m", "staged"]);
    assert_eq!(document["nodes"][0]["data"]["mode"], "staged", "{document}");
    assert_eq!(active(&lab, 0), before);
    let dry = lab.json(&["patch", "mc", "-n", node, "-p", patch, "--dry-run"]);
    let data = &dry["nodes"][0]["data"];
    assert_eq!(
        (&data["pending"], &data["mode"]),
        (&true.into(), &serde_json::Value::Null),
        "{data}"
    );
}
