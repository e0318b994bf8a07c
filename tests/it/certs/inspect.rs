//! `ichor certs inspect`: all that stands in certificates, also in damaged ones.

use serde_json::Value;
use talos_pki::{Certificate, PrivateKey};
use talos_sim::{Behavior, Options, Server};

use crate::cli::program::{Home, Lab, Ran};

fn vendored(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vendor-certs");
    std::fs::read_to_string(format!("{folder}/{name}.pem")).unwrap()
}

fn certificates(ran: &Ran) -> Vec<Value> {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json()["certificates"].as_array().unwrap().clone()
}

#[test]
fn every_certificate_of_a_file_is_shown() {
    let home = Home::new();
    let both = vendored("kube-apiserver-1.34-selfsigned");
    let path = home.file("both.pem", &both);
    let shown = home.run(&["certs", "inspect", &path]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for line in [
        "  Subject               CN=192.0.2.2@1796053172",
        "  Issuer                CN=192.0.2.2-ca@1796053172 (certificate 2)",
        "  Issuer                CN=192.0.2.2-ca@1796053172 (itself)",
        "  Key                   RSA 2048",
        "  basicConstraints!     CA:TRUE",
    ] {
        assert!(shown.stdout.contains(line), "{line}: {}", shown.stdout);
    }
    let chain = Certificate::many_from_pem(&both).unwrap();
    let json = certificates(&home.run(&["certs", "inspect", &path, "-o", "json"]));
    assert_eq!(json.len(), chain.len());
    for (shown, certificate) in json.iter().zip(&chain) {
        let content = &shown["content"];
        assert_eq!(content["fingerprintSha256"], certificate.fingerprint());
        assert_eq!(content["subject"]["text"], certificate.subject());
        assert_eq!(shown["pem"], certificate.pem());
    }
    assert_eq!(json[0]["issuedBy"], 2);
    let pem = home.run(&["certs", "inspect", &path, "-o", "pem"]);
    assert_eq!(Certificate::many_from_pem(&pem.stdout).unwrap(), chain);
    let yaml = home.run(&["certs", "inspect", &path, "-o", "yaml"]);
    assert!(yaml.stdout.contains("issuedBy: 2"), "{yaml:?}");
}

#[test]
fn damaged_certificates_are_shown_as_far_as_they_go() {
    let home = Home::new();
    let good = vendored("talos-ca");
    let der = Certificate::many_from_pem(&good).unwrap().remove(0);
    let half = &der.der()[..200];
    let path = home.path().join("half.der");
    std::fs::write(&path, half).unwrap();
    let text = format!("{good}-----BEGIN CERTIFICATE-----\nMAIwAA==\n-----END CERTIFICATE-----\n");
    let json = certificates(&home.run_with_input(&["certs", "inspect", "-", "-o", "json"], &text));
    assert_eq!(json.len(), 2);
    assert_eq!(json[0]["findings"], serde_json::json!([]));
    let finding = json[1]["findings"][0].as_str().unwrap();
    assert!(
        finding.starts_with("certificate 2 cannot be read"),
        "{finding}"
    );
    let truncated = good.split_at(300).0;
    let shown = home.run_with_input(&["certs", "inspect", "-"], truncated);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(
        shown.stdout.contains("is cut off: it has no end line"),
        "{shown:?}"
    );
    assert!(
        shown.stdout.contains("  Subject               O=talos\n"),
        "{shown:?}"
    );
    let shown = home.run(&["certs", "inspect", "half.der"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(
        shown.stdout.contains("  Subject               O=talos\n"),
        "{shown:?}"
    );
}

#[test]
fn keys_are_never_shown() {
    let home = Home::new();
    let key = PrivateKey::generate(talos_pki::Algorithm::Ed25519).unwrap();
    let secret = key.pem();
    let path = home.file("both.pem", &format!("{}{}", &*secret, vendored("talos-ca")));
    let content = secret.lines().nth(1).unwrap();
    for format in ["text", "json", "pem", "yaml"] {
        let ran = home.run(&["certs", "inspect", &path, "-o", format]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(
            !ran.stdout.contains(content) && !ran.stderr.contains(content),
            "{ran:?}"
        );
    }
    let path = home.file("key.pem", &secret);
    let ran = home.run(&["certs", "inspect", &path, "-o", "json"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(
        ran.error()["message"],
        format!("{path} holds no certificate that can be read")
    );
    assert!(!ran.stderr.contains(content), "{ran:?}");
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    use jiff::{SignedDuration, Timestamp};
    let home = Home::new();
    let authority = talos_pki::Authority::generate_with(
        talos_pki::Algorithm::EcdsaP256,
        Some("a\u{1b}[2Jb\nc"),
        SignedDuration::from_hours(1),
        Timestamp::now(),
    )
    .unwrap();
    let path = home.file("ca.pem", &authority.certificate().pem());
    for verb in ["inspect", "list"] {
        let ran = home.run(&["certs", verb, &path]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.stdout.contains('\u{1b}'), "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_and_contexts_are_shown() {
    let lab = Lab::start(Options {
        workers: 0,
        ..Options::default()
    })
    .await;
    let node = &lab.nodes[0];
    let apid = format!("{node}:50000");
    let ran = lab.run(&["certs", "inspect", &apid, "-o", "json"]);
    let json = certificates(&ran);
    assert_eq!(ran.json()["connection"]["kind"], "refused");
    assert_eq!(json[0]["content"]["issuer"]["text"], "O=talos");
    let kubelet =
        certificates(&lab.run(&["certs", "inspect", &format!("{node}:10250"), "-o", "json"]));
    assert_eq!(kubelet[0]["issuedBy"], 2);

    let name = lab.cluster.name();
    for args in [
        &["certs", "inspect", "-o", "json"][..],
        &["certs", "inspect", name, "-o", "json"],
    ] {
        let ran = lab.run(args);
        let json = certificates(&ran);
        assert_eq!(ran.json()["kind"], "context");
        let purposes: Vec<&Value> = json.iter().map(|shown| &shown["purpose"]).collect();
        assert_eq!(purposes, ["Talos CA", "client of apid (os:admin)"]);
        assert_eq!(json[1]["issuedBy"], 1);
    }

    let faults = lab.cluster.nodes()[0].faults();
    let key = PrivateKey::generate(talos_pki::Algorithm::Ed25519).unwrap();
    let ders = vec![vec![0x30, 2, 1, 0]];
    faults.serve_ders(Server::Trustd, ders, &key).unwrap();
    let json =
        certificates(&lab.run(&["certs", "inspect", &format!("{node}:50001"), "-o", "json"]));
    assert_eq!(json[0]["content"]["length"], 4);
    faults.behave(Server::Kubelet, Behavior::PlainHttp);
    let ran = lab.run(&["certs", "inspect", &format!("{node}:10250"), "-o", "json"]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert_eq!(ran.error()["causes"][0], "the server speaks plain HTTP");
    let ran = lab.run(&["certs", "inspect", "nowhere"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr.contains("the talosconfig has no such context"),
        "{ran:?}"
    );
}
