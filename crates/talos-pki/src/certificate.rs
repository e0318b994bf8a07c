//! One X.509 certificate, read once into plain values.

use std::fmt;
use std::ops::Range;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::time::ASN1Time;
use x509_parser::x509::{SubjectPublicKeyInfo, X509Name};

use crate::constraints::NameConstraints;
use crate::extensions::{Extensions, KeyUsage, Purpose};
use crate::{Algorithm, Error, Name, oid, pem};

/// An X.509 certificate.
#[derive(Clone)]
pub struct Certificate {
    der: Vec<u8>,
    serial: Vec<u8>,
    subject: String,
    issuer: String,
    raw_subject: Vec<u8>,
    raw_issuer: Vec<u8>,
    common_name: Option<String>,
    organizations: Vec<String>,
    not_before: Timestamp,
    not_after: Timestamp,
    algorithm: Algorithm,
    key_kind: String,
    public_key_info: Vec<u8>,
    public_key: Vec<u8>,
    signed: Range<usize>,
    signature_algorithm: String,
    signature_parameters: Vec<u8>,
    signature: Vec<u8>,
    extensions: Extensions,
}

impl Certificate {
    /// Reads one certificate from DER.
    ///
    /// # Errors
    /// [`Error::Certificate`] or [`Error::TrailingBytes`], both with position 1.
    pub fn from_der(der: &[u8]) -> Result<Self, Error> {
        Self::numbered(der, 1)
    }

    /// Reads a chain from DER blobs, in their order.
    ///
    /// # Errors
    /// As [`Certificate::from_der`], with the position of the one that is wrong.
    pub fn many_from_der<Der: AsRef<[u8]>>(chain: &[Der]) -> Result<Vec<Self>, Error> {
        chain
            .iter()
            .zip(1..)
            .map(|(der, number)| Self::numbered(der.as_ref(), number))
            .collect()
    }

    /// Reads every certificate of a PEM text, in order; blocks with other labels are passed over.
    ///
    /// # Errors
    /// [`Error::NoCertificate`] when there is none, else what is wrong with the text or with which certificate.
    pub fn many_from_pem(text: impl AsRef<[u8]>) -> Result<Vec<Self>, Error> {
        pem::certificates(text.as_ref())?
            .iter()
            .zip(1..)
            .map(|(block, number)| Self::numbered(&block.der, number))
            .collect()
    }

    /// Returns the certificate as DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Writes the certificate as one PEM block.
    pub fn pem(&self) -> String {
        pem::encode("CERTIFICATE", &self.der)
    }

    /// Returns the subject as text such as `O=talos`; empty for the aggregator authority of Talos.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Returns the issuer as text.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the first common name of the subject.
    pub fn common_name(&self) -> Option<&str> {
        self.common_name.as_deref()
    }

    /// Returns the organizations of the subject: for Talos clients, their roles.
    pub fn organizations(&self) -> &[String] {
        &self.organizations
    }

    /// Returns the serial number as big-endian bytes.
    pub fn serial(&self) -> &[u8] {
        &self.serial
    }

    /// Returns the first moment of validity.
    pub fn not_before(&self) -> Timestamp {
        self.not_before
    }

    /// Returns the last moment of validity.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// Returns the DNS names and addresses of subjectAltName, in the certificate's order.
    pub fn names(&self) -> &[Name] {
        &self.extensions.names
    }

    /// Tells whether basicConstraints makes this an authority.
    pub fn is_ca(&self) -> bool {
        self.extensions.is_ca
    }

    /// Tells whether there is a basicConstraints extension: leaves that Talos issues have none.
    pub fn has_basic_constraints(&self) -> bool {
        self.extensions.has_basic_constraints
    }

    /// Returns the keyUsage extension.
    pub fn key_usage(&self) -> Option<KeyUsage> {
        self.extensions.key_usage
    }

    /// Returns the extendedKeyUsage extension; without it every purpose is allowed.
    pub fn extended_key_usage(&self) -> Option<&[Purpose]> {
        self.extensions.purposes.as_deref()
    }

    /// Returns the identifier of this certificate's key.
    pub fn subject_key_id(&self) -> Option<&[u8]> {
        self.extensions.subject_key_id.as_deref()
    }

    /// Returns the identifier of the issuer's key.
    pub fn authority_key_id(&self) -> Option<&[u8]> {
        self.extensions.authority_key_id.as_deref()
    }

    /// Names, by object identifier, the extensions that are malformed; what can be read of them counts.
    pub fn unreadable_extensions(&self) -> &[String] {
        &self.extensions.unreadable
    }

    /// Names, by object identifier, the extensions that stand more than once; the first counts.
    pub fn duplicate_extensions(&self) -> &[String] {
        &self.extensions.duplicate
    }

    /// Names, by object identifier, the critical extensions that TLS libraries do not know and so refuse.
    pub fn unknown_critical_extensions(&self) -> &[String] {
        &self.extensions.unknown_critical
    }

    /// Returns how many intermediates may follow this authority, from basicConstraints.
    pub fn path_length(&self) -> Option<u32> {
        self.extensions.path_length
    }

    /// Returns SHA-256 over the DER, in lower-case hex.
    pub fn fingerprint(&self) -> String {
        hex(&Sha256::digest(&self.der))
    }

    /// Returns SHA-256 over SubjectPublicKeyInfo, what Talos compares with `--cert-fingerprint`.
    pub fn spki_sha256(&self) -> [u8; 32] {
        Sha256::digest(&self.public_key_info).into()
    }

    /// Names the kind of the public key.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Names the kind of the public key, also of those that this library cannot use, such as `ECDSA P-224`.
    pub fn key_kind(&self) -> &str {
        &self.key_kind
    }

    /// Names how the certificate is signed, such as `ECDSA with SHA-256`; an unknown way by its object identifier.
    pub fn signature_kind(&self) -> &str {
        oid::signature(&self.signature_algorithm).unwrap_or(&self.signature_algorithm)
    }

    /// Returns SubjectPublicKeyInfo as DER.
    pub fn public_key_info(&self) -> &[u8] {
        &self.public_key_info
    }

    /// Tells whether subject and issuer are the same name.
    pub fn is_self_issued(&self) -> bool {
        self.raw_subject == self.raw_issuer
    }

    pub(crate) fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// Returns the part that is signed, as DER.
    pub(crate) fn signed(&self) -> &[u8] {
        self.der.get(self.signed.clone()).unwrap_or_default()
    }

    /// Returns the object identifier and the DER parameters of the way it is signed.
    pub(crate) fn signature_algorithm(&self) -> (&str, &[u8]) {
        (&self.signature_algorithm, &self.signature_parameters)
    }

    pub(crate) fn signature(&self) -> &[u8] {
        &self.signature
    }

    pub(crate) fn name_constraints(&self) -> Option<&NameConstraints> {
        self.extensions.name_constraints.as_ref()
    }

    pub(crate) fn raw_subject(&self) -> &[u8] {
        &self.raw_subject
    }

    pub(crate) fn raw_issuer(&self) -> &[u8] {
        &self.raw_issuer
    }

    fn numbered(der: &[u8], number: usize) -> Result<Self, Error> {
        let (rest, parsed) =
            X509Certificate::from_der(der).map_err(|error| Error::Certificate {
                number,
                source: x509_error(error),
            })?;
        if !rest.is_empty() {
            return Err(Error::TrailingBytes {
                number,
                count: rest.len(),
            });
        }
        let subject = parsed.subject();
        let key = parsed.public_key();
        let algorithm = algorithm(key);
        let signed = parsed.tbs_certificate.as_ref();
        let start = signed.as_ptr() as usize - der.as_ptr() as usize;
        let parameters = parsed.signature_algorithm.parameters.as_ref();
        Ok(Self {
            der: der.to_vec(),
            serial: parsed.raw_serial().to_vec(),
            subject: subject.to_string(),
            issuer: parsed.issuer().to_string(),
            raw_subject: subject.as_raw().to_vec(),
            raw_issuer: parsed.issuer().as_raw().to_vec(),
            common_name: common_name(subject),
            organizations: organizations(subject),
            not_before: timestamp(parsed.validity().not_before),
            not_after: timestamp(parsed.validity().not_after),
            algorithm,
            key_kind: key_kind(key, algorithm),
            signed: start..start + signed.len(),
            signature_algorithm: parsed.signature_algorithm.algorithm.to_id_string(),
            signature_parameters: parameters
                .map(|parameters| parameters.data.to_vec())
                .unwrap_or_default(),
            // A signature is of whole bytes; one that says otherwise verifies nothing.
            signature: match parsed.signature_value.unused_bits {
                0 => parsed.signature_value.data.to_vec(),
                _ => Vec::new(),
            },
            public_key_info: key.raw.to_vec(),
            public_key: key.subject_public_key.data.to_vec(),
            extensions: Extensions::read(&parsed),
        })
    }
}

impl PartialEq for Certificate {
    fn eq(&self, other: &Self) -> bool {
        self.der == other.der
    }
}

impl Eq for Certificate {}

impl fmt::Debug for Certificate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Certificate")
            .field("subject", &self.subject)
            .field("issuer", &self.issuer)
            .field("names", &self.extensions.names)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

/// Formats bytes as lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Unwraps the parser's error of its streaming shell; an incomplete input is a damaged certificate.
pub(crate) fn x509_error(
    error: x509_parser::nom::Err<x509_parser::error::X509Error>,
) -> x509_parser::error::X509Error {
    match error {
        x509_parser::nom::Err::Error(error) | x509_parser::nom::Err::Failure(error) => error,
        x509_parser::nom::Err::Incomplete(_) => x509_parser::error::X509Error::InvalidCertificate,
    }
}

pub(crate) fn common_name(name: &X509Name<'_>) -> Option<String> {
    let first = name.iter_common_name().next()?;
    first.as_str().ok().map(str::to_owned)
}

pub(crate) fn organizations(name: &X509Name<'_>) -> Vec<String> {
    name.iter_organization()
        .filter_map(|attribute| attribute.as_str().ok())
        .map(str::to_owned)
        .collect()
}

/// Years after 9999, which mean "never" in certificates, become the last moment jiff knows.
fn timestamp(time: ASN1Time) -> Timestamp {
    Timestamp::from_second(time.timestamp()).unwrap_or(if time.timestamp() > 0 {
        Timestamp::MAX
    } else {
        Timestamp::MIN
    })
}

pub(crate) fn algorithm(key: &SubjectPublicKeyInfo<'_>) -> Algorithm {
    if key.algorithm.algorithm.to_id_string() == "1.3.101.112" {
        return Algorithm::Ed25519;
    }
    let curve = || {
        let parameters = key.algorithm.parameters.as_ref()?;
        parameters.as_oid().ok().map(|oid| oid.to_id_string())
    };
    match key.parsed() {
        Ok(PublicKey::RSA(key)) => Algorithm::Rsa(key.key_size()),
        Ok(PublicKey::EC(_)) => match curve().as_deref() {
            Some("1.2.840.10045.3.1.7") => Algorithm::EcdsaP256,
            Some("1.3.132.0.34") => Algorithm::EcdsaP384,
            Some("1.3.132.0.35") => Algorithm::EcdsaP521,
            _ => Algorithm::Other,
        },
        _ => Algorithm::Other,
    }
}

/// Names a key also where this library cannot use it.
fn key_kind(key: &SubjectPublicKeyInfo<'_>, algorithm: Algorithm) -> String {
    if algorithm != Algorithm::Other {
        return algorithm.to_string();
    }
    let identifier = key.algorithm.algorithm.to_id_string();
    let parameters = key.algorithm.parameters.as_ref();
    let curve = parameters.and_then(|parameters| parameters.as_oid().ok());
    let curve = curve.map(|curve| curve.to_id_string());
    oid::key(&identifier, curve.as_deref())
}

#[cfg(test)]
mod tests;
