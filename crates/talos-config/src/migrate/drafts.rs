//! The documents that are to be.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::yaml::Step;

/// A document that is to be, or whose settings are to go into one that is there.
pub(super) struct Draft {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) fields: Map<String, Value>,
    /// Where what is in it stood, and where it is in the document.
    pub(super) copies: Vec<(Vec<Step>, Vec<Step>)>,
}

/// Drafts in the order they were begun, found by kind and name.
#[derive(Default)]
pub(super) struct Drafts {
    all: Vec<Draft>,
    places: HashMap<&'static str, HashMap<String, usize>>,
}

impl Drafts {
    pub(super) fn iter(&self) -> std::slice::Iter<'_, Draft> {
        self.all.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn has(&self, kind: &str, name: &str) -> bool {
        self.places
            .get(kind)
            .is_some_and(|names| names.contains_key(name))
    }

    /// Returns how many there are of a kind.
    pub(super) fn count(&self, kind: &str) -> usize {
        self.places.get(kind).map_or(0, HashMap::len)
    }

    /// Returns the draft of a kind and name, begun if need be.
    pub(super) fn of(&mut self, kind: &'static str, name: &str) -> &mut Draft {
        let names = self.places.entry(kind).or_default();
        let index = match names.get(name) {
            Some(index) => *index,
            None => {
                names.insert(name.to_owned(), self.all.len());
                self.all.push(Draft {
                    kind,
                    name: name.to_owned(),
                    fields: Map::new(),
                    copies: Vec::new(),
                });
                self.all.len() - 1
            }
        };
        &mut self.all[index]
    }

    pub(super) fn push(&mut self, draft: Draft) {
        let names = self.places.entry(draft.kind).or_default();
        names.insert(draft.name.clone(), self.all.len());
        self.all.push(draft);
    }

    pub(super) fn into_vec(self) -> Vec<Draft> {
        self.all
    }
}
