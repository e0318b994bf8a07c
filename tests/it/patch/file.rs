//! `ichor machineconfig patch`: files, without any node.

use std::io::Write as _;
use std::process::Stdio;

use super::{done, refused};
use crate::cli::program::{Home, Ran};

const CONFIG: &str = r#"# The first control plane.
version: v1alpha1
machine:
    type: controlplane # not a worker
    token: aaaaaa.bbbbbbbbbbbbbbbb
    kubelet:
        image: ghcr.io/siderolabs/kubelet:v1.33.4 # follows the cluster
        futureKnob: {a: 1}
cluster:
    apiServer:
        image: "registry.k8s.io/kube-apiserver:v1.33.4"
    # Images are pinned.
    controllerManager:
        image: 'registry.k8s.io/kube-controller-manager:v1.33.4'
    scheduler: {image: registry.k8s.io/kube-scheduler:v1.33.4}
---
# Nobody knows this kind yet.
apiVersion: v1alpha2
kind: WarpDriveConfig
factor: 9
"#;

const PATCH: &str = r#"
machine: {kubelet: {image: "ghcr.io/siderolabs/kubelet:v1.34.0"}}
cluster:
    apiServer: {image: "registry.k8s.io/kube-apiserver:v1.34.0"}
    controllerManager: {image: "registry.k8s.io/kube-controller-manager:v1.34.0"}
    scheduler: {image: "registry.k8s.io/kube-scheduler:v1.34.0"}
"#;

#[test]
fn only_the_lines_of_four_images_change() {
    let home = Home::new();
    let file = home.file("config.yaml", CONFIG);
    let ran = home.run(&["machineconfig", "patch", &file, "-p", PATCH]);
    done(&ran);
    assert_eq!(ran.stdout, CONFIG.replace(":v1.33.4", ":v1.34.0"));
}

#[test]
fn a_result_goes_to_a_file_or_from_standard_input() {
    let home = Home::new();
    let file = home.file("config.yaml", CONFIG);
    let patch = home.file("patch.yaml", PATCH);
    let out = home.path().join("deep/out.yaml");
    done(&home.run(&[
        "mc",
        "patch",
        &file,
        "-p",
        &format!("@{patch}"),
        "-o",
        out.to_str().unwrap(),
    ]));
    assert_eq!(
        std::fs::read_to_string(out).unwrap(),
        CONFIG.replace(":v1.33.4", ":v1.34.0")
    );
    let mut command = home.command(&["mc", "patch", "-", "-p", "patch.yaml"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(CONFIG.as_bytes())
        .unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    done(&ran);
    assert_eq!(ran.stdout, CONFIG.replace(":v1.33.4", ":v1.34.0"));
    let json = home.run(&["mc", "patch", &file, "--format", "json"]).json();
    assert_eq!(json["config"], CONFIG);
}

#[test]
fn a_wrong_patch_is_named() {
    let home = Home::new();
    let file = home.file("config.yaml", CONFIG);
    let unknown = [
        "mc",
        "patch",
        &file,
        "-p",
        "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a",
    ];
    done(&home.run(&unknown));
    let old = home.run(&[&unknown[..], &["--talos-version", "v1.11"]].concat());
    refused(
        &old,
        2,
        &[
            "config.yaml cannot be patched",
            "patch 1",
            "HostnameConfig",
            "Talos 1.13.9 has it",
        ],
    );
    let second = home.run(&[
        "mc",
        "patch",
        &file,
        "-p",
        "machine: {}",
        "-p",
        "nonsense: 1",
    ]);
    refused(&second, 2, &["patch 2", "nonsense"]);
    assert_eq!(second.stdout, "");
    refused(&home.run(&["mc", "patch", "/nowhere"]), 2, &["/nowhere"]);
}
