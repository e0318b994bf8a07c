use proptest::prelude::*;

use super::*;
use crate::corpus;

#[test]
fn a_certificate_of_talos_is_read_in_full() {
    let leaf = corpus::certificate("talos-kube-apiserver");
    assert_eq!(leaf.subject(), "O=kube-master, CN=kube-apiserver");
    assert_eq!(leaf.issuer(), "O=kubernetes");
    assert_eq!(leaf.common_name(), Some("kube-apiserver"));
    assert_eq!(leaf.organizations(), ["kube-master"]);
    assert_eq!(leaf.not_before().to_string(), "2026-11-30T15:55:11Z");
    assert_eq!(leaf.not_after().to_string(), "2027-11-30T15:55:11Z");
    let names: Vec<String> = leaf.names().iter().map(ToString::to_string).collect();
    assert_eq!(
        names.join(" "),
        "kubernetes kubernetes.default kubernetes.default.svc kubernetes.default.svc.cluster.local \
         lab-cp-1 localhost 10.5.0.2 10.5.0.3 10.96.0.1 127.0.0.1"
    );
    assert!(!leaf.is_ca() && !leaf.has_basic_constraints());
    let usage = leaf.key_usage().unwrap();
    assert!(usage.digital_signature && usage.key_encipherment && !usage.key_cert_sign);
    assert_eq!(
        leaf.extended_key_usage(),
        Some(&[Purpose::ServerAuth] as &[_])
    );
    assert_eq!(leaf.subject_key_id(), None);
    assert_eq!(
        leaf.authority_key_id().map(hex).as_deref(),
        Some("7ebc3cce2a43f37cb1070697a31a8403966f1e11")
    );
    assert_eq!(leaf.algorithm(), Algorithm::EcdsaP256);
    assert_eq!(
        leaf.fingerprint(),
        "535923c2560b6d489193d07d25e4e8bd8319a2b3213fac2553ba0009014490ed"
    );
    assert!(leaf.unreadable_extensions().is_empty());
}

#[test]
fn an_empty_subject_and_an_empty_issuer_are_read() {
    let authority = corpus::certificate("talos-aggregator-ca");
    assert_eq!(authority.subject(), "");
    assert!(authority.is_ca() && authority.is_self_issued());
    assert_eq!(corpus::certificate("talos-front-proxy-client").issuer(), "");
}

#[test]
fn the_fingerprint_of_the_key_is_what_talos_compares() {
    // From `openssl x509 -pubkey | openssl pkey -pubin -outform der | sha256sum`.
    assert_eq!(
        hex(&corpus::certificate("talos-ca").spki_sha256()),
        "dcc0376521d431554deb337f7f4c97d9bf497779136f09dbbce98cda56ea3d60"
    );
}

#[test]
fn pem_with_other_blocks_and_windows_line_ends_is_read_in_order() {
    let key = crate::PrivateKey::generate(Algorithm::Ed25519).unwrap();
    let text = format!(
        "subject=O = talos\n{}\n{}# and the other one\n  {}",
        corpus::text("talos-ca"),
        *key.pem(),
        corpus::text("talos-etcd-ca")
    );
    let subjects = |text: &str| -> Vec<String> {
        let read = Certificate::many_from_pem(text).unwrap();
        read.iter().map(|read| read.subject().to_owned()).collect()
    };
    assert_eq!(subjects(&text), ["O=talos", "O=etcd"]);
    assert_eq!(subjects(&text.replace('\n', "\r\n")), ["O=talos", "O=etcd"]);
}

#[test]
fn pem_that_is_written_is_read_again() {
    let authority = corpus::certificate("talos-ca");
    assert_eq!(authority.pem(), corpus::text("talos-ca"));
    assert_eq!(
        Certificate::many_from_pem(authority.pem()).unwrap(),
        [authority]
    );
}

#[test]
fn bad_input_is_named() {
    let check = |text: &str, expected: &str| {
        let error = Certificate::many_from_pem(text).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    };
    let good = corpus::text("talos-ca");
    check(
        "",
        "no certificate found (no PEM block labeled CERTIFICATE)",
    );
    check(
        "not PEM at all",
        "no certificate found (no PEM block labeled CERTIFICATE)",
    );
    check(
        &good.replace("-----END CERTIFICATE-----", ""),
        "line 1: PEM block \"CERTIFICATE\" has no matching end line",
    );
    check(
        &good.replace("END CERTIFICATE", "END PRIVATE KEY"),
        "line 1: PEM block \"CERTIFICATE\" has no matching end line",
    );
    check(
        &good.replace("MII", "M*I"),
        "line 1: PEM block \"CERTIFICATE\" is not valid base64",
    );
    check(
        &format!("{good}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        "certificate 2 cannot be read",
    );
    let mut longer = corpus::certificate("talos-ca").der().to_vec();
    longer.extend([0; 3]);
    check(
        &pem::encode("CERTIFICATE", &longer),
        "3 bytes follow the end of certificate 1",
    );
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read_without_a_panic(bytes: Vec<u8>) {
        let _ = Certificate::from_der(&bytes);
        let _ = Certificate::many_from_pem(&bytes);
    }

    #[test]
    fn damaged_certificates_are_refused_or_read_without_a_panic(
        at in 0usize..600,
        value: u8,
        cut in 0usize..600,
    ) {
        let mut der = corpus::certificate("talos-kube-apiserver").der().to_vec();
        let at = at % der.len();
        der[at] = value;
        let cut = der.len() - cut % der.len();
        for der in [&der[..], &der[..cut]] {
            if let Ok(read) = Certificate::from_der(der) {
                let _ = format!("{read:?}");
                let _ = crate::judge(&[read], &crate::Expectation::default(), corpus::noon());
            }
        }
    }

    #[test]
    fn damaged_text_is_refused_or_read_without_a_panic(at in 0usize..800, letter: char) {
        let mut text: Vec<char> = corpus::text("talos-ca").chars().collect();
        let at = at % text.len();
        text[at] = letter;
        let _ = Certificate::many_from_pem(text.into_iter().collect::<String>());
    }
}
