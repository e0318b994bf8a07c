//! Everything that stands in a certificate, also in one that is malformed, as far as its DER can be read.
//!
//! [`crate::Certificate`] refuses what X.509 does not allow; here a damaged part is named, and the rest is read.

mod extensions;
mod names;
mod read;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Serialize;
use sha2::{Digest, Sha256};

use self::extensions::read_extensions;
use self::names::read_name;
use self::read::{Notes, Reader, Value};
use crate::certificate::hex;
use crate::{Certificate, Error, oid, pem};

/// All that could be read of one certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// Why verifiers do not take it for a certificate at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub malformed: Option<String>,
    /// What could not be read, part by part.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
    /// Version, 1 to 3.
    pub version: Option<u32>,
    /// Serial number in hex.
    pub serial: Option<String>,
    /// How it is signed, such as `ECDSA with SHA-256`.
    pub signature_algorithm: Option<String>,
    /// Who issued it.
    pub issuer: Option<DistinguishedName>,
    /// Whom it is for.
    pub subject: Option<DistinguishedName>,
    /// First moment of its validity.
    pub not_before: Option<Timestamp>,
    /// Last moment of its validity.
    pub not_after: Option<Timestamp>,
    /// Its public key.
    pub key: Option<KeyDetail>,
    /// All entries of subjectAltName.
    pub names: Vec<AlternativeName>,
    /// Identifier of its key in hex.
    pub subject_key_id: Option<String>,
    /// Identifier of its issuer's key in hex.
    pub authority_key_id: Option<String>,
    /// Its extensions, in their order.
    pub extensions: Vec<ExtensionDetail>,
    /// Signature in hex.
    pub signature: Option<String>,
    /// SHA-256 over the DER in hex.
    pub fingerprint_sha256: String,
    /// SHA-1 over the DER in hex, which older tools show.
    pub fingerprint_sha1: String,
    /// Length of the DER in bytes.
    pub length: usize,
}

/// A subject or issuer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DistinguishedName {
    /// On one line, such as `O=talos, CN=cp-1`; empty for the aggregator authority of Talos.
    pub text: String,
    /// Relative names in their order, each a set of attributes.
    pub parts: Vec<Vec<Attribute>>,
}

/// One attribute of a subject or issuer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Attribute {
    /// Short name such as `CN`, else the object identifier.
    pub kind: String,
    /// Text, or `#` and hex where it is none.
    pub value: String,
}

/// A public key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyDetail {
    /// Kind with its size, such as `RSA 2048` or `ECDSA P-256`.
    pub kind: String,
    /// Object identifier of the algorithm.
    pub algorithm: String,
    /// Bits of the modulus or of the key.
    pub bits: Option<usize>,
    /// Public exponent of RSA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exponent: Option<u64>,
    /// SHA-256 over SubjectPublicKeyInfo in hex.
    pub sha256: String,
    /// The same in base64, as pins are written, for example for `--cert-fingerprint`.
    pub pin: String,
}

/// One entry of subjectAltName.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AlternativeName {
    /// Kind: `DNS`, `IP`, `email`, `URI`, `directoryName`, `otherName`, `registeredID`, `x400Address`, `ediPartyName`.
    pub kind: String,
    /// The name; hex where it is no text.
    pub value: String,
}

/// One extension.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionDetail {
    /// Object identifier.
    pub id: String,
    /// Name such as `keyUsage`, where it has a known one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether clients that do not know it must refuse the certificate.
    pub critical: bool,
    /// What it says, one item a line; empty when it is not decoded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub value: Vec<String>,
    /// Its content in hex, when it is not decoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hex: Option<String>,
}

impl Inspection {
    /// Reads one certificate from DER, whatever state it is in.
    pub fn of(der: &[u8]) -> Self {
        let mut notes = Notes::default();
        let mut read = Self {
            malformed: Certificate::from_der(der).err().map(|error| chain(&error)),
            fingerprint_sha256: hex(&Sha256::digest(der)),
            fingerprint_sha1: hex(digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, der).as_ref()),
            length: der.len(),
            ..Self::default()
        };
        let mut reader = Reader::new(der, 0);
        if let Some(outer) = reader.expect(read::SEQUENCE, "the certificate", &mut notes) {
            read.read_parts(outer, &mut notes);
        }
        reader.end("the certificate", &mut notes);
        read.unreadable = notes.into_vec();
        read
    }

    /// Returns the part of DER that has, as far as it goes, the outer shape of a certificate, without what follows it; a
    /// private key, a key store or anything else has not, and nothing of it is to be shown.
    pub fn certificate_part(der: &[u8]) -> Option<&[u8]> {
        let inside = content_of(der)?;
        let end = (der.len() - inside.len()).saturating_add(declared_length(der)?);
        let der = der.get(..end).unwrap_or(der);
        let inside = content_of(der)?;
        let signed = content_of(inside)?;
        // Behind the part that is signed comes the algorithm, unless the rest is cut off.
        let header = inside.len() - signed.len();
        let next = header.saturating_add(declared_length(inside)?);
        let is_certificate = inside.get(next).is_none_or(|tag| *tag == read::SEQUENCE);
        is_certificate.then_some(der)
    }

    /// Reads every certificate of a PEM text, or the one of DER, whatever state they are in.
    ///
    /// # Errors
    /// [`Error::NoCertificate`] when there is none, else what is wrong with the PEM text.
    pub fn many(content: &[u8]) -> Result<Vec<Self>, Error> {
        const BEGIN: &[u8] = b"-----BEGIN ";
        let is_pem = content.windows(BEGIN.len()).any(|window| window == BEGIN);
        if !is_pem && content.first() == Some(&read::SEQUENCE) {
            return Ok(vec![Self::of(content)]);
        }
        let blocks = pem::certificates(content)?;
        Ok(blocks.iter().map(|block| Self::of(&block.der)).collect())
    }

    fn read_parts(&mut self, outer: Value<'_>, notes: &mut Notes) {
        let mut parts = outer.parts();
        if let Some(signed) = parts.expect(read::SEQUENCE, "the part that is signed", notes) {
            self.read_signed(signed, notes);
        }
        let algorithm = parts.expect(read::SEQUENCE, "the signature algorithm", notes);
        if let Some((identifier, _)) = algorithm.and_then(|value| identifier(value, notes)) {
            let name = oid::signature(&identifier).map(str::to_owned);
            let name = name.unwrap_or(identifier);
            let inner = self.signature_algorithm.get_or_insert_with(|| name.clone());
            if *inner != name {
                notes.add(format!(
                    "signature algorithm: {inner} in the part that is signed, {name} outside of it"
                ));
            }
        }
        let signature = parts.expect(read::BIT_STRING, "the signature", notes);
        self.signature = signature.map(|value| hex(value.bits()));
        parts.end("the certificate's parts", notes);
    }

    fn read_signed(&mut self, signed: Value<'_>, notes: &mut Notes) {
        let mut parts = signed.parts();
        let version = parts.optional(0xa0, notes);
        let number =
            version.and_then(|value| value.parts().expect(read::INTEGER, "the version", notes));
        self.version = Some(match number {
            Some(value) => value
                .number()
                .map_or(0, |number| number as u32)
                .saturating_add(1),
            None => 1,
        });
        if let Some(version) = self.version.filter(|version| !(1..=3).contains(version)) {
            notes.add(format!("version {version} does not exist"));
        }
        let serial = parts.expect(read::INTEGER, "the serial number", notes);
        self.serial = serial.map(|value| {
            if value.content.first().is_some_and(|byte| byte & 0x80 != 0) {
                notes.at(value.offset, "the serial number is negative");
            }
            hex(value.content.strip_prefix(&[0]).unwrap_or(value.content))
        });
        let algorithm = parts.expect(read::SEQUENCE, "the signature algorithm", notes);
        if let Some((identifier, _)) = algorithm.and_then(|value| identifier(value, notes)) {
            let name = oid::signature(&identifier).map(str::to_owned);
            self.signature_algorithm = Some(name.unwrap_or(identifier));
        }
        let issuer = parts.expect(read::SEQUENCE, "the issuer", notes);
        self.issuer = issuer.map(|value| read_name(value, "the issuer", notes));
        if let Some(validity) = parts.expect(read::SEQUENCE, "the validity", notes) {
            let mut times = validity.parts();
            self.not_before = read_time(times.next("the begin of validity", notes), notes);
            self.not_after = read_time(times.next("the end of validity", notes), notes);
        }
        let subject = parts.expect(read::SEQUENCE, "the subject", notes);
        self.subject = subject.map(|value| read_name(value, "the subject", notes));
        let key = parts.expect(read::SEQUENCE, "the public key", notes);
        self.key = key.and_then(|value| read_key(value, notes));
        for unique in [0x81, 0xa1, 0x82, 0xa2] {
            parts.optional(unique, notes);
        }
        if let Some(extensions) = parts.optional(0xa3, notes) {
            read_extensions(self, extensions, notes);
        }
        parts.end("the part that is signed", notes);
    }
}

/// Reads an AlgorithmIdentifier: its object identifier and its parameters.
fn identifier<'der>(
    value: Value<'der>,
    notes: &mut Notes,
) -> Option<(String, Option<Value<'der>>)> {
    let mut parts = value.parts();
    let identifier = parts.expect(read::OBJECT_IDENTIFIER, "an algorithm", notes)?;
    let parameters = match parts.is_empty() {
        true => None,
        false => parts.next("the parameters of an algorithm", notes),
    };
    Some((identifier.object_identifier(), parameters))
}

fn read_key(info: Value<'_>, notes: &mut Notes) -> Option<KeyDetail> {
    let mut parts = info.parts();
    let algorithm = parts.expect(read::SEQUENCE, "the algorithm of the key", notes)?;
    let (algorithm, parameters) = identifier(algorithm, notes)?;
    let hash = Sha256::digest(info.raw);
    let curve = parameters.filter(|value| value.tag == read::OBJECT_IDENTIFIER);
    let curve = curve.map(|value| value.object_identifier());
    let mut key = KeyDetail {
        kind: oid::key(&algorithm, curve.as_deref()),
        sha256: hex(&hash),
        pin: STANDARD.encode(hash),
        ..KeyDetail::default()
    };
    let bits = parts.expect(read::BIT_STRING, "the bits of the key", notes);
    if let (Some(bits), "1.2.840.113549.1.1.1") = (bits, algorithm.as_str()) {
        let mut outer = Reader::new(bits.bits(), bits.offset + 1);
        if let Some(numbers) = outer.expect(read::SEQUENCE, "the RSA key", notes) {
            let mut numbers = numbers.parts();
            let modulus = numbers.expect(read::INTEGER, "the modulus", notes);
            key.bits = modulus.map(|value| value.bit_length());
            let exponent = numbers.expect(read::INTEGER, "the exponent", notes);
            key.exponent = exponent.and_then(|value| value.number());
        }
        if let Some(bits) = key.bits {
            key.kind = format!("RSA {bits}");
        }
    } else {
        key.bits = match key.kind.as_str() {
            "Ed25519" | "X25519" | "ECDSA P-256" | "ECDSA secp256k1" => Some(256),
            "ECDSA P-192" => Some(192),
            "ECDSA P-224" => Some(224),
            "ECDSA P-384" => Some(384),
            "ECDSA P-521" => Some(521),
            "Ed448" | "X448" => Some(448),
            _ => None,
        };
    }
    key.algorithm = algorithm;
    Some(key)
}

fn read_time(value: Option<Value<'_>>, notes: &mut Notes) -> Option<Timestamp> {
    let value = value?;
    let text = String::from_utf8_lossy(value.content);
    let format = match value.tag {
        read::UTC_TIME => "%y%m%d%H%M%SZ",
        read::GENERALIZED_TIME => "%Y%m%d%H%M%SZ",
        tag => {
            notes.at(value.offset, format!("a time has the tag {tag:#04x}"));
            return None;
        }
    };
    let plain =
        text.ends_with('Z') && text.bytes().filter(u8::is_ascii_digit).count() + 1 == text.len();
    let read = DateTime::strptime(format, &*text).ok().filter(|_| plain);
    let Some(mut at) = read else {
        notes.at(value.offset, format!("{text:?} is no time"));
        return None;
    };
    // RFC 5280 begins the two-digit years with 1950, strptime with 1969.
    if value.tag == read::UTC_TIME && at.year() >= 2050 {
        at = at.checked_sub(jiff::Span::new().years(100)).ok()?;
    }
    Some(TimeZone::UTC.to_timestamp(at).unwrap_or(Timestamp::MAX))
}

/// Says an error with its causes.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Returns what stands behind the tag and length of a SEQUENCE, to the end of the input.
fn content_of(der: &[u8]) -> Option<&[u8]> {
    let (tag, rest) = der.split_first()?;
    let (first, _) = rest.split_first()?;
    let more = if first & 0x80 == 0 {
        0
    } else {
        usize::from(first & 0x7f)
    };
    (*tag == read::SEQUENCE && more <= 8).then(|| rest.get(1 + more..))?
}

/// Returns the length that the value at the beginning declares.
fn declared_length(der: &[u8]) -> Option<usize> {
    let first = *der.get(1)?;
    if first & 0x80 == 0 {
        return Some(usize::from(first));
    }
    let bytes = der.get(2..2 + usize::from(first & 0x7f))?;
    bytes.iter().try_fold(0_usize, |length, byte| {
        length.checked_mul(256)?.checked_add(usize::from(*byte))
    })
}

#[cfg(test)]
mod tests;
