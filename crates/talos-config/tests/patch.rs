//! Patches, held against the results of the official tool.

use std::error::Error as _;

use serde_json::Value;
use talos_config::patch::{Options, Patch, apply_with};
use talos_config::yaml::read_documents;
use talos_config::{Error, Schema};

/// What the message of a refused case names.
const REFUSED: [(&str, &str); 8] = [
    ("json-op-unknown", "frobnicate"),
    (
        "sm-delete-list-item-missing",
        "machine.network.interfaces[interface=eth9]",
    ),
    ("sm-unknown-field", "machine.bogus"),
    ("sm-bad-type", "cluster.apiServer.certSANs"),
    ("sm-doc-delete-missing", "UserVolumeConfig/nope"),
    ("sm-anchor", "x: no such field"),
    ("sm-doubled-key", "clusterName"),
    ("json-on-multidoc", ""),
];

#[test]
fn patches_give_what_the_official_tool_gives() {
    let golden: Value = serde_json::from_str(include_str!("data/patch.json")).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 58);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let base = golden["bases"][case["base"].as_str().unwrap()]
            .as_str()
            .unwrap();
        let patches = case["patches"].as_array().unwrap();
        let patched = patch(
            base,
            patches.iter().map(|patch| patch.as_str().unwrap()),
            !OWN.contains(&name),
        );
        match (name, case["result"].as_str()) {
            ("json-on-multidoc", _) => {
                let text = patched.unwrap();
                assert_eq!(
                    text,
                    base.replace("clusterName: cluster-1", "clusterName: c2"),
                    "{name}"
                );
            }
            (_, Some(result)) => {
                let text = patched.unwrap_or_else(|error| panic!("{name}: {}", chain(&error)));
                assert_eq!(documents(&text), documents(result), "{name}\n{text}");
            }
            (_, None) => {
                let message = chain(&patched.expect_err(name));
                let (_, named) = REFUSED
                    .iter()
                    .find(|(refused, _)| *refused == name)
                    .expect(name);
                assert!(message.contains(named), "{name}: {message}");
            }
        }
    }
}

/// The cases in which the official tool is not followed: it refuses one and crashes at the other.
const OWN: [&str; 2] = ["json-on-multidoc", "sm-doc-delete-missing"];

fn patch<'a>(
    base: &str,
    patches: impl Iterator<Item = &'a str>,
    compat: bool,
) -> Result<String, Error> {
    let patches = patches.map(Patch::parse).collect::<Result<Vec<_>, _>>()?;
    let options = Options {
        compat,
        ..Options::from(Schema::for_talos("v1.13.9"))
    };
    apply_with(base, &patches, &options).map(|patched| patched.text)
}

/// Returns the messages of an error and its causes.
fn chain(error: &Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    std::iter::once(error.to_string())
        .chain(causes.map(ToString::to_string))
        .collect::<Vec<_>>()
        .join(": ")
}

/// Reads documents without what means the same as nothing.
fn documents(text: &str) -> Vec<Value> {
    read_documents(text)
        .expect("a result is YAML")
        .into_iter()
        .map(without_empty)
        .collect()
}

fn without_empty(value: Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| match (key.as_str(), value) {
                // The official tool writes sizes anew.
                ("size", Value::String(size)) => (key, Value::String(size.replace(' ', ""))),
                (_, value) => (key, without_empty(value)),
            })
            .filter(|(_, value)| !is_empty(value))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_empty).collect(),
        value => value,
    }
}
