//! Building the nodes of a document, with the places where they stood.

use std::collections::HashMap;
use std::sync::Arc;

use rowan::ast::AstNode;
use serde_json::Value;
use yaml_edit::SyntaxKind;

use super::content::{Content, Syntax, Values, content, has_token, is_block, span, value_of};
use crate::Error;
use crate::yaml::layout::{Document, Form, Place, Quote, Span};
use crate::yaml::node::{Child, Data, Node};

/// Builds the documents of a text.
pub(super) struct Builder<'a> {
    pub(super) text: &'a str,
    anchors: HashMap<String, Arc<Node>>,
    /// Columns by which the first nested mapping is indented.
    pub(super) step: Option<usize>,
    /// Columns by which the first list is indented below its key.
    pub(super) list: Option<usize>,
    /// Whether the text may hold a `<<`.
    pub(super) merges: bool,
}

impl<'a> Builder<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            anchors: HashMap::new(),
            step: None,
            list: None,
            merges: text.contains("<<"),
        }
    }

    pub(super) fn document(
        &mut self,
        node: &Syntax,
        tile: Span,
        values: &mut impl Iterator<Item = Value>,
    ) -> Result<Document, Error> {
        self.anchors.clear();
        let content = content(node);
        let is_null = content.node.as_ref().is_none_or(|node| {
            node.kind() == SyntaxKind::SCALAR
                && matches!(&self.text[span(node)], "" | "~" | "null" | "Null" | "NULL")
        });
        let Some(root) = content.node.clone().filter(|_| !is_null) else {
            return Ok(Self::empty_document(tile));
        };
        let value = values
            .next()
            .ok_or_else(|| self.unsupported(tile.start, "a document that reads as nothing"))?;
        let whole = span(&root);
        // The lines above a block root belong to its first child; the `---` line does not.
        let start = match self.own_line(&root) {
            true => self.after_marker(node, tile.start, whole.start),
            false => whole.start,
        };
        self.in_order(&[tile.start, start, tile.end])?;
        let (mut root, end) = self.node(content, value, start, 0)?;
        self.keep_head(&mut root);
        Ok(Document {
            prefix: Some(tile.start..start),
            root,
            suffix: end.clamp(start, tile.end)..tile.end,
        })
    }

    /// Makes a document that holds nothing but comments and markers.
    pub(super) fn empty_document(tile: Span) -> Document {
        let end = tile.end..tile.end;
        let root = Node {
            data: Data::Scalar(Value::Null),
            form: Form::Opaque(end.clone()),
            anchor: None,
        };
        Document {
            prefix: Some(tile),
            root,
            suffix: end,
        }
    }

    /// Returns whether a node is a collection of lines that starts on a line of its own.
    fn own_line(&self, node: &Syntax) -> bool {
        is_block(node)
            && self.text[self.line_start(span(node).start)..span(node).start]
                .trim()
                .is_empty()
    }

    /// Returns where the line of the last `---` or directive before `limit` ends.
    fn after_marker(&self, document: &Syntax, start: usize, limit: usize) -> usize {
        let markers = document
            .children_with_tokens()
            .filter(|child| matches!(child.kind(), SyntaxKind::DOC_START | SyntaxKind::DIRECTIVE))
            .map(|child| usize::from(child.text_range().end()))
            .filter(|end| *end <= limit);
        markers.max().map_or(start, |end| self.line_end(end))
    }

    /// Builds the node of a content; `from` is where its text starts, lines above its first child included.
    ///
    /// Returns the node and where its text ends.
    pub(super) fn node(
        &mut self,
        content: Content,
        value: Value,
        from: usize,
        parent: usize,
    ) -> Result<(Node, usize), Error> {
        let Some(syntax) = content.node else {
            return Ok((
                Node {
                    data: Data::Scalar(value),
                    form: Form::Plain(from..from, Quote::None),
                    anchor: None,
                },
                from,
            ));
        };
        let whole = span(&syntax);
        let anchor: Option<Arc<str>> = content.anchor.as_deref().map(Arc::from);
        let (data, form, end) = match syntax.kind() {
            SyntaxKind::ALIAS => {
                let name = self.text[whole.clone()]
                    .trim_start_matches('*')
                    .trim_end()
                    .to_owned();
                let target =
                    self.anchors.get(&name).cloned().ok_or_else(|| {
                        self.unsupported(whole.start, "an alias without an anchor")
                    })?;
                (
                    Data::Alias(target),
                    Form::Plain(whole.clone(), Quote::None),
                    whole.end,
                )
            }
            SyntaxKind::SCALAR => {
                let end = self.scalar_end(&whole);
                (
                    Data::Scalar(value),
                    Form::Plain(whole.start..end, self.quote(whole.start)),
                    end,
                )
            }
            SyntaxKind::MAPPING | SyntaxKind::SEQUENCE if content.tagged => (
                Node::from(value).data,
                Form::Opaque(from..whole.end),
                whole.end,
            ),
            SyntaxKind::MAPPING | SyntaxKind::SEQUENCE if is_block(&syntax) => {
                self.block(&syntax, value, from, parent)?
            }
            SyntaxKind::MAPPING | SyntaxKind::SEQUENCE => self.flow(&syntax, value)?,
            _ => return Err(self.unsupported(whole.start, "content of an unknown kind")),
        };
        let node = Node { data, form, anchor };
        if let Some(name) = content.anchor {
            self.anchors.insert(name, Arc::new(node.clone()));
        }
        Ok((node, end))
    }

    /// Builds a collection that has its children on lines.
    fn block(
        &mut self,
        syntax: &Syntax,
        value: Value,
        from: usize,
        parent: usize,
    ) -> Result<(Data, Form, usize), Error> {
        let is_mapping = syntax.kind() == SyntaxKind::MAPPING;
        let mut values = Values::new(value, self.merges);
        let mut children = Vec::new();
        let mut cursor = from;
        let first = span(syntax).start;
        let column = first - self.line_start(first);
        self.learn(is_mapping, column, parent, from);
        for entry in syntax.children() {
            let start = span(&entry).start;
            let (key, merge, name) = self.name(&entry, is_mapping, false)?;
            let (key, value) = values
                .take(key, merge)
                .ok_or_else(|| self.unsupported(start, "an entry that cannot be read"))?;
            let content = self.entry_content(&entry, is_mapping, merge)?;
            let (child, end) = self.block_child(content, value, cursor, name, column)?;
            let line_end = child.place.as_ref().map_or(end, |place| place.tail.end);
            children.push(Child {
                key,
                merge,
                ..child
            });
            cursor = line_end;
        }
        let form = Form::Block {
            column,
            after: Vec::new(),
        };
        Ok((
            if is_mapping {
                Data::Mapping(children)
            } else {
                Data::List(children)
            },
            form,
            cursor,
        ))
    }

    /// Reads off what an entry or item holds.
    pub(super) fn entry_content(
        &self,
        entry: &Syntax,
        is_mapping: bool,
        merge: bool,
    ) -> Result<Content, Error> {
        let holder = if is_mapping {
            value_of(entry)
        } else {
            Some(entry.clone())
        };
        let content = holder.as_ref().map_or_else(Content::none, content);
        let aliases = |node: &Syntax| {
            node.kind() == SyntaxKind::ALIAS
                || (node.kind() == SyntaxKind::SEQUENCE
                    && node
                        .children()
                        .all(|item| item.children().any(|node| node.kind() == SyntaxKind::ALIAS)))
        };
        if merge && !content.node.as_ref().is_some_and(aliases) {
            return Err(
                self.unsupported(span(entry).start, "a `<<` of something other than aliases")
            );
        }
        Ok(content)
    }

    /// Builds a child that has lines of its own; `cursor` is where the previous one ended.
    fn block_child(
        &mut self,
        content: Content,
        value: Value,
        cursor: usize,
        name: Span,
        column: usize,
    ) -> Result<(Child, usize), Error> {
        self.in_order(&[cursor, name.start, name.end])?;
        let lead = cursor..name.start;
        let keep = self.keep(&lead);
        let below = content
            .node
            .as_ref()
            .is_some_and(|node| self.own_line(node));
        let start = match &content.node {
            Some(_) if below => self.line_end(name.end),
            Some(node) => span(node).start,
            None => name.end,
        };
        let line = name.end..self.line_end(name.end);
        let mut comment = content
            .comment
            .clone()
            .filter(|at| at.start >= line.start && at.end <= line.end);
        if let Some(at) = &mut comment {
            at.start = self.text[..at.start].trim_end_matches([' ', '\t']).len();
        }
        let (node, end) = self.node(content, value, start, column)?;
        self.in_order(&[name.end, start, end])?;
        let tail = if below || self.at_line_start(end) {
            end..end
        } else {
            end..self.line_end(end)
        };
        if !below && !tail.is_empty() {
            let text = self.text[tail.clone()].trim_end_matches(['\n', '\r']);
            if text.contains('#') {
                comment = Some(tail.start..tail.start + text.len());
            }
        }
        let place = Place {
            lead,
            gap: name.end..start,
            name,
            tail,
            comment,
            keep,
        };
        let child = Child {
            key: String::new(),
            merge: false,
            value: node,
            place: Some(place),
            before: Vec::new(),
        };
        Ok((child, end))
    }

    /// Returns the key of an entry, whether it is a `<<`, and the text of the key with its colon, or of the dash.
    pub(super) fn name(
        &self,
        entry: &Syntax,
        is_mapping: bool,
        in_flow: bool,
    ) -> Result<(String, bool, Span), Error> {
        let whole = span(entry);
        if !is_mapping {
            let dash = entry
                .children_with_tokens()
                .find(|child| child.kind() == SyntaxKind::DASH);
            let end = dash
                .filter(|_| !in_flow)
                .map_or(whole.start, |dash| usize::from(dash.text_range().end()));
            return Ok((String::new(), false, whole.start..end));
        }
        if has_token(entry, SyntaxKind::QUESTION) {
            return Err(self.unsupported(whole.start, "a key written with `?`"));
        }
        let key = entry
            .children()
            .find(|child| child.kind() == SyntaxKind::KEY);
        let key = key.ok_or_else(|| self.unsupported(whole.start, "an entry without a key"))?;
        let text = self.text[span(&key)].trim();
        let colon = entry
            .children_with_tokens()
            .find(|child| child.kind() == SyntaxKind::COLON);
        let end = colon.map_or(span(&key).end, |colon| {
            usize::from(colon.text_range().end())
        });
        let scalar = key.children().find_map(yaml_edit::Scalar::cast);
        let name = match scalar {
            Some(scalar) if text.starts_with(['"', '\'']) || text.contains('\n') => {
                scalar.as_string()
            }
            Some(scalar) => scalar.value().trim().to_owned(),
            None if text == "<<" => text.to_owned(),
            None => {
                return Err(self.unsupported(
                    whole.start,
                    "a key that is not a plain word or a quoted string",
                ));
            }
        };
        Ok((name, text == "<<", whole.start..end))
    }
}
