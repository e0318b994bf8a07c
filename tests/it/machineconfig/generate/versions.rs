//! Versions and formats that `gen` takes, and what it says of them.

use talos_config::generate::Release;

use super::{CONFIG, config, files, home};

#[test]
fn kubernetes_is_what_upgrades_know_the_release_to_bring() {
    for version in ["1.8", "1.9", "1.10", "1.11", "1.12", "1.13"] {
        let release = Release::parse(version).unwrap();
        let tag = release.tag().trim_start_matches('v').parse().unwrap();
        let known = talos_upgrade::rules::default_kubernetes(&tag).unwrap();
        assert_eq!(release.kubernetes(), known.to_string(), "{version}");
    }
}

#[test]
fn versions_out_of_range_are_warned_of() {
    let home = home();
    let check = |args: &[&str], expected: &str| {
        let ran = config(&home, &[&["-t", "worker", "-o", "-"], args].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), expected));
    };
    check(&[], "");
    check(&["--kubernetes-version", ""], "");
    check(
        &["--talos-version", "1.15"],
        "warning: Talos v1.15 is newer than v1.14, the newest that is known: what is generated is for v1.14\n",
    );
    check(
        &["--talos-version", "1.7.2"],
        "warning: Talos v1.7 is older than v1.8, the oldest that is known: it may refuse what is generated\n",
    );
    check(
        &["--talos-version", "1.13", "--kubernetes-version", "v1.37.0"],
        "warning: Talos v1.13 runs Kubernetes 1.31 to 1.36, not 1.37.0\n",
    );
    check(
        &["--talos-version", ""],
        "warning: --talos-version is empty, which means v1.14, the newest that is known\n",
    );
}

#[test]
fn every_command_takes_the_same_talos_versions() {
    let home = home();
    let secrets = home.path().join("secrets.yaml");
    for args in [
        &CONFIG[..],
        &["gen", "secrets"],
        &["mc", "gen", "c", "https://cp:6443"],
        &["mc", "patch", "secrets.yaml", "-p", "{}"],
        &["validate", "-m", "metal", "-c", secrets.to_str().unwrap()],
        &["sim", "up"],
    ] {
        for version in ["1.13.banana", "latest", "v1.13.9+abc"] {
            let ran = home.run(&[args, &["--talos-version", version]].concat());
            assert_eq!(ran.code, Some(2), "{ran:?}");
            let expected =
                format!("{version:?} is not a Talos version such as 1.13, v1.13.9 or v1.13.0-rc.1");
            assert!(ran.stderr.contains(&expected), "{args:?}: {ran:?}");
        }
    }
}

#[test]
fn formats_are_those_of_the_help() {
    let home = home();
    let config = &CONFIG[1..];
    for args in [
        &["gen", "ca", "--organization", "o"][..],
        &["gen", "keypair", "--organization", "o"],
        &["gen", "key", "--name", "k"],
        &["gen", "csr", "--key", "k.key", "--ip", "10.0.0.1"],
        &["gen", "crt", "--name", "c", "--ca", "o", "--csr", "k.csr"],
        &["gen", "secrets"],
        &[&["gen"], config].concat(),
        &[&["mc", "gen"], &config[1..]].concat(),
    ] {
        let help = home.run(&[args, &["--help"]].concat());
        assert!(
            help.stdout
                .contains("How to print what was written: table or json"),
            "{help:?}"
        );
        for format in ["yaml", "ndjson", "text", "name", ""] {
            let ran = home.run(&[args, &["--format", format]].concat());
            assert_eq!(ran.code, Some(2), "{args:?} {format:?}: {ran:?}");
            let expected = format!("`{format}` is none of table, json");
            // Nothing at all is refused before it is read.
            assert!(
                ran.stderr.contains(&expected) || format.is_empty(),
                "{args:?}: {ran:?}"
            );
        }
        assert_eq!(files(home.path()), ["secrets.yaml"]);
    }
}
