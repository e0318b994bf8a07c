//! The differences, for people and for programs.

use serde::Serialize;
use serde_json::{Map, Value};
use talos_config::compare::Change;
use talos_config::mask;
use talos_config::yaml::Step;

use super::sides::Side;
use crate::error::Error;
use crate::masker::Masker;
use crate::output::columns;
use crate::session::Session;

/// What differs between two machine configs.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DiffData {
    /// Where the first config is from.
    first: String,
    /// Where the second config is from.
    second: String,
    /// Whether anything differs.
    different: bool,
    /// The differences, document by document.
    changes: Vec<ChangeData>,
}

/// One difference.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ChangeData {
    /// The kind and name of the document; empty for the main one.
    document: String,
    /// The path of the value; empty for a whole document.
    path: String,
    /// How it differs: added, removed or changed.
    change: String,
    /// The value in the first config.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<Value>,
    /// The value in the second config.
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<Value>,
    /// The line in the first config, or of what is nearest to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_line: Option<u64>,
    /// The line in the second config, or of what is nearest to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_line: Option<u64>,
}

/// Prints the differences.
pub(super) fn print(
    session: &mut Session,
    first: &Side,
    second: &Side,
    changes: &[Change],
) -> Result<(), Error> {
    let output = &mut session.output;
    let shown = output.shows_secrets();
    let masker = output.masker();
    let hide = |steps: &[Step], value: &Value| match shown {
        true => value.clone(),
        false => with_masked_keys(masked(steps, value), &masker),
    };
    let data = DiffData {
        first: first.name.clone(),
        second: second.name.clone(),
        different: !changes.is_empty(),
        changes: changes.iter().map(|change| data(change, &hide)).collect(),
    };
    if output.data(&data)? {
        return Ok(());
    }
    if data.changes.is_empty() {
        output.note(&format!("{} and {} mean the same", data.first, data.second));
        return Ok(());
    }
    let mut table = columns(["DOCUMENT", "PATH", "LINE", "CHANGE"]);
    for change in &data.changes {
        let document = match change.document.as_str() {
            "" => "main",
            document => document,
        };
        let line = |line: Option<u64>| line.map_or_else(|| "-".to_owned(), |line| line.to_string());
        let place = format!("{}:{}", line(change.old_line), line(change.new_line));
        let row = [document, &change.path, &place, &words(change)].map(|cell| output.mask(cell));
        table.add_row(row);
    }
    output.table(&table)
}

fn data(change: &Change, hide: &dyn Fn(&[Step], &Value) -> Value) -> ChangeData {
    let value = |value: &Option<Value>| value.as_ref().map(|value| hide(&change.steps, value));
    ChangeData {
        document: change.document.clone(),
        path: change.path.clone(),
        change: change.kind.to_string(),
        old: value(&change.old),
        new: value(&change.new),
        old_line: change.old_line,
        new_line: change.new_line,
    }
}

/// Masks a value as it would be masked where it stands: what it is called and what holds it tell whether it is secret.
fn masked(steps: &[Step], value: &Value) -> Value {
    let mut document = value.clone();
    for step in steps.iter().rev() {
        document = match step {
            Step::Key(key) => serde_json::json!({ key.as_str(): document }),
            Step::Index(_) => serde_json::json!([document]),
        };
    }
    let document = mask::value(&document);
    let mut found = &document;
    for step in steps {
        let below = match step {
            Step::Key(key) => found.get(key),
            Step::Index(_) => found.get(0),
        };
        match below {
            Some(below) => found = below,
            // Something above it is hidden as a whole.
            None => return Value::String(mask::MASK.to_owned()),
        }
    }
    found.clone()
}

/// Masks the keys that are, or hold, what is secret elsewhere; of equal ones none is lost.
fn with_masked_keys(value: Value, masker: &Masker) -> Value {
    match value {
        Value::Object(map) => {
            let mut masked = Map::with_capacity(map.len());
            for (key, value) in map {
                let mut key = masker.mask(&key);
                while masked.contains_key(&key) {
                    key.push('*');
                }
                masked.insert(key, with_masked_keys(value, masker));
            }
            Value::Object(masked)
        }
        Value::Array(items) => {
            let items = items.into_iter();
            items.map(|item| with_masked_keys(item, masker)).collect()
        }
        value => value,
    }
}

/// Says in one line what became of a value.
fn words(change: &ChangeData) -> String {
    let value = |value: &Option<Value>| value.as_ref().map_or_else(String::new, short);
    match (change.old.is_some(), change.new.is_some()) {
        (true, true) => format!("{} -> {}", value(&change.old), value(&change.new)),
        (true, false) => format!("- {}", value(&change.old)),
        _ => format!("+ {}", value(&change.new)),
    }
}

/// Writes a value on one line, a long one cut short.
fn short(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = match value {
        Value::String(text) if !text.is_empty() && !text.contains(char::is_control) => text.clone(),
        value => value.to_string(),
    };
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
