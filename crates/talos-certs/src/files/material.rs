//! Finding certificates in any tree of values: PEM, base64 of it, and kubeconfigs inside of strings.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use talos_config::yaml;
use talos_pki::{Certificate, Error};

use crate::error::sentence;

/// How every PEM block of a certificate begins.
const BEGIN: [&str; 2] = [
    "-----BEGIN CERTIFICATE-----",
    "-----BEGIN X509 CERTIFICATE-----",
];
/// Base64 of `-----BEGIN `.
const ENCODED_BEGIN: &str = "LS0tLS1CRUdJTi";
/// Keys whose text is a certificate or nothing.
const KEYS: [&str; 5] = [
    "crt",
    "certificate-authority-data",
    "client-certificate-data",
    "tls.crt",
    "ca.crt",
];
/// Kubeconfigs that are looked into inside of each other.
const DEEPEST: usize = 4;
/// Damaged certificates of one text that are told.
const MOST_PROBLEMS: usize = 20;

/// What stands at one place of a tree.
pub(crate) struct Found {
    /// Keys that lead there; entries of a list are named by their `name`, else numbered.
    pub(crate) path: Vec<String>,
    /// The certificate, or why it cannot be read.
    pub(crate) result: Result<Certificate, Damaged>,
}

/// A certificate that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damaged {
    /// Why.
    pub(crate) why: String,
    /// What stands in its place, where it is base64.
    pub(crate) der: Vec<u8>,
}

impl Damaged {
    fn new(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            der: Vec::new(),
        }
    }
}

/// Finds every certificate in a tree of values.
pub(crate) fn walk(value: &Value) -> Vec<Found> {
    let mut walk = Walk {
        path: Vec::new(),
        depth: 0,
        found: Vec::new(),
    };
    walk.value(value);
    walk.found
}

struct Walk {
    path: Vec<String>,
    depth: usize,
    found: Vec<Found>,
}

impl Walk {
    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.below(key.clone(), value);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let name = item.get("name").and_then(Value::as_str);
                    self.below(name.map_or_else(|| index.to_string(), str::to_owned), item);
                }
            }
            Value::String(text) => self.text(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn below(&mut self, step: String, value: &Value) {
        self.path.push(step);
        self.value(value);
        self.path.pop();
    }

    fn text(&mut self, text: &str) {
        let is_certificate = || {
            let key = self.path.last().map(String::as_str);
            KEYS.iter().any(|known| key == Some(known))
        };
        match decoded(text) {
            Some(pem) => {
                for result in certificates(&pem) {
                    self.found.push(Found {
                        path: self.path.clone(),
                        result,
                    });
                }
            }
            None if text.contains("-data:") && self.depth < DEEPEST => {
                // A kubeconfig that a resource or a Secret holds.
                if let Ok(inner) = yaml::read(text) {
                    self.depth += 1;
                    self.value(&inner);
                    self.depth -= 1;
                }
            }
            None if !text.trim().is_empty() && is_certificate() => self.found.push(Found {
                path: self.path.clone(),
                result: Err(Damaged::new("this is neither PEM nor base64 of it")),
            }),
            None => {}
        }
    }
}

/// Returns the PEM text that a field holds as it is or in base64.
fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if text.contains("-----BEGIN ") {
        return Some(Cow::Borrowed(text));
    }
    let trimmed = text.trim();
    if !trimmed.starts_with(ENCODED_BEGIN) {
        return None;
    }
    let compact: String = trimmed.split_whitespace().collect();
    let bytes = STANDARD.decode(compact).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// Reads every certificate of a PEM text on its own, so that a damaged one does not hide the others.
pub(crate) fn certificates(text: &str) -> Vec<Result<Certificate, Damaged>> {
    if let Ok(all) = Certificate::many_from_pem(text) {
        return all.into_iter().map(Ok).collect();
    }
    let lines: Vec<&str> = text.lines().collect();
    let begins = |line: &str| {
        BEGIN
            .iter()
            .any(|begin| line.trim_start().starts_with(begin))
    };
    let mut results = Vec::new();
    let mut problems = 0;
    for (start, _) in lines.iter().enumerate().filter(|(_, line)| begins(line)) {
        let rest = lines.get(start + 1..).unwrap_or_default();
        let ends = |line: &&str| line.trim_start().starts_with("-----");
        let end = match rest.iter().position(ends) {
            Some(at) if rest[at].trim_start().starts_with("-----END") => start + at + 2,
            Some(at) => start + at + 1,
            None => lines.len(),
        };
        let block = lines.get(start..end).unwrap_or_default();
        let content = block.iter().filter(|line| !line.contains("-----"));
        let content: String = content.map(|line| line.trim()).collect();
        let number = results.len() + 1;
        let result = match Certificate::many_from_pem(block.join("\n")) {
            Ok(mut one) if !one.is_empty() => Ok(one.remove(0)),
            Ok(_) => continue,
            Err(error) => Err(Damaged {
                why: told(&error, number, start),
                der: STANDARD.decode(content).unwrap_or_default(),
            }),
        };
        problems += usize::from(result.is_err());
        results.push(result);
        if problems == MOST_PROBLEMS {
            results.push(Err(Damaged::new(
                "too many damaged certificates: the rest is left out",
            )));
            break;
        }
    }
    results
}

/// Says what is wrong with one block as if the whole text had been read; `before` lines stand before the block.
fn told(error: &Error, number: usize, before: usize) -> String {
    match error {
        Error::Certificate { source, .. } => {
            format!("certificate {number} cannot be read: {source}")
        }
        Error::TrailingBytes { count, .. } => {
            format!("{count} bytes follow the end of certificate {number}")
        }
        Error::PemEncoding { source, .. } => format!(
            "certificate {number} (line {}) is not valid base64: {source}",
            before + 1
        ),
        Error::PemUnclosed { .. } => format!(
            "certificate {number} (line {}) is cut off: it has no end line",
            before + 1
        ),
        other => format!("certificate {number}: {}", sentence(other)),
    }
}
