//! The differences that are known, with their reasons: the one table of them.

use serde_json::Value;
use talos_config::patch::Patch;
use talos_config::yaml::read_documents;

use super::{Case, documents};

/// A kind of difference that is explained.
pub(super) struct Class {
    pub(super) name: &'static str,
    pub(super) reason: &'static str,
    pub(super) is_it: fn(&Case) -> bool,
}

/// Each case that differs is counted for the first class that it fits.
pub(super) const CLASSES: [Class; 10] = [
    Class {
        name: "alias of a typed value",
        reason: "up to Talos 1.13 the official decoder reads an alias as an empty text where an address, prefix, size or word of an enumeration stands, and refuses it",
        is_it: |case| {
            case.version != "1.14.1"
                && refused(case, &["cannot construct  into", "cannot unmarshal  into"])
        },
    },
    Class {
        name: "`<<` in a map",
        reason: "the official search for unknown keys takes the mapping of a `<<` for a value of the map, and refuses it",
        is_it: |case| {
            refused(case, &["unexpected type for yaml mapping: string"])
                && (case.config.contains("<<:")
                    || case.patches.iter().any(|text| text.contains("<<:")))
        },
    },
    Class {
        name: "words in a JSON Patch",
        reason: "a JSON Patch has the official tool read the configuration by YAML 1.1: `no` is false, 1e3 is 1000 and 0644 is 420, which `test` compares",
        is_it: |case| {
            refused(case, &["testing value", "test failed"]) && has_odd_scalars(&case.config)
        },
    },
    Class {
        name: "words beside a JSON Patch",
        reason: "the same reading changes such words in the whole configuration, and so does what a strategic patch and a JSON Patch write for each other; ours changes the lines of the patch only",
        is_it: |case| {
            let differ_in_words =
                |[ours, theirs]: &[String; 2]| match (documents(ours), documents(theirs)) {
                    (Some(ours), Some(theirs)) => {
                        differ_in_words_only(&ours.into(), &theirs.into())
                    }
                    _ => false,
                };
            both_patched(case) && has_json(case) && case.anew.as_ref().is_some_and(differ_in_words)
        },
    },
    Class {
        name: "crash of `test`",
        reason: "the official JSON Patch crashes when `test` compares with a null inside a value",
        is_it: |case| {
            refused(case, &["panic: runtime error: invalid memory address"]) && has_json(case)
        },
    },
    Class {
        name: "patch after a deletion",
        reason: "up to Talos 1.13 a deletion of a missing document stays as a document that the next patch cannot be merged into",
        is_it: |case| refused(case, &["*decoder.selector", "*decoder.namedSelector"]),
    },
    Class {
        name: "times in free objects",
        reason: "where anything may stand, the official tool reads `2024-01-02` without quotes as a time and writes it with the hour; ours stays the text that it is",
        is_it: |case| {
            both_patched(case)
                && case
                    .theirs
                    .as_ref()
                    .is_ok_and(|text| text.contains("T00:00:00Z"))
        },
    },
    Class {
        name: "selectors of deletions",
        reason: "the official tool compares a selector with the one form in which it writes a duration or address, ours with the text of the configuration",
        is_it: |case| {
            refused(case, &["]': lookup failed"])
                && case.patches.iter().any(|text| text.contains("$patch"))
        },
    },
    Class {
        name: "sections of nothing",
        reason: "a section of which a patch deletes all, and in which it has a null, is left to the official tool with its mandatory fields as empty texts, to ours not at all",
        is_it: |case| {
            let same = |[ours, theirs]: &[String; 2]| match (documents(ours), documents(theirs)) {
                (Some(ours), Some(theirs)) => {
                    without_texts(ours.into()) == without_texts(theirs.into())
                }
                _ => false,
            };
            both_patched(case) && case.anew.as_ref().is_some_and(same)
        },
    },
    Class {
        name: "zeros in a JSON Patch",
        reason: "after a strategic patch the official tool has written absent fields as zeros, or left out zeros, which a JSON Patch then finds or misses; only where its result does not decode does that show",
        is_it: |case| {
            let is_missing = refused(
                case,
                &[
                    "missing value",
                    "missing path",
                    "nonexistent key",
                    "test failed",
                ],
            );
            case.ends_with_json()
                && ((case.patches.len() > 1 && is_missing)
                    || (both_patched(case) && case.anew.is_none()))
        },
    },
];

/// Returns whether the official library alone refuses, with one of some words.
fn refused(case: &Case, words: &[&str]) -> bool {
    case.ours.is_ok()
        && case
            .theirs
            .as_ref()
            .is_err_and(|error| words.iter().any(|word| error.contains(word)))
}

fn both_patched(case: &Case) -> bool {
    case.ours.is_ok() && case.theirs.is_ok()
}

/// Returns whether one of the patches is a JSON Patch.
fn has_json(case: &Case) -> bool {
    case.patches
        .iter()
        .any(|text| Patch::parse(text).is_ok_and(|patch| patch.is_json()))
}

/// Returns whether a scalar is one that YAML 1.1 and the official decoder read in different ways, or a number that JSON
/// writes in another way.
fn is_odd(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            ["yes", "no", "on", "off", "y", "n", "<<", "~"]
                .iter()
                .any(|word| text.eq_ignore_ascii_case(word))
                || text.starts_with(|first: char| first.is_ascii_digit() || ".+-".contains(first))
        }
        Value::Number(_) => true,
        _ => false,
    }
}

/// Returns whether a configuration has such a scalar.
fn has_odd_scalars(text: &str) -> bool {
    fn has(value: &Value) -> bool {
        match value {
            Value::Array(items) => items.iter().any(has),
            Value::Object(map) => map.values().any(has),
            scalar => is_odd(scalar),
        }
    }
    read_documents(text).is_ok_and(|documents| documents.iter().any(has))
}

/// Returns whether ours is the same as theirs but for such scalars.
fn differ_in_words_only(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            theirs.keys().all(|key| ours.contains_key(key))
                && ours.iter().all(|(key, value)| match theirs.get(key) {
                    Some(other) => differ_in_words_only(value, other),
                    None => is_odd(value),
                })
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len()
                && ours
                    .iter()
                    .zip(theirs)
                    .all(|(ours, theirs)| differ_in_words_only(ours, theirs))
        }
        (ours, theirs) => ours == theirs || is_odd(ours),
    }
}

/// Drops empty texts, and what holds nothing else.
fn without_texts(value: Value) -> Value {
    let is_nothing = |value: &Value| match value {
        Value::String(text) => text.is_empty(),
        Value::Object(map) => map.is_empty(),
        value => value.is_null(),
    };
    match value {
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (key, without_texts(value)))
            .filter(|(_, value)| !is_nothing(value))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_texts).collect(),
        value => value,
    }
}
