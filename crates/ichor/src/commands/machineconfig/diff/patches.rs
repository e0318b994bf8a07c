//! The patches that turn the first configuration into the second.

use serde::Serialize;
use serde_json::Value;
use talos_config::patch::{Patch, apply};
use talos_config::{Error as ConfigError, Schema, compare};

use super::sides::Side;
use crate::commands::patch::input;
use crate::error::{Code, Error};
use crate::output::Format;
use crate::session::Session;

/// The patches that turn one machine config into another, applied in their order.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct PatchesData {
    /// The patches in the order to apply them in.
    patches: Vec<PatchData>,
    /// Whether all of them work as one text too.
    #[serde(skip)]
    joined: bool,
}

/// One patch.
#[derive(Serialize, schemars::JsonSchema)]
struct PatchData {
    /// The kind and name of the document that a JSON Patch is for; empty for the main one.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<String>,
    /// The text of a strategic merge patch, or the operations of a JSON Patch.
    patch: Value,
}

/// Makes the strategic merge patches.
pub(super) fn strategic(first: &Side, second: &Side, schema: Schema) -> Result<PatchesData, Error> {
    let texts = compare::as_patch(&first.text, &second.text, schema)
        .map_err(|error| fault(&error, first, second))?;
    let joined = texts.len() < 2 || holds(first, second, &texts.join(SEPARATOR), schema);
    Ok(PatchesData {
        patches: texts
            .into_iter()
            .map(|text| PatchData {
                document: None,
                patch: text.into(),
            })
            .collect(),
        joined,
    })
}

/// Makes the JSON Patches.
pub(super) fn json(first: &Side, second: &Side, schema: Schema) -> Result<PatchesData, Error> {
    let patches = compare::as_json_patch(&first.text, &second.text, schema)
        .map_err(|error| fault(&error, first, second))?;
    Ok(PatchesData {
        patches: patches
            .into_iter()
            .map(|patch| PatchData {
                document: Some(patch.document),
                patch: patch.operations,
            })
            .collect(),
        joined: false,
    })
}

/// Prints patches; like a config they are masked only where a person looks at them.
pub(super) fn print(session: &mut Session, data: &PatchesData) -> Result<(), Error> {
    let output = &mut session.output;
    let text = match output.format() {
        Format::Json | Format::Ndjson | Format::Yaml => {
            let value =
                serde_json::to_value(data).map_err(|error| Error::of(Code::Failed, &error))?;
            match output.format() {
                Format::Yaml => talos_config::yaml::write(&value),
                Format::Ndjson => format!("{value}\n"),
                _ => format!("{value:#}\n"),
            }
        }
        _ => {
            let text = plain(data)?;
            tell(session, data);
            text
        }
    };
    session.output.credentials(&text, "a pipe")
}

/// Returns the one text that people give on.
fn plain(data: &PatchesData) -> Result<String, Error> {
    let each = || data.patches.iter().map(|patch| &patch.patch);
    match data.patches.as_slice() {
        [] => Ok(String::new()),
        [
            PatchData {
                patch: operations @ Value::Array(_),
                ..
            },
        ] => Ok(format!("{operations:#}\n")),
        patches if patches.len() == 1 || data.joined => {
            let texts: Vec<&str> = each().filter_map(Value::as_str).collect();
            Ok(texts.join(SEPARATOR))
        }
        patches => Err(Error::new(
            Code::Failed,
            format!(
                "it takes {} patches, which are no use in one text",
                patches.len()
            ),
        )
        .hint("-o json prints them one by one, in the order to apply them in")),
    }
}

/// Says what has to be known to use the patches.
fn tell(session: &mut Session, data: &PatchesData) {
    let output = &mut session.output;
    match data.patches.as_slice() {
        [] => output.note("the two mean the same: there is nothing to patch"),
        [
            PatchData {
                document: Some(document),
                ..
            },
        ] if !document.is_empty() => {
            output.note(&format!("the patch is for --document {document}"));
        }
        [_] => {}
        patches => output.note(&format!(
            "one patch cannot do it: {} follow each other in this text; for a talosctl older than 1.14, -o json prints them one by one",
            patches.len()
        )),
    }
}

/// Returns whether one text of all patches does what they do one by one.
fn holds(first: &Side, second: &Side, text: &str, schema: Schema) -> bool {
    let made = |patch: Patch| apply(&first.text, &[patch], schema);
    Patch::parse(text)
        .and_then(made)
        .and_then(|made| compare::texts(&made.text, &second.text, schema))
        .is_ok_and(|changes| changes.is_empty())
}

fn fault(error: &ConfigError, first: &Side, second: &Side) -> Error {
    match error {
        ConfigError::Side { side, source } => match side.contains("first") {
            true => first.fault(source),
            false => second.fault(source),
        },
        ConfigError::NoStrategicPatch { .. } => input::invalid(error)
            .context(format!(
                "no strategic merge patch turns {} into {}",
                first.name, second.name
            ))
            .hint("--json-patch gives a JSON Patch, which can change anything within a document"),
        ConfigError::NoJsonPatch { .. } => input::invalid(error)
            .context(format!(
                "no JSON Patch turns {} into {}",
                first.name, second.name
            ))
            .hint(
                "--as-patch alone gives a strategic merge patch, which adds and deletes documents",
            ),
        error => input::invalid(error)
            .context(format!(
                "no patch turns {} into {}",
                first.name, second.name
            ))
            .hint("--talos-version chooses the version whose fields count"),
    }
}

/// What stands between the documents of a text.
const SEPARATOR: &str = "---\n";
