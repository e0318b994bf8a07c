//! Building the nodes of a text, with the places where they stood.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use granit_parser::ScalarStyle;
use serde_json::Value;

use super::events::{Events, Item, Mark, Token};
use super::resolve;
use crate::Error;
use crate::yaml::layout::{Document, Form, Place, Quote, Span};
use crate::yaml::node::{Child, Data, Node};

/// Builds the documents of a text.
pub(super) struct Builder<'a> {
    pub(super) text: &'a str,
    pub(super) events: Events<'a>,
    /// What the anchors of the document name, and how many values that is.
    anchors: HashMap<usize, (Arc<Node>, usize)>,
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

    /// Builds all documents; their pieces tile the text.
    pub(super) fn documents(&mut self) -> Result<Vec<Document>, Error> {
        let mut documents: Vec<Document> = Vec::new();
        // Where the document that is being read starts, if a `...` told.
        let mut from = Some(0);
        loop {
            let marker = match self.events.mark()? {
                Mark::Start(marker) => marker,
                Mark::End(span) => {
                    from = (!span.is_empty()).then(|| self.line_end(span.end));
                    continue;
                }
                Mark::Finished => break,
            };
            let start = from.take().unwrap_or(marker.start);
            if let Some(previous) = documents.last_mut() {
                close(previous, start);
            }
            self.anchors.clear();
            let document = self.document(start, marker)?;
            documents.push(document);
        }
        match documents.last_mut() {
            Some(last) => close(last, self.text.len()),
            None if self.text.is_empty() => {}
            None => documents.push(empty_document(0..self.text.len())),
        }
        Ok(documents)
    }

    fn document(&mut self, from: usize, marker: Span) -> Result<Document, Error> {
        let item = self.events.item()?;
        let item = self.at_dash(item, marker.end);
        let is_null = match &item.token {
            Token::Scalar(text, style) => {
                item.anchor.is_none()
                    && resolve::value(text, *style, item.tag.as_ref()) == Value::Null
            }
            _ => false,
        };
        if is_null {
            return Ok(empty_document(from..item.span.end.max(marker.end)));
        }
        // The lines above a block root belong to its first child; the `---` line and those of a tag do not.
        let head = item
            .property
            .max((!marker.is_empty()).then_some(marker.end));
        let start = match (self.own_line(&item), head) {
            (true, Some(head)) => self.line_end(head),
            (true, None) => from,
            (false, _) => self.content(&item, marker.end),
        };
        self.in_order(&[from, start])?;
        let (mut root, end) = self.node(item, start, 0)?;
        self.keep_head(&mut root);
        Ok(Document {
            prefix: Some(from..start),
            root,
            suffix: end.max(start)..end.max(start),
        })
    }

    /// Lets a list of lines start at its first dash: where it stands below its key, the parser names its first item.
    fn at_dash(&self, mut item: Item<'a>, from: usize) -> Item<'a> {
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
    fn own_line(&self, item: &Item<'_>) -> bool {
        let start = item.span.start;
        matches!(item.token, Token::Start { in_flow: false, .. })
            && self.text[self.line_start(start)..start].trim().is_empty()
    }

    /// Returns where the text of a value starts, somewhere behind `from`.
    fn content(&self, item: &Item<'_>, from: usize) -> usize {
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

    fn block_mapping(
        &mut self,
        start: usize,
        from: usize,
        parent: usize,
    ) -> Result<(Data, Form, usize), Error> {
        let column = start - self.line_start(start);
        self.learn(true, column, parent, from);
        let mut keys = Keys::default();
        let mut children: Vec<Child> = Vec::new();
        let mut cursor = from;
        loop {
            let item = self.events.item()?;
            if matches!(item.token, Token::End) {
                break;
            }
            let at = item.span.start;
            let is_word = self.is_word(&item) && self.skip_blank(cursor) == at;
            let (key, merge) = self.key(item)?;
            keys.add(self, &key, merge, at)?;
            let colon = self.skip_spaces(self.last);
            if !is_word || self.text.as_bytes().get(colon) != Some(&b':') {
                return self.opaque_mapping(children, (key, merge), keys, from);
            }
            let mut child = self.block_child(cursor, at..colon + 1, column)?;
            cursor = child.place.as_ref().map_or(cursor, |place| place.tail.end);
            (child.key, child.merge) = (key, merge);
            self.check_merge(&child)?;
            children.push(child);
        }
        Ok((Data::Mapping(children), block(column), cursor))
    }

    fn block_list(
        &mut self,
        start: usize,
        from: usize,
        parent: usize,
    ) -> Result<(Data, Form, usize), Error> {
        let column = start - self.line_start(start);
        self.learn(false, column, parent, from);
        let mut children = Vec::new();
        let mut cursor = from;
        loop {
            let item = self.events.item()?;
            if matches!(item.token, Token::End) {
                break;
            }
            let dash = self.skip_blank(cursor);
            if self.text.as_bytes().get(dash) != Some(&b'-') {
                return Err(self.unsupported(dash, "this form of list"));
            }
            let child = self.child_of(item, cursor, dash..dash + 1, column)?;
            cursor = child.place.as_ref().map_or(cursor, |place| place.tail.end);
            children.push(child);
        }
        Ok((Data::List(children), block(column), cursor))
    }

    /// Builds the value of an entry that has lines of its own; `cursor` is where the previous one ended.
    fn block_child(&mut self, cursor: usize, name: Span, column: usize) -> Result<Child, Error> {
        let item = self.events.item()?;
        self.child_of(item, cursor, name, column)
    }

    fn child_of(
        &mut self,
        item: Item<'a>,
        cursor: usize,
        name: Span,
        column: usize,
    ) -> Result<Child, Error> {
        self.in_order(&[cursor, name.start, name.end])?;
        let item = self.at_dash(item, name.end);
        let lead = cursor..name.start;
        let keep = self.keep(&lead);
        let below = self.own_line(&item);
        let is_absent = item.is_absent();
        let start = match (below, item.property) {
            (true, property) => self.line_end(property.unwrap_or(name.end).max(name.end)),
            (false, None) if is_absent => name.end,
            (false, Some(at)) if is_absent => self.skip_word(at),
            (false, _) => self.content(&item, name.end),
        };
        self.in_order(&[name.end, start])?;
        let mut comment = self.comment(name.end..self.line_end(name.end).min(start));
        let (node, end) = self.node(item, start, column)?;
        self.in_order(&[start, end])?;
        let tail = match below || self.at_line_start(end) {
            true => end..end,
            false => end..self.line_end(end),
        };
        if !below && !tail.is_empty() {
            comment = self.comment(tail.clone()).or(comment);
        }
        let place = Place {
            lead,
            gap: name.end..start,
            name,
            tail,
            comment,
            keep,
        };
        Ok(Child {
            key: String::new(),
            merge: false,
            value: node,
            place: Some(place),
            before: Vec::new(),
        })
    }

    /// Reads the rest of a mapping that is written with `?` or another form that is copied, never edited in place.
    fn opaque_mapping(
        &mut self,
        children: Vec<Child>,
        (key, merge): (String, bool),
        mut keys: Keys,
        from: usize,
    ) -> Result<(Data, Form, usize), Error> {
        let mut entries: Vec<Child> = children.into_iter().map(Child::without_place).collect();
        let mut next = Some((key, merge));
        loop {
            let (key, merge) = match next.take() {
                Some(key) => key,
                None => {
                    let item = self.events.item()?;
                    if matches!(item.token, Token::End) {
                        self.skip_marks(item.span.start);
                        break;
                    }
                    let at = item.span.start;
                    let key = self.key(item)?;
                    keys.add(self, &key.0, key.1, at)?;
                    key
                }
            };
            self.skip_marks(self.text.len());
            let item = self.events.item()?;
            let item = self.at_dash(item, self.last);
            let from = match item.is_absent() {
                true => self.last,
                false => self.content(&item, self.last),
            };
            let property = item.property.map(|at| self.skip_word(at));
            let (node, end) = self.node(item, from, 0)?;
            self.last = property.unwrap_or(end).max(end);
            let mut child = Child::fresh(key, node.value());
            child.merge = merge;
            if merge {
                child.value = node;
            }
            self.check_merge(&child)?;
            entries.push(child);
        }
        let end = match self.at_line_start(self.last) {
            true => self.last,
            false => self.line_end(self.last),
        };
        // What a `<<` brought in is written out: the text is copied or written anew as a whole.
        let whole = Node {
            data: Data::Mapping(entries),
            form: Form::Opaque(from..end),
            anchor: None,
        };
        Ok((Node::from(whole.value()).data, whole.form, end))
    }

    /// Takes in the marks of an entry without a value that stand before `end`.
    fn skip_marks(&mut self, end: usize) {
        while let at = self.skip_blank(self.last)
            && at < end
            && matches!(self.text.as_bytes().get(at), Some(b':' | b'?'))
        {
            self.last = at + 1;
        }
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

/// The keys of a mapping so far.
#[derive(Default)]
pub(super) struct Keys(HashSet<String>);

impl Keys {
    pub(super) fn add(
        &mut self,
        builder: &Builder<'_>,
        key: &str,
        merge: bool,
        at: usize,
    ) -> Result<(), Error> {
        if merge || self.0.insert(key.to_owned()) {
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

/// Makes a document that holds nothing but comments and markers.
fn empty_document(tile: Span) -> Document {
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

/// Ends a document where the next one starts.
fn close(document: &mut Document, end: usize) {
    match (&document.root.data, &mut document.prefix) {
        (Data::Scalar(Value::Null), Some(prefix)) => {
            prefix.end = prefix.end.max(end);
            document.root.form = Form::Opaque(prefix.end..prefix.end);
            document.suffix = prefix.end..prefix.end;
        }
        _ => document.suffix.end = document.suffix.end.max(end),
    }
}

fn block(column: usize) -> Form {
    Form::Block {
        column,
        after: Vec::new(),
    }
}

fn quote(style: ScalarStyle) -> Quote {
    match style {
        ScalarStyle::DoubleQuoted => Quote::Double,
        ScalarStyle::SingleQuoted => Quote::Single,
        _ => Quote::None,
    }
}
