//! The patches that turn the first configuration into the second.

use serde::Serialize;
use serde_json::Value;
use talos_config::patch::{Options, Patch, apply_with};
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
    /// The Talos version that has to be told to those who apply them, since the first config does not tell it.
    #[serde(skip)]
    version: Option<&'static str>,
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

/// Makes the strategic merge patches, for the newest version if the other one has not all that they need and is not fixed.
pub(super) fn strategic(
    first: &Side,
    second: &Side,
    schema: Schema,
    is_fixed: bool,
) -> Result<PatchesData, Error> {
    let made = |schema| compare::as_patch(&first.text, &second.text, schema);
    let (texts, schema) = match made(schema) {
        Err(error) if !is_fixed && error.is_unknown() => {
            let newest = Schema::newest();
            made(newest).map(|texts| (texts, newest))
        }
        made => made.map(|texts| (texts, schema)),
    }
    .map_err(|error| fault(&error, first, second))?;
    let text = texts.join(SEPARATOR);
    let joined = texts.len() < 2 || holds(first, second, &text, Some(schema), schema);
    let is_told = texts.is_empty() || holds(first, second, &text, None, schema);
    Ok(PatchesData {
        patches: texts
            .into_iter()
            .map(|text| PatchData {
                document: None,
                patch: text.into(),
            })
            .collect(),
        joined,
        version: (!is_told).then(|| schema.table_version()),
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
        version: None,
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
        patches => Err(several(patches)),
    }
}

/// Makes the error for patches that cannot stand in one text.
fn several(patches: &[PatchData]) -> Error {
    let documents: Vec<&str> = patches
        .iter()
        .filter_map(|patch| patch.document.as_deref())
        .map(|document| match document {
            "" => "the main document",
            document => document,
        })
        .collect();
    match documents.is_empty() {
        true => {
            let message = format!(
                "it takes {} patches, which are no use in one text",
                patches.len()
            );
            Error::new(Code::Usage, message)
                .hint("-o json prints them one by one, in the order to apply them in")
        }
        false => {
            let message = format!(
                "a JSON Patch changes one document, and {} differ: {}",
                documents.len(),
                documents.join(", ")
            );
            Error::new(Code::Usage, message).hint("-o json prints a JSON Patch for each, which `machineconfig patch --document KIND[/NAME]` takes; --as-patch prints one strategic merge patch for all")
        }
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
    if let Some(version) = data.version {
        output.note(&format!(
            "the first config tells an older Talos, or none: apply it with --talos-version v{version}"
        ));
    }
}

/// Returns whether one text of all patches does what they do one by one, with the version `told` to who applies it.
fn holds(first: &Side, second: &Side, text: &str, told: Option<Schema>, schema: Schema) -> bool {
    let options = Options {
        schema: told,
        ..Options::default()
    };
    let made = |patch: Patch| apply_with(&first.text, &[patch], &options);
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
