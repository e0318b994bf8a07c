//! The verdict on client certificates, and on the authorities that the files trust which hold them.

use jiff::Timestamp;
use talos_pki::{Certificate, Expectation, Role, judge};

use super::server::{KUBERNETES_CA, TALOS_CA};
use super::{CheckOptions, advice, problem};
use crate::ServerKind;
use crate::evidence::{ClientSeen, Evidence, TrustSeen};
use crate::report::{CertificateSummary, Client, Problem};

/// Roles of the Talos API with which a caller may look at nodes.
const READING: [&str; 3] = ["os:admin", "os:operator", "os:reader"];
/// Roles of the Talos API for one purpose each.
const NARROW: [&str; 4] = [
    "os:etcd:backup",
    "os:image:verifier",
    "os:impersonator",
    "os:meta:writer",
];

/// Judges all client certificates and trusted authorities.
pub(super) fn judge_clients(
    evidence: &Evidence,
    options: &CheckOptions,
    now: Timestamp,
) -> Vec<Client> {
    let clients = evidence.clients.iter();
    let mut clients: Vec<Client> = clients
        .map(|client| judge_client(client, evidence, options, now))
        .collect();
    for trusted in &evidence.trusted {
        let Some(found) = not_accepted(trusted, evidence) else {
            continue;
        };
        match clients
            .iter_mut()
            .find(|client| client.place == trusted.place)
        {
            Some(client) => client.findings.push(found),
            None => clients.push(Client {
                place: trusted.place.clone(),
                certificate: CertificateSummary::of(&trusted.certificate),
                findings: vec![found],
            }),
        }
    }
    clients
}

fn judge_client(
    seen: &ClientSeen,
    evidence: &Evidence,
    options: &CheckOptions,
    now: Timestamp,
) -> Client {
    let (authorities, label) = match seen.role {
        Role::TalosClient => (&evidence.talos_accepted, TALOS_CA),
        _ => (&evidence.kubernetes_accepted, KUBERNETES_CA),
    };
    let expectation = Expectation {
        role: seen.role,
        authorities: authorities.clone(),
        authority_label: Some(label.to_owned()),
        other_authorities: evidence.others(Some(label)),
        warn_within: options.warn_within,
        ..Expectation::default()
    };
    let chain = std::slice::from_ref(&seen.certificate);
    let findings = judge(chain, &expectation, now);
    let mut findings: Vec<Problem> = findings
        .iter()
        .map(|finding| problem(finding, Some(advice::RENEW_CLIENT)))
        .collect();
    if seen.role == Role::TalosClient {
        findings.extend(role(&seen.certificate));
    }
    Client {
        place: seen.place.clone(),
        certificate: CertificateSummary::of(&seen.certificate),
        findings,
    }
}

/// Tells whether the roles of a client of the Talos API are of no use to look at nodes: they are the O's of its subject.
fn role(certificate: &Certificate) -> Option<Problem> {
    let roles = certificate.organizations();
    let has = |known: &[&str]| roles.iter().any(|role| known.contains(&role.as_str()));
    if has(&READING) {
        return None;
    }
    let listed = roles.join(", ");
    let message = match (roles.is_empty(), has(&NARROW)) {
        (true, _) => "it has no role, and the Talos API answers it nothing".to_owned(),
        (_, true) => format!("its roles do not allow to look at nodes: {listed}"),
        (_, false) => format!("none of its organizations is a role of the Talos API: {listed}"),
    };
    Some(Problem {
        code: "role-insufficient".to_owned(),
        name: None,
        message,
        fix: None,
        advice: Some(advice::ROLE.to_owned()),
    })
}

/// Tells whether a file trusts an authority that nodes do not accept any more, or that is one of another purpose.
fn not_accepted(trusted: &TrustSeen, evidence: &Evidence) -> Option<Problem> {
    let is_talos = trusted.kind == ServerKind::Apid;
    let accepted = match is_talos {
        true => &evidence.talos_accepted,
        false => &evidence.kubernetes_accepted,
    };
    let key = trusted.certificate.spki_sha256();
    let is_in = |list: &[Certificate]| list.iter().any(|known| known.spki_sha256() == key);
    if accepted.is_empty() || is_in(accepted) {
        return None;
    }
    let (own, label, other) = match is_talos {
        true => (TALOS_CA, KUBERNETES_CA, &evidence.kubernetes_accepted),
        false => (KUBERNETES_CA, TALOS_CA, &evidence.talos_accepted),
    };
    let subject = trusted.certificate.subject();
    let (message, what) = if is_in(other) {
        (
            format!("it trusts the {label} ({subject}) where the {own} belongs"),
            advice::MIXED_UP_TRUST,
        )
    } else {
        (
            format!("it trusts an authority ({subject}) that the nodes do not accept as {own}"),
            advice::UPDATE_TRUST,
        )
    };
    Some(Problem {
        code: "authority-not-accepted".to_owned(),
        name: None,
        message,
        fix: None,
        advice: Some(what.to_owned()),
    })
}
