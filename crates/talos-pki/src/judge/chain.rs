//! The path from a leaf to an expected authority, and why there is none.

use jiff::Timestamp;

use super::leaf::{has_weak_key, strength};
use super::{Expectation, Finding, FindingCode, finding, is_valid};
use crate::{Certificate, is_issued_by};

/// Signatures that are verified for one chain: what servers present must not cost more.
const MOST_SIGNATURES: usize = 200;
/// Certificates between the leaf and the authority.
const MOST_INTERMEDIATES: usize = 16;

/// A certificate that a path from the leaf has reached.
#[derive(Clone, Copy)]
struct Step<'chain> {
    certificate: &'chain Certificate,
    /// Position in the presented chain; the leaf is 0.
    position: usize,
    /// Intermediates between the leaf and this one, itself included, without those that issued to their own name.
    length: u32,
    /// Index of the step whose certificate this one signed.
    from: Option<usize>,
}

/// The search for a path: breadth first, each certificate of the chain once.
struct Search<'chain> {
    leaf: &'chain Certificate,
    steps: Vec<Step<'chain>>,
    signatures: usize,
    now: Timestamp,
    /// What stood in the way, the first of it.
    obstacle: Option<Finding>,
}

pub(super) fn judge(
    leaf: &Certificate,
    rest: &[Certificate],
    expected: &Expectation,
    now: Timestamp,
) -> Vec<Finding> {
    let mut search = Search::new(leaf, now);
    if let Some((at, authority)) = search.run(rest, &expected.authorities) {
        return search.strengths(at, authority);
    }
    let obstacle = search.obstacle.take();
    let finding = obstacle
        .or_else(|| wrong_authority(&mut search, expected))
        .or_else(|| missing_intermediate(leaf, rest, expected, now))
        .unwrap_or_else(|| unknown_authority(&search, expected));
    vec![finding]
}

impl<'chain> Search<'chain> {
    fn new(leaf: &'chain Certificate, now: Timestamp) -> Self {
        let first = Step {
            certificate: leaf,
            position: 0,
            length: 0,
            from: None,
        };
        Self {
            leaf,
            steps: vec![first],
            signatures: 0,
            now,
            obstacle: None,
        }
    }

    /// Looks for a path and returns its last step and the authority that it ends with.
    fn run<'authority>(
        &mut self,
        rest: &'chain [Certificate],
        authorities: &'authority [Certificate],
    ) -> Option<(usize, &'authority Certificate)> {
        let mut unseen: Vec<(usize, &Certificate)> = (1..).zip(rest).collect();
        let mut at = 0;
        while let Some(&step) = self.steps.get(at) {
            for authority in authorities {
                let trusted = authority == step.certificate;
                if !trusted && !self.issued(step.certificate, authority) {
                    continue;
                }
                if trusted && (step.position == 0 || is_valid(authority, self.now))
                    || self.may_sign(authority, &step, step.position)
                {
                    return Some((at, authority));
                }
            }
            let (issuers, others): (Vec<_>, Vec<_>) = unseen
                .into_iter()
                .partition(|(_, candidate)| self.issued(step.certificate, candidate));
            unseen = others;
            for (position, certificate) in issuers {
                let is_known = self
                    .steps
                    .iter()
                    .any(|step| step.certificate == certificate);
                if is_known
                    || self.steps.len() > MOST_INTERMEDIATES * 4
                    || !self.may_sign(certificate, &step, position)
                {
                    continue;
                }
                let length = step.length + u32::from(!certificate.is_self_issued());
                if length as usize <= MOST_INTERMEDIATES {
                    self.steps.push(Step {
                        certificate,
                        position,
                        length,
                        from: Some(at),
                    });
                }
            }
            at += 1;
        }
        None
    }

    /// Verifies a signature, unless too many have been verified already.
    fn issued(&mut self, certificate: &Certificate, issuer: &Certificate) -> bool {
        if certificate.raw_issuer() != issuer.raw_subject() || self.signatures >= MOST_SIGNATURES {
            return false;
        }
        self.signatures += 1;
        is_issued_by(certificate, issuer)
    }

    /// Tells whether a certificate that signed the last one of a path may do so, and keeps the reason if not.
    fn may_sign(&mut self, issuer: &Certificate, below: &Step<'_>, position: usize) -> bool {
        let subject = issuer.subject();
        let (code, message) = if !issuer.is_ca() {
            let message = format!(
                "signed by the certificate {subject:?}, which is no authority (basicConstraints does not say CA:TRUE)"
            );
            (FindingCode::NotAnAuthority, message)
        } else if issuer.key_usage().is_some_and(|usage| !usage.key_cert_sign) {
            let message = format!(
                "signed by {subject:?}, which may not sign certificates (keyUsage lacks keyCertSign)"
            );
            (FindingCode::NotAnAuthority, message)
        } else if issuer.path_length().is_some_and(|most| below.length > most) {
            let message = format!(
                "the authority {subject:?} allows no more than {} intermediates below it",
                issuer.path_length().unwrap_or_default()
            );
            (FindingCode::NotAnAuthority, message)
        } else if !is_valid(issuer, self.now) {
            let message = format!(
                "the authority {subject:?} is valid from {} to {} only",
                issuer.not_before(),
                issuer.not_after()
            );
            (FindingCode::AuthorityExpired, message)
        } else if let Some(name) = issuer
            .name_constraints()
            .and_then(|constraints| constraints.refused(self.leaf.names()))
        {
            let message =
                format!("the authority {subject:?} does not allow certificates for {name}");
            (FindingCode::NameConstraint, message)
        } else if let Some(identifier) = issuer.unknown_critical_extensions().first() {
            let message = format!(
                "the authority {subject:?} has the critical extension {identifier}, which is not generally known"
            );
            (FindingCode::CriticalExtension, message)
        } else {
            return true;
        };
        self.obstacle.get_or_insert_with(|| Finding {
            certificate: position,
            ..finding(code, message)
        });
        false
    }

    /// Judges the strength of the intermediates of a path and of the authority at its end.
    fn strengths(&self, last: usize, authority: &Certificate) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut next = Some(last);
        while let Some(step) = next.and_then(|at| self.steps.get(at)) {
            next = step.from;
            if step.position > 0 {
                findings.extend(strength(step.certificate).into_iter().map(|weak| Finding {
                    certificate: step.position,
                    ..weak
                }));
            }
        }
        if has_weak_key(authority) && authority != self.leaf {
            let message = format!(
                "the key of the authority {:?} is {}, which is too weak",
                authority.subject(),
                authority.key_kind()
            );
            findings.push(finding(FindingCode::WeakKey, message));
        }
        findings
    }
}

/// Finds the known authority that a path ends with, although another one is expected.
fn wrong_authority(search: &mut Search<'_>, expected: &Expectation) -> Option<Finding> {
    let steps = search.steps.clone();
    // An intermediate of the expected authority is no wrong one: it is missing.
    let known = expected.other_authorities.iter().find(|known| {
        let certificate = &known.certificate;
        let is_root = certificate.is_self_issued();
        is_root
            && steps.iter().any(|step| {
                step.certificate == certificate || search.issued(step.certificate, certificate)
            })
    })?;
    let wanted = match &expected.authority_label {
        Some(label) => format!("expected the {label}"),
        None => "expected another one".to_owned(),
    };
    Some(Finding {
        issued_by: Some(known.label.clone()),
        ..finding(
            FindingCode::WrongAuthority,
            format!("issued by the {}, {wanted}", known.label),
        )
    })
}

/// Looks for a path again, with the known authorities as if they had been presented.
fn missing_intermediate(
    leaf: &Certificate,
    rest: &[Certificate],
    expected: &Expectation,
    now: Timestamp,
) -> Option<Finding> {
    if expected.other_authorities.is_empty() {
        return None;
    }
    let known = expected.other_authorities.iter();
    let known = known.map(|known| known.certificate.clone());
    let more: Vec<Certificate> = rest.iter().cloned().chain(known).collect();
    let mut search = Search::new(leaf, now);
    let (last, _) = search.run(&more, &expected.authorities)?;
    let step = search.steps.get(last)?;
    let position = step.position.checked_sub(rest.len() + 1)?;
    let missing = expected.other_authorities.get(position)?;
    Some(Finding {
        issued_by: Some(missing.label.clone()),
        ..finding(
            FindingCode::MissingIntermediate,
            format!(
                "issued below the {} ({:?}), which is not presented with it",
                missing.label,
                missing.certificate.subject()
            ),
        )
    })
}

fn unknown_authority(search: &Search<'_>, expected: &Expectation) -> Finding {
    let last = search.steps.last();
    let last = last.map_or(search.leaf, |step| step.certificate);
    let wanted = match &expected.authority_label {
        Some(label) => format!("is not the {label}"),
        None => "is none of the expected authorities".to_owned(),
    };
    if search.leaf.is_self_issued() && is_issued_by(search.leaf, search.leaf) {
        return finding(
            FindingCode::SelfSigned,
            format!("it is signed by its own key, which {wanted}"),
        );
    }
    let namesake = expected
        .authorities
        .iter()
        .any(|authority| authority.raw_subject() == last.raw_issuer());
    let why = if namesake {
        "; an expected authority has the same name and another key"
    } else {
        ""
    };
    finding(
        FindingCode::UnknownAuthority,
        format!("issued by {:?}, which {wanted}{why}", last.issuer()),
    )
}
