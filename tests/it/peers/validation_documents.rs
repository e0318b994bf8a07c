//! The table of verdicts about documents is what the official library says.

use std::path::Path;

use serde_json::{Value, json};
use talos_pki::{Algorithm, Authority, AuthorityKind, PrivateKey};

use super::config::Peer;

#[test]
#[ignore = "needs Go"]
fn the_table_of_verdicts_is_what_the_official_library_says() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../talos-config/tests/data/validation-documents.tsv");
    let table = std::fs::read_to_string(table).unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(1)
        .map(|row| row.split('\t').collect())
        .collect();
    let pems = pems();
    let questions: Vec<Value> = rows
        .iter()
        .map(|row| {
            let (mode, documents) = (row[0], row[5]);
            json!({"op": "validate", "config": config(documents, &pems), "mode": mode, "strict": false})
        })
        .collect();
    let mut mistakes = Vec::new();
    for (column, version) in ["1.11", "1.13", "1.14"].into_iter().enumerate() {
        let answers = Peer::start(version).ask_all(questions.clone());
        for (row, answer) in rows.iter().zip(answers) {
            let said = verdict(&answer);
            if row[column + 1] != said {
                let wrong = format!("{version} says {said}: {}\n{answer}", row.join(" | "));
                mistakes.push(wrong);
            }
        }
    }
    assert!(rows.len() > 1500, "{} rows", rows.len());
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

/// Returns an answer as the table writes it.
fn verdict(answer: &Value) -> &'static str {
    let error = ["error", "errors"]
        .iter()
        .find_map(|key| answer[key].as_str())
        .unwrap_or_default();
    let warned = answer["warnings"]
        .as_array()
        .is_some_and(|warnings| !warnings.is_empty());
    match (answer["ok"] == true, warned) {
        (true, false) => "ok",
        (true, true) => "warn",
        _ if error.contains("not registered") => "-",
        _ if error.contains("unknown keys") => "unknown",
        _ => "no",
    }
}

/// Returns the text that a row stands for.
fn config(documents: &str, pems: &[(&str, String)]) -> String {
    let text = documents.replace(" --- ", "\n---\n");
    let text = text.replace("{\"kind\"", "{\"apiVersion\": \"v1alpha1\", \"kind\"");
    pems.iter()
        .fold(text, |text, (word, pem)| text.replace(word, pem))
}

/// Returns the certificates and keys that the table has words for.
fn pems() -> [(&'static str, String); 5] {
    let now = "2030-01-01T12:00:00Z".parse().unwrap();
    let authority = Authority::generate(AuthorityKind::Kubernetes, now).unwrap();
    let rsa = PrivateKey::generate(Algorithm::Rsa(2048)).unwrap();
    let ed25519 = PrivateKey::generate(Algorithm::Ed25519).unwrap();
    let escaped = |text: &str| text.replace('\n', "\\n");
    [
        ("@CRT@", escaped(&authority.certificate().pem())),
        ("@EC@", escaped(&authority.key().pem())),
        ("@EC8@", escaped(&authority.key().pkcs8_pem())),
        ("@RSA@", escaped(&rsa.pem())),
        ("@ED@", escaped(&ed25519.pkcs8_pem())),
    ]
}
