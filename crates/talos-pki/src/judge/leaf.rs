//! What can be said of a certificate by itself.

use jiff::{SignedDuration, Timestamp};

use super::{Expectation, Finding, FindingCode, Role, clock_behind, finding, is_after};
use crate::sans::{Covering, near_miss};
use crate::{Algorithm, Certificate, KeyUsage, Purpose, oid};

pub(super) fn extensions(leaf: &Certificate) -> Vec<Finding> {
    let kinds: [(FindingCode, &[String], &str); 3] = [
        (
            FindingCode::UnreadableExtension,
            leaf.unreadable_extensions(),
            "is malformed",
        ),
        (
            FindingCode::DuplicateExtension,
            leaf.duplicate_extensions(),
            "stands more than once; only the first counts here, and most clients refuse the certificate",
        ),
        (
            FindingCode::CriticalExtension,
            leaf.unknown_critical_extensions(),
            "is critical and not generally known, so that clients refuse the certificate",
        ),
    ];
    let kinds = kinds.into_iter().flat_map(|(code, identifiers, what)| {
        identifiers.iter().map(move |identifier| {
            let name = oid::extension(identifier).unwrap_or(identifier);
            finding(code, format!("extension {name} {what}"))
        })
    });
    kinds.collect()
}

pub(super) fn names<'judged>(
    leaf: &'judged Certificate,
    expected: &'judged Expectation,
) -> impl Iterator<Item = Finding> + 'judged {
    let covering = Covering::of(leaf, expected.names.len());
    let missing = expected
        .names
        .iter()
        .filter(move |name| !covering.has(name));
    missing.map(|name| {
        let why = near_miss(leaf, name).map_or_else(String::new, |why| format!(": {why}"));
        Finding {
            name: Some(name.clone()),
            setting: expected.setting.clone(),
            ..finding(
                FindingCode::NameMissing,
                format!("{name} is not in subjectAltName{why}"),
            )
        }
    })
}

pub(super) fn dates(
    leaf: &Certificate,
    warn_within: SignedDuration,
    now: Timestamp,
) -> Option<Finding> {
    let end = leaf.not_after();
    if let Some(behind) = clock_behind(leaf, now) {
        let start = leaf.not_before();
        let message = format!(
            "valid only from {start} on; a clock here that is at least {behind:#} behind would explain it"
        );
        Some(finding(FindingCode::NotYetValid, message))
    } else if is_after(now, end) {
        Some(finding(FindingCode::Expired, format!("expired at {end}")))
    } else if !warn_within.is_zero() && now.duration_until(end) <= warn_within {
        Some(finding(FindingCode::Expiring, format!("expires at {end}")))
    } else {
        None
    }
}

pub(super) fn usage(leaf: &Certificate, role: Role) -> Vec<Finding> {
    let purpose = match role {
        Role::Any => return Vec::new(),
        Role::Server => Purpose::ServerAuth,
        Role::Client | Role::TalosClient => Purpose::ClientAuth,
    };
    let mut findings = Vec::new();
    if leaf.is_ca() {
        findings.push(finding(
            FindingCode::AuthorityAsLeaf,
            "it is an authority itself (basicConstraints says CA:TRUE), which some clients refuse to talk to",
        ));
    }
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

/// Judges the key of a certificate and, unless it signed itself, what it was signed with.
pub(super) fn strength(certificate: &Certificate) -> Vec<Finding> {
    let mut findings = Vec::new();
    if has_weak_key(certificate) {
        let message = format!(
            "its key is {}, which is too weak: at least RSA 2048, ECDSA P-256 or Ed25519 is needed",
            certificate.key_kind()
        );
        findings.push(finding(FindingCode::WeakKey, message));
    }
    let signature = certificate.signature_kind();
    let hash = signature.rsplit(' ').next().unwrap_or_default();
    if !certificate.is_self_issued() && ["MD2", "MD5", "SHA-1"].contains(&hash) {
        let message = format!("it is signed with {signature}, which can be forged");
        findings.push(finding(FindingCode::WeakSignature, message));
    }
    findings
}

pub(super) fn has_weak_key(certificate: &Certificate) -> bool {
    match certificate.algorithm() {
        // The bits of a modulus are given in whole bytes.
        Algorithm::Rsa(bits) => bits < 2048,
        Algorithm::Other => {
            let kind = certificate.key_kind();
            ["ECDSA P-192", "ECDSA P-224", "DSA"].contains(&kind)
        }
        _ => false,
    }
}
