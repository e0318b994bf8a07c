//! What the documents of configurations and patches are known by.

use serde_json::Value;

use super::delete::DIRECTIVE;
use super::walk::text;
use crate::schema::MAIN;
use crate::yaml::{Kind, Node, Stream};
use crate::{Error, Place};

/// What a document of a configuration or patch is known by.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) name: String,
}

impl Identity {
    fn main() -> Self {
        Self {
            version: MAIN.to_owned(),
            kind: MAIN.to_owned(),
            name: String::new(),
        }
    }

    pub(super) fn is_main(&self) -> bool {
        self.kind == MAIN
    }

    /// Returns how messages name the document; empty for the main one.
    pub(super) fn label(&self) -> String {
        match (self.kind.as_str(), self.name.as_str()) {
            (MAIN, _) => String::new(),
            (kind, "") => kind.to_owned(),
            (kind, name) => format!("{kind}/{name}"),
        }
    }

    /// Returns how a sentence names the document.
    pub(super) fn full_label(&self) -> String {
        match self.is_main() {
            true => "the main document".to_owned(),
            false => self.label(),
        }
    }
}

/// Returns what a document of a configuration is known by, if it is one that Talos knows.
pub(super) fn known(stream: &Stream, root: &Node) -> Option<Identity> {
    if is_main(root) {
        return Some(Identity::main());
    }
    let read = |key| {
        let text = root.get(key).and_then(|node| text(stream, node));
        text.unwrap_or_default().into_owned()
    };
    let kind = read("kind");
    (!kind.is_empty()).then(|| Identity {
        version: read("apiVersion"),
        kind,
        name: read("name"),
    })
}

/// Returns the position of the document of a configuration that is known by the same.
pub(super) fn find(stream: &Stream, identity: &Identity) -> Option<usize> {
    stream
        .roots()
        .position(|root| known(stream, root).as_ref() == Some(identity))
}

/// Returns the position of the main document.
pub(super) fn main_document(stream: &Stream) -> Option<usize> {
    stream.roots().position(is_main)
}

/// Refuses a configuration in which a document stands twice.
pub(super) fn refuse_doubles(stream: &Stream) -> Result<(), Error> {
    let mut seen: Vec<(Identity, usize)> = Vec::with_capacity(stream.len());
    for (index, root) in stream.roots().enumerate() {
        let Some(identity) = known(stream, root) else {
            continue;
        };
        if let Some((_, first)) = seen.iter().find(|(other, _)| *other == identity) {
            let line = |index| stream.line(index, &[]).unwrap_or_default();
            return Err(Error::DocumentTwice {
                document: identity.full_label(),
                first: line(*first),
                second: line(index),
            });
        }
        seen.push((identity, index));
    }
    Ok(())
}

/// Lets a main document that lost its last section be one still.
pub(super) fn stay_main(root: &mut Node) {
    let keys = ["machine", "cluster", "debug", "persist"];
    if !keys.iter().any(|key| root.contains(key)) {
        root.set("machine", Value::Null);
    }
}

/// Returns whether a document has no kind and at least one of the keys of the main one.
fn is_main(root: &Node) -> bool {
    !root.contains("kind")
        && ["machine", "cluster", "debug", "persist", "version"]
            .iter()
            .any(|key| root.contains(key))
}

/// Returns whether a document of a patch says nothing: scalars of these three names only.
pub(super) fn is_nothing(root: &Node, compat: bool) -> bool {
    let names: &[&str] = match compat {
        true => &["version", "kind", "name"],
        false => &["version"],
    };
    (compat || !root.is_empty())
        && root.entries().all(|(key, value)| {
            names.contains(&key) && matches!(value.kind(), Kind::Scalar | Kind::Null)
        })
}

/// Reads off what the document of a patch at `index` is for.
pub(super) fn identity(patch: &Stream, index: usize, root: &Node) -> Result<Identity, Error> {
    let line = patch.line(index, &[]);
    let unknown = |reason: String| Error::UnknownDocument { reason, line };
    if root.contains("kind") {
        let identity = known(patch, root).ok_or_else(|| unknown("`kind` is empty".to_owned()))?;
        let kind = &identity.kind;
        if identity.version.is_empty() {
            return Err(unknown(format!("document {kind}: `apiVersion` is missing")));
        }
        if kind == MAIN {
            let reason = format!("document {kind}: the main document has no `kind`");
            return Err(unknown(reason));
        }
        return Ok(identity);
    }
    if is_main(root) {
        return Ok(Identity::main());
    }
    let mut keys = root.entries().map(|(key, _)| key);
    let Some(first) = keys.next() else {
        return Err(Error::NoPatch {
            reason: "an empty mapping".to_owned(),
        });
    };
    if root.contains("op") && root.contains("path") {
        return Err(Error::NoPatch {
            reason: "one operation alone; a JSON Patch is a list of operations".to_owned(),
        });
    }
    match std::iter::once(first)
        .chain(keys)
        .find(|key| *key != DIRECTIVE)
    {
        Some(first) => Err(unknown(format!(
            "{first}: no field of the main document, and no `kind` says which document is meant"
        ))),
        None => Err(Error::Directive {
            place: Place {
                document: String::new(),
                path: String::new(),
                line,
            },
            reason: "the main document cannot be deleted",
        }),
    }
}
