//! Each mapping on a piece of configuration, and what holds for all of them.

mod cluster;
mod links;
mod machine;
mod whole;

use expect_test::Expect;

use super::{Target, migrate, plan};
use crate::Error;

const TO: &str = "1.14";

/// Checks what becomes of a configuration, and that nothing is left to move then.
fn check(config: &str, expected: Expect) {
    let target = Target::parse(TO).unwrap();
    let migrated = migrate(config, target).unwrap_or_else(|error| panic!("{error}"));
    let notes = migrated.plan.notes.iter().map(|note| format!("({note})\n"));
    expected.assert_eq(&(migrated.text.clone() + &notes.collect::<String>()));
    let again = migrate(&migrated.text, target).unwrap();
    assert_eq!(again.text, migrated.text);
    assert!(again.plan.moves.is_empty(), "{:?}", again.plan.moves);
    assert_eq!(plan(config, target).unwrap(), migrated.plan);
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
