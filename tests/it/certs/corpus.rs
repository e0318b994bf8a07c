//! Certificates of every kind, each with its verdict worked out by hand.
//!
//! `table` has one row per case: what is presented, when, whom the client trusts, which names it asks for, and which
//! findings there must be. The verdicts are those of RFC 5280 and RFC 9525, not what this program happens to say.

mod make;
mod table;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use talos_pki::{
    Certificate, Expectation, Finding, FindingCode, KnownAuthority, Name, Role, judge, unexpected,
};

pub(crate) use make::{Der, pem};
pub(crate) use table::all;

/// One row: a chain and the verdict that it deserves.
pub(crate) struct Case {
    pub(crate) id: &'static str,
    /// What is presented, leaf first.
    pub(crate) chain: Vec<Der>,
    /// PEM text to read instead.
    pub(crate) text: Option<String>,
    pub(crate) trusted: Vec<Der>,
    /// Other authorities that are known, with their labels.
    pub(crate) known: Vec<(&'static str, Der)>,
    pub(crate) at: &'static str,
    pub(crate) role: Role,
    pub(crate) names: Vec<String>,
    /// Codes in their order, `name-missing` followed by the name; `malformed` when nothing can be read.
    pub(crate) findings: Vec<&'static str>,
}

impl Case {
    pub(crate) fn now(&self) -> Timestamp {
        self.at.parse().unwrap()
    }

    /// Reads the chain; an error when it cannot be read.
    pub(crate) fn read(&self) -> Result<Vec<Certificate>, talos_pki::Error> {
        match &self.text {
            Some(text) => Certificate::many_from_pem(text),
            None => Certificate::many_from_der(&self.chain),
        }
    }

    /// Judges the chain as reached by some names; nothing when it cannot be read.
    pub(crate) fn judge(&self, names: &[Name]) -> Option<Vec<Finding>> {
        let chain = self.read().ok()?;
        let known = |(label, der): &(&str, Der)| KnownAuthority {
            label: (*label).to_owned(),
            certificate: Certificate::from_der(der).unwrap(),
        };
        let expectation = Expectation {
            names: names.to_vec(),
            role: self.role,
            authorities: Certificate::many_from_der(&self.trusted).unwrap(),
            authority_label: Some("Kubernetes CA".to_owned()),
            other_authorities: self.known.iter().map(known).collect(),
            ..Expectation::default()
        };
        Some(judge(&chain, &expectation, self.now()))
    }

    pub(crate) fn parsed_names(&self) -> Vec<Name> {
        self.names
            .iter()
            .map(|name| Name::parse(name).unwrap())
            .collect()
    }

    /// Tells whether a client that asks for this name, or for none, is to go on.
    pub(crate) fn accepts(&self, name: Option<&Name>) -> bool {
        self.judge(name.map(std::slice::from_ref).unwrap_or_default())
            .is_some_and(|findings| !findings.iter().any(|finding| finding.code.refuses()))
    }
}

fn verdict(finding: &Finding) -> String {
    match &finding.name {
        Some(name) => format!("{} {name}", finding.code),
        None => finding.code.to_string(),
    }
}

#[test]
fn every_case_gets_the_verdict_worked_out_by_hand() {
    let cases = all();
    let ids: BTreeSet<&str> = cases.iter().map(|case| case.id).collect();
    assert_eq!(ids.len(), cases.len(), "an identifier stands twice");
    let vendor = cases
        .iter()
        .filter(|case| case.id.starts_with("vendor-"))
        .count();
    assert!(
        cases.len() - vendor >= 60,
        "{} are made",
        cases.len() - vendor
    );
    let mut wrong = Vec::new();
    for case in cases {
        let found: Vec<String> = match case.judge(&case.parsed_names()) {
            Some(findings) => findings.iter().map(verdict).collect(),
            None => vec!["malformed".to_owned()],
        };
        if found != case.findings {
            wrong.push(format!(
                "{}: found {found:?}, deserved {:?}",
                case.id, case.findings
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{} cases, {vendor} of them of other software", cases.len());
}

#[test]
fn many_names_at_once_are_judged_as_one_by_one() {
    for case in all().iter().filter(|case| case.findings != ["malformed"]) {
        let names = case.parsed_names();
        // Asked together with so many others, names are looked up in an index.
        let others = (0..20).map(|number| Name::parse(&format!("other-{number}.invalid")).unwrap());
        let many: Vec<Name> = names.iter().cloned().chain(others).collect();
        let missing = |findings: Vec<Finding>| -> Vec<Name> {
            let names = findings.into_iter().filter_map(|finding| finding.name);
            names
                .filter(|name| !name.to_string().ends_with(".invalid"))
                .collect()
        };
        let together = missing(case.judge(&many).unwrap());
        let alone = missing(case.judge(&names).unwrap());
        assert_eq!(together, alone, "{}", case.id);
    }
}

#[test]
fn messages_say_what_people_need() {
    let cases = all();
    let message = |id: &str| {
        let case = cases.iter().find(|case| case.id == id).unwrap();
        let findings = case.judge(&case.parsed_names()).unwrap();
        findings.into_iter().next().unwrap().message
    };
    assert_eq!(
        message("wrong-authority"),
        "issued by the etcd CA, expected the Kubernetes CA"
    );
    assert_eq!(
        message("common-name-only"),
        "cp.example.com is not in subjectAltName: there are no names in it at all, and the common name, which is the same, does not count"
    );
    assert_eq!(
        message("wildcard-two-labels"),
        "b.a.example.com is not in subjectAltName: the wildcard \"*.example.com\" stands for exactly one label"
    );
    assert_eq!(
        message("address-as-dns-name"),
        "10.5.0.2 is not in subjectAltName: the address stands there as a DNS name, which does not count"
    );
    assert_eq!(
        message("future"),
        "valid only from 2027-01-01T00:00:00Z on; a clock here that is at least 1h behind would explain it"
    );
    assert_eq!(
        message("self-signed-stranger"),
        "it is signed by its own key, which is not the Kubernetes CA"
    );
    assert_eq!(
        message("rotated-new-key-old-trust"),
        "issued by \"O=root\", which is not the Kubernetes CA; an expected authority has the same name and another key"
    );
}

#[test]
fn names_that_nobody_expects_are_listed() {
    let cases = all();
    let case = cases.iter().find(|case| case.id == "mixed-names").unwrap();
    let leaf = case.read().unwrap().remove(0);
    let expected = ["CP.example.com", "a.wild.example.com", "10.5.0.2"];
    let expected: Vec<Name> = expected
        .iter()
        .map(|name| Name::parse(name).unwrap())
        .collect();
    let found: Vec<String> = unexpected(&leaf, &expected)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(found, ["*.other.example.com", "192.0.2.7", "fd00::7"]);
}

#[test]
fn large_input_is_judged_quickly() {
    let cases = all();
    let huge = cases
        .iter()
        .find(|case| case.id == "ten-thousand-names")
        .unwrap();
    let plain = cases.iter().find(|case| case.id == "name-exact").unwrap();
    let start = Instant::now();
    // Ten thousand names asked of ten thousand.
    let names: Vec<Name> = (0..10_000)
        .map(|number| Name::parse(&format!("n{number}.example.com")).unwrap())
        .collect();
    assert!(huge.judge(&names).unwrap().is_empty());
    // A chain of a thousand certificates that all seem to have signed each other.
    let root = &plain.trusted[0];
    let mut chain = plain.chain.clone();
    chain.extend((0..1_000).map(|_| root.clone()));
    let chain = Certificate::many_from_der(&chain).unwrap();
    let stranger = cases
        .iter()
        .find(|case| case.id == "wrong-authority")
        .unwrap();
    let expectation = Expectation {
        authorities: Certificate::many_from_der(&stranger.trusted).unwrap(),
        ..Expectation::default()
    };
    judge(&chain, &expectation, plain.now());
    // Ten megabytes of PEM.
    let one = pem("CERTIFICATE", &plain.chain[0]);
    let text = one.repeat(10_000_000 / one.len() + 1);
    let many = Certificate::many_from_pem(&text).unwrap();
    assert!(many.len() > 10_000);
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(FindingCode::WeakKey.to_string(), "weak-key");
}
