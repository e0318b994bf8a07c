//! What is where at one moment, flat enough to be compared with the next moment and to be counted.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::report::{CertificateSummary, Problem};
use crate::{Evidence, Report, ServerKind};

/// The certificates, findings and failures of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The certificate at each spot.
    pub certificates: BTreeMap<Spot, CertificateSummary>,
    /// Every problem: where, which kind, and which name if it is about one.
    pub findings: BTreeMap<(Spot, String, Option<String>), String>,
    /// What could not be looked at, and why.
    pub failures: BTreeMap<Spot, String>,
}

/// A place that has a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spot {
    /// Node as the user named it; empty for what belongs to no node.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// Server, resource, file or object, such as `apid`.
    pub place: String,
}

/// What is different from one snapshot to the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    tag = "event"
)]
pub enum Change {
    /// A certificate is there that was not.
    Appeared {
        /// Where.
        #[serde(flatten)]
        spot: Spot,
        /// The certificate.
        certificate: CertificateSummary,
    },
    /// Another certificate is there.
    Replaced {
        /// Where.
        #[serde(flatten)]
        spot: Spot,
        /// The certificate that was there.
        before: CertificateSummary,
        /// The certificate that is there now.
        certificate: CertificateSummary,
    },
    /// A certificate is no longer there.
    Gone {
        /// Where.
        #[serde(flatten)]
        spot: Spot,
        /// The certificate that was there.
        before: CertificateSummary,
    },
    /// A problem is new.
    Found {
        /// Where.
        #[serde(flatten)]
        spot: Spot,
        /// Kind of problem.
        code: String,
        /// Name it is about.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// What is wrong.
        message: String,
    },
    /// A problem is no longer there.
    Resolved {
        /// Where.
        #[serde(flatten)]
        spot: Spot,
        /// Kind of problem.
        code: String,
        /// Name it was about.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Something cannot be looked at any more.
    Failed {
        /// Where.
        #[serde(flatten)]
        spot: Spot,
        /// Why.
        why: String,
    },
    /// Something can be looked at again.
    Recovered {
        /// Where.
        #[serde(flatten)]
        spot: Spot,
    },
}

impl Snapshot {
    /// Flattens a run.
    pub fn new(evidence: &Evidence, report: &Report) -> Self {
        let mut snapshot = Self::default();
        for server in &report.servers {
            // A node has one server of each kind, but any number that were asked for by address.
            let place = match &server.address {
                Some(address) if server.kind == ServerKind::Other => address,
                _ => server.kind.as_str(),
            };
            let spot = spot(&server.node, place);
            snapshot.note(&spot, &server.findings);
            let summary = server.certificate.clone();
            snapshot.certificates.insert(spot, summary);
        }
        for client in &report.clients {
            let spot = spot("", &client.place);
            snapshot.note(&spot, &client.findings);
            let summary = client.certificate.clone();
            snapshot.certificates.insert(spot, summary);
        }
        for kept in &evidence.kept {
            let node = kept.node.as_deref().unwrap_or_default();
            let spot = spot(node, &kept.place.to_string());
            let summary = CertificateSummary::of(&kept.certificate);
            snapshot.certificates.insert(spot, summary);
        }
        for left_out in &report.not_checked {
            let kind = left_out.kind.map(|kind| kind.as_str());
            let spot = spot(&left_out.node, kind.unwrap_or("node"));
            snapshot.failures.insert(spot, left_out.why.clone());
        }
        snapshot
    }

    fn note(&mut self, spot: &Spot, problems: &[Problem]) {
        for problem in problems {
            let key = (spot.clone(), problem.code.clone(), problem.name.clone());
            self.findings.insert(key, problem.message.clone());
        }
    }

    /// Lists what is different since an earlier snapshot. What cannot be looked at now is not said to be gone or resolved.
    pub fn changes_since(&self, before: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        let unknown = |spot: &Spot| self.is_unknown(spot);
        for spot in keys(&before.failures, &self.failures) {
            match (before.failures.get(spot), self.failures.get(spot)) {
                (None, Some(why)) => changes.push(Change::Failed {
                    spot: spot.clone(),
                    why: why.clone(),
                }),
                (Some(_), None) => changes.push(Change::Recovered { spot: spot.clone() }),
                _ => {}
            }
        }
        for spot in keys(&before.certificates, &self.certificates) {
            let now = self.certificates.get(spot);
            match (before.certificates.get(spot), now) {
                (None, Some(certificate)) => changes.push(Change::Appeared {
                    spot: spot.clone(),
                    certificate: certificate.clone(),
                }),
                (Some(old), Some(new)) if old.fingerprint != new.fingerprint => {
                    changes.push(Change::Replaced {
                        spot: spot.clone(),
                        before: old.clone(),
                        certificate: new.clone(),
                    });
                }
                (Some(old), None) if !unknown(spot) => changes.push(Change::Gone {
                    spot: spot.clone(),
                    before: old.clone(),
                }),
                _ => {}
            }
        }
        for key in keys(&before.findings, &self.findings) {
            let (spot, code, name) = key.clone();
            match (before.findings.get(key), self.findings.get(key)) {
                (None, Some(message)) => changes.push(Change::Found {
                    spot,
                    code,
                    name,
                    message: message.clone(),
                }),
                (Some(_), None) if !unknown(&spot) => {
                    changes.push(Change::Resolved { spot, code, name });
                }
                _ => {}
            }
        }
        changes
    }

    /// Takes over from an earlier snapshot what cannot be looked at now, so that it is compared once it can be again.
    pub fn remember(&mut self, before: &Self) {
        let certificates = before.certificates.iter();
        let certificates = certificates.filter(|(spot, _)| self.is_unknown(spot));
        let certificates: Vec<_> = certificates
            .map(|(spot, summary)| (spot.clone(), summary.clone()))
            .collect();
        let findings = before.findings.iter();
        let findings = findings.filter(|((spot, _, _), _)| self.is_unknown(spot));
        let findings: Vec<_> = findings
            .map(|(key, message)| (key.clone(), message.clone()))
            .collect();
        self.certificates.extend(certificates);
        self.findings.extend(findings);
    }

    /// Tells whether nothing is known of a spot now: it, or all of its node, could not be looked at.
    fn is_unknown(&self, spot: &Spot) -> bool {
        let whole = Spot {
            node: spot.node.clone(),
            place: "node".to_owned(),
        };
        !self.certificates.contains_key(spot)
            && (self.failures.contains_key(spot) || self.failures.contains_key(&whole))
    }
}

fn spot(node: &str, place: &str) -> Spot {
    Spot {
        node: node.to_owned(),
        place: place.to_owned(),
    }
}

fn keys<'map, Key: Ord, Value>(
    one: &'map BTreeMap<Key, Value>,
    other: &'map BTreeMap<Key, Value>,
) -> BTreeSet<&'map Key> {
    one.keys().chain(other.keys()).collect()
}

#[cfg(test)]
mod tests;
