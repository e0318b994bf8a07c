//! Collecting secrets from a text, with everything that is missing or damaged reported together.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use talos_pki::{Authority, Certificate, PrivateKey};

use super::{Encryption, KeyPair, is_token};
use crate::generate::{Error, Problem};
use crate::yaml::{Kind, Node, Stream};

/// Secrets are read through this, which remembers what was wrong.
#[derive(Default)]
pub(super) struct Collector {
    pub(super) problems: Vec<Problem>,
    /// What is odd, but no reason to refuse the secrets.
    pub(super) warnings: Vec<Problem>,
}

/// One text, where it was found, and what it is called there.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) field: String,
    pub(super) line: Option<u64>,
    pub(super) held: Held,
}

/// What stands where a text should.
#[derive(Clone)]
pub(super) enum Held {
    /// Nothing, or an empty text.
    Nothing,
    Text(String),
    /// Something else, which is called so.
    Other(&'static str),
    /// Something that was reported already.
    Reported,
}

impl Found {
    /// Returns the text, if there is one.
    fn text(&self) -> Option<&str> {
        match &self.held {
            Held::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Held {
    /// Reads what should be a text the way Talos does: numbers and the like as they are written.
    pub(super) fn of(stream: &Stream, node: Option<&Node>) -> Self {
        let Some(node) = node else {
            return Self::Nothing;
        };
        match (node.kind(), node.as_str()) {
            (Kind::Null, _) | (_, Some("")) => Self::Nothing,
            (_, Some(text)) => Self::Text(text.to_owned()),
            (Kind::Scalar, None) => match stream.written(node) {
                Some(text) => Self::Text(text.to_owned()),
                None => Self::Other(name(node)),
            },
            _ => Self::Other(name(node)),
        }
    }
}

/// Returns what people call a kind of node.
pub(super) fn name(node: &Node) -> &'static str {
    match node.kind() {
        Kind::Null => "nothing",
        Kind::Scalar => "a single value",
        Kind::Mapping => "a mapping",
        Kind::List => "a list",
    }
}

impl Collector {
    /// Takes a text that has to be there.
    pub(super) fn required(&mut self, found: Found) -> String {
        match found.held {
            Held::Text(text) => return text,
            Held::Nothing => self.say(&found, "is required"),
            Held::Other(kind) => self.say(&found, &format!("must be a text, not {kind}")),
            Held::Reported => {}
        }
        String::new()
    }

    /// Takes a PEM text that is written as base64.
    pub(super) fn base64(&mut self, found: Found) -> Found {
        let Some(text) = found.text() else {
            return found;
        };
        let decoded = STANDARD.decode(text.trim()).ok();
        let held = match decoded.and_then(|bytes| String::from_utf8(bytes).ok()) {
            Some(text) if text.is_empty() => Held::Nothing,
            Some(text) => Held::Text(text),
            None => {
                self.say(&found, "is not base64 of a text");
                Held::Reported
            }
        };
        Found { held, ..found }
    }

    /// Takes the token with which kubelets join, which Kubernetes takes in one form only.
    pub(super) fn bootstrap_token(&mut self, found: Found) -> String {
        if found.text().is_some_and(|text| !is_token(text)) {
            self.say(&found, "must have the form abcdef.0123456789abcdef");
        }
        self.required(found)
    }

    /// Takes the token with which nodes join, which may be any text.
    pub(super) fn trustd_token(&mut self, found: Found) -> String {
        if found.text().is_some_and(|text| !is_token(text)) {
            self.warn(
                &found,
                "has another form than generated tokens, abcdef.0123456789abcdef",
            );
        }
        self.required(found)
    }

    /// Takes the name of the cluster at the discovery service, which may be any text.
    pub(super) fn cluster_id(&mut self, found: Found) -> String {
        let is_usual = |text: &str| URL_SAFE.decode(text).is_ok_and(|bytes| bytes.len() == 32);
        if found.text().is_some_and(|text| !is_usual(text)) {
            self.warn(
                &found,
                "has another form than generated ones, URL-safe base64 of 32 bytes",
            );
        }
        self.required(found)
    }

    /// Takes the key that encrypts what nodes tell the discovery service.
    pub(super) fn cluster_secret(&mut self, found: Found) -> String {
        let is_key = |text: &str| STANDARD.decode(text).is_ok_and(|bytes| bytes.len() == 32);
        if found.text().is_some_and(|text| !is_key(text)) {
            self.say(&found, "is not base64 of a key of 32 bytes");
        }
        self.required(found)
    }

    /// Takes an authority's certificate and key and holds them against each other.
    pub(super) fn authority(&mut self, crt: Found, key: Found) -> KeyPair {
        let (crt_place, key_place) = (crt.clone(), key.clone());
        let before = self.problems.len();
        let pair = KeyPair {
            crt: self.required(crt),
            key: self.required(key),
        };
        if self.problems.len() > before || pair.crt.is_empty() || pair.key.is_empty() {
            return pair;
        }
        let key = match PrivateKey::from_pem(&pair.key) {
            Ok(key) => key,
            Err(error) => {
                self.say_why(&key_place, "cannot be read", error);
                return pair;
            }
        };
        let made = Certificate::many_from_pem(&pair.crt)
            .and_then(|mut found| Authority::new(found.swap_remove(0), key));
        match made {
            Ok(_) => {}
            Err(talos_pki::Error::KeyMismatch { .. }) => {
                let reason = format!("does not belong to {}", key_place.field);
                self.say(&crt_place, &reason);
            }
            Err(error) => self.say_why(&crt_place, "cannot be used", error),
        }
        pair
    }

    /// Takes a private key.
    pub(super) fn key(&mut self, found: Found) -> String {
        let place = found.clone();
        let text = self.required(found);
        if !text.is_empty()
            && let Err(error) = PrivateKey::from_pem(&text)
        {
            self.say_why(&place, "cannot be read", error);
        }
        text
    }

    /// Takes the one of two encryption secrets that is there.
    pub(super) fn encryption(&mut self, secretbox: Found, aes_cbc: Found) -> Encryption {
        let is_there = |found: &Found| !matches!(found.held, Held::Nothing);
        match (is_there(&secretbox), is_there(&aes_cbc)) {
            (false, false) => {
                let reason = format!("or {} is required", aes_cbc.field);
                self.say(&secretbox, &reason);
            }
            (true, true) if !matches!(aes_cbc.held, Held::Reported) => {
                let reason = format!(
                    "is there besides {}; only one of them may be",
                    secretbox.field
                );
                self.say(&aes_cbc, &reason);
            }
            _ => {}
        }
        let mut key = |found: Found, lengths: &[usize], reason: &str| {
            let bytes = found.text().map(|text| STANDARD.decode(text));
            if bytes.is_some_and(|bytes| !bytes.is_ok_and(|bytes| lengths.contains(&bytes.len()))) {
                self.say(&found, reason);
            }
            is_there(&found).then(|| self.required(found))
        };
        let secretbox = key(secretbox, &[32], "is not base64 of a key of 32 bytes");
        let aes_cbc = key(
            aes_cbc,
            &[16, 24, 32],
            "is not base64 of a key of 16, 24 or 32 bytes",
        );
        match (secretbox, aes_cbc) {
            (None, Some(secret)) => Encryption::AesCbc(secret),
            (secret, _) => Encryption::Secretbox(secret.unwrap_or_default()),
        }
    }

    /// Returns what was wrong, if anything.
    pub(super) fn finish(self, what: &'static str) -> Result<Vec<String>, Error> {
        match self.problems.is_empty() {
            true => Ok(self.warnings.iter().map(ToString::to_string).collect()),
            false => Err(Error::Secrets {
                what,
                problems: self.problems,
            }),
        }
    }

    /// Remembers something odd.
    pub(super) fn warn(&mut self, place: &Found, reason: &str) {
        self.warnings.push(Problem {
            line: place.line,
            ..Problem::new(&place.field, reason)
        });
    }

    /// Remembers something wrong.
    pub(super) fn say(&mut self, place: &Found, reason: &str) {
        self.problems.push(Problem {
            line: place.line,
            ..Problem::new(&place.field, reason)
        });
    }

    fn say_why(&mut self, place: &Found, reason: &str, source: talos_pki::Error) {
        self.problems.push(Problem {
            line: place.line,
            source: Some(Arc::new(source)),
            ..Problem::new(&place.field, reason)
        });
    }
}
