//! The differences that are known, with their reasons: the one table of them.

use serde_json::Value;
use talos_config::patch::Patch;
use talos_config::yaml::read_documents;

use super::Case;

/// A kind of difference that is explained.
pub(super) struct Class {
    pub(super) name: &'static str,
    pub(super) reason: &'static str,
    pub(super) is_it: fn(&Case) -> bool,
}

/// Each case that differs is counted for the first class that it fits.
pub(super) const CLASSES: [Class; 9] = [
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
        name: "`<<` of what is patched",
        reason: "a mapping with a `<<` is written out once the mapping that it names is patched, in a form that the official search for unknown keys refuses",
        is_it: |case| {
            case.config.contains("<<:") && both_patched(case) && case.ours().contains("<<:")
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
        name: "words after a JSON Patch",
        reason: "the same reading changes such words of the whole configuration before the next strategic patch; ours changes the lines of the patch only",
        is_it: |case| both_patched(case) && starts_with_json(case) && has_odd_scalars(&case.config),
    },
    Class {
        name: "crash of `test`",
        reason: "the official JSON Patch crashes when `test` compares with a null inside a value",
        is_it: |case| {
            refused(case, &["panic: runtime error: invalid memory address"])
                && case.ends_with_json()
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
        name: "zeros in a JSON Patch",
        reason: "after a strategic patch the official tool has written absent fields as zeros, or left out zeros, which a JSON Patch then finds or misses; only where its result does not decode does that show",
        is_it: |case| {
            let is_missing = refused(case, &["missing value", "missing path", "nonexistent key"]);
            case.ends_with_json()
                && ((case.patches.len() > 1 && is_missing) || (both_patched(case) && !case.decodes))
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

/// Returns whether a patch before the last is a JSON Patch.
fn starts_with_json(case: &Case) -> bool {
    let (_, before) = case.patches.split_last().unwrap();
    before
        .iter()
        .any(|text| Patch::parse(text).is_ok_and(|patch| patch.is_json()))
}

/// Returns whether a text has a scalar that YAML 1.1 and the official decoder read in different ways, or a number that
/// JSON writes in another way.
fn has_odd_scalars(text: &str) -> bool {
    fn is_odd(value: &Value) -> bool {
        match value {
            Value::String(text) => {
                ["yes", "no", "on", "off", "y", "n"]
                    .iter()
                    .any(|word| text.eq_ignore_ascii_case(word))
                    || text.starts_with(|first: char| first.is_ascii_digit())
            }
            Value::Number(_) => true,
            Value::Array(items) => items.iter().any(is_odd),
            Value::Object(map) => map.values().any(is_odd),
            Value::Null | Value::Bool(_) => false,
        }
    }
    read_documents(text).is_ok_and(|documents| documents.iter().any(is_odd))
}
