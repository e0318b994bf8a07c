//! `ichor upgrade-k8s` as scripts call it.

use serde_json::Value;
use talos_sim::Options;

use crate::cli::program::{Lab, Ran};

use super::lab::{behind_nat, silent};

/// The address of the forwarded port of the first control plane's API server.
fn forwarded(lab: &Lab) -> String {
    lab.cluster.nodes()[0].kube_dial().unwrap().to_string()
}

/// Runs the verb through the forwarded port.
fn upgrade(lab: &Lab, args: &[&str]) -> Ran {
    let endpoint = forwarded(lab);
    let fixed = ["upgrade-k8s", "--k8s-endpoint", endpoint.as_str()];
    lab.run(&[&fixed[..], args].concat())
}

fn texts<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    let items = list.as_array().unwrap().iter();
    items.map(|item| item[key].as_str().unwrap()).collect()
}

/// Nothing was changed and nothing pulled, on either side.
fn check_untouched(lab: &Lab) {
    assert_eq!(lab.changes(), Vec::<String>::new());
    let calls = lab.cluster.calls();
    assert!(
        calls.iter().all(|call| !call.method.contains("Pull")),
        "{calls:?}"
    );
    let requests = lab.cluster.kube_requests();
    assert!(
        requests
            .iter()
            .all(|request| !request.mutating && !request.dry_run),
        "{requests:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_shows_everything_and_does_nothing() {
    let lab = Lab::start(behind_nat()).await;
    let ran = upgrade(&lab, &["--to", "1.34.0", "--dry-run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for line in [
        "Kubernetes 1.33.4 to 1.34.0 through",
        "kube-apiserver,kube-controller-manager,kube-scheduler,kube-proxy,kubelet",
        "change   kubelet                   cluster-1-worker-1",
        "configured   DaemonSet/kube-system/kube-proxy",
    ] {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
    let ran = upgrade(&lab, &["--to", "v1.34.0", "--dry-run", "-o", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let plan = &ran.json()["plan"];
    assert_eq!(
        (plan["from"].as_str(), plan["to"].as_str()),
        (Some("1.33.4"), Some("1.34.0"))
    );
    assert_eq!(plan["kubernetesEndpoint"], forwarded(&lab));
    assert_eq!(plan["steps"].as_array().unwrap().len(), 6);
    assert_eq!(plan["pulls"].as_array().unwrap().len(), 7);
    assert_eq!(ran.json().get("report"), None);
    check_untouched(&lab);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_behind_nat_is_upgraded_and_every_event_is_a_line() {
    let lab = Lab::start(behind_nat()).await;
    let ran = upgrade(
        &lab,
        &[
            "--to",
            "1.34.0",
            "--yes",
            "-o",
            "ndjson",
            "-n",
            &lab.nodes[0],
        ],
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let events: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let words: Vec<&str> = events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!((words[0], *words.last().unwrap()), ("started", "finished"));
    assert_eq!(words.iter().filter(|word| **word == "written").count(), 6);
    let report = &events.last().unwrap()["report"];
    assert_eq!(report["changed"].as_array().unwrap().len(), 6);
    assert_eq!(
        report["manifestsChanged"],
        serde_json::json!(["DaemonSet/kube-system/kube-proxy"])
    );
    assert!(
        ran.stderr
            .contains("upgrade-k8s: touching cluster-1-controlplane-1, cluster-1-worker-1")
    );

    let ran = upgrade(&lab, &["--to", "1.34.0", "--yes", "-o", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let document = ran.json();
    assert_eq!(document["report"]["changed"], serde_json::json!([]));
    assert_eq!(document["report"]["skipped"].as_array().unwrap().len(), 6);
    assert!(
        ran.stderr.contains("no machine configuration changes"),
        "{ran:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_lock_an_upgrade_needs_a_yes() {
    let lab = Lab::start(behind_nat()).await;
    let ran = upgrade(&lab, &["--to", "1.34.0"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(
        ran.stderr
            .contains("nothing keeps a second run from doing the same"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("add --yes"), "{ran:?}");
    check_untouched(&lab);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_path_names_the_pod_and_exits_with_3() {
    let lab = Lab::start(behind_nat()).await;
    let ran = upgrade(&lab, &["--to", "1.35.0", "--yes", "-o", "json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let document = ran.json();
    let blocked = &document["plan"]["blocked"];
    assert_eq!(texts(blocked, "code"), ["unsupportedPath"]);
    let message = texts(blocked, "message")[0];
    assert!(
        message.starts_with("Kubernetes 1.33.4 cannot go to 1.35.0 in one upgrade; pod "),
        "{message}"
    );
    check_untouched(&lab);
    let ran = upgrade(&lab, &["--to", "1.35.0"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(
        ran.stdout
            .contains("blocked: Kubernetes 1.33.4 cannot go to 1.35.0"),
        "{ran:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_does_not_answer_is_named_with_the_flag() {
    let lab = Lab::start(behind_nat()).await;
    let socket = silent();
    let closed = socket.local_addr().unwrap().to_string();
    let args = [
        "upgrade-k8s",
        "--endpoint",
        &closed,
        "--connect-timeout",
        "1s",
        "--to",
        "1.34.0",
        "--dry-run",
        "-o",
        "json",
    ];
    let ran = lab.run(&args);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    let error = ran.error();
    assert_eq!(error["code"], "unreachable");
    assert_eq!(
        error["message"],
        format!("the Kubernetes API is not reachable: {closed} (connection refused)")
    );
    assert!(
        error["hint"]
            .as_str()
            .unwrap()
            .contains("--k8s-endpoint HOST:PORT"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_image_stops_the_upgrade_and_is_named() {
    let lab = Lab::start(behind_nat()).await;
    let image = "registry.k8s.io/kube-proxy:v1.34.0";
    lab.cluster.nodes()[1].faults().miss_image(image);
    let ran = upgrade(&lab, &["--to", "1.34.0", "--yes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr
            .contains(&format!("{image} on node cluster-1-worker-1")),
        "{ran:?}"
    );
    let applied = lab
        .changes()
        .into_iter()
        .filter(|method| method.contains("Apply"));
    assert_eq!(applied.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_no_node_to_ask() {
    let lab = Lab::start(Options::default()).await;
    let ran = lab.run(&[
        "upgrade-k8s",
        "-n",
        &lab.nodes[1],
        "--to",
        "1.34.0",
        "--dry-run",
    ]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.contains("name a control plane node with -n"),
        "{ran:?}"
    );
    let both = lab.nodes.join(",");
    let ran = lab.run(&["upgrade-k8s", "-n", &both, "--to", "1.34.0", "--dry-run"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_down_is_passed_over() {
    let options = Options {
        controlplanes: 2,
        forward_all: true,
        ..behind_nat()
    };
    let lab = Lab::start(options).await;
    let down = |node: usize| {
        lab.cluster.nodes()[node].faults().fail(
            "/machine.MachineService/Kubeconfig",
            tonic::Code::Unavailable,
            "no route to host",
        );
    };
    down(0);
    let ran = upgrade(&lab, &["--to", "1.34.0", "--dry-run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    down(1);
    let ran = upgrade(&lab, &["--to", "1.34.0", "--dry-run", "-o", "json"]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    let error = ran.error();
    let causes = error["causes"].to_string();
    for node in &lab.nodes[..2] {
        assert!(causes.contains(node.as_str()), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_values_are_told_before_anything_is_dialed() {
    let lab = Lab::start(Options::default()).await;
    for (args, expected) in [
        (["--to", "1.36"], "--to cannot be used"),
        (["--from", "latest"], "--from cannot be used"),
        (
            ["--k8s-endpoint", "http://h"],
            "only https:// is spoken here",
        ),
        (
            ["--kubelet-image", "k:v1"],
            "a repository without tag and digest is wanted",
        ),
        (
            ["--manifests-inventory-policy", "adoptall"],
            "none of MustMatch",
        ),
    ] {
        let ran = lab.run(&[&["upgrade-k8s", "--dry-run"], &args[..]].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(expected), "{ran:?}");
    }
    assert_eq!(lab.cluster.calls(), []);
}
