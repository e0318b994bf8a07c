//! Judging the chain a server or client presents against what is expected of it.

mod chain;
mod leaf;

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Serialize, Serializer};

use crate::{Certificate, Name};

/// What is expected of a certificate; the default expects nothing but validity.
#[derive(Clone, Debug, Default)]
pub struct Expectation {
    /// Names and addresses by which the server is or may be reached.
    pub names: Vec<Name>,
    /// What the certificate is used for.
    pub role: Role,
    /// Authorities that should have issued it; empty when the chain is not to be judged.
    pub authorities: Vec<Certificate>,
    /// What those authorities are called in messages, such as `Kubernetes CA`.
    pub authority_label: Option<String>,
    /// Other authorities that are known, to tell which of them issued it instead.
    pub other_authorities: Vec<KnownAuthority>,
    /// Time before its end at which a certificate counts as expiring; zero when it never does.
    pub warn_within: SignedDuration,
    /// Setting of the machine configuration that adds a missing name, for example `machine.certSANs`.
    pub setting: Option<String>,
}

/// What a certificate is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// Key usage is not judged.
    #[default]
    Any,
    /// TLS server.
    Server,
    /// TLS client.
    Client,
    /// Client of the Talos API, which wants clientAuth to be the only purpose.
    TalosClient,
}

/// An authority that has a name among people, such as `etcd CA`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownAuthority {
    /// What it is called in messages.
    pub label: String,
    /// Its certificate.
    pub certificate: Certificate,
}

/// One problem of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Kind of problem.
    pub code: FindingCode,
    /// Position in the chain of the certificate that has it, the leaf being 0.
    pub certificate: usize,
    /// Name that is not covered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// Known authority that issued it, although another one is expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issued_by: Option<String>,
    /// What is wrong, as one sentence fragment.
    pub message: String,
    /// Setting that repairs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
}

/// Kind of problem, a stable word for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingCode {
    /// There is no certificate at all.
    NoCertificate,
    /// A name or address is not in subjectAltName.
    NameMissing,
    /// The validity has ended.
    Expired,
    /// The validity has not begun: often a clock that is wrong.
    NotYetValid,
    /// The validity ends soon.
    Expiring,
    /// An authority that the chain needs is outside of its validity.
    AuthorityExpired,
    /// No expected authority issued the certificate.
    UnknownAuthority,
    /// Another known authority issued the certificate than the expected one.
    WrongAuthority,
    /// The certificate is signed by its own key, which is none of the expected authorities.
    SelfSigned,
    /// An intermediate authority that the chain needs is known, and is not presented.
    MissingIntermediate,
    /// A certificate signed another one and is no authority, or not for so long a chain.
    NotAnAuthority,
    /// An authority in the chain does not allow a name of the certificate.
    NameConstraint,
    /// An authority is presented as the certificate of a server or client.
    AuthorityAsLeaf,
    /// A key is too weak: RSA below 2048 bits, elliptic curves below 256 bits, DSA.
    WeakKey,
    /// A signature is made with MD2, MD5 or SHA-1.
    WeakSignature,
    /// The keyUsage extension forbids the use.
    KeyUsage,
    /// The extendedKeyUsage extension forbids the use.
    ExtendedKeyUsage,
    /// An extension is malformed.
    UnreadableExtension,
    /// An extension stands more than once.
    DuplicateExtension,
    /// An extension is critical and unknown, so that clients refuse the certificate.
    CriticalExtension,
}

impl FindingCode {
    /// Tells whether clients that verify refuse a certificate for this; the rest is advice.
    pub fn refuses(self) -> bool {
        !matches!(self, Self::Expiring | Self::WeakKey | Self::AuthorityAsLeaf)
    }

    /// Returns the stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoCertificate => "no-certificate",
            Self::NameMissing => "name-missing",
            Self::Expired => "expired",
            Self::NotYetValid => "not-yet-valid",
            Self::Expiring => "expiring",
            Self::AuthorityExpired => "authority-expired",
            Self::UnknownAuthority => "unknown-authority",
            Self::WrongAuthority => "wrong-authority",
            Self::SelfSigned => "self-signed",
            Self::MissingIntermediate => "missing-intermediate",
            Self::NotAnAuthority => "not-an-authority",
            Self::NameConstraint => "name-constraint",
            Self::AuthorityAsLeaf => "authority-as-leaf",
            Self::WeakKey => "weak-key",
            Self::WeakSignature => "weak-signature",
            Self::KeyUsage => "key-usage",
            Self::ExtendedKeyUsage => "extended-key-usage",
            Self::UnreadableExtension => "unreadable-extension",
            Self::DuplicateExtension => "duplicate-extension",
            Self::CriticalExtension => "critical-extension",
        }
    }
}

impl fmt::Display for FindingCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl Serialize for FindingCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Judges a chain, leaf first, at a given time; one finding per problem, none when all is well.
pub fn judge(chain: &[Certificate], expected: &Expectation, now: Timestamp) -> Vec<Finding> {
    let Some((leaf, rest)) = chain.split_first() else {
        return vec![finding(
            FindingCode::NoCertificate,
            "no certificate was presented",
        )];
    };
    let mut findings = leaf::extensions(leaf);
    findings.extend(leaf::names(leaf, expected));
    findings.extend(leaf::dates(leaf, expected.warn_within, now));
    findings.extend(leaf::usage(leaf, expected.role));
    findings.extend(leaf::strength(leaf));
    if !expected.authorities.is_empty() {
        findings.extend(chain::judge(leaf, rest, expected, now));
    }
    findings
}

/// Tells by how much this machine's clock must be behind, at least, when a certificate that begins in the future is
/// sound: nodes issue certificates that are valid from that very moment.
pub fn clock_behind(certificate: &Certificate, now: Timestamp) -> Option<SignedDuration> {
    let behind = now.duration_until(certificate.not_before());
    behind.is_positive().then_some(behind)
}

fn is_valid(certificate: &Certificate, now: Timestamp) -> bool {
    certificate.not_before() <= now && !is_after(now, certificate.not_after())
}

/// Certificates end with a whole second, which still belongs to their validity.
fn is_after(now: Timestamp, end: Timestamp) -> bool {
    now.as_second() > end.as_second()
}

fn finding(code: FindingCode, message: impl Into<String>) -> Finding {
    Finding {
        code,
        certificate: 0,
        name: None,
        issued_by: None,
        message: message.into(),
        setting: None,
    }
}

#[cfg(test)]
mod tests;
