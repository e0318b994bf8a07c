//! Several nodes, some of which do not answer.

use talos_sim::{Options, Reach};

use super::program::Lab;

#[tokio::test(flavor = "multi_thread")]
async fn one_node_down_among_ten_gives_nine_results_and_exit_4() {
    let lab = Lab::start(Options {
        controlplanes: 3,
        workers: 7,
        ..Options::default()
    })
    .await;
    lab.cluster.nodes()[4].faults().set_reach(Reach::Refusing);
    let ran = lab.run(&["version", "-o", "json"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let document = ran.json();
    let nodes = document["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 10);
    for (index, (entry, name)) in nodes.iter().zip(&lab.nodes).enumerate() {
        assert_eq!(entry["node"], **name);
        assert_eq!(entry["ok"], index != 4, "{entry}");
    }
    assert_eq!(nodes[4]["error"]["code"], "unreachable");
    assert_eq!(nodes[4]["error"]["node"], lab.nodes[4]);
    assert_eq!(nodes[0]["data"]["tag"], "v1.13.9");

    let table = lab.run(&["get", "nodename"]);
    assert_eq!(table.code, Some(4), "{table:?}");
    assert_eq!(table.stdout.lines().count(), 1 + 9, "{table:?}");
    assert!(table.stderr.contains(&lab.nodes[4]), "{table:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_come_from_the_next_node_if_the_first_is_down() {
    let lab = Lab::start(Options {
        controlplanes: 2,
        workers: 0,
        ..Options::default()
    })
    .await;
    lab.cluster.nodes()[0].faults().set_reach(Reach::Refusing);
    let ran = lab.run(&["get", "nodename", "-o", "name"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert_eq!(ran.stdout, "nodename\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_nodes_down_give_their_common_code() {
    let lab = Lab::start(Options::default()).await;
    for node in lab.cluster.nodes() {
        node.faults().set_reach(Reach::Refusing);
    }
    for args in [
        &["version"][..],
        &["get", "nodename"],
        &["services"],
        &["logs", "kubelet"],
    ] {
        let ran = lab.run(&[args, &["-o", "json"]].concat());
        assert_eq!(ran.code, Some(7), "{args:?}: {ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_names_one_node() {
    let lab = Lab::start(Options::default()).await;
    lab.run(&["version"]);
    lab.run(&["get", "nodename"]);
    for call in lab.cluster.calls() {
        assert!(call.values("nodes").is_empty(), "{call:?}");
        assert_eq!(call.values("node").len(), 1, "{call:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_needs_its_nodes_named() {
    let lab = Lab::start(Options::default()).await;
    for args in [
        &["reboot"][..],
        &["service", "kubelet", "restart"],
        &["bootstrap"],
    ] {
        let ran = lab.run(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(
            ran.stderr.contains("-n") && ran.stderr.contains("--all-nodes"),
            "{ran:?}"
        );
    }
    assert!(lab.cluster.calls().is_empty());
    let restarted = lab.run(&["service", "kubelet", "restart", "--all-nodes"]);
    assert_eq!(restarted.code, Some(0), "{restarted:?}");
    let announced = format!("restart kubelet: touching {}", lab.nodes.join(", "));
    assert!(restarted.stderr.contains(&announced), "{restarted:?}");
    assert_eq!(lab.changes().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_does_not_answer_is_passed_over_and_told_when_asked() {
    let lab = Lab::start(Options {
        controlplanes: 2,
        ..Options::default()
    })
    .await;
    lab.cluster.nodes()[0].faults().set_reach(Reach::Refusing);
    let quiet = lab.run(&["version", "-n", &lab.nodes[2]]);
    assert_eq!((quiet.code, quiet.stderr.as_str()), (Some(0), ""));
    let verbose = lab.run(&["version", "-n", &lab.nodes[2], "-v"]);
    assert_eq!(verbose.code, Some(0), "{verbose:?}");
    assert!(verbose.stderr.contains(&lab.nodes[0]), "{verbose:?}");
    // The whole chain of causes, down to what the system said.
    assert!(verbose.stderr.contains("onnection refused"), "{verbose:?}");
}
