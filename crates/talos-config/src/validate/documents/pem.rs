//! Certificates and keys as PEM text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use talos_pki::{Certificate, PrivateKey};

use super::{items, missing};
use crate::validate::at::At;
use crate::validate::sink::Sink;

const CERTIFICATE: &str = "CERTIFICATE";

/// How many blocks are looked for in one text.
const MOST: usize = 1000;

/// How closely a certificate and its key are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// That both are PEM.
    Outside,
    /// That both can be read.
    Inside,
    /// That both can be read, the key as PKCS#8; they may be of any label.
    Pkcs8,
}

/// Checks a certificate with its key.
pub(super) fn pair(at: &At<'_>, look: Look, sink: &mut Sink<'_>) {
    let (certificate, key) = (at.field("cert"), at.field("key"));
    if certificate.is_blank() {
        missing(&certificate, sink);
    } else if look == Look::Pkcs8 || is_certificates(&certificate, sink) {
        let text = certificate.text();
        let first = blocks(&text).next();
        let read = first.is_some_and(|(_, der)| Certificate::from_der(&der).is_ok());
        if look != Look::Outside && !read {
            sink.error("bad-value", &certificate, "the certificate cannot be read");
        }
    }
    if key.is_blank() {
        return missing(&key, sink);
    }
    let text = key.text();
    let good = match (blocks(&text).next(), look) {
        (None, _) => false,
        (Some(_), Look::Outside) => true,
        (Some((label, der)), Look::Inside) => is_key(&label, &der),
        (Some((_, der)), Look::Pkcs8) => is_key("PRIVATE KEY", &der),
    };
    if !good {
        let message = match look {
            Look::Pkcs8 => "a private key in PEM of the form PKCS#8 is expected",
            _ => "a private key in PEM is expected",
        };
        sink.error("bad-value", &key, message);
    }
}

/// Checks a list of certificates.
pub(super) fn certificates(list: &At<'_>, sink: &mut Sink<'_>) {
    for item in items(list) {
        is_certificates(&item, sink);
    }
}

/// Reports a text that is not certificates in PEM, and returns whether it is.
fn is_certificates(at: &At<'_>, sink: &mut Sink<'_>) -> bool {
    let text = at.text();
    let mut labels = blocks(&text).map(|(label, _)| label).peekable();
    let good = labels.peek().is_some() && labels.all(|label| label == CERTIFICATE);
    if !good {
        sink.error(
            "bad-value",
            at,
            "a certificate in PEM is expected, and nothing else in it",
        );
    }
    good
}

/// Returns whether a text has a certificate that can be trusted as an authority.
pub(super) fn has_certificate(text: &str) -> bool {
    blocks(text).any(|(label, der)| label == CERTIFICATE && Certificate::from_der(&der).is_ok())
}

/// Returns whether the first block of a text is a private key.
pub(super) fn has_key(text: &str) -> bool {
    blocks(text)
        .next()
        .is_some_and(|(label, der)| is_key(&label, &der))
}

/// Returns whether a key has the form that its label promises.
fn is_key(label: &str, der: &[u8]) -> bool {
    let expected = match label {
        "RSA PRIVATE KEY" => 0x02,
        "EC PRIVATE KEY" => 0x04,
        "PRIVATE KEY" | "ED25519 PRIVATE KEY" => 0x30,
        _ => return false,
    };
    after_version(der) == Some(expected) && PrivateKey::from_der(der).is_ok()
}

/// Returns the tag that follows the version, which tells PKCS#8 (a sequence), PKCS#1 (a number) and SEC1 (bytes) apart.
fn after_version(der: &[u8]) -> Option<u8> {
    let length = *der.get(1)?;
    let header = if length & 0x80 == 0 {
        2
    } else {
        2 + usize::from(length & 0x7f)
    };
    let version = der.get(header..)?;
    (version.first() == Some(&0x02)).then_some(())?;
    version.get(2 + usize::from(*version.get(1)?)).copied()
}

/// Returns the blocks of a PEM text, with label and content; what is no block is passed over.
fn blocks(text: &str) -> impl Iterator<Item = (String, Vec<u8>)> {
    let mut rest = text;
    let mut starts = 0;
    std::iter::from_fn(move || {
        loop {
            starts += 1;
            if starts > MOST {
                return None;
            }
            let start = match rest.strip_prefix("-----BEGIN ") {
                Some(after) => after,
                None => {
                    let at = rest.find("\n-----BEGIN ")?;
                    &rest[at + "\n-----BEGIN ".len()..]
                }
            };
            rest = start;
            let (label, body) = start.split_once('\n')?;
            let Some(label) = label.trim_end().strip_suffix("-----") else {
                continue;
            };
            let end = format!("-----END {label}-----");
            let Some((body, after)) = body.split_once(&*end) else {
                continue;
            };
            let body = body.rsplit_once("\n\n").map_or(body, |(headers, content)| {
                if headers.contains(':') { content } else { body }
            });
            let content: String = body.split_whitespace().collect();
            if let Ok(der) = STANDARD.decode(content) {
                rest = after;
                return Some((label.to_owned(), der));
            }
        }
    })
}
