//! Documents, and places in them.

use std::borrow::Cow;
use std::sync::OnceLock;

use serde_json::Value;

use super::sink::Sink;
use crate::facts::has_main_key;
use crate::schema::MAIN;
use crate::yaml::{Kind, Node, Step, Stream};

/// A document of a configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Document<'a> {
    /// The kind; [`MAIN`] for the main document.
    pub(super) kind: &'a str,
    /// The name; empty where the kind has none.
    pub(super) name: &'a str,
    /// Its content, always a mapping.
    pub(super) node: &'a Node,
    /// Its position in the text.
    pub(super) index: usize,
}

impl<'a> Document<'a> {
    /// Returns the names that are no strings, such as the number in `name: 5`, by document.
    pub(super) fn odd_names(stream: &Stream) -> Vec<Option<String>> {
        let name = |root: &Node| match root.get("name")?.as_scalar()? {
            Value::String(_) | Value::Null => None,
            other => Some(other.to_string()),
        };
        stream.roots().map(name).collect()
    }

    /// Tells the documents of a text apart, and reports what is none.
    pub(super) fn all(
        stream: &'a Stream,
        names: &'a [Option<String>],
        sink: &mut Sink<'_>,
    ) -> Vec<Self> {
        let mut documents = Vec::with_capacity(stream.len());
        for (index, node) in stream.roots().enumerate() {
            match node.kind() {
                Kind::Null => {}
                Kind::Mapping => documents.extend(Self::told(node, index, names, sink)),
                Kind::Scalar | Kind::List => {
                    let document = Self::unnamed(node, index);
                    sink.refused(
                        "not-a-document",
                        &document.root(),
                        "a document is a mapping of keys to values",
                    );
                }
            }
        }
        if documents.is_empty() && sink.is_empty() {
            sink.nothing();
        }
        documents
    }

    fn told(
        node: &'a Node,
        index: usize,
        names: &'a [Option<String>],
        sink: &mut Sink<'_>,
    ) -> Option<Self> {
        let text = |key| node.get(key).and_then(Node::as_str).unwrap_or_default();
        let kind = text("kind");
        if kind.is_empty() {
            let main = has_main_key(node);
            let document = Self::unnamed(node, index);
            if !main {
                let finding = sink.refused(
                    "no-kind",
                    &document.root(),
                    "the document has no kind, and is not the main one",
                );
                finding.hint("the main document has `machine` or `cluster`, every other `apiVersion` and `kind`");
            }
            return main.then_some(document);
        }
        Some(Self {
            kind,
            name: match names.get(index) {
                Some(Some(name)) => name,
                _ => text("name"),
            },
            node,
            index,
        })
    }

    /// Makes a document of what is none that Talos knows.
    pub(super) fn unnamed(node: &'a Node, index: usize) -> Self {
        Self {
            kind: MAIN,
            name: "",
            node,
            index,
        }
    }

    /// Returns whether this is the main document.
    pub(super) fn is_main(&self) -> bool {
        self.kind == MAIN
    }

    /// Returns the place of the document itself, from which its fields are reached.
    pub(super) fn root<'b>(&'b self) -> At<'b> {
        At {
            document: self,
            node: self.node,
            up: None,
            part: Part::Key(""),
        }
    }

    /// Returns how findings name the document: empty for the main one.
    pub(super) fn label(&self) -> String {
        match (self.is_main(), self.name) {
            (true, _) => String::new(),
            (false, "") => self.kind.to_owned(),
            (false, name) => format!("{}/{name}", self.kind),
        }
    }
}

/// A place in a document: a value, and the way to it.
///
/// A place that is not in the text exists too and is null, so rules read absent fields as zero values.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    document: &'a Document<'a>,
    node: &'a Node,
    up: Option<&'a Self>,
    part: Part<'a>,
}

#[derive(Clone, Copy)]
enum Part<'a> {
    Key(&'a str),
    Keys(&'a [&'a str]),
    Index(usize),
}

impl<'a> At<'a> {
    /// Returns the value at this place.
    pub(super) fn node(&self) -> &'a Node {
        self.node
    }

    /// Returns whether this is the document itself.
    pub(super) fn is_top(&self) -> bool {
        self.up.is_none()
    }

    /// Returns the document this place is in.
    pub(super) fn document(&self) -> &'a Document<'a> {
        self.document
    }

    /// Returns the place of a key, whether or not it is there.
    pub(super) fn field<'b>(&'b self, key: &'b str) -> At<'b> {
        self.below(self.node.get(key), Part::Key(key))
    }

    /// Returns the place that a list of keys leads to, whether or not it is there.
    pub(super) fn fields<'b>(&'b self, keys: &'b [&'b str]) -> At<'b> {
        self.below(self.node.at(keys), Part::Keys(keys))
    }

    /// Returns the places of the items of a list with their positions; nothing for other values.
    pub(super) fn items<'b>(&'b self) -> impl ExactSizeIterator<Item = At<'b>> {
        let items = self.node.items().enumerate();
        items.map(|(index, node)| self.below(Some(node), Part::Index(index)))
    }

    /// Returns the keys of a mapping with the places of their values; nothing for other values.
    pub(super) fn entries<'b>(&'b self) -> impl Iterator<Item = (&'b str, At<'b>)> {
        let entries = self.node.entries();
        entries.map(|(key, node)| (key, self.below(Some(node), Part::Key(key))))
    }

    /// Returns whether there is a value other than null.
    pub(super) fn is_set(&self) -> bool {
        !self.node.is_null()
    }

    /// Returns the scalar as text; empty where there is none.
    pub(super) fn text(&self) -> Cow<'a, str> {
        match self.node.as_scalar() {
            Some(Value::String(text)) => Cow::Borrowed(text),
            Some(Value::Null) | None => Cow::Borrowed(""),
            Some(other) => Cow::Owned(other.to_string()),
        }
    }

    /// Returns whether the text is empty, which for Talos is the same as absent.
    pub(super) fn is_blank(&self) -> bool {
        match self.node.as_scalar() {
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Null) | None => true,
            Some(_) => false,
        }
    }

    /// Returns the boolean; none where there is none.
    pub(super) fn bool(&self) -> Option<bool> {
        match self.node.as_scalar()? {
            Value::Bool(value) => Some(*value),
            Value::String(text) => super::value::boolean(text),
            _ => None,
        }
    }

    /// Returns whether there is a `true`.
    pub(super) fn is_true(&self) -> bool {
        self.bool() == Some(true)
    }

    /// Returns the whole number; none where there is none.
    pub(super) fn number(&self) -> Option<i128> {
        let number = self.node.as_scalar()?.as_number()?;
        number.as_i128()
    }

    /// Returns how many keys or items there are.
    pub(super) fn len(&self) -> usize {
        self.node.len()
    }

    /// Returns the steps from the document to this place.
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps = self.up.map_or_else(Vec::new, Self::steps);
        match self.part {
            Part::Key(_) if self.up.is_none() => {}
            Part::Key(key) => steps.push(Step::from(key)),
            Part::Keys(keys) => steps.extend(keys.iter().map(|key| Step::from(*key))),
            Part::Index(index) => steps.push(Step::Index(index)),
        }
        steps
    }

    fn below<'b>(&'b self, node: Option<&'b Node>, part: Part<'b>) -> At<'b> {
        let node = match node {
            Some(node) => node,
            None => nothing(),
        };
        At {
            document: self.document,
            node,
            up: Some(self),
            part,
        }
    }
}

/// Returns the value of all that is not there.
fn nothing() -> &'static Node {
    static NOTHING: OnceLock<Node> = OnceLock::new();
    NOTHING.get_or_init(|| Node::from(Value::Null))
}
