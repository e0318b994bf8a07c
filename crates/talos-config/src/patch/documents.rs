//! What the documents of configurations and patches are known by.

use std::collections::HashMap;

use serde_json::Value;

use super::delete::DIRECTIVE;
use super::walk::text;
use crate::facts::{self, has_main_key};
use crate::schema::MAIN;
use crate::yaml::{Kind, Node, Stream};
use crate::{Error, Place};

/// What a document of a configuration or patch is known by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) version: String,
    pub(crate) kind: String,
    /// The name as it is written.
    pub(crate) name: String,
}

impl Identity {
    pub(crate) fn main() -> Self {
        Self {
            version: MAIN.to_owned(),
            kind: MAIN.to_owned(),
            name: String::new(),
        }
    }

    pub(crate) fn is_main(&self) -> bool {
        self.kind == MAIN
    }

    /// Returns how messages name the document; empty for the main one.
    pub(crate) fn label(&self) -> String {
        match (self.kind.as_str(), self.name.as_str()) {
            (MAIN, _) => String::new(),
            (kind, "") => kind.to_owned(),
            (kind, name) => format!("{kind}/{name}"),
        }
    }

    /// Returns how a sentence names the document.
    pub(crate) fn full_label(&self) -> String {
        match self.is_main() {
            true => "the main document".to_owned(),
            false => self.label(),
        }
    }
}

/// Returns what a document of a configuration is known by, if it is one that Talos knows.
pub(crate) fn known(stream: &Stream, root: &Node) -> Option<Identity> {
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

/// Where the documents of a configuration stand.
pub(super) struct Positions {
    /// In their order; there are several if an official version added a document twice.
    of: HashMap<Identity, Vec<usize>>,
    /// Those that are to go.
    gone: Vec<usize>,
}

impl Positions {
    pub(super) fn new(stream: &Stream, compat: bool) -> Self {
        let mut positions = Self {
            of: HashMap::with_capacity(stream.len()),
            gone: Vec::new(),
        };
        for (index, root) in stream.roots().enumerate() {
            if let Some(identity) = known(stream, root) {
                positions.of.entry(identity).or_default().push(index);
            }
        }
        // To the official tool it is none.
        let main = positions.of.entry(Identity::main()).or_default();
        if main.is_empty() && !compat {
            main.extend(emptied(stream));
        }
        positions
    }

    /// Returns the position of the first document that is known by the same.
    pub(super) fn find(&self, identity: &Identity) -> Option<usize> {
        self.of.get(identity)?.first().copied()
    }

    /// Adds a document: the main one before all others, others behind.
    pub(super) fn add(&mut self, stream: &mut Stream, identity: &Identity, document: Value) {
        let index = match identity.is_main() {
            true => 0,
            false => stream.len(),
        };
        stream.insert(index, document);
        if identity.is_main() {
            let later = self.of.values_mut().flatten();
            later
                .chain(&mut self.gone)
                .for_each(|position| *position += 1);
        }
        let positions = self.of.entry(identity.clone()).or_default();
        let at = positions.partition_point(|position| *position < index);
        positions.insert(at, index);
    }

    /// Has the first document that is known by the same go.
    pub(super) fn remove(&mut self, identity: &Identity) {
        if let Some(positions) = self.of.get_mut(identity)
            && !positions.is_empty()
        {
            self.gone.push(positions.remove(0));
        }
    }

    /// Takes out the documents that are to go.
    pub(super) fn finish(mut self, stream: &mut Stream) {
        self.gone.sort_unstable();
        for index in self.gone.into_iter().rev() {
            stream.remove(index);
        }
    }
}

/// Returns the position of the main document.
pub(super) fn main_document(stream: &Stream) -> Option<usize> {
    stream.roots().position(is_main).or_else(|| emptied(stream))
}

/// Returns the position of what is left of a main document that lost its last key: a mapping of nothing.
fn emptied(stream: &Stream) -> Option<usize> {
    let is_emptied = |root: &Node| root.kind() == Kind::Mapping && root.is_empty();
    stream.roots().position(is_emptied)
}

/// Refuses a text with a document that no configuration has: it is no mapping, or neither the main one nor of a kind.
pub(crate) fn refuse_others(stream: &Stream) -> Result<(), Error> {
    let reason = |root: &Node| match root.kind() {
        Kind::Scalar | Kind::List => {
            Some("a document of a machine configuration is a mapping, and this is none")
        }
        Kind::Mapping if !root.is_empty() && !root.contains("kind") && !is_main(root) => Some(
            "no document of a machine configuration: it has no `kind`, and no key of the main document",
        ),
        _ => None,
    };
    let mut others = stream.roots().enumerate();
    let other = others.find_map(|(index, root)| Some((index, reason(root)?)));
    other.map_or(Ok(()), |(index, reason)| {
        Err(Error::UnknownDocument {
            reason: reason.to_owned(),
            line: stream.line(index, &[]),
        })
    })
}

/// Refuses a configuration in which a document stands twice.
pub(crate) fn refuse_doubles(stream: &Stream) -> Result<(), Error> {
    let mut seen: HashMap<Identity, usize> = HashMap::with_capacity(stream.len());
    for (index, root) in stream.roots().enumerate() {
        let Some(identity) = known(stream, root) else {
            continue;
        };
        if let Some(first) = seen.get(&identity) {
            let line = |index| stream.line(index, &[]).unwrap_or_default();
            return Err(Error::DocumentTwice {
                document: identity.full_label(),
                first: line(*first),
                second: line(index),
            });
        }
        seen.insert(identity, index);
    }
    Ok(())
}

/// Lets a main document that lost its last section be one still.
pub(super) fn stay_main(root: &mut Node) {
    if !has_main_key(root) {
        root.set("machine", Value::Null);
    }
}

/// Returns whether a document has no kind and at least one of the keys of the main one, its version included.
fn is_main(root: &Node) -> bool {
    facts::is_main(root) || (!root.contains("kind") && root.contains("version"))
}

/// Returns whether a document of a patch says nothing: scalars of these three names only.
pub(super) fn is_nothing(root: &Node, compat: bool) -> bool {
    let names: &[&str] = match compat {
        true => &["version", "kind", "name"],
        false => &["version"],
    };
    root.entries().all(|(key, value)| {
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
