//! Each mapping on a piece of configuration, and what holds for all of them.

mod api_server;
mod cluster;
mod features;
mod install;
mod links;
mod machine;
mod node;
mod whole;

use expect_test::Expect;

use super::{Target, migrate, plan};
use crate::Error;

const TO: &str = "1.14";

/// A control plane node with an endpoint.
const NODE: &str = "machine:\n    type: controlplane\ncluster:\n    clusterName: c\n    controlPlane:\n        endpoint: https://10.0.0.1:6443\n";

/// What becomes of it.
const MOVED: &str = "machine:\n    type: controlplane\ncluster: {}\n--- KubeClusterConfig\nclusterName: c\nendpoint: https://10.0.0.1:6443\n";

/// Returns the control plane node with more below `cluster`.
fn node(cluster: &str) -> String {
    format!("{NODE}{cluster}")
}

/// Checks what becomes of a part of `cluster` on a control plane node, beside what becomes of the node itself.
fn becomes(cluster: &str, expected: Expect) {
    let all = migrated(&node(cluster));
    let rest = all.strip_prefix(MOVED);
    expected.assert_eq(rest.unwrap_or_else(|| panic!("{all}")));
}

/// Checks what becomes of a configuration.
fn check(config: &str, expected: Expect) {
    expected.assert_eq(&migrated(config));
}

/// Migrates a configuration, and checks that nothing is left to move then; returns it with the notes, in short.
fn migrated(config: &str) -> String {
    let target = Target::parse(TO).unwrap();
    let migrated = migrate(config, target).unwrap_or_else(|error| panic!("{error}"));
    let again = migrate(&migrated.text, target).unwrap();
    assert_eq!(again.text, migrated.text);
    assert!(again.plan.moves.is_empty(), "{:?}", again.plan.moves);
    assert_eq!(plan(config, target).unwrap(), migrated.plan);
    let notes = migrated.plan.notes.iter().map(|note| format!("({note})\n"));
    short(&migrated.text) + &notes.collect::<String>()
}

/// Writes the head of each document on one line, `--- KIND/NAME`.
fn short(text: &str) -> String {
    const HEAD: &str = "---\napiVersion: v1alpha1\nkind: ";
    let mut documents = text.split(HEAD);
    let mut short = documents.next().unwrap_or_default().to_owned();
    for document in documents {
        let (kind, rest) = document.split_once('\n').unwrap_or((document, ""));
        let named = rest
            .strip_prefix("name: ")
            .and_then(|rest| rest.split_once('\n'));
        short += &match named {
            Some((name, rest)) => format!("--- {kind}/{name}\n{rest}"),
            None => format!("--- {kind}\n{rest}"),
        };
    }
    short
}

/// Checks why a configuration cannot be migrated.
fn refuses(config: &str, expected: Expect) {
    let target = Target::parse(TO).unwrap();
    match migrate(config, target) {
        Err(error @ Error::NotMovable { .. }) => expected.assert_eq(&format!("{error}\n")),
        other => panic!("{other:?}"),
    }
    assert!(!plan(config, target).unwrap().refusals.is_empty());
}

/// Checks what goes nowhere, and why.
fn drops(config: &str, expected: Expect) {
    let plan = plan(config, Target::parse(TO).unwrap()).unwrap();
    assert_eq!(plan.refusals, []);
    let dropped = plan
        .moves
        .iter()
        .filter_map(|moved| Some((moved, moved.why?)));
    let lines: String = dropped
        .map(|(moved, why)| format!("{}: {}: {why}\n", moved.line, moved.from))
        .collect();
    expected.assert_eq(&lines);
}
