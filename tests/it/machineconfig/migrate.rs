//! Deprecated fields moved to their documents.

use std::os::unix::fs::PermissionsExt as _;

use crate::cli::program::{Home, Ran};

/// The configuration of a control plane node of Talos 1.13, as the official tool generates it.
const OLD: &str = include_str!("../../data/genconfig/default/controlplane.yaml");

const SMALL: &str = "# Our node.\nmachine:\n    type: worker # not a control plane\n    sysctls:\n        # for the proxy\n        a.b: 1 # one\n    token: x\n";

const SMALL_MIGRATED: &str = "# Our node.\nmachine:\n    type: worker # not a control plane\n    token: x\n---\napiVersion: v1alpha1\nkind: SysctlConfig\nparams:\n    # for the proxy\n    a.b: 1 # one\n";

/// Two fields without an equal, and one that could move.
const STUCK: &str = "machine:\n    type: worker\n    env: {A: b}\n    disks:\n        - device: /dev/sdb\n    install:\n        disk: /dev/sda\n        extraKernelArgs: [a=b]\n";

fn migrate(home: &Home, args: &[&str]) -> Ran {
    home.run(&[&["machineconfig", "migrate", "--to", "1.14"], args].concat())
}

fn mode(path: &str) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn fields_move_with_their_comments_and_the_rest_stays() {
    let home = Home::new();
    let file = home.file("config.yaml", SMALL);
    let ran = migrate(&home, &[&file]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, SMALL_MIGRATED);
    assert_eq!(ran.stderr, "");
    let again = home.file("again.yaml", &ran.stdout);
    assert_eq!(migrate(&home, &[&again]).stdout, SMALL_MIGRATED);
}

#[test]
fn a_result_goes_to_a_file() {
    let home = Home::new();
    let file = home.file("config.yaml", SMALL);
    let out = home.path().join("deep/out.yaml");
    let out = out.to_str().unwrap();
    let ran = migrate(&home, &[&file, "-o", out]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(std::fs::read_to_string(out).unwrap(), SMALL_MIGRATED);
    assert_eq!(mode(out), 0o600);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), SMALL);

    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let ran = migrate(&home, &[&file, "--in-place"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), SMALL_MIGRATED);
    assert_eq!(mode(&file), 0o640);
}

#[test]
fn a_check_only_says_what_would_move() {
    let home = Home::new();
    let file = home.file("config.yaml", SMALL);
    let ran = migrate(&home, &[&file, "--check"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert_eq!(
        ran.stdout,
        "line 4: machine.sysctls goes to SysctlConfig params\n"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), SMALL);
    let done = home.file("done.yaml", SMALL_MIGRATED);
    let ran = migrate(&home, &[&done, "--check"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, "nothing to move to Talos 1.14\n");
}

#[test]
fn every_field_without_an_equal_is_refused_and_nothing_is_written() {
    let home = Home::new();
    let file = home.file("config.yaml", STUCK);
    let out = home.path().join("out.yaml");
    let ran = migrate(&home, &[&file, "-o", out.to_str().unwrap()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    for words in [
        "2 fields without an equal",
        "config.yaml:5: machine.disks[0]: ",
        "config.yaml:8: machine.install.extraKernelArgs: ",
        "nothing was written",
    ] {
        assert!(ran.stderr.contains(words), "{words:?} in {ran:?}");
    }
    assert!(!out.exists());
    let ran = migrate(&home, &[&file, "--in-place"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), STUCK);
    let ran = migrate(&home, &[&file, "--check"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(
        ran.stdout.contains("machine.env goes to EnvironmentConfig"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("line 5: machine.disks[0]: "), "{ran:?}");
}

#[test]
fn a_script_reads_json() {
    let home = Home::new();
    let file = home.file("config.yaml", SMALL);
    let document = migrate(&home, &[&file, "--format", "json"]).json();
    assert_eq!(document["to"], "1.14");
    assert_eq!(document["config"], SMALL_MIGRATED);
    assert_eq!(
        document["moves"],
        serde_json::json!([
            {"from": "machine.sysctls", "line": 4, "document": "SysctlConfig", "path": "params"}
        ])
    );
    assert_eq!(
        document["stays"],
        serde_json::json!([
            {"path": "machine.type", "line": 3},
            {"path": "machine.token", "line": 7}
        ])
    );
    let stuck = home.file("stuck.yaml", STUCK);
    let ran = migrate(&home, &[&stuck, "--check", "--format", "json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let refusals = ran.json()["refusals"].clone();
    assert_eq!(refusals[1]["path"], "machine.install.extraKernelArgs");
    assert_eq!(refusals[1]["line"], 8);
    let ran = migrate(&home, &[&stuck, "--format", "json"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let error = ran.error();
    assert_eq!(error["code"], "invalid");
    assert_eq!(error["causes"].as_array().unwrap().len(), 2);
}

#[test]
fn a_generated_configuration_is_valid_afterwards() {
    let home = Home::new();
    let file = home.file("old.yaml", OLD);
    let new = home.path().join("new.yaml");
    let new = new.to_str().unwrap();
    let ran = migrate(&home, &[&file, "-o", new]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = home.run(&[
        "validate",
        "-c",
        new,
        "-m",
        "metal",
        "--talos-version",
        "1.14",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn secrets_are_not_in_messages() {
    let home = Home::new();
    let secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQ=";
    let config = format!(
        "machine: {{type: worker, token: {secret}}}\ncluster:\n    ca: {{crt: {secret}, key: {secret}}}\n"
    );
    let file = home.file("config.yaml", &config);
    let ran = migrate(&home, &[&file]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(!ran.stderr.contains(secret), "{ran:?}");
}

#[test]
fn wrong_use_and_unreadable_input_are_told() {
    let home = Home::new();
    let file = home.file("config.yaml", SMALL);
    let broken = home.file("broken.yaml", "machine: {a: [}\n");
    for (args, words) in [
        (vec!["machineconfig", "migrate", &file], "--to"),
        (
            vec!["machineconfig", "migrate", "--to", "1.15", &file],
            "1.12, 1.13 and 1.14",
        ),
        (
            vec![
                "machineconfig",
                "migrate",
                "--to",
                "1.14",
                "-",
                "--in-place",
            ],
            "--in-place",
        ),
        (
            vec![
                "machineconfig",
                "migrate",
                "--to",
                "1.14",
                &file,
                "--check",
                "-o",
                "x",
            ],
            "--check",
        ),
        (
            vec!["machineconfig", "migrate", "--to", "1.14", &broken],
            "line 1",
        ),
        (
            vec!["machineconfig", "migrate", "--to", "1.14", "/nowhere"],
            "/nowhere",
        ),
    ] {
        let ran = home.run(&args);
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(words), "{words:?} in {ran:?}");
    }
}

#[test]
fn a_document_that_stands_twice_or_is_none_is_refused_checked_or_not() {
    let home = Home::new();
    let volume = "apiVersion: v1alpha1\nkind: VolumeConfig\nname: STATE\n";
    for (text, words) in [
        (
            "machine: {type: worker}\n---\nmachine: {time: {disabled: true}}\n".to_owned(),
            "the main document stands twice in the configuration, on lines 1 and 3",
        ),
        (
            format!("machine: {{type: worker}}\n---\n{volume}---\n{volume}"),
            "VolumeConfig/STATE stands twice in the configuration, on lines 3 and 7",
        ),
        (
            "hello: world\n".to_owned(),
            "line 1: no document of a machine configuration",
        ),
    ] {
        let file = home.file("doubled.yaml", &text);
        for more in [&[][..], &["--check"]] {
            let args = [&["mc", "migrate", "--to", "1.14", &file], more].concat();
            let ran = home.run(&args);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
            for words in ["doubled.yaml cannot be migrated", words] {
                assert!(ran.stderr.contains(words), "{words:?} in {ran:?}");
            }
        }
    }
}
