//! What the nodes of the syntax tree hold.

use rowan::NodeOrToken;
use serde_json::{Map, Value};
use yaml_edit::{Lang, SyntaxKind};

use crate::yaml::layout::Span;

/// A node of the syntax tree.
pub(super) type Syntax = rowan::SyntaxNode<Lang>;

/// The content of a document, entry or item: its node, anchors and tags read off.
pub(super) struct Content {
    pub(super) node: Option<Syntax>,
    pub(super) anchor: Option<String>,
    pub(super) tagged: bool,
    /// The comment on the first line before the content.
    pub(super) comment: Option<Span>,
}

impl Content {
    pub(super) fn none() -> Self {
        Self {
            node: None,
            anchor: None,
            tagged: false,
            comment: None,
        }
    }
}

/// Reads off what a document, value or item holds.
pub(super) fn content(holder: &Syntax) -> Content {
    let mut content = Content::none();
    for child in holder.children_with_tokens() {
        match child {
            NodeOrToken::Token(token) => match token.kind() {
                SyntaxKind::ANCHOR => {
                    content.anchor = Some(token.text().trim_start_matches('&').to_owned())
                }
                SyntaxKind::TAG => content.tagged = true,
                SyntaxKind::COMMENT if content.node.is_none() && content.comment.is_none() => {
                    let range = token.text_range();
                    content.comment = Some(range.start().into()..range.end().into());
                }
                _ => {}
            },
            NodeOrToken::Node(node) => match node.kind() {
                SyntaxKind::TAGGED_NODE => {
                    let inner = self::content(&node);
                    content.anchor = content.anchor.or(inner.anchor);
                    content.tagged = true;
                    content.node = inner.node;
                }
                // A value that is not there is an empty scalar, wherever its comment put it.
                SyntaxKind::SCALAR if node.text_range().is_empty() => {}
                SyntaxKind::SCALAR
                | SyntaxKind::MAPPING
                | SyntaxKind::SEQUENCE
                | SyntaxKind::ALIAS => {
                    content.node.get_or_insert(node);
                }
                _ => {}
            },
        }
    }
    content
}

/// Hands out the values of a collection in the order of its children.
pub(super) enum Values {
    List(std::vec::IntoIter<Value>),
    Mapping(serde_json::map::IntoIter),
    /// A mapping that may have a `<<`: its entries are found by key.
    Merged(Map<String, Value>),
    Nothing,
}

impl Values {
    pub(super) fn new(value: Value, merges: bool) -> Self {
        match value {
            Value::Array(items) => Self::List(items.into_iter()),
            Value::Object(map) if merges => Self::Merged(map),
            Value::Object(map) => Self::Mapping(map.into_iter()),
            _ => Self::Nothing,
        }
    }

    /// Returns the next child's key, as the reader of values has it where it can, and value.
    pub(super) fn take(&mut self, key: String, merge: bool) -> Option<(String, Value)> {
        match self {
            _ if merge => Some((key, Value::Null)),
            Self::List(items) => items.next().map(|value| (key, value)),
            Self::Mapping(entries) => entries.next(),
            Self::Merged(map) => map.get(&key).cloned().map(|value| (key, value)),
            // The items of the list of a `<<`.
            Self::Nothing => Some((key, Value::Null)),
        }
    }
}

pub(super) fn span(node: &Syntax) -> Span {
    let range = node.text_range();
    range.start().into()..range.end().into()
}

pub(super) fn value_of(entry: &Syntax) -> Option<Syntax> {
    entry
        .children()
        .find(|child| child.kind() == SyntaxKind::VALUE)
}

pub(super) fn has_token(node: &Syntax, kind: SyntaxKind) -> bool {
    node.children_with_tokens()
        .any(|child| child.kind() == kind)
}

/// Returns whether a collection has no brackets.
pub(super) fn is_block(node: &Syntax) -> bool {
    matches!(node.kind(), SyntaxKind::MAPPING | SyntaxKind::SEQUENCE)
        && !has_token(node, SyntaxKind::LEFT_BRACE)
        && !has_token(node, SyntaxKind::LEFT_BRACKET)
}
