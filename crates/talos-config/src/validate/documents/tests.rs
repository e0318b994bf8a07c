//! Rules of documents, held against the table of what the official library said.

use std::collections::HashMap;

use talos_pki::{Algorithm, Authority, AuthorityKind, PrivateKey};

use super::{check, conflicts};
use crate::validate::at::Document;
use crate::validate::sink::Sink;
use crate::validate::target::Context;
use crate::validate::{Finding, Mode, Options, Severity, decode, main};
use crate::yaml::Stream;

/// Every case: mode, what each version says, where, and the documents in JSON.
const TABLE: &str = include_str!("../../../tests/data/validation-documents.tsv");

/// Versions in the order of the columns.
const VERSIONS: [&str; 3] = ["1.11.5", "1.13.9", "1.14.1"];

/// Returns what the rules find, without those that nobody but this library has.
fn findings(text: &str, mode: Mode, version: &str) -> Vec<Finding> {
    let options = Options {
        mode,
        strict: false,
        talos_version: Some(version.to_owned()),
    };
    let stream = Stream::parse(text).unwrap();
    let mut sink = Sink::new(&stream, false);
    let names = Document::odd_names(&stream);
    let roots = Document::all(&stream, &names, &mut sink);
    let context = Context::new(&options, &roots);
    let documents = decode::check(&roots, &context, &mut sink);
    for document in &documents {
        match document.is_main() {
            true => main::check(document, &context, &mut sink),
            false => check(document, &context, &mut sink),
        }
    }
    conflicts(&documents, &context, &mut sink);
    sink.findings()
}

/// Returns the certificates and keys that the table has words for.
fn pems() -> HashMap<&'static str, String> {
    let now = "2030-01-01T12:00:00Z".parse().unwrap();
    let authority = Authority::generate(AuthorityKind::Kubernetes, now).unwrap();
    let rsa = PrivateKey::generate(Algorithm::Rsa(2048)).unwrap();
    let ed25519 = PrivateKey::generate(Algorithm::Ed25519).unwrap();
    let escaped = |text: &str| text.replace('\n', "\\n");
    HashMap::from([
        ("@CRT@", escaped(&authority.certificate().pem())),
        ("@EC@", escaped(&authority.key().pem())),
        ("@EC8@", escaped(&authority.key().pkcs8_pem())),
        ("@RSA@", escaped(&rsa.pem())),
        ("@ED@", escaped(&ed25519.pkcs8_pem())),
    ])
}

/// Warnings that the official library gives too; all others are of this library alone.
const WARNINGS: [&str; 7] = [
    "missing-field",
    "conflict",
    "hollow-pattern",
    "moving-image",
    "old-mode",
    "old-field",
    "only-encrypted-dns",
];

/// Returns what is wrong with the findings of a case.
fn wrong(findings: &[Finding], verdict: &str, places: &str) -> Option<String> {
    let at = |severity: Severity| {
        findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .any(|finding| {
                let path = if finding.path.is_empty() {
                    "."
                } else {
                    &finding.path
                };
                places == "*" || places.split('|').any(|place| place == path)
            })
    };
    let of = |severity| {
        findings
            .iter()
            .filter(move |finding| finding.severity == severity)
    };
    let errors = of(Severity::Error).count();
    let warnings = of(Severity::Warning)
        .filter(|finding| WARNINGS.contains(&finding.code))
        .count();
    let right = match verdict {
        "-" | "unknown" => errors > 0,
        "no" => at(Severity::Error),
        "warn" => errors == 0 && at(Severity::Warning),
        "ok" => errors == 0 && warnings == 0,
        other => return Some(format!("{other} is no verdict")),
    };
    (!right).then(|| format!("{findings:#?}"))
}

#[test]
fn rules_say_what_the_official_library_says() {
    let pems = pems();
    let mut mistakes = Vec::new();
    let mut count = 0;
    for row in TABLE.lines().skip(1) {
        let columns: Vec<&str> = row.split('\t').collect();
        let [mode, verdicts @ .., places, documents] = &*columns else {
            panic!("{row}");
        };
        let mut text = documents
            .replace(" --- ", "\n---\n")
            .replace("{\"kind\"", "{\"apiVersion\": \"v1alpha1\", \"kind\"");
        for (word, pem) in &pems {
            text = text.replace(word, pem);
        }
        let mode = match *mode {
            "cloud" => Mode::Cloud,
            "container" => Mode::Container,
            other => panic!("{other}"),
        };
        for (version, verdict) in VERSIONS.into_iter().zip(verdicts) {
            count += 1;
            if let Some(wrong) = wrong(&findings(&text, mode, version), verdict, places) {
                mistakes.push(format!(
                    "{version} says {verdict} at {places}:\n{documents}\n{wrong}"
                ));
            }
        }
    }
    assert!(count > 4000, "{count} cases");
    assert!(
        mistakes.is_empty(),
        "{} of {count}:\n{}",
        mistakes.len(),
        mistakes.join("\n")
    );
}
