//! The table: one row per case.

mod chains;
mod names;
mod oddities;
mod uses;
mod vendor;

use std::sync::LazyLock;

use talos_pki::Role;

use super::Case;
use super::make::{Der, ROOT};

/// When cases happen that do not say otherwise.
const NOON: &str = "2026-11-30T16:00:00Z";

/// Returns every case of the corpus.
pub(crate) fn all() -> &'static [Case] {
    static ALL: LazyLock<Vec<Case>> = LazyLock::new(|| {
        [
            vendor::vendor(),
            names::names(),
            names::addresses(),
            chains::dates(),
            chains::chains(),
            uses::uses(),
            uses::keys(),
            oddities::oddities(),
            oddities::texts(),
        ]
        .into_iter()
        .flatten()
        .collect()
    });
    &ALL
}

fn case(id: &'static str, chain: Vec<Der>, names: &[&str], findings: &[&'static str]) -> Case {
    Case {
        id,
        chain,
        text: None,
        trusted: vec![ROOT.der.clone()],
        known: Vec::new(),
        at: NOON,
        role: Role::Server,
        names: names.iter().map(|&name| name.to_owned()).collect(),
        findings: findings.to_vec(),
    }
}

/// A leaf of the usual root.
fn one(
    id: &'static str,
    params: rcgen::CertificateParams,
    names: &[&str],
    findings: &[&'static str],
) -> Case {
    case(id, vec![ROOT.issue(&params)], names, findings)
}

impl Case {
    fn at(self, at: &'static str) -> Self {
        Self { at, ..self }
    }

    fn trusting(self, trusted: &[&Der]) -> Self {
        let trusted = trusted.iter().map(|&der| der.clone()).collect();
        Self { trusted, ..self }
    }

    fn knowing(self, label: &'static str, der: &Der) -> Self {
        Self {
            known: vec![(label, der.clone())],
            ..self
        }
    }

    fn for_role(self, role: Role) -> Self {
        Self { role, ..self }
    }
}
