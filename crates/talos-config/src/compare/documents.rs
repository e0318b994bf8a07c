//! Which document of one configuration is which of the other.

use serde_json::{Map, Value};

use super::meaning;
use crate::schema::{Field, MAIN};
use crate::yaml::{Node, Stream};
use crate::{Error, Schema};

/// What a document is known by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) name: String,
}

/// A document with content.
#[derive(Clone)]
pub(super) struct Document {
    /// Its position in the text.
    pub(super) index: usize,
    pub(super) identity: Identity,
    /// Its fields in the version that is compared for; absent for a kind that the version does not have.
    pub(super) fields: Option<&'static Field>,
    /// What it means.
    pub(super) value: Value,
}

impl Identity {
    fn of(root: &Node) -> Self {
        let text = |key: &str| {
            let value = root.get(key).and_then(Node::as_str);
            value.unwrap_or_default().to_owned()
        };
        match root.get("kind") {
            None => Self::default(),
            Some(_) => Self {
                version: text("apiVersion"),
                kind: text("kind"),
                name: text("name"),
            },
        }
    }

    pub(super) fn is_main(&self) -> bool {
        self.kind.is_empty()
    }

    /// Returns how messages name the document; empty for the main one.
    pub(super) fn label(&self) -> String {
        match self.name.as_str() {
            "" => self.kind.clone(),
            name => format!("{}/{name}", self.kind),
        }
    }

    /// Returns the keys that a patch says it by.
    pub(super) fn head(&self, named: bool) -> Map<String, Value> {
        let mut head = Map::new();
        if self.is_main() {
            return head;
        }
        head.insert("apiVersion".to_owned(), self.version.clone().into());
        head.insert("kind".to_owned(), self.kind.clone().into());
        if named || !self.name.is_empty() {
            head.insert("name".to_owned(), self.name.clone().into());
        }
        head
    }
}

impl Document {
    pub(super) fn map(&self) -> &Map<String, Value> {
        static EMPTY: std::sync::OnceLock<Map<String, Value>> = std::sync::OnceLock::new();
        self.value
            .as_object()
            .unwrap_or_else(|| EMPTY.get_or_init(Map::new))
    }

    pub(super) fn head(&self) -> Map<String, Value> {
        let named = self.map().contains_key("name");
        self.identity.head(named)
    }
}

/// Returns the documents of a text that have content.
pub(super) fn read(stream: &Stream, schema: Schema) -> Vec<Document> {
    let content = stream
        .roots()
        .enumerate()
        .filter(|(_, root)| !root.is_null());
    content
        .map(|(index, root)| {
            let identity = Identity::of(root);
            let kind = match identity.is_main() {
                true => MAIN,
                false => identity.kind.as_str(),
            };
            let known = identity.is_main() || identity.version == MAIN;
            let fields = schema.kind(kind).filter(|_| known);
            Document {
                index,
                fields,
                value: meaning::of(stream, root, fields),
                identity,
            }
        })
        .collect()
}

/// Pairs documents by what they are known by, in the order of the first text; those only of the second come last.
pub(super) fn pairs<'a>(
    a: &'a [Document],
    b: &'a [Document],
) -> Vec<(Option<&'a Document>, Option<&'a Document>)> {
    let mut left: Vec<&Document> = b.iter().collect();
    let mut pairs: Vec<_> = a
        .iter()
        .map(|document| {
            let at = left
                .iter()
                .position(|other| other.identity == document.identity);
            (Some(document), at.map(|at| left.remove(at)))
        })
        .collect();
    pairs.extend(left.into_iter().map(|document| (None, Some(document))));
    pairs
}

/// Refuses two documents that are known by the same.
pub(super) fn check(
    side: &'static str,
    stream: &Stream,
    documents: &[Document],
) -> Result<(), Error> {
    let line = |document: &Document| stream.line(document.index, &[]).unwrap_or_default();
    for (at, document) in documents.iter().enumerate() {
        let known = |other: &&Document| other.identity == document.identity;
        if let Some(first) = documents[..at].iter().find(known) {
            let label = document.identity.label();
            return Err(Error::Side {
                side,
                source: Box::new(Error::DocumentTwice {
                    document: match label.is_empty() {
                        true => "the main document".to_owned(),
                        false => label,
                    },
                    first: line(first),
                    second: line(document),
                }),
            });
        }
    }
    Ok(())
}
