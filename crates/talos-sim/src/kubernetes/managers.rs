//! `metadata.managedFields`: who manages which fields of an object.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::fields::FieldSet;
use super::objects::seconds;

/// Who writes, as `managedFields` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manager {
    /// The manager's name: the `fieldManager` parameter or the start of the user agent.
    pub(crate) name: String,
    /// Whether fields are applied or updated.
    pub(crate) operation: Operation,
    /// `status` for writes to that part, else empty.
    pub(crate) subresource: String,
}

/// How a manager came to own its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

/// One entry of `managedFields`.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) manager: Manager,
    api_version: String,
    time: String,
    pub(crate) fields: FieldSet,
}

/// Returns a manager as conflicts name it.
pub(crate) fn described(entry: &Entry) -> String {
    let mut text = format!("\"{}\"", entry.manager.name);
    if !entry.manager.subresource.is_empty() {
        text += &format!(" with subresource \"{}\"", entry.manager.subresource);
    }
    if entry.manager.operation == Operation::Update {
        text += &format!(" using {}", entry.api_version);
    }
    text
}

/// Reads the managers of an object.
pub(crate) fn entries(object: &Value) -> Vec<Entry> {
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| Entry {
            manager: Manager {
                name: text(entry, "manager"),
                operation: match entry["operation"].as_str() {
                    Some("Apply") => Operation::Apply,
                    _ => Operation::Update,
                },
                subresource: text(entry, "subresource"),
            },
            api_version: text(entry, "apiVersion"),
            time: text(entry, "time"),
            fields: FieldSet::from_v1(&entry["fieldsV1"]),
        })
        .collect()
}

/// Replaces a manager's entry; its time moves only if its fields do.
pub(crate) fn set_entry(
    entries: &mut Vec<Entry>,
    manager: Manager,
    object: &Value,
    fields: FieldSet,
    now: Timestamp,
) {
    match entries.iter_mut().find(|entry| entry.manager == manager) {
        Some(entry) if entry.fields == fields => {}
        Some(entry) => {
            entry.fields = fields;
            entry.time = seconds(now);
        }
        None => entries.push(Entry {
            manager,
            api_version: object["apiVersion"].as_str().unwrap_or("v1").to_owned(),
            time: seconds(now),
            fields,
        }),
    }
    entries.retain(|entry| !entry.fields.is_empty());
}

/// Writes the managers into an object.
pub(crate) fn store_entries(object: &mut Value, entries: &[Entry]) {
    let list: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let operation = match entry.manager.operation {
                Operation::Apply => "Apply",
                Operation::Update => "Update",
            };
            let mut value = json!({
                "manager": entry.manager.name,
                "operation": operation,
                "apiVersion": entry.api_version,
                "time": entry.time,
                "fieldsType": "FieldsV1",
                "fieldsV1": entry.fields.to_v1(),
            });
            if !entry.manager.subresource.is_empty() {
                value["subresource"] = json!(entry.manager.subresource);
            }
            value
        })
        .collect();
    object["metadata"]["managedFields"] = Value::Array(list);
}
