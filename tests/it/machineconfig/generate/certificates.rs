//! Keys and certificates: what `gen` writes, and what openssl says of it.

use std::process::Command;

use talos_config::generate::Secrets;
use talos_config::talosconfig::TalosConfig;
use talos_pki::{Algorithm, Certificate, PrivateKey, Purpose, is_issued_by};

use super::{config, files, home, read};
use crate::cli::program::{Home, Ran};

/// Runs a command at a fixed time.
fn at(home: &Home, args: &str) -> Ran {
    let args: Vec<&str> = args.split(' ').collect();
    let mut command = home.command(&args);
    command.env("SOURCE_DATE_EPOCH", "1795953600");
    command.output().unwrap().into()
}

fn certificate(home: &Home, name: &str) -> Certificate {
    Certificate::many_from_pem(read(home, name))
        .unwrap()
        .remove(0)
}

fn hours(certificate: &Certificate) -> i64 {
    (certificate.not_after().as_second() - certificate.not_before().as_second()) / 3600
}

#[test]
fn a_client_certificate_is_made_in_steps() {
    let home = Home::new();
    let done = |args: &str| {
        let ran = at(&home, args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran
    };
    done("gen ca --organization acme");
    done("gen key --name k");
    done("gen csr --key k.key --ip 10.5.0.9 --roles os:reader,os:admin");
    done("gen crt --name k --ca acme --csr k.csr --hours 12");
    assert_eq!(
        files(home.path()),
        [
            "acme.crt",
            "acme.key",
            "acme.sha256",
            "k.crt",
            "k.csr",
            "k.key"
        ]
    );
    let (ca, leaf) = (certificate(&home, "acme.crt"), certificate(&home, "k.crt"));
    let hash: String = ca
        .spki_sha256()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(read(&home, "acme.sha256"), format!("sha256:{hash}"));
    assert_eq!(
        (ca.subject(), ca.is_ca(), ca.algorithm()),
        ("O=acme", true, Algorithm::Ed25519)
    );
    assert_eq!((hours(&ca), hours(&leaf)), (87_600, 12));
    assert!(is_issued_by(&leaf, &ca) && !leaf.is_ca());
    let mut roles = leaf.organizations().to_vec();
    roles.sort();
    assert_eq!(roles, ["os:admin", "os:reader"]);
    assert_eq!(leaf.names(), ["10.5.0.9".parse().unwrap()]);
    assert_eq!(leaf.extended_key_usage(), Some(&[Purpose::ClientAuth][..]));
    assert!(read(&home, "k.key").starts_with("-----BEGIN ED25519 PRIVATE KEY-----\n"));
    assert!(
        PrivateKey::from_pem(read(&home, "k.key"))
            .unwrap()
            .matches(&leaf)
    );
    let again = at(&home, "gen crt --name k --ca acme --csr k.csr");
    assert_eq!(again.code, Some(5), "{again:?}");
    done("gen crt --name k --ca acme --csr k.csr --force");
}

#[test]
fn a_file_that_is_read_is_never_overwritten() {
    let home = home();
    for args in ["gen ca --organization acme", "gen key --name k"] {
        assert_eq!(at(&home, args).code, Some(0));
    }
    std::fs::rename(home.path().join("k.key"), home.path().join("k.csr")).unwrap();
    std::os::unix::fs::symlink("secrets.yaml", home.path().join("link.yaml")).unwrap();
    home.file("worker.yaml", "machine: {}\n");
    home.file("pki/ca.key", "a key\n");
    let before: Vec<String> = files(home.path());
    for (args, name) in [
        ("gen csr --key k.csr --ip 10.0.0.1", "k.csr"),
        ("gen crt --name acme --ca acme --csr k.csr", "acme.crt"),
        (
            "gen config c https://cp:6443 -t worker -o ./secrets.yaml --with-secrets secrets.yaml",
            "./secrets.yaml",
        ),
        (
            "gen config c https://cp:6443 -t worker -o link.yaml --with-secrets secrets.yaml",
            "link.yaml",
        ),
        (
            "gen config c https://cp:6443 --with-secrets secrets.yaml --config-patch @worker.yaml",
            "worker.yaml",
        ),
        (
            "mc gen c https://cp:6443 -t worker -o secrets.yaml --with-secrets secrets.yaml",
            "secrets.yaml",
        ),
        (
            "gen secrets -o worker.yaml --from-controlplane-config worker.yaml",
            "worker.yaml",
        ),
        ("gen secrets -o pki/ca.key -p pki", "pki/ca.key"),
    ] {
        let kept = read(&home, name);
        let ran = at(&home, &format!("{args} --force"));
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert_eq!(
            ran.stderr,
            format!(
                "error: file {name:?} would be read and then overwritten\n  hint: choose another name; nothing was written\n"
            )
        );
        assert_eq!(read(&home, name), kept);
        assert_eq!(files(home.path()), before);
    }
}

#[test]
fn a_key_pair_is_an_authority_of_a_day() {
    let home = Home::new();
    assert_eq!(
        at(&home, "gen keypair --organization kp --ip fd00::1").code,
        Some(0)
    );
    let made = certificate(&home, "kp.crt");
    assert_eq!(
        (made.subject(), made.is_ca(), hours(&made)),
        ("O=kp", true, 24)
    );
    assert_eq!(made.names(), ["fd00::1".parse().unwrap()]);
    assert!(
        PrivateKey::from_pem(read(&home, "kp.key"))
            .unwrap()
            .matches(&made)
    );
    assert_eq!(
        at(&home, "gen ca --organization r --rsa --hours 1").code,
        Some(0)
    );
    let made = certificate(&home, "r.crt");
    assert_eq!((made.algorithm(), hours(&made)), (Algorithm::Rsa(4096), 1));
    assert!(read(&home, "r.key").starts_with("-----BEGIN RSA PRIVATE KEY-----\n"));
}

#[test]
fn wrong_words_are_refused() {
    let home = Home::new();
    home.file("bad.key", "nothing\n");
    home.file("bad.csr", "nothing\n");
    let check = |args: &str, expected: &str| {
        let ran = at(&home, args);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(expected), "{expected}: {ran:?}");
        assert_eq!(files(home.path()), ["bad.csr", "bad.key"]);
    };
    check("gen ca --organization ../x", "cannot be the name of a file");
    check("gen ca --organization a --hours 0", "--hours 0");
    check(
        "gen ca --organization a --hours 9223372036854775807",
        "no lifetime",
    );
    check("gen ca", "--organization");
    check(
        "gen keypair --organization a/b",
        "cannot be the name of a file",
    );
    check(
        "gen keypair --organization a --ip x",
        "--ip \"x\" is not an IP address",
    );
    check("gen key --name /x", "cannot be the name of a file");
    check(
        "gen csr --key bad.key --ip 10.0.0.1 --roles os:root,os:admin",
        "Talos has no role os:root",
    );
    check("gen csr --key none.key --ip 10.0.0.1", "none.key");
    check(
        "gen csr --key bad.key --ip 10.0.0.1 --force",
        "bad.key cannot be used",
    );
    check("gen crt --name a --ca none --csr bad.csr", "none.crt");
    check(
        "gen crt --name a/b --ca none --csr bad.csr",
        "cannot be the name of a file",
    );
}

/// What openssl prints of a certificate.
fn openssl(home: &Home, name: &str, pem: &str) -> String {
    let path = home.file(name, pem);
    // How names are spelled depends on the version of openssl otherwise.
    let names = ["-nameopt", "RFC2253"];
    let args = [&["x509", "-noout", "-text", "-in", &path][..], &names].concat();
    let output = Command::new("openssl").args(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "needs openssl"]
fn openssl_finds_the_parameters_of_talos() {
    let home = home();
    assert_eq!(at(&home, "gen secrets -o fresh.yaml").code, Some(0));
    let secrets = Secrets::read(&read(&home, "fresh.yaml")).unwrap();
    let common = [
        "Version: 3 (0x2)",
        "Not Before: Nov 29 12:00:00 2026 GMT",
        "Not After : Nov 26 12:00:00 2036 GMT",
        "X509v3 Key Usage: critical\n                Digital Signature, Certificate Sign\n",
        "X509v3 Extended Key Usage: \n                TLS Web Server Authentication, TLS Web Client Authentication\n",
        "X509v3 Basic Constraints: critical\n                CA:TRUE\n",
    ];
    for (name, pair, subject, algorithm, label) in [
        (
            "os",
            &secrets.os,
            "O=talos",
            "ED25519",
            "ED25519 PRIVATE KEY",
        ),
        (
            "k8s",
            &secrets.kubernetes,
            "O=kubernetes",
            "ecdsa-with-SHA256",
            "EC PRIVATE KEY",
        ),
        (
            "aggregator",
            &secrets.aggregator,
            "",
            "ecdsa-with-SHA256",
            "EC PRIVATE KEY",
        ),
        (
            "etcd",
            &secrets.etcd,
            "O=etcd",
            "ecdsa-with-SHA256",
            "EC PRIVATE KEY",
        ),
    ] {
        let text = openssl(&home, name, &pair.crt);
        for expected in common {
            assert!(text.contains(expected), "{name}: {expected} in {text}");
        }
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert!(
            lines.contains(&format!("Subject: {subject}").trim()),
            "{text}"
        );
        assert!(
            lines.contains(&format!("Signature Algorithm: {algorithm}").as_str()),
            "{text}"
        );
        let id = lines
            .iter()
            .position(|line| line.starts_with("X509v3 Subject Key Identifier"))
            .unwrap();
        assert_eq!(lines[id + 1].split(':').count(), 20, "{text}");
        assert!(!text.contains("Authority Key Identifier"), "{text}");
        assert!(pair.key.starts_with(&format!("-----BEGIN {label}-----\n")));
        let path = home.file(&format!("{name}.key"), &pair.key);
        let read = Command::new("openssl")
            .args(["pkey", "-noout", "-in", &path])
            .status()
            .unwrap();
        assert!(read.success() || label.starts_with("ED25519"), "{name}");
    }
    let key = home.file("sa.key", &secrets.service_account);
    let output = Command::new("openssl")
        .args(["rsa", "-noout", "-check", "-text", "-in", &key])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && text.contains("(4096 bit"),
        "{text}"
    );
}

#[test]
#[ignore = "needs openssl"]
fn openssl_verifies_the_administrator() {
    let home = home();
    assert_eq!(config(&home, &[]).code, Some(0));
    let talosconfig = TalosConfig::parse("talosconfig", &read(&home, "talosconfig")).unwrap();
    let credentials = talosconfig.credentials("cluster-1").unwrap();
    let leaf = credentials.identity.unwrap().chain.remove(0);
    let text = openssl(&home, "admin.crt", &leaf.pem());
    for expected in [
        "Subject: O=os:admin\n",
        "Not Before: Nov 29 12:00:00 2026 GMT",
        "Not After : Nov 29 12:00:00 2027 GMT",
        "X509v3 Key Usage: critical\n                Digital Signature\n",
        "X509v3 Extended Key Usage: \n                TLS Web Client Authentication\n",
        "X509v3 Authority Key Identifier:",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    for absent in [
        "Basic Constraints",
        "Subject Key Identifier",
        "Alternative Name",
    ] {
        assert!(!text.contains(absent), "{absent} in {text}");
    }
    let authority = home.file("ca.crt", &credentials.authorities[0].pem());
    let leaf = home.path().join("admin.crt");
    let verified = Command::new("openssl")
        .args([
            "verify",
            "-attime",
            "1796140000",
            "-purpose",
            "sslclient",
            "-CAfile",
            &authority,
        ])
        .arg(leaf)
        .output()
        .unwrap();
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn a_certificate_that_outlives_its_authority_is_warned_of() {
    let home = Home::new();
    for args in [
        "gen ca --organization acme --hours 1",
        "gen key --name k",
        "gen csr --key k.key --ip 10.5.0.9",
        "gen crt --name short --ca acme --csr k.csr --hours 1",
    ] {
        let ran = at(&home, args);
        assert_eq!(
            (ran.code, ran.stderr.contains("warning")),
            (Some(0), false),
            "{ran:?}"
        );
    }
    let ran = at(
        &home,
        "gen crt --name long --ca acme --csr k.csr --hours 1000",
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (ca, leaf) = (
        certificate(&home, "acme.crt"),
        certificate(&home, "long.crt"),
    );
    let warning = format!(
        "warning: the certificate is valid until {}, but its authority acme.crt only until {}\n",
        leaf.not_after(),
        ca.not_after()
    );
    assert!(ran.stderr.starts_with(&warning), "{ran:?}");
}
