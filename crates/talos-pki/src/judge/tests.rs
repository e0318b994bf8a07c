use std::slice::from_ref;

use proptest::prelude::*;

use super::*;
use crate::issue::{self, Extension, Template};
use crate::{Algorithm, Authority, LeafRequest, LeafUsage, PrivateKey, corpus, covers};

struct Case<'case> {
    chain: &'case str,
    at: &'case str,
    names: &'case [&'case str],
    role: Role,
    authorities: &'case [&'case str],
    warn_hours: i64,
}

/// A case in which every certificate of the corpus is valid.
const CASE: Case<'static> = Case {
    chain: "talos-apid-controlplane",
    at: "2026-11-30T16:00:00Z",
    names: &[],
    role: Role::Server,
    authorities: &["talos-ca"],
    warn_hours: 0,
};

/// Compares verdicts: codes, followed by the name where one is missing.
fn check(case: Case<'_>, expected: &[&str]) {
    let expectation = Expectation {
        names: names(case.names),
        role: case.role,
        authorities: case
            .authorities
            .iter()
            .flat_map(|file| corpus::chain(file))
            .collect(),
        warn_within: SignedDuration::from_hours(case.warn_hours),
        setting: Some("machine.certSANs".to_owned()),
        ..Expectation::default()
    };
    let chain = corpus::chain(case.chain);
    let findings = judge(&chain, &expectation, case.at.parse().unwrap());
    assert_eq!(verdicts(&findings), expected, "{} {}", case.chain, case.at);
}

fn verdicts(findings: &[Finding]) -> Vec<String> {
    let verdict = |finding: &Finding| match &finding.name {
        Some(name) => format!("{} {name}", finding.code),
        None => finding.code.to_string(),
    };
    findings.iter().map(verdict).collect()
}

fn names(texts: &[&str]) -> Vec<Name> {
    texts
        .iter()
        .map(|text| Name::parse(text).unwrap())
        .collect()
}

#[test]
fn names_of_the_corpus_are_judged() {
    check(
        Case {
            names: &[
                "10.5.0.2",
                "10.5.0.3",
                "127.0.0.1",
                "lab-cp-1",
                "LAB-CP-1.",
                "localhost",
            ],
            ..CASE
        },
        &[],
    );
    check(
        Case {
            names: &["172.30.0.11", "127.0.0.1", "lab-w-1"],
            ..CASE
        },
        &["name-missing 172.30.0.11", "name-missing lab-w-1"],
    );
    check(
        Case {
            chain: "talos-apid-maintenance",
            names: &["::1", "0:0::1", "::2"],
            authorities: &[],
            ..CASE
        },
        &["name-missing ::2"],
    );
    check(
        Case {
            chain: "talos-kube-apiserver",
            // The common name never counts.
            names: &[
                "kubernetes.default.svc.cluster.local",
                "10.96.0.1",
                "kube-apiserver",
            ],
            authorities: &["talos-kubernetes-ca"],
            ..CASE
        },
        &["name-missing kube-apiserver"],
    );
    check(
        Case {
            chain: "kube-apiserver-1.34-selfsigned",
            names: &["192.0.2.2", "kubernetes", "localhost"],
            authorities: &[],
            ..CASE
        },
        &["name-missing localhost"],
    );
}

#[test]
fn dates_of_the_corpus_are_judged() {
    let at = |at, expected: &[&str]| check(Case { at, ..CASE }, expected);
    at("2026-11-30T15:40:00Z", &["not-yet-valid"]);
    at("2026-11-30T15:55:10Z", &["not-yet-valid"]);
    at("2026-11-30T15:55:11Z", &[]);
    at("2026-12-01T15:55:11.9Z", &[]);
    at("2026-12-01T15:55:12Z", &["expired"]);
    at(
        "2026-11-30T15:00:00Z",
        &["not-yet-valid", "authority-expired"],
    );
    at("2036-11-28T00:00:00Z", &["expired", "authority-expired"]);
    let warn = |warn_hours, expected: &[&str]| check(Case { warn_hours, ..CASE }, expected);
    warn(23, &[]);
    warn(24, &["expiring"]);
}

#[test]
fn issuers_of_the_corpus_are_judged() {
    let check = |chain, authorities, expected: &[&str]| {
        let case = Case {
            chain,
            authorities,
            role: Role::Any,
            ..CASE
        };
        check(case, expected);
    };
    let unknown = ["unknown-authority"];
    check("talos-apid-worker", &["talos-ca"], &[]);
    check(
        "talos-apid-worker",
        &["talos-kubernetes-ca", "talos-ca"],
        &[],
    );
    check("talos-apid-worker", &["talos-kubernetes-ca"], &unknown);
    check("talos-apid-maintenance", &["talos-ca"], &unknown);
    // Both subjects are empty: only key identifier and signature tell them apart.
    check("talos-apid-maintenance", &["talos-aggregator-ca"], &unknown);
    check("talos-front-proxy-client", &["talos-aggregator-ca"], &[]);
    check("talos-etcd-server", &["talos-etcd-ca"], &[]);
    check("talos-etcd-server", &["talos-aggregator-ca"], &unknown);
    check("talos-ca", &["talos-ca"], &[]);
    check(
        "kube-apiserver-1.34-selfsigned",
        &["talos-kubernetes-ca"],
        &unknown,
    );
    check(
        "kube-apiserver-1.34-selfsigned",
        &["kube-apiserver-1.34-selfsigned"],
        &[],
    );
}

#[test]
fn uses_of_the_corpus_are_judged() {
    let check = |chain, role, expected: &[&str]| {
        let case = Case {
            chain,
            role,
            authorities: &[],
            ..CASE
        };
        check(case, expected);
    };
    let wrong = ["extended-key-usage"];
    check("talos-apid-controlplane", Role::Client, &wrong);
    check("talos-apid-client-impersonator", Role::Server, &wrong);
    check("talos-apid-client-impersonator", Role::Client, &[]);
    check("talos-apid-client-impersonator", Role::TalosClient, &[]);
    check("talos-etcd-peer", Role::Server, &[]);
    check("talos-etcd-peer", Role::Client, &[]);
    check("talos-etcd-peer", Role::TalosClient, &wrong);
    check("talos-apiserver-kubelet-client", Role::Client, &[]);
}

#[test]
fn dns_names_are_matched_like_tls_libraries_do() {
    let now = corpus::noon();
    let day = SignedDuration::from_hours(24);
    let authority = Authority::generate_with(Algorithm::Ed25519, None, day, now).unwrap();
    let check = |entry: &str, name: &str, expected: bool| {
        let request = LeafRequest {
            names: vec![Name::Dns(entry.to_owned())],
            lifetime: day,
            ..LeafRequest::default()
        };
        let leaf = authority.issue(&request, now).unwrap().certificate;
        let name = Name::parse(name).unwrap();
        assert_eq!(covers(&leaf, &name), expected, "{entry} for {name}");
    };
    check("cp.example.com", "CP.Example.com", true);
    check("cp.example.com", "cp.example.com.", true);
    // RFC 5280 has no dot at the end of an entry, and no client takes one.
    check("cp.example.com.", "cp.example.com", false);
    check("cp.example.com.", "cp.example.com.", false);
    check("cp.example.com", "example.com", false);
    check("*.example.com", "cp.example.com", true);
    check("*.EXAMPLE.com", "cp.example.com", true);
    check("*.example.com", "a.cp.example.com", false);
    check("*.example.com", "example.com", false);
    check("*.com", "example.com", false);
    check("c*.example.com", "cp.example.com", false);
    check("cp.*.com", "cp.example.com", false);
    check("*", "localhost", false);
    check("10.5.0.2", "10.5.0.2", false);
}

#[test]
fn a_chain_through_an_intermediate_leads_to_the_root() {
    let now = corpus::noon();
    let day = SignedDuration::from_hours(24);
    let root = Authority::generate_with(Algorithm::Ed25519, Some("root"), day, now).unwrap();
    let other = Authority::generate_with(Algorithm::EcdsaP256, Some("root"), day, now).unwrap();
    let server = LeafRequest {
        common_name: Some("server".to_owned()),
        usage: LeafUsage {
            server: true,
            ..LeafUsage::default()
        },
        lifetime: day,
        ..LeafRequest::default()
    };
    let leaf = other.issue(&server, now).unwrap().certificate;
    let judge_with = |chain: &[Certificate], authority: &Authority| {
        let expected = Expectation {
            authorities: vec![authority.certificate().clone()],
            ..Expectation::default()
        };
        verdicts(&judge(chain, &expected, now))
    };
    // Same name, another key.
    assert_eq!(judge_with(from_ref(&leaf), &root), ["unknown-authority"]);
    assert!(judge_with(from_ref(&leaf), &other).is_empty());
    // A chain that carries its own root proves nothing.
    let chain = [leaf.clone(), other.certificate().clone()];
    assert_eq!(judge_with(&chain, &root), ["unknown-authority"]);
    let middle = intermediate(&root, &other, day);
    let chain = [
        leaf.clone(),
        corpus::certificate("talos-ca"),
        middle.clone(),
    ];
    assert!(judge_with(&chain, &root).is_empty());
    assert!(judge_with(from_ref(&leaf), &root).len() == 1);
    // An intermediate that has expired by then.
    let short = intermediate(&root, &other, SignedDuration::from_secs(-1));
    assert_eq!(judge_with(&[leaf, short], &root), ["authority-expired"]);
    // A leaf cannot issue.
    let key = PrivateKey::generate(Algorithm::EcdsaP256).unwrap();
    let middle = root.issue(&server, now).unwrap().certificate;
    let last = other
        .sign_leaf(&server, key.public_key_info(), now)
        .unwrap();
    assert_eq!(judge_with(&[last, middle], &root), ["unknown-authority"]);
}

/// Signs the key of one authority with another, whose subject is the same.
fn intermediate(root: &Authority, other: &Authority, lifetime: SignedDuration) -> Certificate {
    let name = root.certificate().raw_subject();
    let key_id = other.certificate().subject_key_id().unwrap();
    let template = Template {
        subject: name,
        issuer: name,
        public_key_info: other.key().public_key_info(),
        not_before: corpus::noon() - SignedDuration::from_hours(1),
        lifetime: lifetime + SignedDuration::from_hours(1),
        extensions: &[
            Extension::key_usage_of_authority(),
            Extension::basic_constraints_of_authority(),
            Extension::subject_key_id(key_id),
            Extension::authority_key_id(root.certificate().subject_key_id().unwrap()),
        ],
    };
    issue::sign(&template, root.key()).unwrap()
}

#[test]
fn of_an_extension_that_stands_twice_the_first_counts() {
    let now = corpus::noon();
    let authority = Authority::generate(crate::AuthorityKind::Talos, now).unwrap();
    let template = Template {
        subject: authority.certificate().raw_subject(),
        issuer: authority.certificate().raw_subject(),
        public_key_info: authority.key().public_key_info(),
        not_before: now,
        lifetime: SignedDuration::from_hours(1),
        extensions: &[
            Extension::names(&names(&["10.5.0.2"]), false),
            Extension::names(&names(&["172.30.0.11"]), false),
        ],
    };
    let leaf = issue::sign(&template, authority.key()).unwrap();
    let expected = Expectation {
        names: names(&["10.5.0.2", "172.30.0.11"]),
        ..Expectation::default()
    };
    assert_eq!(
        verdicts(&judge(&[leaf], &expected, now)),
        ["duplicate-extension", "name-missing 172.30.0.11"]
    );
}

#[test]
fn nothing_presented_is_a_finding() {
    let findings = judge(&[], &Expectation::default(), corpus::noon());
    assert_eq!(verdicts(&findings), ["no-certificate"]);
}

#[test]
fn findings_are_serialized_with_stable_words() {
    let expected = Expectation {
        names: names(&["172.30.0.11"]),
        setting: Some("cluster.apiServer.certSANs".to_owned()),
        ..Expectation::default()
    };
    let chain = corpus::chain("talos-kube-apiserver");
    let findings = judge(&chain, &expected, corpus::noon());
    assert_eq!(
        serde_json::to_string(&findings).unwrap(),
        "[{\"code\":\"name-missing\",\"certificate\":0,\"name\":\"172.30.0.11\",\
         \"message\":\"172.30.0.11 is not in subjectAltName\",\
         \"setting\":\"cluster.apiServer.certSANs\"}]"
    );
}

proptest! {
    /// Whatever is damaged, judging ends, soon and without a panic, and what is forged is refused.
    #[test]
    fn damaged_certificates_are_judged(
        changes in proptest::collection::vec((0usize..1_000, 1u8..), 1..6),
        asked in "[a-z0-9.*:-]{1,30}",
    ) {
        let sound = corpus::certificate("talos-apid-controlplane");
        let mut der = sound.der().to_vec();
        let length = der.len();
        for (at, change) in changes {
            der[at % length] ^= change;
        }
        let Ok(damaged) = Certificate::from_der(&der) else { return Ok(()) };
        let expected = Expectation {
            names: Name::parse(&asked).into_iter().collect(),
            role: Role::Server,
            authorities: corpus::chain("talos-ca"),
            ..Expectation::default()
        };
        let start = std::time::Instant::now();
        let chain = [damaged.clone(), damaged.clone(), sound.clone(), damaged.clone()];
        let findings = judge(&chain, &expected, corpus::noon());
        prop_assert!(start.elapsed() < std::time::Duration::from_secs(5));
        prop_assert!(damaged == sound || findings.iter().any(|finding| finding.code.refuses()));
    }
}
