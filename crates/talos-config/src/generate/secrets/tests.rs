use talos_pki::fill_random;

use super::*;
use crate::generate::tests::{BUNDLE, KINDS, VERSIONS, params, secrets};
use crate::generate::{Error, Release, machine_config};

fn now() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

fn contract(version: &str) -> Contract {
    Release::parse(version).unwrap().contract()
}

fn fresh(version: &str) -> Secrets {
    Secrets::generate(contract(version), now(), &mut fill_random).unwrap()
}

fn problems(error: &Error) -> Vec<String> {
    error.problems().iter().map(ToString::to_string).collect()
}

#[test]
fn a_bundle_is_written_as_the_official_tool_does() {
    assert_eq!(secrets().text(), BUNDLE);
}

#[test]
fn fresh_secrets_have_the_right_form_and_are_read_again() {
    let made = fresh("1.13");
    assert_eq!(Secrets::read(&made.text()).unwrap(), made);
    let id = made.cluster_id.as_bytes();
    assert_eq!((id.len(), URL_SAFE.decode(id).unwrap().len()), (44, 32));
    assert_eq!(STANDARD.decode(&made.cluster_secret).unwrap().len(), 32);
    assert!(is_token(&made.bootstrap_token) && is_token(&made.trustd_token));
    assert_ne!(made.bootstrap_token, made.trustd_token);
    let Encryption::Secretbox(secret) = &made.encryption else {
        panic!("secretbox since 1.3");
    };
    assert_eq!(STANDARD.decode(secret).unwrap().len(), 32);
    assert!(
        made.service_account
            .starts_with("-----BEGIN RSA PRIVATE KEY-----\n")
    );
    assert!(
        made.os
            .key
            .starts_with("-----BEGIN ED25519 PRIVATE KEY-----\n")
    );
    for pair in [&made.kubernetes, &made.aggregator, &made.etcd] {
        assert!(pair.key.starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
    }
    assert_ne!(made, fresh("1.13"));
}

#[test]
fn older_releases_start_with_older_secrets() {
    let made = fresh("1.2");
    assert!(matches!(made.encryption, Encryption::AesCbc(_)));
    assert!(
        made.service_account
            .starts_with("-----BEGIN EC PRIVATE KEY-----\n")
    );
    assert!(made.text().contains("    aescbcencryptionsecret: "));
    assert_eq!(Secrets::read(&made.text()).unwrap(), made);
}

#[test]
fn tokens_use_every_letter_alike() {
    let mut counter = 0_u8;
    let mut fill = |bytes: &mut [u8]| {
        for byte in bytes {
            *byte = counter;
            counter = counter.wrapping_add(1);
        }
        Ok(())
    };
    let mut counts = std::collections::BTreeMap::new();
    // 7 bytes of every 256 make each letter, and the last four none.
    for _ in 0..36 * 7 {
        let text = token(&mut fill).unwrap();
        assert!(is_token(&text), "{text}");
        for letter in text.chars() {
            *counts.entry(letter).or_insert(0_usize) += 1;
        }
    }
    assert_eq!(counts.len(), 37);
}

#[test]
fn everything_missing_is_named_together() {
    let error = Secrets::read("cluster: {id: x}\ncerts: {os: {crt: ''}}\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the secrets bundle has not all the secrets of a cluster"
    );
    assert_eq!(
        problems(&error),
        [
            "certs.etcd.crt (line 2) is required",
            "certs.etcd.key (line 2) is required",
            "certs.k8s.crt (line 2) is required",
            "certs.k8s.key (line 2) is required",
            "certs.k8saggregator.crt (line 2) is required",
            "certs.k8saggregator.key (line 2) is required",
            "certs.os.crt (line 2) is required",
            "certs.os.key (line 2) is required",
            "cluster.secret (line 1) is required",
            "secrets.bootstraptoken is required",
            "trustdinfo.token is required",
            "secrets.secretboxencryptionsecret or secrets.aescbcencryptionsecret is required",
            "certs.k8sserviceaccount.key (line 2) is required",
        ]
    );
}

#[test]
fn damage_is_named_with_its_line() {
    let check = |from: &str, to: &str, expected: &[&str]| {
        assert!(BUNDLE.contains(from), "{from}");
        let error = Secrets::read(&BUNDLE.replacen(from, to, 1)).unwrap_err();
        assert_eq!(problems(&error), expected, "{to}");
    };
    check(
        "id: gel7zZ",
        "ID2: gel7zZ",
        &["cluster.id (line 1) is required"],
    );
    check(
        "    secretbox",
        "    aescbcencryptionsecret: AAAAAAAAAAAAAAAAAAAAAA==\n    secretbox",
        &[
            "secrets.aescbcencryptionsecret (line 6) is there besides secrets.secretboxencryptionsecret; only one of them may be",
        ],
    );
    check(
        "secret: gHtr",
        "secret: gHt",
        &["secrets.secretboxencryptionsecret (line 6) is not base64 of a key of 32 bytes"],
    );
    check(
        "key: LS0tLS1CRUdJTiBSU0E",
        "key: '*'\n        x: LS0tLS1CRUdJTiBSU0E",
        &["certs.k8sserviceaccount.key (line 20) is not base64 of a text"],
    );
    let lines: Vec<&str> = BUNDLE.lines().collect();
    // The keys of etcd and of Kubernetes change places.
    let mut swapped = lines.clone();
    swapped.swap(11, 14);
    let error = Secrets::read(&swapped.join("\n")).unwrap_err();
    assert_eq!(
        problems(&error),
        [
            "certs.etcd.crt (line 11) does not belong to certs.etcd.key",
            "certs.k8s.crt (line 14) does not belong to certs.k8s.key",
        ]
    );
}

#[test]
fn the_form_of_tokens_and_keys_is_told_with_all_else_that_is_wrong() {
    let lines: Vec<&str> = BUNDLE.lines().collect();
    let mut text = lines.clone();
    text[2] = "    secret: c2hvcnQ=";
    text[4] = "    bootstraptoken: ABCDEF.0123456789abcdef";
    text[5] = "    secretboxencryptionsecret: [1]";
    let error = Secrets::read(&text.join("\n")).unwrap_err();
    assert_eq!(
        problems(&error),
        [
            "cluster.secret (line 3) is not base64 of a key of 32 bytes",
            "secrets.bootstraptoken (line 5) must have the form abcdef.0123456789abcdef",
            "secrets.secretboxencryptionsecret (line 6) must be a text, not a list",
        ]
    );
    let text = format!("{error:?}");
    assert!(
        !text.contains("ABCDEF") && !text.contains("c2hvcnQ"),
        "{text}"
    );
}

#[test]
fn what_works_in_an_unusual_form_is_read_with_a_warning() {
    let lines: Vec<&str> = BUNDLE.lines().collect();
    let mut text = lines.clone();
    text[1] = "    id: home";
    text[7] = "    token: 1234567";
    text.insert(7, "    tokem: x");
    text.push("clock: {}");
    text.push("certs2:\n    os: 1");
    let found = Secrets::read_with_warnings(&text.join("\n")).unwrap();
    assert_eq!(
        (&*found.secrets.cluster_id, &*found.secrets.trustd_token),
        ("home", "1234567")
    );
    assert_eq!(
        found.warnings,
        [
            "trustdinfo.tokem (line 8) is no field of a secrets bundle and is ignored",
            "clock (line 25) is no field of a secrets bundle and is ignored",
            "certs2 (line 26) is no field of a secrets bundle and is ignored",
            "cluster.id (line 2) has another form than generated ones, URL-safe base64 of 32 bytes",
            "trustdinfo.token (line 9) has another form than generated tokens, abcdef.0123456789abcdef",
        ]
    );
    assert_eq!(
        Secrets::read_with_warnings(BUNDLE).unwrap().warnings,
        Vec::<String>::new()
    );
}

#[test]
fn a_token_of_digits_only_is_a_text() {
    let token = |text: &str| {
        let lines: Vec<&str> = BUNDLE.lines().collect();
        let mut changed = lines.clone();
        let line = format!("    bootstraptoken: {text}");
        changed[4] = &line;
        Secrets::read(&changed.join("\n")).map(|secrets| secrets.bootstrap_token)
    };
    for text in ["012345.0123456789012345", "123456.0000000000000000"] {
        assert_eq!(token(text).unwrap(), text);
    }
    for nothing in ["", "~", "null", "''"] {
        assert_eq!(
            problems(&token(nothing).unwrap_err()),
            ["secrets.bootstraptoken (line 5) is required"]
        );
    }
}

#[test]
fn fields_of_a_wrong_kind_are_told_once() {
    let text = "cluster: x\nsecrets: []\nSecrets: {}\ntrustdinfo: {token: {a: b}}\ncerts: {etcd: 1, k8s: {crt: [], key: {}}, k8saggregator: ~}\n";
    let error = Secrets::read(text).unwrap_err();
    assert_eq!(
        problems(&error),
        [
            "cluster (line 1) must be a mapping, not a single value",
            "secrets (line 2) must be a mapping, not a list",
            "Secrets (line 3) is there twice, with capital letters and without",
            "certs.etcd (line 5) must be a mapping, not a single value",
            "certs.k8s.crt (line 5) must be a text, not a list",
            "certs.k8s.key (line 5) must be a text, not a mapping",
            "certs.k8saggregator.crt (line 5) is required",
            "certs.k8saggregator.key (line 5) is required",
            "certs.os.crt (line 5) is required",
            "certs.os.key (line 5) is required",
            "trustdinfo.token (line 4) must be a text, not a mapping",
            "certs.k8sserviceaccount.key (line 5) is required",
        ]
    );
}

#[test]
fn an_unusual_token_of_a_config_is_taken_with_a_warning() {
    let text = machine_config(KINDS[0], &params("1.13"), &secrets()).unwrap();
    let secrets = secrets();
    let token = format!("    token: {}", secrets.trustd_token);
    assert!(text.contains(&token));
    let found = Secrets::from_config(&text.replacen(&token, "    token: my own", 1)).unwrap();
    assert_eq!(found.secrets.trustd_token, "my own");
    assert_eq!(found.warnings.len(), 1);
    assert!(
        found.warnings[0].starts_with("machine.token (line ")
            && found.warnings[0]
                .ends_with(" has another form than generated tokens, abcdef.0123456789abcdef"),
        "{:?}",
        found.warnings
    );
}

#[test]
fn other_texts_are_refused() {
    let check = |text: &str, expected: &str| {
        let error = Secrets::read(text).unwrap_err();
        assert_eq!(problems(&error), [expected], "{text}");
    };
    check("", "the text is empty");
    check("# nothing\n", "the text is empty");
    check("- a\n", "the text is no mapping");
    check("a: 1\n---\nb: 1\n", "the text has several documents");
    assert!(matches!(Secrets::read("a: ["), Err(Error::Syntax { .. })));
}

#[test]
fn the_form_of_other_tools_is_read() {
    let mut text = BUNDLE.to_owned();
    for (from, to) in [
        ("cluster:", "Cluster:"),
        ("    id:", "    Id:"),
        ("    secret:", "    Secret:"),
        ("secrets:", "Secrets:"),
        ("bootstraptoken", "BootstrapToken"),
        ("trustdinfo", "TrustdInfo"),
        ("certs:", "Certs:"),
        ("k8saggregator", "K8sAggregator"),
        ("    os:", "    OS:"),
    ] {
        text = text.replacen(from, to, 1);
    }
    assert_eq!(Secrets::read(&text).unwrap(), secrets());
}

#[test]
fn a_control_plane_s_configuration_gives_the_secrets_back() {
    for version in VERSIONS {
        for secrets in [
            secrets(),
            Secrets {
                encryption: Encryption::AesCbc(
                    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".to_owned(),
                ),
                ..secrets()
            },
        ] {
            let text = machine_config(KINDS[0], &params(version), &secrets).unwrap();
            let found = Secrets::from_config(&text).unwrap();
            assert_eq!(found.secrets, secrets, "{version}");
            assert_eq!(found.warnings, Vec::<String>::new());
        }
        let worker = machine_config(KINDS[1], &params(version), &secrets()).unwrap();
        assert!(matches!(
            Secrets::from_config(&worker),
            Err(Error::NotControlPlane)
        ));
    }
}

#[test]
fn what_a_configuration_lacks_is_named_where_it_would_be() {
    let text = machine_config(KINDS[0], &params("1.14"), &secrets()).unwrap();
    let text = text
        .replacen("    privateKey: |", "    other: |", 1)
        .replacen("clusterID:", "x:", 1);
    let error = Secrets::from_config(&text).unwrap_err();
    let line = |wanted: &str| text.lines().position(|line| line == wanted).unwrap() + 1;
    // The document starts a line before its kind.
    let identity = line("kind: DiscoveryIdentityConfig") - 1;
    let issuer = line("issuer:");
    assert_eq!(
        problems(&error),
        [
            format!("DiscoveryIdentityConfig: clusterID (line {identity}) is required"),
            format!("KubeServiceAccountConfig: issuer.privateKey (line {issuer}) is required"),
        ]
    );
    let error = Secrets::from_config("machine: {type: controlplane}\n").unwrap_err();
    assert_eq!(problems(&error).len(), 14);
}

#[test]
fn of_two_encryption_secrets_the_newer_one_is_kept() {
    let text = machine_config(KINDS[0], &params("1.13"), &secrets()).unwrap();
    let both = text.replacen(
        "    secretboxEncryptionSecret",
        "    aescbcEncryptionSecret: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n    secretboxEncryptionSecret",
        1,
    );
    let found = Secrets::from_config(&both).unwrap();
    assert_eq!(found.secrets, secrets());
    assert_eq!(found.warnings.len(), 1);
    assert!(!found.warnings[0].contains("AAAA"));
}

#[test]
fn a_folder_of_another_tool_gives_its_authorities() {
    let theirs = secrets();
    let mut files = PkiFiles::default();
    for (name, text) in [
        ("ca.crt", theirs.kubernetes.crt.clone()),
        ("ca.key", theirs.kubernetes.key.clone()),
        ("etcd/ca.crt", theirs.etcd.crt.clone()),
        ("etcd/ca.key", theirs.etcd.key.clone()),
        ("front-proxy-ca.crt", theirs.aggregator.crt.clone()),
        ("front-proxy-ca.key", theirs.aggregator.key.clone()),
        ("sa.key", theirs.service_account.clone()),
    ] {
        files.insert(name, text);
    }
    assert!(!format!("{files:?}").contains("BEGIN"));
    let from =
        |files: &PkiFiles| Secrets::from_pki(files, contract("1.13"), now(), &mut fill_random);
    let mut made = from(&files).unwrap();
    assert_eq!(
        (
            &made.kubernetes,
            &made.etcd,
            &made.aggregator,
            &made.service_account
        ),
        (
            &theirs.kubernetes,
            &theirs.etcd,
            &theirs.aggregator,
            &theirs.service_account
        )
    );
    assert_ne!(made.os, theirs.os);
    assert_eq!(Secrets::read(&made.text()).unwrap(), made);
    made.set_bootstrap_token("abcdef.0123456789abcdef").unwrap();
    assert_eq!(made.bootstrap_token, "abcdef.0123456789abcdef");
    for bad in [
        "",
        "abcdef",
        "ABCDEF.0123456789abcdef",
        "abcdef.0123456789abcde",
        "abcdef.0123456789abcdef ",
    ] {
        assert!(
            matches!(made.set_bootstrap_token(bad), Err(Error::Token)),
            "{bad}"
        );
    }
    files.insert("sa.key", String::new());
    files.insert("etcd/ca.key", theirs.kubernetes.key.clone());
    files.insert("ca.key", "nothing".to_owned());
    let error = from(&files).unwrap_err();
    assert_eq!(
        problems(&error),
        [
            "ca.key cannot be read",
            "etcd/ca.crt does not belong to etcd/ca.key",
            "sa.key is required",
        ]
    );
    let source = error.problems()[0].source.as_deref();
    assert!(matches!(source, Some(talos_pki::Error::NoKey)));
}

#[test]
fn the_lengths_of_keys_are_told_for_either_kind_of_encryption() {
    let line = BUNDLE
        .lines()
        .find(|line| line.contains("secretbox"))
        .unwrap();
    let with = |length: usize| {
        let secret = STANDARD.encode(vec![7; length]);
        Secrets::read(&BUNDLE.replacen(line, &format!("    aescbcencryptionsecret: {secret}"), 1))
    };
    for length in [16, 24, 32] {
        let encryption = with(length).unwrap().encryption;
        assert!(matches!(encryption, Encryption::AesCbc(_)), "{length}");
    }
    for length in [1, 15, 31, 33, 64] {
        assert_eq!(
            problems(&with(length).unwrap_err()),
            [
                "secrets.aescbcencryptionsecret (line 6) is not base64 of a key of 16, 24 or 32 bytes"
            ]
        );
    }
}

#[test]
fn debug_texts_hold_no_secret() {
    let text = format!(
        "{:?} {:?} {:?}",
        secrets(),
        secrets().os,
        secrets().encryption
    );
    assert_eq!(text, "Secrets { .. } KeyPair { .. } Secretbox");
}
