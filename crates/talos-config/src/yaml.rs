//! YAML that is edited without loss, and read as Talos reads it.
//!
//! [`Stream`] holds a text of one or several documents as a tree of [`Node`]s that remember where they stood in the
//! text. Editing replaces nodes; printing copies what was not edited byte for byte, so comments, key order, quoting,
//! indentation and fields nobody knows survive. Navigation is by key, never by a path in one string: keys of machine
//! configurations have dots and slashes.
//!
//! Values are `serde_json::Value`s with the meaning Talos gives them: `yes` and `off` are strings, `0644` is 420,
//! and a key that appears twice is an error.

mod children;
mod edit;
mod layout;
mod lines;
mod node;
mod parse;
mod print;
#[cfg(test)]
mod properties;
mod scalar;
#[cfg(test)]
mod tests;

pub use lines::Step;
pub use node::{Items, Kind, Node};
pub use parse::{read, read_documents};
pub use print::write;

use serde_json::Value;

use layout::{Document, Source};

use crate::Error;

/// A text of one or several YAML documents, held as a tree that prints as it was read.
#[derive(Clone)]
pub struct Stream {
    source: Source,
    documents: Vec<Document>,
}

impl Stream {
    /// Parses a text.
    ///
    /// # Errors
    ///
    /// [`Error::Syntax`] for a text that is not YAML or has a key twice in one mapping, with line and column.
    pub fn parse(text: &str) -> Result<Self, Error> {
        parse::stream(text)
    }

    /// Returns how many documents the text holds, those without content included.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Returns whether the text holds no document at all.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Returns the root of each document in order; a document without content is null.
    pub fn roots(&self) -> impl Iterator<Item = &Node> {
        self.documents.iter().map(|document| &document.root)
    }

    /// Returns the root of the document at `index`.
    pub fn root(&self, index: usize) -> Option<&Node> {
        self.documents.get(index).map(|document| &document.root)
    }

    /// Returns the root of the document at `index` for editing.
    pub fn root_mut(&mut self, index: usize) -> Option<&mut Node> {
        self.documents
            .get_mut(index)
            .map(|document| &mut document.root)
    }

    /// Appends a document.
    pub fn push(&mut self, value: Value) {
        self.documents.push(Document::fresh(value));
    }

    /// Inserts a document before `index`, or at the end.
    pub fn insert(&mut self, index: usize, value: Value) {
        let index = index.min(self.documents.len());
        self.documents.insert(index, Document::fresh(value));
    }

    /// Removes the document at `index` with its comments and returns whether it was there.
    pub fn remove(&mut self, index: usize) -> bool {
        if index < self.documents.len() {
            self.documents.remove(index);
            return true;
        }
        false
    }
}

impl From<Value> for Stream {
    /// Makes a stream of one document that stands in no text yet.
    fn from(document: Value) -> Self {
        Self {
            source: Source::empty(),
            documents: vec![Document::fresh(document)],
        }
    }
}

impl std::fmt::Display for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&print::stream(&self.source, &self.documents))
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stream of {} documents", self.documents.len())
    }
}
