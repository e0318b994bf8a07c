//! Judging the chain a server or client presents against what is expected of it.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Serialize, Serializer};

use crate::{Certificate, KeyUsage, Name, Purpose, covers, is_issued_by};

/// What is expected of a certificate; the default expects nothing but validity.
#[derive(Clone, Debug, Default)]
pub struct Expectation {
    /// Names and addresses by which the server is or may be reached.
    pub names: Vec<Name>,
    /// What the certificate is used for.
    pub role: Role,
    /// Authorities that should have issued it; empty when the chain is not to be judged.
    pub authorities: Vec<Certificate>,
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
    /// The keyUsage extension forbids the use.
    KeyUsage,
    /// The extendedKeyUsage extension forbids the use.
    ExtendedKeyUsage,
    /// An extension is malformed or stands twice.
    UnreadableExtension,
}

impl FindingCode {
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
            Self::KeyUsage => "key-usage",
            Self::ExtendedKeyUsage => "extended-key-usage",
            Self::UnreadableExtension => "unreadable-extension",
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
    let mut findings = Vec::new();
    for identifier in leaf.unreadable_extensions() {
        findings.push(finding(
            FindingCode::UnreadableExtension,
            format!("extension {identifier} is malformed or stands twice"),
        ));
    }
    findings.extend(judge_names(leaf, expected));
    findings.extend(judge_dates(leaf, expected.warn_within, now));
    findings.extend(judge_usage(leaf, expected.role));
    if !expected.authorities.is_empty() {
        findings.extend(judge_chain(leaf, rest, &expected.authorities, now));
    }
    findings
}

fn judge_names<'judged>(
    leaf: &'judged Certificate,
    expected: &'judged Expectation,
) -> impl Iterator<Item = Finding> + 'judged {
    let missing = expected.names.iter().filter(|name| !covers(leaf, name));
    missing.map(|name| Finding {
        name: Some(name.clone()),
        setting: expected.setting.clone(),
        ..finding(
            FindingCode::NameMissing,
            format!("{name} is not in subjectAltName"),
        )
    })
}

fn judge_dates(leaf: &Certificate, warn_within: SignedDuration, now: Timestamp) -> Option<Finding> {
    let (start, end) = (leaf.not_before(), leaf.not_after());
    if now < start {
        let message = format!("valid only from {start} on");
        Some(finding(FindingCode::NotYetValid, message))
    } else if is_after(now, end) {
        Some(finding(FindingCode::Expired, format!("expired at {end}")))
    } else if !warn_within.is_zero() && now.duration_until(end) <= warn_within {
        Some(finding(FindingCode::Expiring, format!("expires at {end}")))
    } else {
        None
    }
}

fn judge_usage(leaf: &Certificate, role: Role) -> Vec<Finding> {
    let purpose = match role {
        Role::Any => return Vec::new(),
        Role::Server => Purpose::ServerAuth,
        Role::Client | Role::TalosClient => Purpose::ClientAuth,
    };
    let mut findings = Vec::new();
    let forbidden = |usage: KeyUsage| !usage.digital_signature;
    if leaf.key_usage().is_some_and(forbidden) {
        findings.push(finding(
            FindingCode::KeyUsage,
            "keyUsage lacks digitalSignature, which TLS needs",
        ));
    }
    let given = leaf.extended_key_usage();
    let allowed = match role {
        Role::TalosClient => given == Some(&[Purpose::ClientAuth]),
        _ => given.is_none_or(|given| given.contains(&purpose) || given.contains(&Purpose::Any)),
    };
    if !allowed {
        let listed = given.unwrap_or_default().iter();
        let listed: Vec<String> = listed.map(ToString::to_string).collect();
        let wanted = if role == Role::TalosClient {
            "exactly"
        } else {
            "among others"
        };
        findings.push(finding(
            FindingCode::ExtendedKeyUsage,
            format!(
                "extendedKeyUsage is [{}], needed is {wanted} {purpose}",
                listed.join(", ")
            ),
        ));
    }
    findings
}

/// Looks for a path to an expected authority: breadth first, each certificate of the chain once.
fn judge_chain(
    leaf: &Certificate,
    rest: &[Certificate],
    authorities: &[Certificate],
    now: Timestamp,
) -> Option<Finding> {
    let mut reached: Vec<(usize, &Certificate)> = vec![(0, leaf)];
    let mut expired = None;
    let mut next = 0;
    while let Some(&(position, certificate)) = reached.get(next) {
        next += 1;
        let issuers = authorities
            .iter()
            .filter(|authority| *authority == certificate || signs(authority, certificate));
        for authority in issuers {
            if is_valid(authority, now) {
                return None;
            }
            expired.get_or_insert((position, authority));
        }
        for (index, candidate) in rest.iter().enumerate() {
            let seen = reached
                .iter()
                .any(|(_, certificate)| *certificate == candidate);
            if seen || !signs(candidate, certificate) {
                continue;
            }
            if is_valid(candidate, now) {
                reached.push((index + 1, candidate));
            } else {
                expired.get_or_insert((index + 1, candidate));
            }
        }
    }
    Some(match expired {
        Some((position, authority)) => Finding {
            certificate: position,
            ..finding(
                FindingCode::AuthorityExpired,
                format!(
                    "the authority {:?} is valid from {} to {} only",
                    authority.subject(),
                    authority.not_before(),
                    authority.not_after()
                ),
            )
        },
        None => finding(
            FindingCode::UnknownAuthority,
            format!(
                "issued by {:?}, which is none of the expected authorities",
                leaf.issuer()
            ),
        ),
    })
}

fn signs(authority: &Certificate, certificate: &Certificate) -> bool {
    let may_sign = authority
        .key_usage()
        .is_none_or(|usage| usage.key_cert_sign);
    authority.is_ca() && may_sign && is_issued_by(certificate, authority)
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
        message: message.into(),
        setting: None,
    }
}

#[cfg(test)]
mod tests;
