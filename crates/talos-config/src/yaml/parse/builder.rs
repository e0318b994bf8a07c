//! Building the nodes of a text, with the places where they stood.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use granit_parser::ScalarStyle;

use super::events::{Events, Item, Token};
use super::resolve;
use crate::Error;
use crate::yaml::layout::{Form, Quote};
use crate::yaml::node::{Child, Data, Node};

/// Builds the documents of a text.
pub(super) struct Builder<'a> {
    pub(super) text: &'a str,
    pub(super) events: Events<'a>,
    /// What the anchors of the document name, and how many values that is.
    pub(super) anchors: HashMap<usize, (Arc<Node>, usize)>,
    /// Where the last scalar or bracket ended.
    pub(super) last: usize,
    /// Columns by which the first nested mapping is indented.
    pub(super) step: Option<usize>,
    /// Columns by which the first list is indented below its key.
    pub(super) list: Option<usize>,
}

/// A value that was read, and where its text ends.
pub(super) type Built = (Node, usize);

impl<'a> Builder<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            events: Events::new(text),
            anchors: HashMap::new(),
            last: 0,
            step: None,
            list: None,
        }
    }

    /// Lets a list of lines start at its first dash: where it stands below its key, the parser names its first item.
    pub(super) fn at_dash(&self, mut item: Item<'a>, from: usize) -> Item<'a> {
        if let Token::Start {
            is_mapping: false,
            in_flow: false,
        } = item.token
        {
            item.span.start = self.skip_properties(from);
        }
        item
    }

    /// Returns whether a value is a collection of lines that starts on a line of its own.
    pub(super) fn own_line(&self, item: &Item<'_>) -> bool {
        let start = item.span.start;
        matches!(item.token, Token::Start { in_flow: false, .. })
            && self.text[self.line_start(start)..start].trim().is_empty()
    }

    /// Returns where the text of a value starts, somewhere behind `from`.
    pub(super) fn content(&self, item: &Item<'_>, from: usize) -> usize {
        match &item.token {
            // The parser tells where the content starts, not the mark before it.
            Token::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded) => {
                self.skip_properties(from)
            }
            _ => item.span.start,
        }
    }

    /// Builds the node of a value; `from` is where its text starts, lines above its first child included.
    pub(super) fn node(
        &mut self,
        item: Item<'a>,
        from: usize,
        parent: usize,
    ) -> Result<Built, Error> {
        let (data, form, end) = match item.token {
            Token::Alias(id) => {
                let (target, size) = self.anchors.get(&id).cloned().ok_or_else(|| {
                    self.unsupported(item.span.start, "an alias inside of what it names")
                })?;
                self.count(size, item.span.start)?;
                let form = Form::Plain(item.span.clone(), Quote::None);
                (Data::Alias(target), form, item.span.end)
            }
            Token::Scalar(text, style) => {
                let end = match style {
                    // What is not there has no place of its own.
                    ScalarStyle::Plain if item.span.is_empty() => from,
                    _ => self.scalar_end(from, style, &item.span)?,
                };
                let span = from..end;
                let value = resolve::value(&text, style, item.tag.as_ref());
                (Data::Scalar(value), Form::Plain(span, quote(style)), end)
            }
            Token::Start {
                is_mapping: true,
                in_flow: false,
            } => self.block_mapping(item.span.start, from, parent)?,
            Token::Start {
                is_mapping: false,
                in_flow: false,
            } => self.block_list(item.span.start, from, parent)?,
            Token::Start { is_mapping, .. } => self.flow(is_mapping, item.span)?,
            Token::End => return Err(self.unsupported(from, "an end without a beginning")),
        };
        self.last = end;
        let mut node = Node {
            data,
            form,
            anchor: None,
        };
        if let Some((id, name)) = item.anchor {
            node.anchor = Some(name);
            let size = node.size();
            self.count(size, from)?;
            self.anchors.insert(id, (Arc::new(node.clone()), size));
        }
        Ok((node, end))
    }

    /// Returns whether a key is a plain or quoted word, without anchor, tag or `?`.
    pub(super) fn is_word(&self, item: &Item<'_>) -> bool {
        matches!(item.token, Token::Scalar(..))
            && item.property.is_none()
            && (!item.span.is_empty())
    }

    /// Returns the name of an entry, and whether it is a `<<`.
    pub(super) fn key(&mut self, item: Item<'a>) -> Result<(String, bool), Error> {
        let at = item.span.start;
        let merge = |text: &str, style| style == ScalarStyle::Plain && text == "<<";
        match item.token {
            Token::Scalar(text, style) if !item.span.is_empty() && item.anchor.is_none() => {
                self.last = match style {
                    ScalarStyle::Literal | ScalarStyle::Folded => {
                        return Err(self.unsupported(at, "a block of lines as a key"));
                    }
                    _ => item.span.end,
                };
                let merge = merge(&text, style);
                Ok((text.into_owned(), merge))
            }
            _ => Err(self.unsupported(at, "a key that is not a plain word or a quoted string")),
        }
    }

    /// Refuses a `<<` of something that has no entries.
    pub(super) fn check_merge(&self, child: &Child) -> Result<(), Error> {
        let is_mapping = |node: &Node| matches!(node.followed().data, Data::Mapping(_));
        let fits = match &child.value.followed().data {
            Data::List(items) => items.iter().all(|item| is_mapping(&item.value)),
            _ => is_mapping(&child.value),
        };
        match child.merge && !fits {
            true => Err(self.unsupported(self.last, "a `<<` of something other than mappings")),
            false => Ok(()),
        }
    }

    fn count(&mut self, size: usize, at: usize) -> Result<(), Error> {
        let counted = self.events.count(size);
        counted.map_err(|what| self.unsupported(at, what))
    }
}

/// The keys of a large mapping so far.
#[derive(Default)]
pub(super) struct Keys(HashSet<String>);

/// Up to how many entries looking through them is faster than keeping a set.
const FEW: usize = 16;

impl Keys {
    /// Refuses a key that one of the entries before has.
    pub(super) fn check(
        &mut self,
        builder: &Builder<'_>,
        before: &[Child],
        (key, merge): (&str, bool),
        at: usize,
    ) -> Result<(), Error> {
        let is_known = if before.len() < FEW {
            before.iter().any(|child| !child.merge && child.key == key)
        } else {
            if self.0.is_empty() {
                let own = before.iter().filter(|child| !child.merge);
                self.0.extend(own.map(|child| child.key.clone()));
            }
            !merge && !self.0.insert(key.to_owned())
        };
        if merge || !is_known {
            return Ok(());
        }
        let start = builder.line_start(at);
        Err(Error::Syntax {
            line: builder.line(at),
            column: builder.text[start..at].chars().count() as u64 + 1,
            message: format!("duplicate key {key:?}"),
        })
    }
}

fn quote(style: ScalarStyle) -> Quote {
    match style {
        ScalarStyle::DoubleQuoted => Quote::Double,
        ScalarStyle::SingleQuoted => Quote::Single,
        _ => Quote::None,
    }
}
