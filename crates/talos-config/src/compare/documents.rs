//! Which document of one configuration is which of the other.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value};

use super::meaning;
use crate::Schema;
pub(super) use crate::patch::documents::Identity;
use crate::patch::documents::known;
use crate::schema::{Field, MAIN};
use crate::yaml::Stream;

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

impl Document {
    pub(super) fn map(&self) -> &Map<String, Value> {
        static EMPTY: std::sync::OnceLock<Map<String, Value>> = std::sync::OnceLock::new();
        self.value
            .as_object()
            .unwrap_or_else(|| EMPTY.get_or_init(Map::new))
    }

    /// Returns the keys that a patch says the document by.
    pub(super) fn head(&self) -> Map<String, Value> {
        let identity = &self.identity;
        let mut head = Map::new();
        if identity.is_main() {
            return head;
        }
        head.insert("apiVersion".to_owned(), identity.version.clone().into());
        head.insert("kind".to_owned(), identity.kind.clone().into());
        if self.map().contains_key("name") || !identity.name.is_empty() {
            head.insert("name".to_owned(), identity.name.clone().into());
        }
        head
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
            // A document of no kind is the main one, even if it says nothing that Talos knows.
            let identity = known(stream, root).unwrap_or_else(Identity::main);
            let fields = schema
                .kind(&identity.kind)
                .filter(|_| identity.version == MAIN);
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
    let mut left: HashMap<&Identity, VecDeque<usize>> = HashMap::with_capacity(b.len());
    for (at, document) in b.iter().enumerate() {
        left.entry(&document.identity).or_default().push_back(at);
    }
    let mut is_paired = vec![false; b.len()];
    let mut pairs: Vec<_> = a
        .iter()
        .map(|document| {
            let at = left
                .get_mut(&document.identity)
                .and_then(VecDeque::pop_front);
            if let Some(at) = at {
                is_paired[at] = true;
            }
            (Some(document), at.map(|at| &b[at]))
        })
        .collect();
    let rest = b.iter().zip(is_paired).filter(|(_, paired)| !paired);
    pairs.extend(rest.map(|(document, _)| (None, Some(document))));
    pairs
}
