//! What is found and decided while a configuration is gone through.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::drafts::{Draft, Drafts};
use super::facts::{self, Target};
use super::paths::Paths;
use super::{Move, Place, Refusal};
use crate::yaml::{Kind, Node, Step, Stream};

/// A field of the main document that is there and not null.
#[derive(Clone)]
pub(super) struct Field<'a> {
    pub(super) path: Vec<Step>,
    pub(super) node: &'a Node,
}

impl<'a> Field<'a> {
    /// Returns the field that keys lead to from here.
    pub(super) fn at(&self, keys: &[&str]) -> Option<Self> {
        let node = self.node.at(keys).filter(|node| !node.is_null())?;
        let mut path = self.path.clone();
        path.extend(keys.iter().map(|key| Step::from(*key)));
        Some(Self { path, node })
    }

    /// Returns the fields of a mapping.
    pub(super) fn entries(&self) -> Vec<(String, Self)> {
        let entry = |(key, node): (&str, &'a Node)| {
            let path = [self.path.as_slice(), &[Step::from(key)]].concat();
            (key.to_owned(), Self { path, node })
        };
        let present = |(_, node): &(&str, &Node)| !node.is_null();
        self.node.entries().filter(present).map(entry).collect()
    }

    /// Returns the items of a list.
    pub(super) fn items(&self) -> Vec<Self> {
        let item = |(index, node): (usize, &'a Node)| Self {
            path: [self.path.as_slice(), &[Step::from(index)]].concat(),
            node,
        };
        self.node.items().enumerate().map(item).collect()
    }

    pub(super) fn value(&self) -> Value {
        self.node.value()
    }
}

/// What a machine is, which decides what settings of the control plane mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    ControlPlane,
    Worker,
    /// The text does not say.
    Unknown,
}

/// A configuration that is gone through, and what came of it so far.
pub(super) struct Work<'a> {
    pub(super) stream: &'a Stream,
    pub(super) lines: Vec<&'a str>,
    /// Whether lines end as on Windows.
    pub(super) crlf: bool,
    pub(super) main: usize,
    pub(super) root: Field<'a>,
    pub(super) target: Target,
    pub(super) role: Role,
    pub(super) drafts: Drafts,
    /// The drafts whose settings go into documents that are there.
    pub(super) merged: Vec<Draft>,
    /// The paths that leave the main document.
    pub(super) taken: Paths,
    pub(super) moves: Vec<Move>,
    pub(super) notes: Vec<String>,
    pub(super) refusals: Vec<Refusal>,
    /// The paths of what is refused.
    pub(super) refused: Paths,
    /// The documents that the text has, by kind and name; the first of a kind has no name too.
    existing: HashMap<(String, String), (usize, &'a Node)>,
    /// The aliases of selected links, by the expression that selects.
    pub(super) aliases: HashMap<String, String>,
    /// The last number in the name of a document for a manifest, by the end of its URL.
    pub(super) stems: HashMap<String, usize>,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        stream: &'a Stream,
        text: &'a str,
        main: usize,
        root: &'a Node,
        target: Target,
    ) -> Self {
        let role = match root.at(&["machine", "type"]).and_then(Node::as_str) {
            Some("controlplane" | "init") => Role::ControlPlane,
            Some(_) => Role::Worker,
            None => Role::Unknown,
        };
        Self {
            stream,
            lines: text.lines().collect(),
            crlf: text.contains("\r\n"),
            main,
            root: Field {
                path: Vec::new(),
                node: root,
            },
            target,
            role,
            drafts: Drafts::default(),
            merged: Vec::new(),
            taken: Paths::default(),
            moves: Vec::new(),
            notes: Vec::new(),
            refusals: Vec::new(),
            refused: Paths::default(),
            existing: existing(stream),
            aliases: HashMap::new(),
            stems: HashMap::new(),
        }
    }

    /// Returns a field by its keys from the top, unless a rule has dealt with it.
    pub(super) fn at(&self, keys: &[&str]) -> Option<Field<'a>> {
        let field = self.root.at(keys)?;
        (!self.is_taken(&field.path)).then_some(field)
    }

    pub(super) fn is_taken(&self, path: &[Step]) -> bool {
        self.taken.cover(path)
    }

    pub(super) fn line(&self, path: &[Step]) -> u64 {
        self.stream.line(self.main, path).unwrap_or(1)
    }

    /// Returns a document that the text has.
    pub(super) fn existing(&self, kind: &str, name: &str) -> Option<(usize, &'a Node)> {
        self.existing
            .get(&(kind.to_owned(), name.to_owned()))
            .copied()
    }

    /// Refuses a field, for a reason that reads after its path.
    pub(super) fn refuse(&mut self, field: &Field<'_>, reason: impl Into<String>) {
        self.refuse_at(&field.path, reason);
        self.taken.push(field.path.clone());
    }

    pub(super) fn refuse_at(&mut self, path: &[Step], reason: impl Into<String>) {
        self.refused.push(path.to_vec());
        self.refusals.push(Refusal {
            path: shown(path),
            line: self.line(path),
            reason: reason.into(),
        });
    }

    /// Moves a field that is or holds text as it is.
    pub(super) fn copy(&mut self, field: &Field<'_>, kind: &'static str, name: &str, to: &[&str]) {
        let value = self.as_written(field);
        self.put(field, kind, name, to, value);
    }

    /// Moves a field, its value turned into another.
    pub(super) fn put(
        &mut self,
        field: &Field<'_>,
        kind: &'static str,
        name: &str,
        to: &[&str],
        value: Value,
    ) {
        if !self.admits(field, kind) {
            return;
        }
        let draft = self.draft(kind, name);
        set(&mut draft.fields, to, value);
        let to_steps = to.iter().map(|key| Step::from(*key)).collect();
        draft.copies.push((field.path.clone(), to_steps));
        self.moved(field, kind, name, to);
    }

    /// Records that a field moved, when its value was set otherwise.
    pub(super) fn moved(&mut self, field: &Field<'_>, kind: &str, name: &str, to: &[&str]) {
        self.moves.push(Move {
            from: shown(&field.path),
            line: self.line(&field.path),
            to: Some(Place {
                document: label(kind, name),
                path: to.join("."),
            }),
            why: None,
        });
        self.taken.push(field.path.clone());
    }

    /// Records where something stood whose value is part of another, for its comments.
    pub(super) fn trace(
        &mut self,
        field: &Field<'_>,
        kind: &'static str,
        name: &str,
        to: Vec<Step>,
    ) {
        let from = field.path.clone();
        self.draft(kind, name).copies.push((from, to));
    }

    /// Takes a field away that means nothing.
    pub(super) fn drop(&mut self, field: &Field<'_>, why: &'static str) {
        self.moves.push(Move {
            from: shown(&field.path),
            line: self.line(&field.path),
            to: None,
            why: Some(why),
        });
        self.taken.push(field.path.clone());
    }

    /// Writes out what the old form implied, unless it is set already.
    pub(super) fn imply(&mut self, kind: &'static str, name: &str, to: &[&str], value: Value) {
        let draft = self.draft(kind, name);
        if get(&draft.fields, to).is_none() {
            set(&mut draft.fields, to, value);
        }
    }

    /// Returns whether this machine may have a document of a kind; settles the field if not.
    pub(super) fn admits(&mut self, field: &Field<'_>, kind: &str) -> bool {
        match self.role {
            Role::ControlPlane => true,
            _ if !facts::CONTROL_PLANE_ONLY.contains(&kind) => true,
            Role::Worker => {
                self.drop(field, "it has no effect on a worker");
                false
            }
            Role::Unknown => {
                self.refuse(
                    field,
                    "`machine.type` does not say whether this is a control plane node",
                );
                false
            }
        }
    }

    /// Returns a document that is to be, begun if need be.
    pub(super) fn draft(&mut self, kind: &'static str, name: &str) -> &mut Draft {
        self.drafts.of(kind, name)
    }

    pub(super) fn has_draft(&self, kind: &str, name: &str) -> bool {
        self.drafts.has(kind, name)
    }

    /// Returns the text of a scalar; refuses other nodes.
    pub(super) fn text(&mut self, field: &Field<'_>) -> Option<String> {
        match field.node.as_scalar() {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Null) | None => {
                self.refuse(field, "expected text");
                None
            }
            Some(_) => match self.as_written(field) {
                Value::String(text) => Some(text),
                value => Some(value.to_string()),
            },
        }
    }

    /// Returns the truth of a scalar; refuses other nodes.
    pub(super) fn flag(&mut self, field: &Field<'_>) -> Option<bool> {
        match field.node.as_scalar() {
            Some(Value::Bool(flag)) => return Some(*flag),
            Some(Value::String(word)) => match word.to_ascii_lowercase().as_str() {
                "yes" | "y" | "on" => return Some(true),
                "no" | "n" | "off" => return Some(false),
                _ => {}
            },
            _ => {}
        }
        self.refuse(field, "expected true or false");
        None
    }

    /// Returns a number of at most `most`; refuses other nodes.
    pub(super) fn number(&mut self, field: &Field<'_>, most: u64) -> Option<u64> {
        let number = field.node.as_scalar().and_then(Value::as_u64);
        if number.is_none_or(|number| number > most) {
            self.refuse(field, format!("expected a number from 0 to {most}"));
            return None;
        }
        number
    }

    /// Returns the items of a list; refuses other nodes.
    pub(super) fn list<'b>(&mut self, field: &Field<'b>) -> Vec<Field<'b>> {
        if field.node.kind() != Kind::List {
            self.refuse(field, "expected a list");
        }
        field.items()
    }

    /// Returns the entries of a mapping; refuses other nodes.
    pub(super) fn map<'b>(&mut self, field: &Field<'b>) -> Vec<(String, Field<'b>)> {
        if field.node.kind() != Kind::Mapping {
            self.refuse(field, "expected a mapping");
        }
        field.entries()
    }

    /// Returns a value whose numbers and booleans read as the text they were written as: where Talos takes text, `1.10`
    /// is not the number 1.1.
    pub(super) fn as_written(&self, field: &Field<'_>) -> Value {
        let written = |value: Value| {
            let plain = value.to_string();
            match self.stream.written(field.node) {
                Some(text) if text != plain => Value::from(text),
                _ => value,
            }
        };
        match field.node.kind() {
            Kind::Mapping => {
                let entry = |(key, field): (String, Field<'_>)| (key, self.as_written(&field));
                field
                    .entries()
                    .into_iter()
                    .map(entry)
                    .collect::<Map<_, _>>()
                    .into()
            }
            Kind::List => field
                .items()
                .iter()
                .map(|field| self.as_written(field))
                .collect(),
            Kind::Null => Value::Null,
            Kind::Scalar => match field.node.value() {
                Value::String(text) => Value::String(text),
                value => written(value),
            },
        }
    }
}

/// Finds the documents of a text.
fn existing(stream: &Stream) -> HashMap<(String, String), (usize, &Node)> {
    let mut found = HashMap::new();
    for (index, node) in stream.roots().enumerate() {
        // A name such as 5 is text too.
        let text = |key| {
            let value = node.get(key).filter(|value| !value.is_null())?;
            value.as_str().or_else(|| stream.written(value))
        };
        if let Some(kind) = text("kind") {
            for name in ["", text("name").unwrap_or_default()] {
                found
                    .entry((kind.to_owned(), name.to_owned()))
                    .or_insert((index, node));
            }
        }
    }
    found
}

/// Returns how a document is named.
pub(super) fn label(kind: &str, name: &str) -> String {
    match name {
        "" => kind.to_owned(),
        name => format!("{kind}/{name}"),
    }
}

/// Returns a path as people write it.
pub(super) fn shown(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Index(index) => text.push_str(&format!("[{index}]")),
            Step::Key(key) if key.contains(|c: char| !c.is_alphanumeric() && c != '-') => {
                text.push_str(&format!("[{key:?}]"));
            }
            Step::Key(key) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(key);
            }
        }
    }
    text
}

/// Sets a value below keys.
pub(super) fn set(fields: &mut Map<String, Value>, to: &[&str], value: Value) {
    match to {
        [] => {}
        [key] => {
            fields.insert((*key).to_owned(), value);
        }
        [key, rest @ ..] => {
            let below = fields
                .entry(*key)
                .or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(below) = below {
                set(below, rest, value);
            }
        }
    }
}

pub(super) fn get<'v>(fields: &'v Map<String, Value>, to: &[&str]) -> Option<&'v Value> {
    let (first, rest) = to.split_first()?;
    let start = fields.get(*first)?;
    rest.iter().try_fold(start, |value, key| value.get(key))
}
