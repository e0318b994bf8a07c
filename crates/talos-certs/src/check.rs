//! Judging what was collected: pure, at a time that is given.

use jiff::{SignedDuration, Timestamp};
use talos_pki::{Certificate, Expectation, Finding, FindingCode, Name, Role, covered_by, judge};

use crate::evidence::{ClientSeen, Evidence, NodeFacts, Seen};
use crate::report::{CertificateSummary, Client, Fix, NameSource, NameVerdict, Problem, Server};
use crate::{NotChecked, Report, ServerKind, Setting};

/// What to expect of all certificates.
#[derive(Clone, Debug, Default)]
pub struct CheckOptions {
    /// Further names by which servers are to be reached.
    pub expected: Vec<ExpectedName>,
    /// Time before its end at which a certificate counts as expiring; zero when it never does.
    pub warn_within: SignedDuration,
}

/// A name by which servers are to be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedName {
    /// Kind of server; all kinds when absent.
    pub kind: Option<ServerKind>,
    /// Name or address.
    pub name: Name,
}

/// Judges everything that was seen, at a given time.
pub fn check(evidence: &Evidence, options: &CheckOptions, now: Timestamp) -> Report {
    let servers = evidence.servers.iter();
    let clients = evidence.clients.iter();
    let not_checked = evidence.not_checked.iter().cloned();
    let not_checked: Vec<NotChecked> = not_checked.chain(unknown_issuers(evidence)).collect();
    Report {
        endpoint: evidence.endpoint.clone(),
        servers: servers
            .map(|seen| judge_server(seen, evidence, options, now))
            .collect(),
        clients: clients
            .map(|client| judge_client(client, options, now))
            .collect(),
        incomplete: !not_checked.is_empty(),
        not_checked,
    }
}

/// Lists the servers whose issuer nobody can judge, for no authority is known that should have been it.
fn unknown_issuers(evidence: &Evidence) -> impl Iterator<Item = NotChecked> {
    let servers = evidence.servers.iter();
    let unknown = servers.filter(|seen| evidence.authorities(seen.kind).is_empty());
    unknown.map(|seen| NotChecked {
        node: seen.node.clone(),
        kind: Some(seen.kind),
        why: "issuer not checked: no authority known".to_owned(),
    })
}

impl Evidence {
    fn authorities(&self, kind: ServerKind) -> &[Certificate] {
        match kind {
            ServerKind::Apid | ServerKind::Trustd => &self.talos_authorities,
            ServerKind::KubeApiserver | ServerKind::KubePrism => &self.kubernetes_authorities,
            ServerKind::Etcd | ServerKind::EtcdPeer => &self.etcd_authorities,
            ServerKind::Kubelet | ServerKind::Other => &[],
        }
    }
}

fn judge_server(
    seen: &Seen,
    evidence: &Evidence,
    options: &CheckOptions,
    now: Timestamp,
) -> Server {
    let facts = evidence.nodes.iter().find(|facts| facts.node == seen.node);
    let setting = Setting::of(
        seen.kind,
        facts.is_some_and(|facts| facts.has_apiserver_document),
    );
    let names = expected_names(seen, facts, evidence, options);
    let expectation = Expectation {
        names: names.iter().map(|(name, _)| name.clone()).collect(),
        role: Role::Server,
        authorities: evidence.authorities(seen.kind).to_vec(),
        warn_within: options.warn_within,
        setting: setting.map(|setting| setting.as_str().to_owned()),
        ..Expectation::default()
    };
    let findings = judge(&seen.chain, &expectation, now);
    let fix = |names: &[&Name]| {
        setting.map(|setting| Fix {
            setting: setting.as_str().to_owned(),
            node: facts.map(|facts| facts.node.clone()),
            patch: setting.patch(names),
            cost: setting.cost().to_owned(),
        })
    };
    let missing: Vec<&Name> = findings
        .iter()
        .filter_map(|found| found.name.as_ref())
        .collect();
    let leaf = seen.chain.first();
    Server {
        node: seen.node.clone(),
        kind: seen.kind,
        source: seen.source,
        address: seen.address.clone(),
        connection: seen.connection.clone(),
        certificate: leaf.map(CertificateSummary::of).unwrap_or_default(),
        names: names
            .iter()
            .map(|(name, sources)| NameVerdict {
                name: name.to_string(),
                sources: sources.clone(),
                covered_by: leaf
                    .and_then(|leaf| covered_by(leaf, name))
                    .map(ToString::to_string),
            })
            .collect(),
        fix: (!missing.is_empty()).then(|| fix(&missing)).flatten(),
        findings: findings
            .iter()
            .map(|finding| Problem {
                fix: finding.name.as_ref().and_then(|name| fix(&[name])),
                ..problem(finding, server_advice(seen.kind, finding.code))
            })
            .collect(),
    }
}

/// Collects the names by which a server is or may be reached, each once, with all reasons.
fn expected_names(
    seen: &Seen,
    facts: Option<&NodeFacts>,
    evidence: &Evidence,
    options: &CheckOptions,
) -> Vec<(Name, Vec<NameSource>)> {
    let mut names: Vec<(Name, Vec<NameSource>)> = Vec::new();
    let mut expect = |name: &Name, source: NameSource| {
        let entry = names.iter_mut().find(|(known, _)| known == name);
        match entry {
            Some((_, sources)) if sources.contains(&source) => {}
            Some((_, sources)) => sources.push(source),
            None => names.push((name.clone(), vec![source])),
        }
    };
    if let Some(facts) = facts {
        // Other nodes forward requests to this one under the name the user gave it.
        if let (ServerKind::Apid, Ok(name)) = (seen.kind, Name::parse(&facts.node)) {
            expect(&name, NameSource::Node);
        }
        for address in &facts.addresses {
            expect(address, NameSource::NodeAddress);
        }
        for hostname in &facts.hostnames {
            expect(hostname, NameSource::Hostname);
        }
    }
    for (name, source) in &seen.reached_as {
        expect(name, *source);
    }
    if seen.kind == ServerKind::KubeApiserver {
        let endpoint = evidence.endpoint.as_ref();
        if let Some(host) = endpoint.and_then(|endpoint| host_of(&endpoint.url)) {
            expect(&host, NameSource::ClusterEndpoint);
        }
        if let Some(host) = &evidence.kubeconfig_host {
            expect(host, NameSource::Kubeconfig);
        }
    }
    for expected in &options.expected {
        if expected.kind.is_none_or(|kind| kind == seen.kind) {
            expect(&expected.name, NameSource::Expected);
        }
    }
    names
}

fn judge_client(seen: &ClientSeen, options: &CheckOptions, now: Timestamp) -> Client {
    let expectation = Expectation {
        role: seen.role,
        warn_within: options.warn_within,
        ..Expectation::default()
    };
    let chain = std::slice::from_ref(&seen.certificate);
    let findings = judge(chain, &expectation, now);
    let advice =
        "nobody renews it: get a new one from an administrator or from the cluster's secrets";
    Client {
        place: seen.place.clone(),
        certificate: CertificateSummary::of(&seen.certificate),
        findings: findings
            .iter()
            .map(|finding| problem(finding, Some(advice)))
            .collect(),
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

/// Says what to do about problems that no setting repairs: Talos renews its servers' certificates by itself.
fn server_advice(kind: ServerKind, code: FindingCode) -> Option<&'static str> {
    match (code, kind) {
        (FindingCode::Expired | FindingCode::Expiring, ServerKind::Apid | ServerKind::Trustd) => {
            Some(
                "the node renews it by itself every 12 hours: look at its clock and at the trustd and apid services",
            )
        }
        (FindingCode::Expired | FindingCode::Expiring, ServerKind::KubeApiserver) => Some(
            "the node renews it by itself every 6 months: look at its clock and at the controller-runtime log",
        ),
        (FindingCode::NotYetValid, _) => Some("compare the clocks of the node and of this machine"),
        (FindingCode::UnknownAuthority, ServerKind::Apid) => {
            Some("the talosconfig belongs to another cluster, or the Talos CA was rotated")
        }
        (FindingCode::UnknownAuthority, ServerKind::KubeApiserver) => {
            Some("the kubeconfig belongs to another cluster, or the Kubernetes CA was rotated")
        }
        (FindingCode::AuthorityExpired, _) => Some("rotate the certificate authority"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
