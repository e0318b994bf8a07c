//! One resource as a document: JSON, YAML as users of talosctl know it, and plain values, with its secrets masked.

use std::collections::BTreeMap;

use jiff::{Timestamp, Unit};
use serde::Serialize;
use serde_json::{Value, json};
use talos_client::{Metadata, Resource};
use talos_config::{mask, yaml};

use super::ResourceData;
use crate::error::{Code, Error};
use crate::output::Output;

/// What is said about a resource.
#[derive(Clone, Serialize, schemars::JsonSchema)]
pub(crate) struct MetadataData {
    /// The namespace.
    namespace: String,
    /// The type.
    r#type: String,
    /// The id, unique among the resources of the type and namespace.
    id: String,
    /// A number that grows by one with every change; null for what is gone.
    version: Option<u64>,
    /// The controller that owns it; null if it has none.
    owner: Option<String>,
    /// `running` or `tearingDown`.
    phase: String,
    /// When it came into being.
    #[schemars(with = "Option<String>")]
    created: Option<Timestamp>,
    /// When it last changed.
    #[schemars(with = "Option<String>")]
    updated: Option<Timestamp>,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
    /// Who has to agree to its end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    finalizers: Vec<String>,
}

/// A resource, as `-o ndjson` prints it.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct ItemData<'a> {
    /// The node as the user named it.
    node: &'a str,
    /// `created`, `updated` or `destroyed`; only with `--watch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a str>,
    /// What is said about it.
    metadata: MetadataData,
    /// Its content; that of a machine configuration is its text.
    spec: &'a Value,
}

/// A resource of a node, ready to be printed.
pub(super) struct Item<'a> {
    node: &'a str,
    resource: &'a Resource,
    event: Option<&'a str>,
    spec: Value,
    masked: bool,
}

impl<'a> Item<'a> {
    /// Reads a resource and masks what is secret in it.
    pub(super) fn new(
        output: &Output,
        node: &'a str,
        resource: &'a Resource,
        event: Option<&'a str>,
    ) -> Result<Self, Error> {
        let mut spec = resource.spec().map_err(|error| {
            let id = &resource.metadata.id;
            Error::of(Code::Failed, &error)
                .context(format!("the content of {id} cannot be read"))
                .node(node)
        })?;
        let mut masked = false;
        if !output.shows_secrets() {
            let safe = match &spec {
                Value::String(text) => Value::String(mask::text(text)),
                _ => mask::value(&spec),
            };
            masked = safe != spec;
            spec = safe;
        }
        Ok(Self {
            node,
            resource,
            event,
            spec,
            masked,
        })
    }

    /// Returns the id.
    pub(super) fn id(&self) -> &str {
        &self.resource.metadata.id
    }

    /// Returns the content.
    pub(super) fn spec(&self) -> &Value {
        &self.spec
    }

    /// Returns the resource as a part of a document over nodes.
    pub(super) fn data(self) -> ResourceData {
        ResourceData {
            metadata: metadata(&self.resource.metadata),
            spec: self.spec,
        }
    }

    /// Returns the resource as an object of its own.
    pub(super) fn value(&self) -> Value {
        json!(ItemData {
            node: self.node,
            event: self.event,
            metadata: metadata(&self.resource.metadata),
            spec: &self.spec,
        })
    }

    /// Returns the resource as a YAML document; where nothing is masked
    /// the content is the node's own text.
    pub(super) fn yaml(&self) -> String {
        let mut text = format!("node: {}\n", scalar(self.node));
        if let Some(event) = self.event {
            text.push_str(&format!("event: {event}\n"));
        }
        text.push_str("metadata:\n");
        for (key, value) in json!(metadata(&self.resource.metadata))
            .as_object()
            .into_iter()
            .flatten()
        {
            let entry = match value {
                Value::Null => format!("{key}:\n"),
                // Plain, as a time; quoted it would be a text.
                Value::String(time) if key == "created" || key == "updated" => {
                    format!("{key}: {time}\n")
                }
                _ => yaml::write(&json!({ key: value })),
            };
            push_indented(&mut text, &entry);
        }
        match &self.spec {
            Value::Object(fields) if !fields.is_empty() && !self.masked => {
                text.push_str("spec:\n");
                push_indented(&mut text, self.resource.yaml_spec.trim_end());
            }
            Value::Null => text.push_str("spec: {}\n"),
            spec => text.push_str(&yaml::write(&json!({ "spec": spec }))),
        }
        text
    }
}

/// Returns a value as plain text: strings without quotes, lists and mappings as indented JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => {
            let mut text = Vec::new();
            let format = serde_json::ser::PrettyFormatter::with_indent(b"    ");
            let mut serializer = serde_json::Serializer::with_formatter(&mut text, format);
            // Writing a value into memory does not fail.
            let _ = value.serialize(&mut serializer);
            String::from_utf8_lossy(&text).into_owned()
        }
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn metadata(metadata: &Metadata) -> MetadataData {
    MetadataData {
        namespace: metadata.namespace.clone(),
        r#type: metadata.resource_type.clone(),
        id: metadata.id.clone(),
        version: metadata.version.parse().ok(),
        owner: Some(metadata.owner.clone()).filter(|owner| !owner.is_empty()),
        phase: metadata.phase.clone(),
        created: metadata.created.map(whole_seconds),
        updated: metadata.updated.map(whole_seconds),
        labels: metadata.labels.clone(),
        annotations: metadata.annotations.clone(),
        finalizers: metadata.finalizers.clone(),
    }
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    time.round(
        jiff::TimestampRound::new()
            .smallest(Unit::Second)
            .mode(jiff::RoundMode::Trunc),
    )
    .unwrap_or(time)
}

fn scalar(text: &str) -> String {
    yaml::write(&Value::String(text.to_owned()))
        .trim_end()
        .to_owned()
}

fn push_indented(text: &mut String, block: &str) {
    for line in block.lines() {
        if !line.is_empty() {
            text.push_str("    ");
            text.push_str(line);
        }
        text.push('\n');
    }
}
