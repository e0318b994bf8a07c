//! Certificates and keys: base64 of PEM in the main document, PEM itself in the others.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::work::{Field, Work};

/// Returns the PEM that a field holds; nothing if it is empty.
pub(super) fn of(work: &mut Work<'_>, field: &Field<'_>) -> Option<String> {
    let text = work.text(field)?;
    let text: String = text.split(['\n', '\r']).collect();
    if text.is_empty() {
        return None;
    }
    let pem = STANDARD
        .decode(&text)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    match pem {
        Some(pem) if pem.contains("-----BEGIN ") => Some(pem),
        _ if text == "******" => {
            work.refuse(field, "was redacted; migrate the configuration that has it");
            None
        }
        _ => {
            work.refuse(field, "is not the base64 of PEM text");
            None
        }
    }
}

/// Returns the SHA-256 digest of bytes.
pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
