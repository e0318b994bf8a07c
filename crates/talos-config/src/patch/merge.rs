//! Merging a strategic patch into a document, field by field.

use serde_json::{Map, Value};

use super::delete::is_pruned;
use super::names::Names;
use super::url;
use super::walk::{Walk, found, text};
use super::zero::is_zero;
use crate::Error;
use crate::schema::{Field, Pairing, Rule, Shape};
use crate::yaml::{Kind, Node};

impl Walk<'_> {
    /// Merges what a patch, read by the table, has for a struct.
    pub(super) fn merge(
        &mut self,
        node: &mut Node,
        patch: &Map<String, Value>,
        field: &'static Field,
    ) {
        for (key, value) in patch {
            self.at(key.as_str(), |walk| match field.fields.get(key.as_str()) {
                Some(below) => walk.key(node, key, value, below),
                None => walk.free_key(node, key, value),
            });
        }
        if self.compat {
            self.absent(node, patch, field);
        }
    }

    /// Merges the value of one key.
    fn key(&mut self, node: &mut Node, key: &str, value: &Value, field: &'static Field) {
        if value.is_null() {
            return;
        }
        let present = node.get(key).is_some_and(|node| !node.is_null());
        let is_empty_map = value.as_object().is_some_and(Map::is_empty);
        match (field.shape, field.rule) {
            (Shape::Free | Shape::Map, Rule::Replace) | (Shape::Map, _) if is_empty_map => {}
            (_, Rule::Replace) if field.shape != Shape::Map => node.set(key, kept(value)),
            (Shape::List, Rule::Paired(_)) if !present => {
                if value.as_array().is_some_and(|items| !items.is_empty()) {
                    node.set(key, Value::Array(Vec::new()));
                    self.below(node, key, value, field);
                }
            }
            (Shape::Struct | Shape::Map | Shape::List | Shape::Free | Shape::Url, _) => {
                match present {
                    true => self.below(node, key, value, field),
                    false => node.set(key, kept(value)),
                }
            }
            _ => self.scalar(node, key, value, field, present),
        }
    }

    fn scalar(
        &mut self,
        node: &mut Node,
        key: &str,
        value: &Value,
        field: &'static Field,
        present: bool,
    ) {
        if self.compat && field.unmergeable && present {
            return self.cannot_merge();
        }
        let counts = field.optional && (self.schema.zero_overwrites() || !present);
        if is_zero(value, field, self.compat) && !counts {
            if self.compat && field.rule == Rule::Always {
                node.remove(key);
            }
            return;
        }
        // The official tool keeps both sizes then, and the one in bytes wins.
        let is_relative = |node: Option<&Node>| {
            let text = node.and_then(Node::as_str);
            text.is_some_and(|text| text.contains('%'))
        };
        if self.compat
            && present
            && field.of == "text(Size)"
            && value.as_str().is_some_and(|text| text.contains('%'))
            && !is_relative(node.get(key))
        {
            return;
        }
        node.set(key, value.clone());
    }

    /// Merges into the collection, or the URL, that a key holds.
    fn below(&mut self, node: &mut Node, key: &str, value: &Value, field: &'static Field) {
        let Some(node) = node.get_mut(key) else {
            return;
        };
        match (field.shape, value) {
            (Shape::Url, Value::String(new)) => self.url(node, new),
            (Shape::Struct, Value::Object(map)) if self.expect(node, Kind::Mapping) => {
                if self.compat && is_key_pair(field) {
                    // The official tool decodes what a pair lacks as an empty text, which replaces.
                    for name in field.fields.keys() {
                        if !map.contains_key(*name) {
                            node.set(name, Value::String(String::new()));
                        }
                    }
                }
                self.merge(node, map, field);
            }
            (Shape::Map, Value::Object(map)) if self.expect(node, Kind::Mapping) => {
                self.map(node, map, field);
            }
            (Shape::List, Value::Array(items)) if self.expect(node, Kind::List) => {
                self.list(node, items, field);
            }
            (Shape::Free, _) => self.free(node, value),
            _ => {}
        }
    }

    fn url(&mut self, node: &mut Node, new: &str) {
        if new.is_empty() {
            return;
        }
        if !self.compat {
            node.assign(Value::String(new.to_owned()));
            return;
        }
        match url::merge(node.as_str().unwrap_or_default(), new) {
            Some(merged) => node.assign(Value::String(merged)),
            None => self.cannot_merge(),
        }
    }

    /// Merges a map: new keys are added, others merged as what the map holds.
    fn map(&mut self, node: &mut Node, patch: &Map<String, Value>, field: &'static Field) {
        for (key, value) in patch {
            self.at(key.as_str(), |walk| match &field.element {
                Some(_) if field.rule == Rule::Replace || !node.contains(key) => {
                    node.set(key, kept(value));
                }
                // To the official tool nothing is `false` there.
                Some(element) if value.is_null() && element.shape == Shape::Bool => {
                    if walk.compat {
                        node.set(key, Value::Bool(false));
                    }
                }
                Some(element) => walk.key(node, key, value, element),
                None => walk.free_key(node, key, value),
            });
        }
    }

    /// Merges a list: elements are appended, or merged with the one they are paired with.
    fn list(&mut self, node: &mut Node, items: &[Value], field: &'static Field) {
        let there = node.len();
        let mut names = match field.rule {
            Rule::Paired(pairing) if there > FEW && items.len() > FEW => field
                .element
                .as_deref()
                .map(|element| Names::new(node, pairing, element, self.config)),
            _ => None,
        };
        for (at, item) in items.iter().enumerate() {
            if is_pruned(item) {
                continue;
            }
            let pair = match field.rule {
                Rule::Paired(pairing) => match &mut names {
                    Some(names) => names.of(item, node, self.compat),
                    None => self.pair(node, there, item, pairing, field),
                },
                _ => None,
            };
            let replaced = matches!(field.rule, Rule::Paired(Pairing::KeyReplaced(_)));
            match (pair, &field.element, item) {
                (Some(index), Some(element), Value::Object(map)) if !replaced => {
                    if let Some(below) = node.item_mut(index) {
                        self.at(at, |walk| walk.merge(below, map, element));
                    }
                    if let Some(names) = &mut names {
                        names.merged(item);
                    }
                }
                (Some(index), _, item) => {
                    if let Some(below) = node.item_mut(index) {
                        below.assign(kept(item));
                    }
                }
                (None, _, item) => {
                    node.push(kept(item));
                    if let Some(names) = names.as_mut().filter(|_| !replaced) {
                        names.pushed(node);
                    }
                }
            }
        }
    }

    /// Returns the position of the element that an element of the patch is for; `there` were there before the patch.
    fn pair(
        &self,
        node: &Node,
        there: usize,
        item: &Value,
        pairing: Pairing,
        field: &'static Field,
    ) -> Option<usize> {
        let fields = &field.element.as_ref()?.fields;
        let is_same = |element: &Node, key: &str| {
            let (left, right) = (element.get(key), item.get(key));
            let is_zero = |value: &Value| is_zero(value, &fields[key], true);
            match (left.filter(|node| !node.is_null()), right) {
                (None, right) => right.is_none_or(is_zero),
                (Some(left), None) => left.as_scalar().is_some_and(is_zero),
                (Some(left), Some(Value::String(right))) => {
                    text(self.config, left).is_some_and(|left| left == *right)
                }
                (Some(left), Some(right)) => left.means(right),
            }
        };
        let mut elements = node.items();
        match pairing {
            Pairing::Key(key) => elements.position(|element| is_same(element, key)),
            Pairing::KeyReplaced(key) => {
                let before: Vec<&Node> = elements.take(there).collect();
                before
                    .into_iter()
                    .rposition(|element| is_same(element, key))
            }
            Pairing::Interface => {
                let names = |key: &str| item.get(key).filter(|value| !value.is_null());
                let name = names("interface").filter(|name| *name != "");
                if name.is_some() {
                    return elements.position(|element| is_same(element, "interface"));
                }
                let selector = names("deviceSelector")?.as_object()?;
                // Two that say whether the device is physical are never the same to the official tool.
                if self.compat && selector.contains_key("physical") {
                    return None;
                }
                let keys = &fields["deviceSelector"].fields;
                elements.position(|element| {
                    let there = element.get("deviceSelector").filter(|node| !node.is_null());
                    there.is_some_and(|there| {
                        keys.iter().all(|(key, field)| {
                            let left = there.get(key).and_then(|node| text(self.config, node));
                            let right = selector.get(*key);
                            let right = right.filter(|value| !is_zero(value, field, true));
                            match (left.filter(|left| !left.is_empty()), right) {
                                (None, None) => true,
                                (Some(left), Some(Value::String(right))) => left == *right,
                                (Some(left), Some(right)) => left == right.to_string(),
                                _ => false,
                            }
                        })
                    })
                })
            }
        }
    }

    /// Merges a value whose type nobody laid down; it has to be of the type that is there.
    pub(super) fn free(&mut self, node: &mut Node, value: &Value) {
        match value {
            Value::Null => {}
            value if node.is_null() => node.assign(value.clone()),
            Value::Object(map) => {
                if self.expect(node, Kind::Mapping) {
                    for (key, value) in map {
                        self.at(key.as_str(), |walk| walk.free_key(node, key, value));
                    }
                }
            }
            Value::Array(items) => {
                if self.expect(node, Kind::List) {
                    for item in items.iter().filter(|item| !is_pruned(item)) {
                        node.push(item.clone());
                    }
                }
            }
            value => {
                let old = node.as_scalar().unwrap_or(&Value::Null);
                let is_other_number = self.compat && old.is_f64() != value.is_f64();
                if node.kind() != Kind::Scalar || found(old) != found(value) || is_other_number {
                    return self.mismatch(node, found(value));
                }
                if !is_zero_of_any(value) {
                    node.assign(value.clone());
                }
            }
        }
    }

    fn free_key(&mut self, node: &mut Node, key: &str, value: &Value) {
        match node.get(key) {
            Some(there) if !there.is_null() => {
                if value.is_null() {
                    // The official tool crashes.
                    if self.compat {
                        self.cannot_merge();
                    }
                } else if let Some(below) = node.get_mut(key) {
                    self.free(below, value);
                }
            }
            _ => node.set(key, kept(value)),
        }
    }

    /// Changes what the official tool changes where a patch of a struct leaves out fields.
    fn absent(&mut self, node: &mut Node, patch: &Map<String, Value>, field: &'static Field) {
        if !field.absent_matters {
            return;
        }
        for (key, below) in &field.fields {
            if below.optional || patch.contains_key(*key) || !node.contains(key) {
                continue;
            }
            self.at(*key, |walk| match (below.shape, below.rule) {
                (_, Rule::Always) => {
                    node.remove(key);
                }
                (Shape::Bool, _) => node.set(key, Value::Bool(false)),
                (Shape::Struct, _) if below.absent_matters => {
                    if let Some(node) = node.get_mut(key) {
                        walk.absent(node, &Map::new(), below);
                    }
                }
                _ => {}
            });
        }
        // Whether it is there or not.
        let fails = |(_, field): &(&&str, &Field)| field.unmergeable && !field.optional;
        if let Some((key, _)) = field.fields.iter().find(fails) {
            self.at(*key, Self::cannot_merge);
        }
    }

    fn cannot_merge(&mut self) {
        self.problem(|place| Error::Unmergeable {
            place,
            reason: "the official tool fails to merge this value",
        });
    }

    fn expect(&mut self, node: &Node, kind: Kind) -> bool {
        if node.kind() == kind {
            return true;
        }
        self.mismatch(
            node,
            match kind {
                Kind::List => "a list",
                _ => "a mapping",
            },
        );
        false
    }

    fn mismatch(&mut self, node: &Node, found_: &'static str) {
        let there = match node.kind() {
            Kind::List => "a list",
            Kind::Mapping => "a mapping",
            _ => found(node.as_scalar().unwrap_or(&Value::Null)),
        };
        self.problem(|place| Error::WrongType {
            place,
            expected: there,
            found: found_,
        });
    }
}

/// Lists up to this long are searched element by element.
const FEW: usize = 16;

/// Returns what a patch has without the elements that were deletions.
pub(super) fn kept(value: &Value) -> Value {
    match value {
        Value::Array(items) => items
            .iter()
            .filter(|item| !is_pruned(item))
            .map(kept)
            .collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), kept(value)))
            .collect(),
        value => value.clone(),
    }
}

/// Returns whether a struct is a certificate with its key.
pub(super) fn is_key_pair(field: &Field) -> bool {
    field
        .fields
        .values()
        .all(|field| field.of.starts_with("bytes"))
        && field.fields.contains_key("key")
}

/// Returns whether a value of no known type is one that does not overwrite.
fn is_zero_of_any(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => false,
    }
}
