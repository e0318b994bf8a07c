//! Strategic merge patches: which document of a patch meets which of the configuration.

use serde_json::Value;

use super::{check, delete, merge};
use crate::schema::{Field, MAIN};
use crate::yaml::{Node, Stream};
use crate::{Error, Place, Schema};

/// What a document of a configuration or patch is known by.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) name: String,
}

impl Identity {
    /// Returns how messages name the document; empty for the main one.
    pub(super) fn label(&self) -> String {
        match (self.kind.as_str(), self.name.as_str()) {
            (MAIN, _) => String::new(),
            (kind, "") => kind.to_owned(),
            (kind, name) => format!("{kind}/{name}"),
        }
    }
}

/// Applies the documents of a patch in their order.
pub(super) fn apply(
    stream: &mut Stream,
    documents: &[Value],
    schema: Schema,
    warnings: &mut Vec<String>,
) -> Result<(), Error> {
    for document in documents {
        let identity = identity(document)?;
        if is_version_only(document) {
            continue;
        }
        let target = find(stream, &identity);
        let place = Place {
            document: identity.label(),
            path: String::new(),
        };
        if let Some(directive) = document.get(delete::DIRECTIVE) {
            if identity.kind == MAIN {
                return Err(Error::Directive {
                    place,
                    reason: "the main document cannot be deleted",
                });
            }
            delete::check(directive, &place)?;
            let target = target.ok_or_else(|| Error::NoDocument {
                document: identity.label(),
            })?;
            stream.remove(target);
            continue;
        }
        let fields = schema
            .kind(&identity.kind)
            .filter(|_| identity.version == MAIN);
        let mut patch = document.clone();
        match fields {
            Some(fields) => check::document(&patch, fields, &place, schema, warnings)?,
            None => unknown_kind(&identity, schema, warnings)?,
        }
        let has_deletions = delete::is_in(&patch);
        match target.and_then(|target| stream.root_mut(target)) {
            Some(root) => {
                if has_deletions {
                    delete::apply(root, &mut patch, fields, &place, warnings)?;
                }
                match fields {
                    Some(fields) => {
                        merge::document(root, &patch, fields, &place, schema, warnings)?
                    }
                    None => merge::free(root, &patch, &place)?,
                }
            }
            None if has_deletions => {
                return Err(Error::NoDocument {
                    document: label_or_main(&identity),
                });
            }
            None => add(
                stream,
                patch,
                fields.is_some_and(Field::is_named),
                &identity,
                warnings,
            ),
        }
    }
    Ok(())
}

/// Returns the position of the main document.
pub(super) fn main_document(stream: &Stream) -> Option<usize> {
    stream.roots().position(is_main)
}

/// Returns whether a document has no kind and at least one of the keys of the main one.
fn is_main(root: &Node) -> bool {
    !root.contains("kind")
        && ["machine", "cluster", "debug", "persist", "version"]
            .iter()
            .any(|key| root.contains(key))
}

fn find(stream: &Stream, identity: &Identity) -> Option<usize> {
    if identity.kind == MAIN {
        return main_document(stream);
    }
    let text = |root: &Node, key: &str| {
        root.get(key)
            .and_then(Node::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    stream.roots().position(|root| {
        text(root, "kind") == identity.kind
            && text(root, "apiVersion") == identity.version
            && text(root, "name") == identity.name
    })
}

/// Reads off what a document of a patch is for.
fn identity(document: &Value) -> Result<Identity, Error> {
    let text = |key: &str| {
        document
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    if document.get("kind").is_none() {
        let main = ["machine", "cluster", "debug", "persist", "version"]
            .iter()
            .any(|key| document.get(key).is_some());
        let keys = document
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| key.as_str());
        let first = keys
            .clone()
            .find(|key| *key != delete::DIRECTIVE)
            .unwrap_or_default()
            .to_owned();
        return match (
            main,
            document.get("op").is_some() && document.get("path").is_some(),
        ) {
            (true, _) => Ok(Identity {
                version: MAIN.to_owned(),
                kind: MAIN.to_owned(),
                name: String::new(),
            }),
            (false, true) => Err(Error::NoPatch {
                reason: "one operation alone; a JSON Patch is a list of operations".to_owned(),
            }),
            (false, false) if keys.count() == 0 => Err(Error::NoPatch {
                reason: "an empty mapping".to_owned(),
            }),
            (false, false) if first.is_empty() => Err(Error::Directive {
                place: Place {
                    document: String::new(),
                    path: String::new(),
                },
                reason: "the main document cannot be deleted",
            }),
            (false, false) => Err(Error::UnknownDocument {
                reason: format!(
                    "{first}: no field of the main document, and no `kind` says which document is meant"
                ),
            }),
        };
    }
    let (kind, version, name) = (text("kind"), text("apiVersion"), text("name"));
    if version.is_empty() {
        return Err(Error::UnknownDocument {
            reason: format!("document {kind}: `apiVersion` is missing"),
        });
    }
    if kind == MAIN {
        return Err(Error::UnknownDocument {
            reason: format!("document {kind}: the main document has no `kind`"),
        });
    }
    Ok(Identity {
        version,
        kind,
        name,
    })
}

/// Returns whether a main document says nothing but its version.
fn is_version_only(document: &Value) -> bool {
    document
        .as_object()
        .is_some_and(|map| map.len() == 1 && map.contains_key("version"))
}

fn label_or_main(identity: &Identity) -> String {
    if identity.kind == MAIN {
        "v1alpha1".to_owned()
    } else {
        identity.label()
    }
}

/// Refuses a kind that the Talos version does not have; a Talos that is not known has to judge itself.
fn unknown_kind(
    identity: &Identity,
    schema: Schema,
    warnings: &mut Vec<String>,
) -> Result<(), Error> {
    let error = Error::UnknownKind {
        document: identity.label(),
        version: schema.table_version().to_owned(),
        newer: (identity.version == MAIN)
            .then(|| schema.version_with(&identity.kind, &[]).map(str::to_owned))
            .flatten(),
    };
    if schema.is_known() {
        return Err(error);
    }
    warnings.push(error.to_string());
    Ok(())
}

/// Adds a document that the configuration does not have; the main one goes first.
fn add(
    stream: &mut Stream,
    mut patch: Value,
    named: bool,
    identity: &Identity,
    warnings: &mut Vec<String>,
) {
    if identity.kind == MAIN {
        stream.insert(0, patch);
        return;
    }
    if named && identity.name.is_empty() {
        let kind = &identity.kind;
        warnings.push(format!(
            "document {kind}: `name` is missing, so a document without a name is added"
        ));
        if let Value::Object(map) = &mut patch {
            map.insert("name".to_owned(), Value::String(String::new()));
        }
    }
    stream.push(patch);
}
