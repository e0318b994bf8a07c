//! Collecting secrets from a text, with everything that is missing or damaged reported together.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use talos_pki::{Authority, Certificate, PrivateKey};

use super::{Encryption, KeyPair};
use crate::generate::Problem;

/// Secrets are read through this, which remembers what was wrong.
#[derive(Default)]
pub(super) struct Collector {
    pub(super) problems: Vec<Problem>,
}

/// One text, where it was found, and what it is called there.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) field: String,
    pub(super) line: Option<u64>,
    /// Absent if the text lacks it, or has an empty one.
    pub(super) text: Option<String>,
}

impl Collector {
    /// Takes a text that has to be there.
    pub(super) fn required(&mut self, found: Found) -> String {
        match found.text {
            Some(text) => text,
            None => {
                self.say(&found, "is required");
                String::new()
            }
        }
    }

    /// Takes a PEM text that is written as base64.
    pub(super) fn base64(&mut self, found: Found) -> Found {
        let Some(text) = &found.text else {
            return found;
        };
        let decoded = STANDARD.decode(text.trim()).ok();
        match decoded.and_then(|bytes| String::from_utf8(bytes).ok()) {
            Some(text) => Found {
                text: Some(text),
                ..found
            },
            None => {
                self.say(&found, "is not base64 of a text");
                // Reported already; what is empty and no longer missing stays quiet.
                Found {
                    text: Some(String::new()),
                    ..found
                }
            }
        }
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
        if secretbox.text.is_none() && aes_cbc.text.is_none() {
            let reason = format!("or {} is required", aes_cbc.field);
            self.say(&secretbox, &reason);
        }
        if secretbox.text.is_some() && aes_cbc.text.is_some() {
            let reason = format!(
                "is there besides {}; only one of them may be",
                secretbox.field
            );
            self.say(&aes_cbc, &reason);
        }
        for found in [&secretbox, &aes_cbc] {
            let bytes = found.text.as_ref().map(|text| STANDARD.decode(text));
            let (lengths, reason): (&[usize], _) = match found.field == secretbox.field {
                true => (&[32], "is not base64 of a key of 32 bytes"),
                false => (
                    &[16, 24, 32],
                    "is not base64 of a key of 16, 24 or 32 bytes",
                ),
            };
            if bytes.is_some_and(|bytes| !bytes.is_ok_and(|bytes| lengths.contains(&bytes.len()))) {
                self.say(found, reason);
            }
        }
        match (secretbox.text, aes_cbc.text) {
            (None, Some(secret)) => Encryption::AesCbc(secret),
            (secret, _) => Encryption::Secretbox(secret.unwrap_or_default()),
        }
    }

    fn say(&mut self, place: &Found, reason: &str) {
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
