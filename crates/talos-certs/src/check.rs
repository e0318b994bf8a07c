//! Judging what was collected: pure, at a time that is given.

mod across;
mod advice;
mod client;
mod expect;
mod names;
mod server;

use jiff::{SignedDuration, Timestamp};
use talos_pki::{Finding, Name};

use crate::evidence::{Evidence, Seen};
use crate::report::{Problem, Server};
use crate::{NotChecked, Report, ServerKind};

pub use expect::{ExpectProblem, read_expectations};

/// What to expect of all certificates.
#[derive(Clone, Debug, Default)]
pub struct CheckOptions {
    /// Further names by which servers are to be reached.
    pub expected: Vec<ExpectedName>,
    /// Time before its end at which a certificate counts as expiring; zero when it never does.
    pub warn_within: SignedDuration,
    /// Whether names in certificates that nobody expects are findings.
    pub unexpected: bool,
}

/// A name by which servers are to be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedName {
    /// Kind of server; those that people and load balancers go to, which are apid and kube-apiserver, when absent.
    pub kind: Option<ServerKind>,
    /// Node as the user named it, or the address that was dialled; all servers of the kind when absent.
    pub node: Option<String>,
    /// Name or address.
    pub name: Name,
}

impl ExpectedName {
    /// Tells whether the name is expected of a server.
    fn is_of(&self, seen: &Seen) -> bool {
        let node = self.node.as_ref();
        let is_kind = match self.kind {
            Some(kind) => kind == seen.kind,
            None => matches!(
                seen.kind,
                ServerKind::Apid | ServerKind::KubeApiserver | ServerKind::Other
            ),
        };
        is_kind && node.is_none_or(|node| *node == seen.node || Some(node) == seen.address.as_ref())
    }
}

/// Judges everything that was seen, at a given time.
pub fn check(evidence: &Evidence, options: &CheckOptions, now: Timestamp) -> Report {
    let not_checked = evidence.not_checked.iter().cloned();
    let not_checked: Vec<NotChecked> = not_checked
        .chain(unknown_issuers(evidence))
        .chain(unmet(evidence, options))
        .collect();
    let seen = evidence.servers.iter();
    let mut servers: Vec<Server> = seen
        .map(|seen| server::judge_server(seen, evidence, options, now))
        .collect();
    across::compare(&mut servers, &evidence.servers);
    add_clock_skew(&mut servers, evidence, now);
    Report {
        endpoint: evidence.endpoint.clone(),
        servers,
        clients: client::judge_clients(evidence, options, now),
        incomplete: !not_checked.is_empty(),
        not_checked,
    }
}

/// Lists the servers whose issuer nobody can judge, for no authority is known that should have been it.
fn unknown_issuers(evidence: &Evidence) -> impl Iterator<Item = NotChecked> {
    let servers = evidence.servers.iter();
    // A kubelet is its own authority unless somebody approves its requests.
    let judged = servers.filter(|seen| seen.kind != ServerKind::Kubelet);
    let unknown = judged.filter(|seen| evidence.authorities(seen.kind).is_empty());
    unknown.map(|seen| NotChecked {
        node: seen.node.clone(),
        kind: Some(seen.kind),
        why: "issuer not checked: no authority known".to_owned(),
    })
}

/// Lists the names that are expected of a server that was not seen.
fn unmet(evidence: &Evidence, options: &CheckOptions) -> Vec<NotChecked> {
    let mut unmet = Vec::new();
    for expected in &options.expected {
        let Some(node) = &expected.node else { continue };
        if !evidence.servers.iter().any(|seen| expected.is_of(seen)) {
            unmet.push(NotChecked {
                node: node.clone(),
                kind: expected.kind,
                why: format!(
                    "no such server was seen, of which {} is expected",
                    expected.name
                ),
            });
        }
    }
    unmet
}

/// Tells once a node whose clock differs from the one here.
fn add_clock_skew(servers: &mut [Server], evidence: &Evidence, now: Timestamp) {
    let mut told: Vec<&str> = Vec::new();
    for (server, seen) in servers.iter_mut().zip(&evidence.servers) {
        if told.contains(&seen.node.as_str()) {
            continue;
        }
        if let Some(skew) = server::clock_skew(seen, evidence, now) {
            told.push(&seen.node);
            server.findings.push(skew);
        }
    }
}

/// Returns the host of a URL such as `https://10.5.0.2:6443`, `https://[fd00::1]:6443/x` or `cp.example`.
pub(crate) fn host_of(url: &str) -> Option<Name> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    Name::parse(talos_client::split(host).ok()?.host).ok()
}

fn problem(finding: &Finding, advice: Option<&str>) -> Problem {
    Problem {
        code: finding.code.as_str().to_owned(),
        name: finding.name.as_ref().map(ToString::to_string),
        message: finding.message.clone(),
        fix: None,
        advice: advice.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests;
