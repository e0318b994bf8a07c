//! What Talos will not decode of a document that a JSON Patch changed: the patch itself is applied without looking.

use super::Settings;
use super::documents::known;
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

/// Returns the faults of a document.
pub(super) fn faults(stream: &Stream, index: usize, settings: &Settings) -> Vec<Fault> {
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
        // None of the text: lines of the configuration would read as those of the patch.
        index: stream.len(),
        document: identity.label(),
        kind: identity.kind,
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

/// Returns the faults that were not there before; those in lists may have moved.
pub(super) fn added(before: &[Fault], after: Vec<Fault>) -> Vec<Fault> {
    let mut before: Vec<&str> = before.iter().map(|fault| fault.text.as_str()).collect();
    let mut added = after;
    let exactly = |one: &str, other: &str| one == other;
    let moved = |one: &str, other: &str| without_positions(one) == without_positions(other);
    for same in [&exactly as &dyn Fn(&str, &str) -> bool, &moved] {
        added.retain(|fault| {
            let known = before.iter().position(|text| same(text, &fault.text));
            known.map(|index| before.swap_remove(index)).is_none()
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
