//! What Talos will not decode of a document that a JSON Patch changed: the patch itself is applied without looking.

use std::collections::HashMap;

use super::Settings;
use super::documents::known;
use super::json::Operation;
use super::walk::Walk;
use crate::Error;
use crate::schema::MAIN;
use crate::yaml::Stream;

/// One field or value that Talos will not decode.
pub(super) struct Fault {
    text: String,
    /// Absent if the Talos version is not known, which then has to judge itself.
    error: Option<Error>,
}

/// Returns the faults of a document, with the lines of the operations that wrote what is at fault.
pub(super) fn faults(
    stream: &Stream,
    index: usize,
    settings: &Settings,
    operations: &[Operation],
) -> Vec<Fault> {
    let Some(root) = stream.root(index) else {
        return Vec::new();
    };
    let identity = known(stream, root).filter(|identity| identity.version == MAIN);
    let Some(identity) = identity else {
        return Vec::new();
    };
    let Some(fields) = settings.schema.kind(&identity.kind) else {
        return Vec::new();
    };
    let mut walk = Walk {
        schema: settings.schema,
        compat: false,
        config: stream,
        patch: stream,
        index,
        document: identity.label(),
        kind: identity.kind,
        operations: Some(operations),
        path: Vec::new(),
        problems: Vec::new(),
        warnings: Vec::new(),
    };
    walk.read(root, fields);
    let problems = walk.problems.into_iter().map(|error| Fault {
        text: error.to_string(),
        error: Some(error),
    });
    let warnings = walk.warnings.into_iter();
    problems
        .chain(warnings.map(|text| Fault { text, error: None }))
        .collect()
}

/// Returns the positions of the faults that were not there before; those in lists may have moved.
pub(super) fn added(before: &[Fault], after: &[Fault]) -> Vec<usize> {
    let mut known: Vec<&Fault> = before.iter().collect();
    let mut added: Vec<usize> = (0..after.len()).collect();
    let exactly: fn(&str) -> String = str::to_owned;
    for name in [exactly, without_positions] {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for fault in &known {
            *counts.entry(name(&fault.text)).or_default() += 1;
        }
        let mut matched: HashMap<String, usize> = HashMap::new();
        added.retain(|at| {
            let name = name(&after[*at].text);
            let used = matched.entry(name.clone()).or_default();
            let is_known = counts.get(&name).is_some_and(|count| *used < *count);
            *used += usize::from(is_known);
            !is_known
        });
        known.retain(|fault| match matched.get_mut(&name(&fault.text)) {
            Some(used) if *used > 0 => {
                *used -= 1;
                false
            }
            _ => true,
        });
    }
    added
}

/// Reports the faults: as errors if the result has to be one that Talos decodes, else as warnings.
pub(super) fn report(
    faults: Vec<Fault>,
    is_strict: bool,
    warnings: &mut Vec<String>,
) -> Result<(), Vec<Error>> {
    let mut problems = Vec::new();
    for fault in faults {
        match fault.error {
            Some(error) if is_strict => problems.push(error),
            // A map, and an object that may hold anything, may have that key too.
            Some(Error::Directive { .. }) => warnings.push(fault.text),
            Some(_) => warnings.push(format!("{}; Talos refuses it", fault.text)),
            None => warnings.push(fault.text),
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems),
    }
}

/// Takes the positions in lists out of what is said of a place.
fn without_positions(text: &str) -> String {
    let mut parts = text.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| {
        out + "[" + part.trim_start_matches(|letter: char| letter.is_ascii_digit())
    })
}
