//! `ichor certs fix`: the plan, its costs, what it changes and what it never touches.

use talos_sim::{Options, TalosVersion};

use crate::cli::program::Lab;

const SETTLE: [&str; 2] = ["--settle", "200ms"];

/// Runs `certs fix` on all nodes.
fn fix(lab: &Lab, args: &[&str]) -> crate::cli::program::Ran {
    lab.run(&[&["certs", "fix", "--all-nodes"], &SETTLE[..], args].concat())
}

fn two_control_planes() -> Options {
    Options {
        controlplanes: 2,
        workers: 1,
        ..Options::default()
    }
}

fn configs(lab: &Lab) -> Vec<String> {
    let nodes = lab.cluster.nodes().iter();
    nodes.map(|node| node.machine_config().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_added_node_by_node_and_verified_and_nothing_else_changes() {
    let lab = Lab::start(two_control_planes()).await;
    let before = configs(&lab);
    let expect = ["--expect", "lb.example,172.30.0.11"];
    let dry = fix(&lab, &[&expect[..], &["--dry-run"]].concat());
    assert_eq!(dry.code, Some(0), "{dry:?}");
    assert!(dry.stderr.contains("touching"), "{dry:?}");
    for words in [
        "machine.certSANs gets lb.example, 172.30.0.11",
        "cluster.apiServer.certSANs gets lb.example, 172.30.0.11",
        "cost: nothing restarts",
        "patch one node at a time",
    ] {
        assert!(dry.stdout.contains(words), "{words} in {dry:?}");
    }
    assert_eq!(lab.changes(), [""; 0], "a dry run writes nothing");
    assert_eq!(configs(&lab), before);

    let ran = fix(&lab, &[&expect[..], &["-o", "json"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let document = ran.json();
    let nodes = document["result"]["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 3);
    for node in nodes {
        assert_eq!(node["state"], "done");
        let verified = node["verified"].as_array().unwrap();
        assert!(
            verified
                .iter()
                .all(|verified| verified["address"].is_string())
        );
    }
    // Two settings on control planes, one on the worker; each of two names.
    let counts = nodes
        .iter()
        .map(|node| node["verified"].as_array().unwrap().len());
    assert_eq!(counts.collect::<Vec<_>>(), [4, 4, 2]);
    let applied = lab.changes();
    assert_eq!(applied.len(), 3, "{applied:?}");
    for (old, new) in before.iter().zip(configs(&lab)) {
        let added: Vec<&str> = new.lines().filter(|line| !old.contains(line)).collect();
        assert!(!added.is_empty());
        let allowed = ["lb.example", "172.30.0.11", "certSANs"];
        for line in added {
            assert!(allowed.iter().any(|word| line.contains(word)), "{line}");
        }
    }
    let check = lab.run(&[&["certs", "check"], &expect[..]].concat());
    assert_eq!(check.code, Some(0), "{check:?}");
    let again = fix(&lab, &expect);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.stdout.contains("No name is missing"), "{again:?}");
    assert_eq!(lab.changes().len(), 3, "what is right is left alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_takes_the_names() {
    for version in TalosVersion::ALL {
        let options = Options {
            talos_version: version,
            workers: 0,
            ..Options::default()
        };
        let lab = Lab::start(options).await;
        let expect = ["--expect", "lb.example"];
        let ran = fix(&lab, &expect);
        assert_eq!(ran.code, Some(0), "{version:?} {ran:?}");
        let check = lab.run(&[&["certs", "check"], &expect[..]].concat());
        assert_eq!(check.code, Some(0), "{version:?} {check:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_to_be_named_and_what_is_on_trial_is_left_alone() {
    let lab = Lab::start(two_control_planes()).await;
    let unnamed = lab.run(&["certs", "fix", "--expect", "lb.example"]);
    assert_eq!(unnamed.code, Some(2), "{unnamed:?}");
    let patch = r#"{"machine":{"sysctls":{"net.core.somaxconn":"1024"}}}"#;
    let node = lab.nodes[0].as_str();
    let tried = lab.run(&[
        "patch",
        "mc",
        "-n",
        node,
        "--mode",
        "try",
        "--timeout",
        "10m",
        "--patch",
        patch,
    ]);
    assert_eq!(tried.code, Some(0), "{tried:?}");
    let before = lab.changes().len();
    let dry = fix(&lab, &["--expect", "lb.example", "--dry-run"]);
    assert!(dry.stdout.contains("tried or staged"), "{dry:?}");
    let refused = fix(&lab, &["--expect", "lb.example"]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    assert!(refused.stderr.contains("tried or staged"), "{refused:?}");
    assert_eq!(lab.changes().len(), before);
    // Neither of them ended the trial.
    assert!(lab.cluster.nodes()[0].expire_trial());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_refuses_is_the_last_one_and_the_run_goes_on_later() {
    let lab = Lab::start(two_control_planes()).await;
    let apply = "/machine.MachineService/ApplyConfiguration";
    let second = lab.cluster.nodes()[1].faults();
    second.fail(apply, tonic::Code::InvalidArgument, "not today");
    let expect = ["--expect", "lb.example", "-o", "json"];
    let ran = fix(&lab, &expect);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let document = ran.json();
    let nodes = document["result"]["nodes"].as_array().unwrap();
    let states = nodes.iter().map(|node| node["state"].as_str().unwrap());
    assert_eq!(
        states.collect::<Vec<_>>(),
        ["done", "failed", "not-started"]
    );
    assert_eq!(nodes[1]["applied"], false);
    let why = nodes[1]["error"].as_str().unwrap();
    assert!(why.contains("not today"), "{why}");
    second.restore(apply);
    let ran = fix(&lab, &expect);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let document = ran.json();
    let nodes = document["plan"]["nodes"].as_array().unwrap();
    let left = nodes.iter().map(|node| node["node"].as_str().unwrap());
    assert_eq!(left.collect::<Vec<_>>(), lab.nodes[1..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wildcard_is_added_and_verified_with_a_name_that_it_stands_for() {
    let lab = Lab::start(Options {
        workers: 0,
        ..Options::default()
    })
    .await;
    let ran = fix(&lab, &["--expect", "*.lb.example"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout
            .contains("apid *.lb.example: verified by a handshake"),
        "{ran:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_cannot_be_looked_at_is_no_clean_result() {
    let lab = Lab::start(two_control_planes()).await;
    lab.cluster.nodes()[2]
        .faults()
        .set_reach(talos_sim::Reach::Refusing);
    let ran = lab.run(&["certs", "check", "-o", "json"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert_eq!(ran.json()["incomplete"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_that_cannot_be_seen_from_here_is_over_when_the_node_says_so() {
    let lab = Lab::start(Options {
        controlplanes: 2,
        workers: 0,
        nat: true,
        ..Options::default()
    })
    .await;
    let forwarded = lab.cluster.nodes()[0].kube_dial().unwrap().to_string();
    let args = [
        "certs",
        "fix",
        "--all-nodes",
        "--expect",
        "kube-apiserver=lb.example",
        "--k8s-endpoint",
        &forwarded,
        "--settle",
        "1h",
        "--timeout",
        "1m",
    ];
    let ran = lab.run(&args);
    assert!(
        ran.stdout.contains("cannot be dialled from here"),
        "{ran:?}"
    );
    for node in lab.cluster.nodes() {
        assert!(node.kube_outages() > 0, "{ran:?}");
        let config = node.machine_config().unwrap();
        assert!(config.contains("lb.example"), "{ran:?}");
    }
}
