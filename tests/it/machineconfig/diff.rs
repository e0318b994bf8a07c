//! Differences by meaning, and the patch that makes them.

mod program;

use serde_json::{Map, Value};
use talos_config::patch::{Patch, apply};
use talos_config::yaml::{read, read_documents};
use talos_config::{Error, Schema, compare};

use super::generator::{Generator, VERSIONS};

/// Printed by a failure; the same seed gives the same pairs.
const SEED: u64 = 5_000;

/// How many pairs of each of the three versions: 5,001 in all.
const PAIRS: usize = 1_667;

#[test]
fn a_patch_of_generated_pairs_turns_the_first_into_the_second() {
    let refused: usize = each_version(strategic).into_iter().sum();
    // Those whose main document goes.
    assert!(refused < 100, "{refused}");
}

#[test]
fn a_json_patch_of_generated_pairs_turns_the_first_into_the_second() {
    let refused: usize = each_version(json).into_iter().sum();
    assert!(refused < 3 * PAIRS / 2, "{refused}");
}

/// Does something with the pairs of each version, all versions at the same time, and returns how many it refused.
fn each_version(act: fn(&str, &str, Schema, &str) -> bool) -> Vec<usize> {
    let threads = VERSIONS.map(|version| {
        std::thread::spawn(move || {
            let mut generator = Generator::new(SEED, version);
            let schema = Schema::for_talos(version);
            let held = |number: &usize| {
                let (a, b) = generator.pair();
                !act(
                    &a,
                    &b,
                    schema,
                    &format!("seed {SEED}, {version}, pair {number}"),
                )
            };
            (0..PAIRS).filter(held).count()
        })
    });
    threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect()
}

/// Asserts that the strategic patches hold, one by one and as one text; returns false if there cannot be any.
fn strategic(a: &str, b: &str, schema: Schema, case: &str) -> bool {
    let texts = match compare::as_patch(a, b, schema) {
        Ok(texts) => texts,
        Err(Error::NoStrategicPatch { reason, .. }) if reason.contains("take it away") => {
            return false;
        }
        Err(error) => panic!("{case}: {error}\n{a}\n=== to become\n{b}"),
    };
    let patches: Vec<Patch> = texts
        .iter()
        .map(|text| Patch::parse(text).unwrap())
        .collect();
    let joined = [Patch::parse(&texts.join("---\n")).unwrap()];
    for patches in [patches.as_slice(), &joined] {
        let patched = apply(a, patches, schema).unwrap();
        assert_eq!(
            documents(&patched.text),
            documents(b),
            "{case}\n{a}\n=== by\n{texts:#?}\n=== was to become\n{b}"
        );
    }
    true
}

/// Asserts that the JSON Patches hold; returns false if documents come or go, so that there cannot be any.
fn json(a: &str, b: &str, schema: Schema, case: &str) -> bool {
    let patches = match compare::as_json_patch(a, b, schema) {
        Ok(patches) => patches,
        Err(Error::NoJsonPatch { .. }) => return false,
        Err(error) => panic!("{case}: {error}\n{a}\n=== to become\n{b}"),
    };
    let mut values = read_documents(a).unwrap();
    for patch in patches {
        let value = values
            .iter_mut()
            .find(|value| label(value) == patch.document)
            .unwrap();
        let operations: json_patch::Patch = serde_json::from_value(patch.operations).unwrap();
        json_patch::patch(value, &operations).unwrap();
    }
    assert_eq!(
        settled_documents(values),
        documents(b),
        "{case}\n{a}\n=== was to become\n{b}"
    );
    true
}

fn documents(text: &str) -> Vec<(String, Value)> {
    settled_documents(read_documents(text).unwrap())
}

fn settled_documents(values: Vec<Value>) -> Vec<(String, Value)> {
    let mut documents: Vec<(String, Value)> = values
        .iter()
        .map(|value| (label(value), settled(value)))
        .collect();
    documents.sort_by(|a, b| a.0.cmp(&b.0));
    documents
}

fn label(document: &Value) -> String {
    let text = |key: &str| document[key].as_str().unwrap_or_default();
    match text("name") {
        "" => text("kind").to_owned(),
        name => format!("{}/{name}", text("kind")),
    }
}

/// Brings a value to a form that is the same for all that Talos takes for the same: what is empty is left out, a scalar
/// is what it reads as without quotes, and lists whose elements have names are sorted.
fn settled(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> = map
                .iter()
                .map(|(key, value)| {
                    let mut value = settled(value);
                    let named = ["interfaces", "vlans", "admissionControl", "configFiles"];
                    if let (true, Value::Array(items)) = (named.contains(&key.as_str()), &mut value)
                    {
                        items.sort_by_key(ToString::to_string);
                    }
                    (key.clone(), value)
                })
                .filter(|(_, value)| !is_empty(value))
                .collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(settled).collect(),
        Value::String(text) if text.len() < 40 && !text.contains(char::is_whitespace) => {
            match read(text) {
                Ok(scalar) if !scalar.is_object() && !scalar.is_array() => {
                    Value::String(word(&scalar))
                }
                _ => value.clone(),
            }
        }
        scalar => Value::String(word(scalar)),
    }
}

fn word(scalar: &Value) -> String {
    match scalar {
        Value::Null => String::new(),
        Value::String(text) => match text.to_ascii_lowercase().as_str() {
            "yes" | "on" | "y" => "true".to_owned(),
            "no" | "off" | "n" => "false".to_owned(),
            _ => text.clone(),
        },
        Value::Number(number) => number
            .as_f64()
            .map_or_else(String::new, |number| number.to_string()),
        other => other.to_string(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => matches!(text.as_str(), "" | "0" | "false"),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}
