//! `ichor machineconfig patch`: files, without any node.

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
    let ran = home.run_with_input(&["mc", "patch", "-", "-p", "patch.yaml"], CONFIG);
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

#[test]
fn all_problems_of_a_patch_are_told_with_file_path_and_line_and_nothing_is_written() {
    let home = Home::new();
    let file = home.file("config.yaml", CONFIG);
    let out = home.file("out.yaml", "as it was\n");
    let patch = home.file(
        "wrong.yaml",
        "machine:\n  bogus: 1\n  certSANs: a\n---\napiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\nprovisioning:\n  minSize: big\n",
    );
    let ran = home.run(&[
        "mc",
        "patch",
        &file,
        "-p",
        &format!("@{patch}"),
        "-o",
        &out,
        "--talos-version",
        "v1.13",
    ]);
    refused(
        &ran,
        2,
        &[
            "config.yaml cannot be patched",
            "wrong.yaml",
            "3 problems",
            "line 2: machine.bogus: no such field",
            "line 3: machine.certSANs: expected a list, found a string",
            "line 9: UserVolumeConfig/data: provisioning.minSize: is not a size",
        ],
    );
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "as it was\n");
}

#[test]
fn a_json_patch_changes_the_document_that_is_chosen() {
    let home = Home::new();
    let text = format!("{CONFIG}---\napiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n");
    let file = home.file("config.yaml", &text);
    let patch = r#"[{"op": "replace", "path": "/hostname", "value": "b"}]"#;
    let ran = home.run(&[
        "mc",
        "patch",
        &file,
        "-p",
        patch,
        "--document",
        "HostnameConfig",
    ]);
    done(&ran);
    assert_eq!(ran.stdout, text.replace("hostname: a", "hostname: b"));
    let missing = home.run(&[
        "mc",
        "patch",
        &file,
        "-p",
        patch,
        "--document",
        "LinkConfig/eth0",
    ]);
    refused(
        &missing,
        2,
        &["LinkConfig/eth0", "the main document", "HostnameConfig"],
    );
}

#[test]
fn the_version_is_that_of_the_installer_unless_another_is_given() {
    let home = Home::new();
    let text = "machine:\n    type: worker\n    install: {image: \"ghcr.io/siderolabs/installer:v1.11.5\"}\n";
    let file = home.file("config.yaml", text);
    let patch = "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n";
    let ran = home.run(&["mc", "patch", &file, "-p", patch]);
    refused(
        &ran,
        2,
        &["line 1: document HostnameConfig: no such kind in Talos 1.11.5, Talos 1.13.9 has it"],
    );
    done(&home.run(&["mc", "patch", &file, "-p", patch, "--talos-version", "1.13"]));
}

#[test]
fn compat_gives_the_official_result() {
    let home = Home::new();
    let text = "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\nprovisioning:\n    minSize: 10GiB\n    maxSize: 20GiB\n";
    let file = home.file("config.yaml", text);
    let patch = "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\nprovisioning: {maxSize: 50GiB}\n";
    let patched = text.replace("20GiB", "50GiB");
    let ours = home.run(&["mc", "patch", &file, "-p", patch]);
    done(&ours);
    assert_eq!(ours.stdout, patched);
    let official = home.run(&["mc", "patch", &file, "-p", patch, "--compat"]);
    done(&official);
    assert_eq!(official.stdout, patched.replace("    minSize: 10GiB\n", ""));
}

#[test]
fn standard_input_is_for_one_part_of_the_command_line() {
    let home = Home::new();
    let file = home.file("config.yaml", CONFIG);
    let gen_config = ["gen", "config", "c", "https://cp:6443", "-o", "made"];
    for (args, first, second) in [
        (
            &["mc", "patch", "-", "-p", "@-"][..],
            "the machine config -",
            "--patch @- (patch 1)",
        ),
        (
            &[
                "mc",
                "patch",
                &file,
                "-p",
                "[]",
                "-p",
                "@-",
                "-p",
                "@/dev/stdin",
            ],
            "--patch @- (patch 2)",
            "--patch @/dev/stdin (patch 3)",
        ),
        (
            &[
                &gen_config[..],
                &["--with-secrets", "-", "--config-patch", "@-"],
            ]
            .concat(),
            "--config-patch @- (patch 1)",
            "--with-secrets -",
        ),
        (
            &[
                &gen_config[..],
                &["--config-patch", "@-", "--config-patch-worker", "@-"],
            ]
            .concat(),
            "--config-patch @- (patch 1)",
            "--config-patch-worker @- (patch 1)",
        ),
    ] {
        let mut command = home.command(args);
        let ran = Ran::from(command.stdin(Stdio::null()).output().unwrap());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert_eq!(
            ran.stderr,
            format!(
                "error: standard input can be read once, not for both {first} and {second}\n  hint: put one of them into a file\n"
            )
        );
        assert_eq!(ran.stdout, "");
    }
    assert!(!home.path().join("made").exists());
}

#[test]
fn what_a_json_patch_adds_and_talos_does_not_decode_is_told() {
    let home = Home::new();
    let file = home.file("config.yaml", CONFIG);
    let patch = r#"[{"op":"add","path":"/machine/nope","value":1}]"#;
    let ran = home.run(&[
        "mc",
        "patch",
        &file,
        "-p",
        patch,
        "--talos-version",
        "v1.13.9",
    ]);
    done(&ran);
    assert_eq!(
        ran.stderr,
        "warning: line 1: machine.nope: no such field in Talos 1.13.9; Talos refuses it\n"
    );
    assert!(ran.stdout.contains("    nope: 1\n"), "{ran:?}");
    let made = ["gen", "config", "c", "https://cp:6443", "-o", "made"];
    let ran = home.run(&[&made[..], &["--config-patch", patch]].concat());
    refused(
        &ran,
        2,
        &[
            "the controlplane config cannot be patched by --config-patch",
            "machine.nope: no such field",
        ],
    );
    assert!(!home.path().join("made").exists());
}

#[test]
fn a_document_is_chosen_for_json_patches_only() {
    let home = Home::new();
    let file = home.file("config.yaml", CONFIG);
    let json = r#"[{"op":"replace","path":"/factor","value":1}]"#;
    let args = ["mc", "patch", &file, "--document", "WarpDriveConfig", "-p"];
    done(&home.run(&[&args[..], &[json]].concat()));
    done(&home.run(&[&args[..], &["machine: {}", "-p", json]].concat()));
    let ran = home.run(&[&args[..], &["machine: {}"]].concat());
    refused(
        &ran,
        2,
        &["--document WarpDriveConfig is for JSON Patches, and there is none"],
    );
    assert_eq!(ran.stdout, "");
}

#[test]
fn a_format_that_is_not_offered_is_refused_by_the_ones_that_are() {
    let home = Home::new();
    let file = home.file("config.yaml", CONFIG);
    for args in [
        &["mc", "patch", &file, "--format"][..],
        &["mc", "migrate", &file, "--to", "1.13", "--format"],
    ] {
        for wrong in ["xml", "yaml", "ndjson"] {
            let ran = home.run(&[args, &[wrong]].concat());
            refused(&ran, 2, &[&format!("`{wrong}` is none of table, json")]);
        }
    }
}

#[test]
fn every_patch_that_is_at_fault_is_told_with_its_file_and_number_and_nothing_is_written() {
    let home = Home::new();
    let file = home.file("config.yaml", CONFIG);
    let out = home.file("out.yaml", "as it was\n");
    let wrong = home.file("wrong.yaml", "machine:\n  bogus: 1\n  certSANs: a\n");
    let broken = home.file("broken.yaml", "machine: [\n");
    let fine = home.file("fine.yaml", "machine: {type: worker}\n");
    let at = [wrong, broken, fine].map(|path| format!("@{path}"));
    let ran = home.run(&[
        "mc",
        "patch",
        &file,
        "-o",
        &out,
        "-p",
        &at[0],
        "-p",
        &at[1],
        "-p",
        &at[2],
        "-p",
        "cluster: {typo: 1}",
        "-p",
        "apiVersion: v1alpha1\nkind: HostnameConfig\n$patch: delete",
    ]);
    refused(
        &ran,
        2,
        &[
            "config.yaml cannot be patched",
            "3 patches are at fault",
            "patch 1 (",
            "wrong.yaml)",
            "line 2: machine.bogus",
            "line 3: machine.certSANs",
            "patch 2 (",
            "broken.yaml): not valid YAML at line",
            "patch 4: line 1: cluster.typo",
            "not judged, since they change what a failed one was to change: patches 3, 5",
        ],
    );
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "as it was\n");
    let missing = home.run(&[
        "mc",
        "patch",
        &file,
        "-p",
        "@/nowhere/1",
        "-p",
        "@/nowhere/2",
    ]);
    refused(
        &missing,
        2,
        &["2 patches cannot be used", "/nowhere/1", "/nowhere/2"],
    );
    let both = home.run(&[
        "mc",
        "patch",
        &file,
        "-p",
        "@/nowhere/1",
        "-p",
        "machine: [",
    ]);
    refused(
        &both,
        2,
        &[
            "2 patches cannot be used",
            "/nowhere/1",
            "patch 2 cannot be used",
        ],
    );
}

#[test]
fn patches_that_say_nothing_and_no_patch_change_nothing_with_a_warning() {
    let home = Home::new();
    let file = home.file("config.yaml", CONFIG);
    for patch in ["", "[]", "{}"] {
        let ran = home.run(&["mc", "patch", &file, "-p", patch]);
        done(&ran);
        assert_eq!(ran.stdout, CONFIG);
        assert!(
            ran.stderr.contains("it says nothing, and changes nothing"),
            "{ran:?}"
        );
    }
    let ran = home.run(&["mc", "patch", &file]);
    done(&ran);
    assert_eq!(ran.stdout, CONFIG);
    assert!(
        ran.stderr.contains("no patch is given: nothing is changed"),
        "{ran:?}"
    );
    let json = home.run(&["mc", "patch", &file, "--format", "json"]).json();
    assert_eq!(
        json["warnings"],
        serde_json::json!(["no patch is given: nothing is changed"])
    );
    let main = home.file("main.yaml", "machine: {type: worker}\n");
    for (patch, code) in [("", 0), ("[]", 0), ("{}", 2)] {
        let ran = home.run(&["mc", "patch", &main, "--compat", "-p", patch]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
    }
}
