//! The JSON Patches that turn one configuration into another, one for each document that differs.

use serde_json::Value;

use super::documents::{self, Document};
use super::{meaning, parse_both};
use crate::yaml::{Node, Stream};
use crate::{Error, Schema};

/// A JSON Patch of one document.
#[derive(Clone, PartialEq)]
pub struct DocumentPatch {
    /// The kind and name of the document, such as `VLANConfig/eth0.5`; empty for the main one.
    pub document: String,
    /// The operations.
    pub operations: Value,
}

impl std::fmt::Debug for DocumentPatch {
    /// Leaves the operations out: their values may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JSON Patch of {:?}", self.document)
    }
}

/// Returns the JSON Patches that turn the documents of the first configuration into those of the second, value for value.
///
/// # Errors
///
/// [`Error::Side`] for a text that is not YAML or has a document twice, [`Error::NoJsonPatch`] if one of the
/// configurations has a document that the other lacks: a JSON Patch changes a document and can neither add nor remove one.
pub fn as_json_patch(a: &str, b: &str, schema: Schema) -> Result<Vec<DocumentPatch>, Error> {
    let (left, right) = parse_both(a, b)?;
    let old = documents::read(&left, schema);
    let new = documents::read(&right, schema);
    let mut patches = Vec::new();
    let mut only = [Vec::new(), Vec::new()];
    for pair in documents::pairs(&old, &new) {
        match pair {
            (Some(one), Some(other)) => {
                let document = one.identity.label();
                let value = |stream: &Stream, of: &Document| {
                    let root = stream.root(of.index);
                    root.map_or(Value::Null, |root| {
                        meaning::as_written(stream, root, of.fields)
                    })
                };
                let (one, other) = (value(&left, one), value(&right, other));
                if let Some(operations) = operations(&one, &other) {
                    patches.push(DocumentPatch {
                        document,
                        operations,
                    });
                }
            }
            (Some(one), None) => only[0].push(one.identity.full_label()),
            (None, Some(other)) => only[1].push(other.identity.full_label()),
            (None, None) => {}
        }
    }
    let [first, second] = only;
    if !first.is_empty() || !second.is_empty() {
        return Err(Error::NoJsonPatch { first, second });
    }
    Ok(patches)
}

/// Returns the operations that make one value the other; nothing if they are the same.
fn operations(one: &Value, other: &Value) -> Option<Value> {
    if Node::from(one.clone()).means(other) {
        return None;
    }
    let patch = json_patch::diff(one, other);
    serde_json::to_value(patch).ok()
}
