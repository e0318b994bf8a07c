//! `sim up`: a simulated cluster for people and their scripts.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::program::{Home, Ran};

#[test]
fn a_cluster_runs_until_stopped_and_is_used_with_what_it_writes() {
    let home = Home::new();
    let dir = home.path().join("cluster");
    let args = [
        "sim",
        "up",
        "--nat",
        "--controlplanes",
        "1",
        "--workers=1",
        "--talos-version",
        "v1.14",
    ];
    let mut child = home
        .command(&[&args[..], &["--dir", dir.to_str().unwrap(), "-o", "json"]].concat())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let started: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(started["talosVersion"], "v1.14.1");
    // Behind NAT only the two APIs of the first control plane are forwarded.
    let servers = started["nodes"][0]["servers"].as_object().unwrap();
    assert_eq!(servers.len(), 2);
    assert_eq!(servers["apid"], started["nodes"][0]["talos"]);
    assert_eq!(servers["kube-apiserver"], started["nodes"][0]["kubernetes"]);
    for file in ["talosconfig", "kubeconfig"] {
        let path = dir.join(file);
        assert_eq!(started[file], path.to_str().unwrap());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }

    let mut command = home.command(&["version", "-o", "json"]);
    let ran = Ran::from(
        command
            .env("TALOSCONFIG", dir.join("talosconfig"))
            .output()
            .unwrap(),
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let document = ran.json();
    let nodes = document["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 2);
    assert_eq!(nodes[1]["data"]["tag"], "v1.14.1");

    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!home.path().join(".talos").exists() && !home.path().join(".kube").exists());
}

#[test]
fn a_version_that_cannot_be_simulated_is_refused() {
    let ran = Home::new().run(&["sim", "up", "--talos-version", "1.9"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("v1.13.9"), "{ran:?}");
}

#[test]
fn the_talosconfig_of_given_machine_configs_is_not_overwritten() {
    let home = Home::new();
    let dir = home.path().join("cluster");
    home.file("cluster/talosconfig", "context: mine\n");
    home.file(
        "cluster/controlplane.yaml",
        "machine: {type: controlplane}\n",
    );
    std::os::unix::fs::symlink("cluster", home.path().join("link")).unwrap();
    for folder in ["cluster", "./cluster/../cluster", "link"] {
        let ran = home.run(&["sim", "up", "--config-dir", "cluster", "--dir", folder]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert_eq!(
            ran.stderr,
            "error: cluster/talosconfig would be read and then overwritten\n  hint: choose another folder with --dir, or leave it out for a temporary one\n"
        );
    }
    let kept = std::fs::read_to_string(dir.join("talosconfig")).unwrap();
    assert_eq!(kept, "context: mine\n");
}
