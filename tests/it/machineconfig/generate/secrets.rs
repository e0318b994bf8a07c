//! `gen secrets` and where secrets may come from.

use std::os::unix::fs::PermissionsExt;

use talos_config::generate::{Encryption, Secrets};

use super::{BUNDLE, config, files, home, read};
use crate::cli::program::Home;

#[test]
fn fresh_secrets_are_complete_and_for_their_owner_only() {
    let home = Home::new();
    let ran = home.run(&["gen", "secrets"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (Some(0), "Created secrets.yaml\n")
    );
    let mode = std::fs::metadata(home.path().join("secrets.yaml"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = read(&home, "secrets.yaml");
    let secrets = Secrets::read(&text).unwrap();
    assert_eq!(secrets.text(), text);
    // The keys and their order are the official tool's.
    let keys = |text: &str| -> Vec<String> {
        text.lines()
            .map(|line| line.split_inclusive(':').next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(keys(&text), keys(BUNDLE));
    let again = home.run(&["gen", "secrets"]);
    assert_eq!(again.code, Some(5), "{again:?}");
    assert!(
        again
            .stderr
            .contains("file \"secrets.yaml\" already exists"),
        "{again:?}"
    );
    assert_eq!(read(&home, "secrets.yaml"), text);
}

#[test]
fn an_old_release_starts_with_its_own_kind_of_secrets() {
    let home = Home::new();
    let ran = home.run(&[
        "gen",
        "secrets",
        "-o",
        "-",
        "--talos-version",
        "v1.2",
        "-t",
        "abcdef.0123456789abcdef",
    ]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            Some(0),
            "warning: Talos v1.2 is older than v1.8, the oldest that is known: it may refuse what is generated\n"
        )
    );
    let secrets = Secrets::read(&ran.stdout).unwrap();
    assert!(matches!(secrets.encryption, Encryption::AesCbc(_)));
    assert!(
        secrets
            .service_account
            .starts_with("-----BEGIN EC PRIVATE KEY-----")
    );
    assert_eq!(secrets.bootstrap_token, "abcdef.0123456789abcdef");
    assert_eq!(files(home.path()), Vec::<String>::new());
}

#[test]
fn a_control_plane_s_config_gives_its_bundle_back() {
    let home = home();
    for version in ["1.11", "1.13", "1.14"] {
        config(&home, &["--talos-version", version, "-o", version]);
        let path = format!("{version}/controlplane.yaml");
        let ran = home.run(&[
            "gen",
            "secrets",
            "--from-controlplane-config",
            &path,
            "-o",
            "-",
        ]);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(0), BUNDLE),
            "{ran:?}"
        );
        let path = format!("{version}/worker.yaml");
        let ran = home.run(&[
            "gen",
            "secrets",
            "--from-controlplane-config",
            &path,
            "-o",
            "-",
        ]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("not one of a control plane"), "{ran:?}");
    }
}

#[test]
fn a_folder_of_kubeadm_gives_its_authorities() {
    let home = Home::new();
    let theirs = Secrets::read(BUNDLE).unwrap();
    for (name, text) in [
        ("ca.crt", &theirs.kubernetes.crt),
        ("ca.key", &theirs.kubernetes.key),
        ("etcd/ca.crt", &theirs.etcd.crt),
        ("front-proxy-ca.crt", &theirs.aggregator.crt),
        ("front-proxy-ca.key", &theirs.aggregator.key),
    ] {
        home.file(&format!("pki/{name}"), text);
    }
    let args = ["gen", "secrets", "-p", "pki", "-o", "-"];
    let ran = home.run(&args);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr.contains("etcd/ca.key is required\n")
            && ran.stderr.contains("sa.key is required\n"),
        "{ran:?}"
    );
    home.file("pki/etcd/ca.key", &theirs.etcd.key);
    home.file("pki/sa.key", &theirs.service_account);
    let made = Secrets::read(&home.run(&args).stdout).unwrap();
    assert_eq!(
        (&made.kubernetes, &made.etcd),
        (&theirs.kubernetes, &theirs.etcd)
    );
    assert_eq!(
        (&made.aggregator, &made.service_account),
        (&theirs.aggregator, &theirs.service_account)
    );
    assert!(made.os != theirs.os && made.cluster_id != theirs.cluster_id);
}

#[test]
fn odd_secrets_are_taken_with_a_warning_that_names_file_and_line() {
    let home = home();
    let odd = BUNDLE.replacen("trustdinfo:\n", "trustdinfo:\n    tokem: x\n", 1);
    home.file("odd.yaml", &odd);
    let args = [
        "config",
        "c",
        "https://cp:6443",
        "--with-secrets",
        "odd.yaml",
    ];
    let ran = home.run(&[&["gen"], &args[..], &["-t", "worker", "-o", "-"]].concat());
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            Some(0),
            "warning: odd.yaml: trustdinfo.tokem (line 8) is no field of a secrets bundle and is ignored\n"
        )
    );
    config(&home, &["-t", "controlplane", "-o", "cp.yaml"]);
    let secrets = Secrets::read(BUNDLE).unwrap();
    let text = read(&home, "cp.yaml").replacen(&secrets.trustd_token, "my-own-token", 1);
    home.file("cp.yaml", &text);
    let args = [
        "secrets",
        "--from-controlplane-config",
        "cp.yaml",
        "-o",
        "-",
    ];
    let ran = home.run(&[&["gen"], &args[..]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        Secrets::read(&ran.stdout).unwrap().trustd_token,
        "my-own-token"
    );
    assert!(
        ran.stderr
            .starts_with("warning: cp.yaml: machine.token (line ")
            && ran.stderr.contains("has another form"),
        "{ran:?}"
    );
    assert!(!ran.stderr.contains("my-own-token"), "{ran:?}");
}

#[test]
fn wrong_words_are_refused() {
    let home = Home::new();
    home.file("empty.yaml", "");
    let check = |args: &[&str], expected: &str| {
        let ran = home.run(&[&["gen", "secrets"], args].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(expected), "{ran:?}");
        assert_eq!(files(home.path()), ["empty.yaml"]);
    };
    check(
        &["-t", "secret-token"],
        "the bootstrap token must have the form",
    );
    check(&["--talos-version", "x"], "\"x\" is not a Talos version");
    check(&["--from-controlplane-config", "none.yaml"], "none.yaml");
    check(
        &["--from-controlplane-config", "empty.yaml"],
        "empty.yaml gives no secrets",
    );
    check(&["-p", "none"], "ca.crt is required");
    check(
        &["-p", "none", "--from-controlplane-config", "empty.yaml"],
        "cannot be used with",
    );
}
