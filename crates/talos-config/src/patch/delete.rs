//! `$patch: delete`: what a strategic patch takes away before it merges the rest.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value};

use super::merge::is_key_pair;
use super::walk::{Walk, text};
use super::zero::is_zero;
use crate::schema::{Field, Shape};
use crate::yaml::{Kind, Node};
use crate::{Error, Place};

/// The key of the directive.
pub(super) const DIRECTIVE: &str = "$patch";

/// Returns whether a mapping asks to be deleted.
pub(super) fn is_directive(node: &Node) -> bool {
    node.get(DIRECTIVE).and_then(Node::as_str) == Some("delete")
}

/// Returns whether nothing but deletions is in a part of a patch.
pub(super) fn is_gone(node: &Node) -> bool {
    if is_directive(node) {
        return true;
    }
    let parts = || node.entries().map(|(_, value)| value).chain(node.items());
    !node.is_empty() && parts().all(is_gone)
}

fn is_deletion(value: &Value) -> bool {
    value.get(DIRECTIVE).and_then(Value::as_str) == Some("delete")
}

/// Counts the deletions below the root of a document.
pub(super) fn count(value: &Value) -> usize {
    match value {
        Value::Object(_) if is_deletion(value) => 1,
        Value::Object(map) => map.values().map(count).sum(),
        Value::Array(items) => items.iter().map(count).sum(),
        _ => 0,
    }
}

/// Returns the deletions of a document alone.
pub(super) fn only(value: &Value) -> Value {
    match value {
        Value::Object(map) if !is_deletion(value) => map
            .iter()
            .filter(|(_, value)| count(value) > 0)
            .map(|(key, value)| (key.clone(), only(value)))
            .collect(),
        value => value.clone(),
    }
}

/// Takes the deletions out of a patch, and what holds nothing else.
pub(super) fn prune(value: &mut Value) {
    fn is_gone(value: &mut Value) -> bool {
        if is_deletion(value) {
            return true;
        }
        if count(value) == 0 {
            return false;
        }
        match value {
            Value::Object(map) => {
                map.retain(|_, value| !is_gone(value));
                map.is_empty()
            }
            Value::Array(items) => {
                // Positions are kept, so that lines can be told: an element that is gone is nothing.
                let mut left = false;
                for item in items.iter_mut() {
                    if is_gone(item) {
                        *item = gone();
                    } else if *item != gone() {
                        left = true;
                    }
                }
                !left
            }
            _ => false,
        }
    }
    if let Value::Object(map) = value {
        map.retain(|_, value| !is_gone(value));
    }
}

/// Returns what stands for an element of a patch that was a deletion.
fn gone() -> Value {
    let mut map = Map::new();
    map.insert(DIRECTIVE.to_owned(), Value::Null);
    Value::Object(map)
}

/// Returns whether an element of a patch was a deletion.
pub(super) fn is_pruned(value: &Value) -> bool {
    value.get(DIRECTIVE).is_some_and(Value::is_null)
}

/// The elements of a list that deletions found.
#[derive(Default)]
struct Found {
    gone: HashSet<usize>,
    /// By the key that elements were selected by.
    by_key: HashMap<String, Places>,
}

/// Where the elements of a list stand, by what a key of theirs holds.
#[derive(Default)]
struct Places {
    texts: HashMap<String, VecDeque<usize>>,
    /// Those without a text there.
    absent: VecDeque<usize>,
}

impl Places {
    /// Returns the first element that is not gone and has a text, `or_nothing`; none if it `crashes` before.
    fn first(
        &mut self,
        wanted: &str,
        or_nothing: bool,
        crashes: bool,
        gone: &HashSet<usize>,
    ) -> Option<usize> {
        fn next(places: &mut VecDeque<usize>, gone: &HashSet<usize>) -> Option<usize> {
            while places.front().is_some_and(|at| gone.contains(at)) {
                places.pop_front();
            }
            places.front().copied()
        }
        let named = self.texts.get_mut(wanted);
        let named = named.and_then(|places| next(places, gone));
        let absent = match or_nothing || crashes {
            true => next(&mut self.absent, gone),
            false => None,
        };
        let before = absent.is_some_and(|absent| named.is_none_or(|named| absent < named));
        match before {
            true => absent.filter(|_| !crashes),
            false => named,
        }
    }
}

impl Walk<'_> {
    /// Carries out the deletions below a mapping.
    ///
    /// A node that is not there is a struct that holds nothing yet.
    pub(super) fn delete(
        &mut self,
        mut node: Option<&mut Node>,
        patch: &Value,
        field: Option<&'static Field>,
    ) {
        let Value::Object(map) = patch else {
            return;
        };
        // Keys and what is below others do not concern each other, so the keys go together.
        let gone = map.iter().filter(|(_, value)| is_deletion(value));
        let gone = gone
            .map(|(key, _)| key.as_str())
            .filter(|_| self.finds(field));
        let removed = match node.as_deref_mut() {
            Some(node) => node.remove_all(gone),
            None => HashSet::new(),
        };
        for (key, value) in map.iter().filter(|(_, value)| count(value) > 0) {
            self.at(key.as_str(), |walk| {
                if is_deletion(value) {
                    if !removed.contains(key.as_str()) {
                        walk.no_key(key, field);
                    }
                } else {
                    walk.delete_below(node.as_deref_mut(), key, value, field);
                }
            });
        }
    }

    /// Carries out the deletions below one key.
    fn delete_below(
        &mut self,
        node: Option<&mut Node>,
        key: &str,
        value: &Value,
        field: Option<&'static Field>,
    ) {
        let below = field.and_then(|field| match field.shape {
            Shape::Map => field.element.as_deref(),
            _ => field.fields.get(key),
        });
        // The first version cannot look into objects that hold anything.
        let is_closed = below.is_none_or(|below| below.shape == Shape::Free);
        if self.compat && is_closed && !self.schema.zero_overwrites() {
            return self.nothing(value);
        }
        let child = node.and_then(|node| match node.get(key) {
            Some(child) if !child.is_null() => node.get_mut(key),
            _ => None,
        });
        match (child, value) {
            (Some(child), Value::Array(items)) => self.delete_elements(child, items, below),
            (Some(child), value) if child.kind() == Kind::Mapping => {
                self.delete(Some(child), value, below);
            }
            // A struct that is no pointer is always there.
            (None, value)
                if below.is_some_and(|below| below.shape == Shape::Struct && !below.optional) =>
            {
                self.delete(None, value, below);
            }
            (_, value) => self.nothing(value),
        }
    }

    /// Returns whether a key is searched at all: the official tool does not find the halves of a key pair.
    fn finds(&self, field: Option<&'static Field>) -> bool {
        !(self.compat && field.is_some_and(is_key_pair))
    }

    /// Reports a key that is not there; a field that Talos knows may be absent already, an entry of a map may not.
    fn no_key(&mut self, key: &str, field: Option<&'static Field>) {
        let is_field = self.finds(field)
            && field.is_some_and(|field| {
                field.shape == Shape::Struct && field.fields.contains_key(key)
            });
        if is_field {
            self.warning(|walk| format!("{}: nothing to delete", walk.place()));
        } else {
            self.problem(|place| Error::NothingToDelete { place });
        }
    }

    /// Deletes the elements of a list that are named by the first key beside the directive.
    fn delete_elements(&mut self, node: &mut Node, items: &[Value], field: Option<&'static Field>) {
        let element = field.and_then(|field| field.element.as_deref());
        let mut found = Found::default();
        for (index, item) in items.iter().enumerate().filter(|(_, item)| count(item) > 0) {
            if is_deletion(item) {
                self.delete_element(node, &mut found, index, item, element);
            } else {
                self.at(index, |walk| {
                    walk.problem(|place| Error::Directive {
                        place,
                        reason: "nothing can be deleted inside an element of a list",
                    });
                });
            }
        }
        node.remove_items(&found.gone);
    }

    fn delete_element(
        &mut self,
        node: &Node,
        found: &mut Found,
        index: usize,
        item: &Value,
        element: Option<&'static Field>,
    ) {
        let selector = item
            .as_object()
            .into_iter()
            .flatten()
            .find(|(key, _)| *key != DIRECTIVE);
        let Some((key, value)) = selector else {
            return self.at(index, |walk| {
                walk.problem(|place| Error::Directive {
                    place,
                    reason: "no key names the element to delete",
                });
            });
        };
        let wanted = value.as_str().unwrap_or_default();
        let below = element.and_then(|element| element.fields.get(key.as_str()));
        // The official tool crashes at a URL that is not there.
        let crashes = self.compat && below.is_some_and(|below| below.shape == Shape::Url);
        // Nothing is as good as a text that stands for it.
        let or_nothing = below.is_some_and(|below| match self.compat {
            true => is_zero(&Value::from(wanted), below, true),
            false => wanted.is_empty() && below.shape == Shape::Text,
        });
        if !self.compat || self.can_select(below) {
            let config = self.config;
            let places = found.by_key.entry(key.clone()).or_insert_with(|| {
                let mut places = Places::default();
                for (at, element) in node.items().enumerate() {
                    let value = element.get(key).and_then(|node| text(config, node));
                    let of = match value {
                        Some(text) => places.texts.entry(text.into_owned()).or_default(),
                        None => &mut places.absent,
                    };
                    of.push_back(at);
                }
                places
            });
            if let Some(at) = places.first(wanted, or_nothing, crashes, &found.gone) {
                found.gone.insert(at);
                return;
            }
        }
        let line = self.at(index, |walk| walk.place()).line;
        let selector = format!("[{key}={wanted}]");
        let place = self.at(selector.as_str(), |walk| walk.place());
        self.problem(|_| Error::NothingToDelete {
            place: Place { line, ..place },
        });
    }

    /// Returns whether the official tool can select an element by a field.
    ///
    /// It compares text, and since Talos 1.12 also what has a text form of its own; numbers never match.
    fn can_select(&self, field: Option<&'static Field>) -> bool {
        field.is_some_and(|field| match field.shape {
            Shape::Text => !field.optional && !field.of.starts_with("bytes"),
            Shape::Either | Shape::Url => {
                self.schema.zero_overwrites() && !field.of.starts_with("uint")
            }
            _ => false,
        })
    }

    /// Reports every deletion of a value as one that finds nothing.
    fn nothing(&mut self, value: &Value) {
        match value {
            Value::Object(_) if is_deletion(value) => {
                self.problem(|place| Error::NothingToDelete { place });
            }
            Value::Object(map) => {
                for (key, value) in map.iter().filter(|(_, value)| count(value) > 0) {
                    self.at(key.as_str(), |walk| walk.nothing(value));
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate().filter(|(_, item)| count(item) > 0) {
                    self.at(index, |walk| walk.nothing(item));
                }
            }
            _ => {}
        }
    }
}
