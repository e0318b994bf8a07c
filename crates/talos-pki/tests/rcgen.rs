//! Certificates that another library issued: rcgen makes them, this crate reads and judges them.

#![expect(clippy::unwrap_used, reason = "helpers of tests may unwrap")]

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ED25519,
    SignatureAlgorithm, date_time_ymd,
};
use talos_pki::{Certificate, Expectation, Name, PrivateKey, Role, judge};

/// Issues a leaf for these names and uses, valid in 2027, and returns it with its authority and key.
fn issue(
    algorithm: &'static SignatureAlgorithm,
    names: &[&str],
    usage: ExtendedKeyUsagePurpose,
) -> (Certificate, Certificate, PrivateKey) {
    let mut authority = CertificateParams::default();
    authority.distinguished_name = DistinguishedName::new();
    authority
        .distinguished_name
        .push(DnType::OrganizationName, "elsewhere");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    authority.not_before = date_time_ymd(2026, 1, 1);
    authority.not_after = date_time_ymd(2036, 1, 1);
    let key = KeyPair::generate_for(algorithm).unwrap();
    let authority = CertifiedIssuer::self_signed(authority, key).unwrap();

    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut leaf = CertificateParams::new(names).unwrap();
    leaf.not_before = date_time_ymd(2027, 1, 1);
    leaf.not_after = date_time_ymd(2028, 1, 1);
    leaf.extended_key_usages = vec![usage];
    leaf.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate_for(algorithm).unwrap();
    let leaf = leaf.signed_by(&key, &authority).unwrap();

    let read = |pem: String| {
        Certificate::many_from_pem(pem.as_bytes())
            .unwrap()
            .remove(0)
    };
    (
        read(leaf.pem()),
        read(authority.pem()),
        PrivateKey::from_pem(key.serialize_pem().as_bytes()).unwrap(),
    )
}

#[track_caller]
fn check(names: &[&str], expected: &str, now: &str, findings: &[&str]) {
    for algorithm in [&PKCS_ED25519, &PKCS_ECDSA_P256_SHA256] {
        let (leaf, authority, key) = issue(algorithm, names, ExtendedKeyUsagePurpose::ServerAuth);
        assert!(key.matches(&leaf));
        let expectation = Expectation {
            names: vec![Name::parse(expected).unwrap()],
            role: Role::Server,
            authorities: vec![authority],
            ..Expectation::default()
        };
        let now: Timestamp = now.parse().unwrap();
        let found: Vec<&str> = judge(&[leaf], &expectation, now)
            .iter()
            .map(|finding| finding.code.as_str())
            .collect();
        assert_eq!(found, findings, "{names:?} for {expected} at {now}");
    }
}

#[test]
fn names_and_dates_of_foreign_certificates_are_judged() {
    const DURING: &str = "2027-06-01T00:00:00Z";
    check(&["a.example", "10.5.0.2"], "a.example", DURING, &[]);
    check(&["a.example", "10.5.0.2"], "10.5.0.2", DURING, &[]);
    check(&["*.example.org"], "node.example.org", DURING, &[]);
    check(&["fd00::1"], "fd00:0:0::1", DURING, &[]);
    check(&["a.example"], "b.example", DURING, &["name-missing"]);
    check(&["10.5.0.2"], "10.5.0.3", DURING, &["name-missing"]);
    check(
        &["a.example"],
        "a.example",
        "2026-12-31T23:59:59Z",
        &["not-yet-valid"],
    );
    check(
        &["a.example"],
        "a.example",
        "2028-01-01T00:00:01Z",
        &["expired"],
    );
}

#[test]
fn a_foreign_authority_is_not_taken_for_another() {
    let (leaf, authority, _) = issue(&PKCS_ED25519, &["a"], ExtendedKeyUsagePurpose::ServerAuth);
    let (_, stranger, _) = issue(&PKCS_ED25519, &["a"], ExtendedKeyUsagePurpose::ServerAuth);
    let now: Timestamp = "2027-06-01T00:00:00Z".parse().unwrap();
    for (authorities, findings) in [(vec![stranger.clone(), authority], 0), (vec![stranger], 1)] {
        let expectation = Expectation {
            role: Role::Server,
            authorities,
            ..Expectation::default()
        };
        assert_eq!(
            judge(std::slice::from_ref(&leaf), &expectation, now).len(),
            findings
        );
    }
}

#[test]
fn a_client_certificate_serves_no_server() {
    let (leaf, authority, _) = issue(&PKCS_ED25519, &["a"], ExtendedKeyUsagePurpose::ClientAuth);
    let now: Timestamp = "2027-06-01T00:00:00Z".parse().unwrap();
    for (role, findings) in [(Role::Server, 1), (Role::TalosClient, 0)] {
        let expectation = Expectation {
            role,
            authorities: vec![authority.clone()],
            ..Expectation::default()
        };
        assert_eq!(
            judge(std::slice::from_ref(&leaf), &expectation, now).len(),
            findings,
            "{role:?}"
        );
    }
}
