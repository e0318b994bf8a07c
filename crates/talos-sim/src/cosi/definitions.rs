//! The resource types of Talos: what `get rd` lists, and what access and encoding go by.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::TalosVersion;

/// One resource type.
#[derive(Debug, Deserialize)]
pub(crate) struct Definition {
    /// The type, such as `Services.v1alpha1.talos.dev`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    display: String,
    namespace: String,
    aliases: Vec<String>,
    all_aliases: Vec<String>,
    #[serde(default)]
    sensitive: bool,
    /// Names and JSON paths of the columns that `get` prints.
    #[serde(default)]
    columns: Vec<(String, String)>,
    /// The message of its protobuf form, if it has one.
    proto: Option<String>,
    since: String,
}

impl Definition {
    /// The spec of the resource that describes the type.
    pub(crate) fn spec(&self) -> Value {
        let column = |(name, path): &(String, String)| json!({"name": name, "jsonPath": path});
        let mut spec = json!({
            "type": self.kind,
            "displayType": self.display,
            "defaultNamespace": self.namespace,
            "aliases": self.aliases,
            "allAliases": self.all_aliases,
            "printColumns": self.columns.iter().map(column).collect::<Vec<_>>(),
        });
        if self.sensitive {
            spec["sensitivity"] = json!("sensitive");
        }
        spec
    }

    /// Tells whether a version of Talos has the type.
    pub(crate) fn exists_in(&self, version: TalosVersion) -> bool {
        version > TalosVersion::V1_11_5 || self.since == "1.11"
    }
}

/// All types, sorted by name.
pub(crate) fn all() -> &'static [Definition] {
    &DEFINITIONS
}

/// Finds a type by its exact name.
pub(crate) fn find(kind: &str) -> Option<&'static Definition> {
    BY_KIND.get(kind).copied()
}

/// Returns the full name of the protobuf message that encodes a type's specs.
pub(super) fn proto_message(kind: &str) -> Option<&'static str> {
    find(kind)?.proto.as_deref()
}

static DEFINITIONS: LazyLock<Vec<Definition>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../data/cosi/definitions.json"))
        .expect("the table of types is valid")
});

static BY_KIND: LazyLock<HashMap<&str, &Definition>> = LazyLock::new(|| {
    let entry = |definition: &'static Definition| (definition.kind.as_str(), definition);
    DEFINITIONS.iter().map(entry).collect()
});
