//! The official client library against the simulator.

use std::process::Stdio;

use expect_test::expect;
use jiff::Timestamp;
use serde_json::{Value, json};
use talos_sim::{Cluster, Options, TalosVersion};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::program;

/// A cluster and, in a folder, its talosconfigs `admin` and `reader`.
async fn cluster(talos_version: TalosVersion) -> (Cluster, tempfile::TempDir) {
    let options = Options {
        name: "north".to_owned(),
        talos_version,
        ..Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (file, role) in [("admin", "os:admin"), ("reader", "os:reader")] {
        let text = cluster.talosconfig(&[role]);
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    (cluster, folder)
}

/// Lets the official client see all it can of a cluster's two nodes.
async fn seen(talos_version: TalosVersion) -> Value {
    let (cluster, folder) = cluster(talos_version).await;
    let [node, other] = [0, 1].map(|index| cluster.nodes()[index].address().to_string());
    let output = Command::new(program("client"))
        .current_dir(folder.path())
        .args(["--talosconfig", "admin", "--reader", "reader"])
        .args(["--node", &node, "--other", &other])
        .output()
        .await
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let seen = String::from_utf8(output.stdout).unwrap();
    let seen = seen.replace(&node, "NODE").replace(&other, "OTHER");
    serde_json::from_str(&seen).expect(&errors)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Go: builds programs on the official Talos and COSI libraries"]
async fn the_official_client_works_against_simulated_nodes() {
    let seen = seen(TalosVersion::V1_13_9).await;
    let seen = serde_json::to_string_pretty(&seen).unwrap();
    expect![[r#"
        {
          "after the try": "v1alpha1",
          "all resources": {
            "count over 100": true,
            "different": [
              "DNSUpstreams.net.talos.dev: no such type in the library",
              "VolumeConfigs.block.talos.dev: the two forms differ"
            ]
          },
          "all resources of the other": {
            "count over 100": true,
            "different": [
              "DNSUpstreams.net.talos.dev: no such type in the library",
              "VolumeConfigs.block.talos.dev: the two forms differ"
            ]
          },
          "apply as reader": {
            "error": "PermissionDenied: not authorized"
          },
          "definitions": {
            "resolved": {
              "Members": "cluster/Members.cluster.talos.dev",
              "mc": "config/MachineConfigs.config.talos.dev",
              "nodename": "k8s/Nodenames.kubernetes.talos.dev",
              "nope": "NotFound: resource \"nope\" is not registered",
              "ns": "InvalidArgument: resource type \"ns\" is ambiguous: [namespaces.meta.cosi.dev networkstatuses.net.talos.dev nodestatuses.kubernetes.talos.dev]"
            },
            "types": 167
          },
          "dry run": {
            "after": "1",
            "before": "1",
            "details": "Dry run summary:\nApplied configuration without a reboot (skipped in dry-run).\nConfig diff:",
            "diff": true,
            "mode": "NO_REBOOT",
            "warnings": null
          },
          "events begin with a hello": {
            "actor": "peer",
            "id": 20,
            "type": ""
          },
          "get through nodes": {
            "error": "InvalidArgument: one-2-many proxying is not supported for method /cosi.resource.State/Get"
          },
          "kubeconfig": true,
          "kubeconfig as reader": {
            "error": "PermissionDenied: not authorized"
          },
          "link flags": "UP,LOOPBACK,RUNNING,LOWER_UP",
          "machine config": {
            "cluster": "north",
            "endpoint": "https://NODE:6443",
            "type": "controlplane",
            "version": "1"
          },
          "machine config as reader": {
            "error": "PermissionDenied: not authorized"
          },
          "members": [
            "north-controlplane-1 controlplane [NODE]",
            "north-worker-1 worker [OTHER]"
          ],
          "missing resource": {
            "not found": true
          },
          "no reboot": {
            "after": "2",
            "before": "1",
            "details": "Applied configuration without a reboot",
            "diff": false,
            "mode": "NO_REBOOT",
            "warnings": null
          },
          "nodename": "north-worker-1",
          "services": [
            "apid Running",
            "containerd Running",
            "cri Running",
            "etcd Running",
            "kubelet Running",
            "machined Running",
            "trustd Running"
          ],
          "services by watch": [
            "Created apid",
            "Created containerd",
            "Created cri",
            "Created kubelet",
            "Created machined"
          ],
          "try": {
            "after": "3",
            "before": "2",
            "details": "Applied configuration for a trial, rollback in 100ms",
            "diff": false,
            "mode": "TRY",
            "warnings": null
          },
          "unknown field": {
            "error": "InvalidArgument: error decoding document /v1alpha1/ (line 1): unknown keys found during decoding:\nmachine:\n    bogus: 1\n"
          },
          "version": [
            "v1.13.9"
          ],
          "version as reader": [
            "v1.13.9"
          ],
          "version of a node that is not there": {
            "error": "Unavailable: connection error: desc = \"transport: Error while dialing: dial tcp 127.255.255.254:50000: connect: no route to host\""
          },
          "version of nodes": [
            "NODE v1.13.9",
            "OTHER v1.13.9"
          ],
          "version without a node": [
            "v1.13.9"
          ],
          "write": {
            "error": "rpc error: code = PermissionDenied desc = write access is not allowed"
          }
        }"#]].assert_eq(&seen);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Go: builds programs on the official Talos and COSI libraries"]
async fn the_official_client_works_against_every_version() {
    for (version, types) in [(TalosVersion::V1_11_5, 156), (TalosVersion::V1_14, 167)] {
        let seen = seen(version).await;
        assert_eq!(seen["version"], json!([version.tag()]));
        assert_eq!(seen["machine config"]["type"], "controlplane");
        assert_eq!(seen["definitions"]["types"], types);
        assert_eq!(seen["all resources"]["count over 100"], true);
        assert_eq!(seen["no reboot"]["mode"], "NO_REBOOT");
        assert_eq!(seen["after the try"], "v1alpha1");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Go: builds programs on the official Talos and COSI libraries"]
async fn the_official_client_resumes_watches_from_our_bookmarks() {
    let (cluster, folder) = cluster(TalosVersion::V1_13_9).await;
    let node = &cluster.nodes()[1];
    let mut peer = Command::new(program("client"))
        .current_dir(folder.path())
        .args(["--follow", "--talosconfig", "admin"])
        .args(["--node", &node.address().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(peer.stdout.take().unwrap()).lines();
    let mut line = async || lines.next_line().await.unwrap().expect("a line");
    while line().await != "Bootstrapped" {}

    let store = node.store();
    let set = |healthy: bool| {
        let kind = "Services.v1alpha1.talos.dev";
        let changed = store.modify("runtime", kind, "kubelet", Timestamp::now(), |draft| {
            draft.spec = talos_sim::Spec::from_value(
                json!({"running": true, "healthy": healthy, "unknown": false}),
            );
        });
        changed.unwrap().metadata.version
    };
    let version = set(false);
    assert_eq!(line().await, format!("Updated kubelet {version} false"));
    store.drop_watches();
    let [up, down] = [true, false].map(set);
    assert_eq!(line().await, format!("Updated kubelet {up} true"));
    assert_eq!(line().await, format!("Updated kubelet {down} false"));
    node.faults().drop_connections();
    let up = set(true);
    assert_eq!(line().await, format!("Updated kubelet {up} true"));
    drop(peer.stdin.take());
    assert!(peer.wait().await.unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Go: builds programs on the official Talos and COSI libraries"]
async fn the_official_client_works_against_sim_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut simulator = Command::new(env!("CARGO_BIN_EXE_ichor"))
        .args(["sim", "up", "-o", "json", "--dir", "."])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(simulator.stdout.take().unwrap())
        .read_line(&mut line)
        .await
        .unwrap();
    let started: Value = serde_json::from_str(&line).unwrap();
    let [node, other] = [0, 1].map(|index| started["nodes"][index]["node"].as_str().unwrap());
    let output = Command::new(program("client"))
        .current_dir(folder.path())
        .args(["--talosconfig", "talosconfig", "--reader", "talosconfig"])
        .args(["--node", node, "--other", other])
        .output()
        .await
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        seen["definitions"]["resolved"]["mc"],
        "config/MachineConfigs.config.talos.dev"
    );
    assert_eq!(seen["after the try"], "v1alpha1");
    assert_eq!(seen["all resources"]["count over 100"], true);
}
