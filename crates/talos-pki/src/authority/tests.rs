use std::process::Command;

use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::FromDer;

use super::*;
use crate::{LeafUsage, Name, is_issued_by};

fn now() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

fn server(names: &[&str]) -> LeafRequest {
    LeafRequest {
        common_name: Some("cp-1".to_owned()),
        names: names
            .iter()
            .map(|name| Name::parse(name).unwrap())
            .collect(),
        usage: LeafUsage {
            server: true,
            ..LeafUsage::default()
        },
        lifetime: SignedDuration::from_hours(24),
        ..LeafRequest::default()
    }
}

/// Lists the extensions in order: object identifier and whether it is critical.
fn extensions(certificate: &Certificate) -> Vec<(String, bool)> {
    let (_, parsed) = X509Certificate::from_der(certificate.der()).unwrap();
    let all = parsed.extensions().iter();
    all.map(|extension| (extension.oid.to_id_string(), extension.critical))
        .collect()
}

const KEY_USAGE: &str = "2.5.29.15";
const EXTENDED_KEY_USAGE: &str = "2.5.29.37";
const BASIC_CONSTRAINTS: &str = "2.5.29.19";
const SUBJECT_KEY_ID: &str = "2.5.29.14";
const AUTHORITY_KEY_ID: &str = "2.5.29.35";
const NAMES: &str = "2.5.29.17";

#[test]
fn authorities_have_the_parameters_of_talos() {
    let check = |kind: AuthorityKind, subject: &str, algorithm: Algorithm| {
        let authority = Authority::generate(kind, now()).unwrap();
        let certificate = authority.certificate();
        assert_eq!(certificate.subject(), subject);
        assert_eq!(certificate.issuer(), subject);
        assert_eq!(certificate.algorithm(), algorithm);
        assert_eq!(certificate.not_before(), now());
        assert_eq!(
            certificate
                .not_before()
                .duration_until(certificate.not_after()),
            SignedDuration::from_hours(87_600)
        );
        let expected = [
            (KEY_USAGE, true),
            (EXTENDED_KEY_USAGE, false),
            (BASIC_CONSTRAINTS, true),
            (SUBJECT_KEY_ID, false),
        ];
        let expected = expected.map(|(id, critical)| (id.to_owned(), critical));
        assert_eq!(extensions(certificate), expected);
        let (_, parsed) = X509Certificate::from_der(certificate.der()).unwrap();
        assert_eq!(parsed.version().0, 2);
        let constraints = parsed.basic_constraints().unwrap().unwrap().value;
        assert!(constraints.ca && constraints.path_len_constraint.is_none());
        // digitalSignature and keyCertSign.
        assert_eq!(parsed.key_usage().unwrap().unwrap().value.flags, 0b10_0001);
        let purposes = parsed.extended_key_usage().unwrap().unwrap().value;
        assert!(purposes.server_auth && purposes.client_auth && purposes.other.is_empty());
        assert_eq!(certificate.subject_key_id().unwrap().len(), 20);
        assert!((16..=17).contains(&certificate.serial().len()));
        assert!(is_issued_by(certificate, certificate));
    };
    check(AuthorityKind::Talos, "O=talos", Algorithm::Ed25519);
    check(
        AuthorityKind::Kubernetes,
        "O=kubernetes",
        Algorithm::EcdsaP256,
    );
    check(AuthorityKind::Aggregator, "", Algorithm::EcdsaP256);
    check(AuthorityKind::Etcd, "O=etcd", Algorithm::EcdsaP256);
}

#[test]
fn two_authorities_share_neither_serial_number_nor_key_identifier() {
    let one = Authority::generate(AuthorityKind::Etcd, now()).unwrap();
    let other = Authority::generate(AuthorityKind::Etcd, now()).unwrap();
    let (one, other) = (one.certificate(), other.certificate());
    assert_ne!(one.serial(), other.serial());
    assert_ne!(one.subject_key_id(), other.subject_key_id());
}

#[test]
fn server_leaves_have_the_parameters_of_talos() {
    let authority = Authority::generate(AuthorityKind::Talos, now()).unwrap();
    let request = server(&["cp-1", "10.5.0.2", "fd00::2"]);
    let leaf = authority.issue(&request, now()).unwrap();
    let certificate = &leaf.certificate;
    assert_eq!(certificate.subject(), "CN=cp-1");
    assert_eq!(certificate.issuer(), "O=talos");
    assert_eq!(certificate.names(), request.names);
    assert_eq!(certificate.not_after().to_string(), "2026-12-01T12:00:00Z");
    let expected = [
        (KEY_USAGE, true),
        (EXTENDED_KEY_USAGE, false),
        (AUTHORITY_KEY_ID, false),
        (NAMES, false),
    ];
    let expected = expected.map(|(id, critical)| (id.to_owned(), critical));
    assert_eq!(extensions(certificate), expected);
    assert_eq!(
        certificate.authority_key_id(),
        authority.certificate().subject_key_id()
    );
    let (_, parsed) = X509Certificate::from_der(certificate.der()).unwrap();
    assert_eq!(parsed.key_usage().unwrap().unwrap().value.flags, 1);
    let purposes = parsed.extended_key_usage().unwrap().unwrap().value;
    assert!(purposes.server_auth && !purposes.client_auth);
    assert!(leaf.key.matches(certificate));
    assert!(is_issued_by(certificate, authority.certificate()));
}

#[test]
fn kubernetes_clients_are_backdated_and_encipher_keys() {
    let authority = Authority::generate(AuthorityKind::Kubernetes, now()).unwrap();
    let request = LeafRequest {
        common_name: Some("admin".to_owned()),
        organizations: vec!["system:masters".to_owned()],
        usage: LeafUsage {
            key_encipherment: true,
            client: true,
            ..LeafUsage::default()
        },
        lifetime: SignedDuration::from_hours(8760),
        backdate: SignedDuration::from_secs(10),
        ..LeafRequest::default()
    };
    let leaf = authority.issue(&request, now()).unwrap().certificate;
    assert_eq!(leaf.subject(), "O=system:masters, CN=admin");
    assert_eq!(leaf.not_before().to_string(), "2026-11-30T11:59:50Z");
    assert_eq!(leaf.not_after().to_string(), "2027-11-30T12:00:00Z");
    assert!(leaf.names().is_empty());
    let (_, parsed) = X509Certificate::from_der(leaf.der()).unwrap();
    assert_eq!(parsed.key_usage().unwrap().unwrap().value.flags, 0b101);
}

#[test]
fn all_roles_of_a_client_stand_in_one_set() {
    let authority = Authority::generate(AuthorityKind::Talos, now()).unwrap();
    let request = LeafRequest {
        organizations: vec!["os:reader".to_owned(), "os:admin".to_owned()],
        usage: LeafUsage {
            client: true,
            ..LeafUsage::default()
        },
        lifetime: SignedDuration::from_hours(1),
        ..LeafRequest::default()
    };
    let leaf = authority.issue(&request, now()).unwrap().certificate;
    assert_eq!(leaf.common_name(), None);
    let (_, parsed) = X509Certificate::from_der(leaf.der()).unwrap();
    assert_eq!(parsed.subject().iter_rdn().count(), 1);
    assert_eq!(leaf.organizations().len(), 2);
    assert!(leaf.organizations().contains(&"os:admin".to_owned()));
}

#[test]
fn names_are_critical_when_the_subject_is_empty() {
    let authority = Authority::generate(AuthorityKind::Kubernetes, now()).unwrap();
    let request = LeafRequest {
        common_name: None,
        ..server(&["10.5.0.2"])
    };
    let leaf = authority.issue(&request, now()).unwrap().certificate;
    assert!(extensions(&leaf).contains(&(NAMES.to_owned(), true)));
}

#[test]
fn leaves_of_every_kind_of_authority_verify() {
    let check = |algorithm: Algorithm, expected: Algorithm| {
        let lifetime = SignedDuration::from_hours(48);
        let authority = Authority::generate_with(algorithm, None, lifetime, now()).unwrap();
        let key = PrivateKey::generate(expected).unwrap();
        let info = key.public_key_info();
        let leaf = authority
            .sign_leaf(&server(&["cp-1"]), info, now())
            .unwrap();
        assert!(is_issued_by(&leaf, authority.certificate()), "{algorithm}");
        assert_eq!(leaf.algorithm(), expected);
    };
    check(Algorithm::Ed25519, Algorithm::Ed25519);
    check(Algorithm::EcdsaP256, Algorithm::EcdsaP256);
    check(Algorithm::EcdsaP384, Algorithm::EcdsaP384);
    check(Algorithm::EcdsaP521, Algorithm::EcdsaP521);
    check(Algorithm::Rsa(2048), Algorithm::Rsa(2048));
}

#[test]
fn a_year_after_2049_is_written_in_full() {
    let lifetime = SignedDuration::from_hours(24 * 365 * 30);
    let authority =
        Authority::generate_with(Algorithm::Ed25519, Some("far"), lifetime, now()).unwrap();
    let certificate = authority.certificate();
    assert_eq!(certificate.not_after(), now() + lifetime);
    let (_, parsed) = X509Certificate::from_der(certificate.der()).unwrap();
    assert!(parsed.validity().not_after.is_generalizedtime());
    assert!(parsed.validity().not_before.is_utctime());
}

#[test]
fn an_authority_survives_pem() {
    let made = Authority::generate(AuthorityKind::Talos, now()).unwrap();
    let read = Authority::from_pem(made.certificate().pem(), made.key().pem().as_str()).unwrap();
    let leaf = read.issue(&server(&["cp-1"]), now()).unwrap();
    assert!(is_issued_by(&leaf.certificate, made.certificate()));
}

#[test]
fn what_cannot_be_an_authority_is_refused() {
    let one = Authority::generate(AuthorityKind::Talos, now()).unwrap();
    let other = Authority::generate(AuthorityKind::Talos, now()).unwrap();
    let error = Authority::new(one.certificate().clone(), other.key().clone()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the private key does not belong to the certificate \"O=talos\""
    );
    let leaf = one.issue(&server(&["cp-1"]), now()).unwrap();
    let error = Authority::new(leaf.certificate, leaf.key).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the certificate \"CN=cp-1\" is not a certificate authority"
    );
}

#[test]
#[ignore = "needs openssl"]
fn openssl_prints_the_same_parameters_and_verifies() {
    let folder = std::env::temp_dir().join(format!("talos-pki-issue-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let openssl = |arguments: &[&str]| {
        let output = Command::new("openssl").args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for kind in [
        AuthorityKind::Talos,
        AuthorityKind::Kubernetes,
        AuthorityKind::Aggregator,
    ] {
        let authority = Authority::generate(kind, now()).unwrap();
        let leaf = authority
            .issue(&server(&["cp-1", "10.5.0.2", "fd00::2"]), now())
            .unwrap();
        std::fs::write(path("ca.pem"), authority.certificate().pem()).unwrap();
        std::fs::write(path("leaf.pem"), leaf.certificate.pem()).unwrap();
        let text = openssl(&["x509", "-in", &path("ca.pem"), "-noout", "-text"]);
        for expected in [
            "Version: 3 (0x2)",
            "X509v3 Key Usage: critical\n                Digital Signature, Certificate Sign\n",
            "TLS Web Server Authentication, TLS Web Client Authentication\n",
            "X509v3 Basic Constraints: critical\n                CA:TRUE\n",
            "X509v3 Subject Key Identifier:",
            "Not After : Nov 27 12:00:00 2036 GMT",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert!(!text.contains("Authority Key Identifier"), "{text}");
        let text = openssl(&["x509", "-in", &path("leaf.pem"), "-noout", "-text"]);
        for expected in [
            "X509v3 Key Usage: critical\n                Digital Signature\n",
            "X509v3 Extended Key Usage: \n                TLS Web Server Authentication\n",
            "DNS:cp-1, IP Address:10.5.0.2, IP Address:FD00:0:0:0:0:0:0:2\n",
            "X509v3 Authority Key Identifier:",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert!(!text.contains("Basic Constraints"), "{text}");
        assert!(!text.contains("Subject Key Identifier"), "{text}");
        let now = now().as_second().to_string();
        let verified = openssl(&[
            "verify",
            "-attime",
            &now,
            "-purpose",
            "sslserver",
            "-verify_ip",
            "10.5.0.2",
            "-CAfile",
            &path("ca.pem"),
            &path("leaf.pem"),
        ]);
        assert!(verified.ends_with("OK\n"), "{verified}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
#[ignore = "needs openssl"]
fn a_request_of_openssl_is_signed_as_trustd_does() {
    let script = "openssl req -new -newkey ed25519 -nodes -keyout /dev/null \
                  -subj '/O=os:admin/CN=w-1' -addext subjectAltName=DNS:w-1,IP:10.5.0.3";
    let output = Command::new("sh").args(["-c", script]).output().unwrap();
    let request = SigningRequest::from_pem(&output.stdout).unwrap();
    assert_eq!(request.organizations(), ["os:admin"]);
    let authority = Authority::generate(AuthorityKind::Talos, now()).unwrap();
    let day = SignedDuration::from_hours(24);
    let leaf = authority.sign_server_request(&request, day, now()).unwrap();
    assert_eq!(leaf.subject(), "CN=w-1");
    assert_eq!(leaf.names(), request.names());
    assert_eq!(leaf.names().len(), 2);
    assert_eq!(leaf.public_key_info(), request.public_key_info());
    assert!(is_issued_by(&leaf, authority.certificate()));
    let (_, parsed) = X509Certificate::from_der(leaf.der()).unwrap();
    let purposes =
        parsed
            .extensions()
            .iter()
            .find_map(|extension| match extension.parsed_extension() {
                ParsedExtension::ExtendedKeyUsage(usage) => Some(usage.clone()),
                _ => None,
            });
    let purposes = purposes.unwrap();
    assert!(purposes.server_auth && !purposes.client_auth);
}

#[test]
fn a_leaf_can_be_issued_again() {
    let authority = Authority::generate(AuthorityKind::Talos, now()).unwrap();
    let request = LeafRequest {
        organizations: vec!["os:admin".to_owned()],
        usage: LeafUsage {
            client: true,
            ..LeafUsage::default()
        },
        lifetime: SignedDuration::from_hours(8760),
        ..LeafRequest::default()
    };
    let first = authority.issue_reproducibly(&request, now()).unwrap();
    let again = authority.issue_reproducibly(&request, now()).unwrap();
    assert_eq!(first.certificate.der(), again.certificate.der());
    assert_eq!(first.key.pkcs8_der(), again.key.pkcs8_der());
    assert!(first.key.matches(&first.certificate));
    assert_ne!(first.key.pkcs8_der(), authority.key().pkcs8_der());
    // Anything that the certificate says gives another key.
    let later = now() + SignedDuration::from_secs(1);
    let second = authority.issue_reproducibly(&request, later).unwrap();
    assert_ne!(first.key.pkcs8_der(), second.key.pkcs8_der());
    let other = LeafRequest {
        organizations: vec!["os:reader".to_owned()],
        ..request.clone()
    };
    let other = authority.issue_reproducibly(&other, now()).unwrap();
    assert_ne!(first.key.pkcs8_der(), other.key.pkcs8_der());
    // Another authority gives another one too.
    let stranger = Authority::generate(AuthorityKind::Talos, now()).unwrap();
    let third = stranger.issue_reproducibly(&request, now()).unwrap();
    assert_ne!(first.key.pkcs8_der(), third.key.pkcs8_der());
    assert!(crate::is_issued_by(
        &first.certificate,
        authority.certificate()
    ));
}
