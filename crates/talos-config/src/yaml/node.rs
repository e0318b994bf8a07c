//! One value of a document: what it is, and reading it.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::children::Children;
use super::layout::{Form, Place, Quote, Span};

/// A value of a document, and where it stood in the text.
#[derive(Clone)]
pub struct Node {
    pub(super) data: Data,
    pub(super) form: Form,
    pub(super) anchor: Option<Arc<str>>,
}

/// What a node is once aliases are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing, `~` or `null`.
    Null,
    /// A string, number or boolean.
    Scalar,
    /// A mapping.
    Mapping,
    /// A list.
    List,
}

/// The items of a list.
#[derive(Clone)]
pub struct Items<'a>(std::slice::Iter<'a, Child>);

impl<'a> Iterator for Items<'a> {
    type Item = &'a Node;

    fn next(&mut self) -> Option<&'a Node> {
        self.0.next().map(|child| &child.value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Items<'_> {}

impl std::fmt::Debug for Items<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} items", self.0.len())
    }
}

#[derive(Clone)]
pub(super) enum Data {
    Scalar(Value),
    Mapping(Children),
    List(Children),
    /// A reference to an anchor, with a copy of what it meant when the text was read.
    Alias(Arc<Node>),
}

/// An entry of a mapping or an item of a list.
#[derive(Clone)]
pub(super) struct Child {
    /// The key; empty in a list.
    pub(super) key: String,
    /// Whether this is a `<<` entry, whose mappings are read as if written here.
    pub(super) merge: bool,
    pub(super) value: Node,
    /// Where the child stood; absent for a new one.
    pub(super) place: Option<Place>,
    /// Comments left by children that were removed above this one.
    pub(super) before: Vec<Span>,
}

impl Node {
    /// Returns what the node is.
    pub fn kind(&self) -> Kind {
        match &self.data {
            Data::Scalar(Value::Null) => Kind::Null,
            Data::Scalar(_) => Kind::Scalar,
            Data::Mapping(_) => Kind::Mapping,
            Data::List(_) => Kind::List,
            Data::Alias(target) => target.kind(),
        }
    }

    /// Returns whether the node is nothing, `~` or `null`.
    pub fn is_null(&self) -> bool {
        self.kind() == Kind::Null
    }

    /// Returns the string, if the node is one.
    pub fn as_str(&self) -> Option<&str> {
        self.as_scalar()?.as_str()
    }

    /// Returns the scalar, null included, if the node is one.
    pub fn as_scalar(&self) -> Option<&Value> {
        match &self.followed().data {
            Data::Scalar(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the node with everything below it as a plain value.
    pub fn value(&self) -> Value {
        match &self.data {
            Data::Scalar(value) => value.clone(),
            Data::Mapping(_) => {
                let entries = self
                    .entries()
                    .map(|(key, node)| (key.to_owned(), node.value()));
                Value::Object(entries.collect::<Map<_, _>>())
            }
            Data::List(children) => children.iter().map(|child| child.value.value()).collect(),
            Data::Alias(target) => target.value(),
        }
    }

    /// Returns whether the node means the same as `value`; the order of keys means nothing.
    pub fn means(&self, value: &Value) -> bool {
        match (&self.followed().data, value) {
            (Data::Scalar(scalar), _) => same_scalar(scalar, value),
            (Data::Mapping(_), Value::Object(map)) => {
                self.len() == map.len()
                    && self
                        .entries()
                        .all(|(key, node)| map.get(key).is_some_and(|value| node.means(value)))
            }
            (Data::List(children), Value::Array(items)) => {
                children.len() == items.len()
                    && children
                        .iter()
                        .zip(items)
                        .all(|(child, item)| child.value.means(item))
            }
            _ => false,
        }
    }

    /// Returns the value of a key of a mapping, wherever a `<<` finds it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Data::Mapping(children) = &self.followed().data else {
            return None;
        };
        if let Some(at) = children.position(key) {
            return children.get(at).map(|child| &child.value);
        }
        if !children.has_merge() {
            return None;
        }
        children
            .iter()
            .filter(|child| child.merge)
            .find_map(|child| child.value.merged(key))
    }

    /// Returns the node that a list of keys leads to.
    pub fn at(&self, keys: &[&str]) -> Option<&Self> {
        keys.iter().try_fold(self, |node, key| node.get(key))
    }

    /// Returns whether a mapping has a key.
    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Returns the keys and values of a mapping in order; nothing for other nodes.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Self)> {
        let children: &[Child] = match &self.followed().data {
            Data::Mapping(children) => children,
            _ => &[],
        };
        flat_entries(children).into_iter()
    }

    /// Returns the item of a list.
    pub fn item(&self, index: usize) -> Option<&Self> {
        match &self.followed().data {
            Data::List(children) => children.get(index).map(|child| &child.value),
            _ => None,
        }
    }

    /// Returns the items of a list in order; nothing for other nodes.
    pub fn items(&self) -> Items<'_> {
        let children: &[Child] = match &self.followed().data {
            Data::List(children) => children,
            _ => &[],
        };
        Items(children.iter())
    }

    /// Returns the number of keys or items; 0 for scalars.
    pub fn len(&self) -> usize {
        match &self.followed().data {
            Data::Mapping(children) if children.has_merge() => self.entries().count(),
            Data::Mapping(children) | Data::List(children) => children.len(),
            _ => 0,
        }
    }

    /// Returns whether the node is a reference to an anchor.
    pub(crate) fn is_alias(&self) -> bool {
        matches!(self.data, Data::Alias(_))
    }

    /// Returns whether the node is a mapping with a `<<` entry.
    pub(crate) fn has_merge(&self) -> bool {
        match &self.followed().data {
            Data::Mapping(children) => children.iter().any(|child| child.merge),
            _ => false,
        }
    }

    /// Returns whether the node has no keys or items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many values the node holds, itself and those behind aliases counted.
    pub(super) fn size(&self) -> usize {
        match &self.data {
            Data::Scalar(_) => 1,
            Data::Mapping(children) | Data::List(children) => {
                children.iter().fold(1, |sum: usize, child| {
                    sum.saturating_add(child.value.size())
                })
            }
            Data::Alias(target) => target.size(),
        }
    }

    /// Returns the node itself or the one its alias stands for.
    pub(super) fn followed(&self) -> &Self {
        match &self.data {
            Data::Alias(target) => target.followed(),
            _ => self,
        }
    }

    /// Returns the value of a key in the mapping or mappings of a `<<`.
    fn merged(&self, key: &str) -> Option<&Self> {
        match &self.followed().data {
            Data::List(children) => children.iter().find_map(|child| child.value.get(key)),
            _ => self.get(key),
        }
    }
}

impl From<Value> for Node {
    /// Makes a node that stands in no text yet.
    fn from(value: Value) -> Self {
        let data = match value {
            Value::Object(map) => Data::Mapping(
                map.into_iter()
                    .map(|(key, value)| Child::fresh(key, value))
                    .collect(),
            ),
            Value::Array(items) => Data::List(
                items
                    .into_iter()
                    .map(|item| Child::fresh(String::new(), item))
                    .collect(),
            ),
            scalar => Data::Scalar(scalar),
        };
        Self {
            data,
            form: Form::Fresh(Quote::None),
            anchor: None,
        }
    }
}

impl std::fmt::Debug for Node {
    /// Tells the kind only: values may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of {}", self.kind(), self.len())
    }
}

impl Child {
    pub(super) fn fresh(key: String, value: Value) -> Self {
        Self {
            key,
            merge: false,
            value: Node::from(value),
            place: None,
            before: Vec::new(),
        }
    }

    /// Returns the child as if it had not been read from a text.
    pub(super) fn without_place(self) -> Self {
        Self {
            place: None,
            ..self
        }
    }
}

/// Returns the entries of a mapping with those of its `<<` entries, each key once.
fn flat_entries(children: &[Child]) -> Vec<(&str, &Node)> {
    let mut entries: Vec<(&str, &Node)> = children
        .iter()
        .filter(|child| !child.merge)
        .map(|child| (child.key.as_str(), &child.value))
        .collect();
    if entries.len() == children.len() {
        return entries;
    }
    let mut known: HashSet<&str> = entries.iter().map(|(key, _)| *key).collect();
    for merge in children.iter().filter(|child| child.merge) {
        let target = merge.value.followed();
        let sources: Vec<&Node> = match &target.data {
            Data::List(items) => items.iter().map(|item| &item.value).collect(),
            _ => vec![target],
        };
        for (key, node) in sources.into_iter().flat_map(Node::entries) {
            if known.insert(key) {
                entries.push((key, node));
            }
        }
    }
    entries
}

/// Compares scalars by value: 1 and 1.0 are the same number.
fn same_scalar(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || ((a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64())
        }
        _ => left == right,
    }
}
