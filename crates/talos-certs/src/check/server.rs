//! The verdict on one server.

use jiff::{SignedDuration, Timestamp};
use talos_pki::{
    Certificate, Expectation, Finding, FindingCode, KnownAuthority, Name, Role, covered_by, judge,
    unexpected,
};

use super::names::{expected_names, is_kubernetes};
use super::{CheckOptions, advice, problem};
use crate::evidence::{Evidence, NodeFacts, Seen};
use crate::report::{CertificateSummary, Fix, NameVerdict, Problem, Server};
use crate::{NameSource, ServerKind, Setting, Source};

/// What the authorities of a cluster are called in messages.
pub(super) const TALOS_CA: &str = "Talos CA";
pub(super) const KUBERNETES_CA: &str = "Kubernetes CA";
pub(super) const ETCD_CA: &str = "etcd CA";

/// Common name of what apid presents in maintenance mode.
const MAINTENANCE: &str = "maintenance-service.talos.dev";

impl Evidence {
    /// Returns the authorities that should have issued what servers of a kind present.
    pub(crate) fn authorities(&self, kind: ServerKind) -> &[Certificate] {
        match kind {
            ServerKind::Apid | ServerKind::Trustd => &self.talos_authorities,
            ServerKind::KubeApiserver | ServerKind::KubePrism => &self.kubernetes_authorities,
            ServerKind::Etcd | ServerKind::EtcdPeer => &self.etcd_authorities,
            ServerKind::Kubelet | ServerKind::Other => &[],
        }
    }

    /// Returns every authority of the cluster that is known, but those that are called `expected`.
    pub(super) fn others(&self, expected: Option<&str>) -> Vec<KnownAuthority> {
        let talos = self.talos_authorities.iter().chain(&self.talos_accepted);
        let kubernetes = &self.kubernetes_authorities;
        let kubernetes = kubernetes.iter().chain(&self.kubernetes_accepted);
        let all = talos
            .map(|certificate| (TALOS_CA, certificate))
            .chain(kubernetes.map(|certificate| (KUBERNETES_CA, certificate)))
            .chain(
                self.etcd_authorities
                    .iter()
                    .map(|certificate| (ETCD_CA, certificate)),
            );
        all.filter(|(label, _)| Some(*label) != expected)
            .map(|(label, certificate)| KnownAuthority {
                label: label.to_owned(),
                certificate: certificate.clone(),
            })
            .collect()
    }
}

fn authority_label(kind: ServerKind) -> Option<&'static str> {
    match kind {
        ServerKind::Apid | ServerKind::Trustd => Some(TALOS_CA),
        ServerKind::KubeApiserver | ServerKind::KubePrism => Some(KUBERNETES_CA),
        ServerKind::Etcd | ServerKind::EtcdPeer => Some(ETCD_CA),
        ServerKind::Kubelet | ServerKind::Other => None,
    }
}

/// One server with everything that its verdict takes.
struct Case<'a> {
    seen: &'a Seen,
    facts: Option<&'a NodeFacts>,
    setting: Option<Setting>,
    names: Vec<(Name, Vec<NameSource>)>,
}

/// Judges the certificate of one server.
pub(super) fn judge_server(
    seen: &Seen,
    evidence: &Evidence,
    options: &CheckOptions,
    now: Timestamp,
) -> Server {
    let facts = evidence.nodes.iter().find(|facts| facts.node == seen.node);
    let has_document = facts.is_some_and(|facts| facts.has_apiserver_document);
    let case = Case {
        seen,
        facts,
        setting: Setting::of(seen.kind, has_document),
        names: expected_names(seen, facts, evidence, options),
    };
    let label = authority_label(seen.kind);
    let expectation = Expectation {
        names: case.names.iter().map(|(name, _)| name.clone()).collect(),
        role: Role::Server,
        authorities: evidence.authorities(seen.kind).to_vec(),
        authority_label: label.map(str::to_owned),
        other_authorities: evidence.others(label),
        warn_within: options.warn_within,
        setting: case.setting.map(|setting| setting.as_str().to_owned()),
    };
    let found = judge(&seen.chain, &expectation, now);
    let to_add: Vec<&Name> = found
        .iter()
        .filter_map(|finding| finding.name.as_ref())
        .filter(|name| case.asked_for(name).is_none())
        .collect();
    let mut findings: Vec<Problem> = found.iter().map(|finding| case.problem(finding)).collect();
    findings.extend(case.not_served_yet());
    if options.unexpected {
        findings.extend(case.unexpected());
    }
    let leaf = seen.chain.first();
    Server {
        node: seen.node.clone(),
        kind: seen.kind,
        source: seen.source,
        address: seen.address.clone(),
        connection: seen.connection.clone(),
        certificate: leaf.map(CertificateSummary::of).unwrap_or_default(),
        names: case
            .names
            .iter()
            .map(|(name, sources)| NameVerdict {
                name: name.to_string(),
                sources: sources.clone(),
                covered_by: leaf
                    .and_then(|leaf| covered_by(leaf, name))
                    .map(ToString::to_string),
            })
            .collect(),
        fix: (!to_add.is_empty()).then(|| case.fix(&to_add)).flatten(),
        findings,
    }
}

impl Case<'_> {
    fn fix(&self, names: &[&Name]) -> Option<Fix> {
        self.setting.map(|setting| Fix {
            setting: setting.as_str().to_owned(),
            node: self.facts.map(|facts| facts.node.clone()),
            patch: setting.patch(names),
            cost: setting.cost().to_owned(),
        })
    }

    fn problem(&self, finding: &Finding) -> Problem {
        let kind = self.seen.kind;
        let Some(name) = &finding.name else {
            let is_issuer = matches!(
                finding.code,
                FindingCode::UnknownAuthority | FindingCode::SelfSigned
            );
            let leaf = self.seen.chain.first().and_then(Certificate::common_name);
            let advice = match is_issuer && leaf == Some(MAINTENANCE) {
                true => Some(advice::MAINTENANCE),
                false => advice::of_server(kind, finding.code),
            };
            return problem(finding, advice);
        };
        if self.asked_for(name).is_some() {
            return problem(finding, Some(advice::ALREADY_SET));
        }
        Problem {
            fix: self.fix(&[name]),
            ..problem(finding, advice::of_missing_name(kind))
        }
    }

    /// Tells where the node is asked for a name already, and since when.
    fn asked_for(&self, name: &Name) -> Option<(&'static str, Option<Timestamp>)> {
        let setting = self.setting?;
        let kind = match is_kubernetes(self.seen.kind) {
            true => ServerKind::KubeApiserver,
            false => ServerKind::Apid,
        };
        let facts = self.facts?;
        let in_list = |lists: &[crate::WantedNames]| {
            let mut lists = lists.iter().filter(|wanted| wanted.kind == kind);
            lists.find_map(|wanted| wanted.names.contains(name).then_some(wanted.since))
        };
        in_list(&facts.wanted_names)
            .map(|since| ("CertSANs", since))
            .or_else(|| in_list(&facts.configured_names).map(|since| (setting.as_str(), since)))
    }

    /// Names that the node wants in this certificate, or its configuration asks for, and that are not in what is there.
    fn not_served_yet(&self) -> Vec<Problem> {
        let (Some(leaf), Some(facts)) = (self.seen.chain.first(), self.facts) else {
            return Vec::new();
        };
        let lists = facts.wanted_names.iter().chain(&facts.configured_names);
        let mut names: Vec<&Name> = Vec::new();
        for name in lists.flat_map(|wanted| &wanted.names) {
            if !names.contains(&name) && covered_by(leaf, name).is_none() {
                names.push(name);
            }
        }
        let asked = names.into_iter().filter_map(|name| {
            self.asked_for(name)
                .map(|(list, since)| (name, list, since))
        });
        asked
            .map(|(name, list, since)| {
                let since = since.map(|since| format!(" since {}", whole(since)));
                let since = since.unwrap_or_default();
                let there = match self.seen.source {
                    Source::Served => "the certificate that is served",
                    Source::Resource => "the certificate that the node holds",
                };
                let begun = whole(leaf.not_before());
                Problem {
                    code: "not-served-yet".to_owned(),
                    name: Some(name.to_string()),
                    message: format!(
                        "{list} of the node has {name}{since}, and {there}, which begins at {begun}, does not"
                    ),
                    fix: None,
                    advice: Some(advice::NOT_SERVED_YET.to_owned()),
                }
            })
            .collect()
    }

    /// Names in the certificate by which nobody is known to reach the server.
    fn unexpected(&self) -> Vec<Problem> {
        let Some(leaf) = self.seen.chain.first() else {
            return Vec::new();
        };
        let mut expected: Vec<Name> = self.names.iter().map(|(name, _)| name.clone()).collect();
        if let Some(facts) = self.facts {
            let configured = facts.configured_names.iter();
            expected.extend(configured.flat_map(|list| list.names.clone()));
        }
        // Talos puts these into every certificate of the kind.
        let always = ["127.0.0.1", "::1", "localhost", "talos", "talos.default"];
        expected.extend(always.iter().filter_map(|name| Name::parse(name).ok()));
        unexpected(leaf, &expected)
            .into_iter()
            .map(|name| Problem {
                code: "unexpected-name".to_owned(),
                name: Some(name.to_string()),
                message: format!(
                    "the certificate is valid for {name}, by which nobody is known to reach it"
                ),
                fix: None,
                advice: Some(advice::UNEXPECTED.to_owned()),
            })
            .collect()
    }
}

/// Leaves out what is less than a second.
pub(super) fn whole(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Says that a node's clock and the one here differ, if they do.
pub(super) fn clock_skew(seen: &Seen, evidence: &Evidence, now: Timestamp) -> Option<Problem> {
    /// What clocks that are kept by time servers may differ by, and an answer may take.
    const TOLERANCE: SignedDuration = SignedDuration::from_secs(5);
    let facts = evidence.nodes.iter().find(|facts| facts.node == seen.node);
    let clock = facts.and_then(|facts| facts.clock);
    let begins = seen
        .chain
        .first()
        .and_then(|leaf| talos_pki::clock_behind(leaf, now));
    let (by, ahead, how) = match clock {
        // The truth lies between the question and the answer.
        Some(clock) if clock.there > clock.answered => {
            (clock.answered.duration_until(clock.there), true, "")
        }
        Some(clock) if clock.there < clock.asked => {
            (clock.there.duration_until(clock.asked), false, "")
        }
        Some(_) => return None,
        None => (begins?, true, "at least "),
    };
    let direction = if ahead { "ahead of" } else { "behind" };
    (by > TOLERANCE).then(|| Problem {
        code: "clock-skew".to_owned(),
        name: None,
        message: format!(
            "the node's clock is {direction} this machine's by {how}{:#}",
            SignedDuration::from_secs(by.as_secs())
        ),
        fix: None,
        advice: Some(advice::CLOCK.to_owned()),
    })
}
