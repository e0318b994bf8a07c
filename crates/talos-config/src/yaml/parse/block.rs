//! Collections that have their children on lines.

use super::builder::{Builder, Keys};
use super::events::{Item, Token};
use crate::Error;
use crate::yaml::layout::{Form, Place, Span};
use crate::yaml::node::{Child, Data, Node};

impl<'a> Builder<'a> {
    pub(super) fn block_mapping(
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
            keys.check(self, &children, (&key, merge), at)?;
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
        Ok((Data::Mapping(children.into()), block(column), cursor))
    }

    pub(super) fn block_list(
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
        Ok((Data::List(children.into()), block(column), cursor))
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
                    keys.check(self, &entries, (&key.0, key.1), at)?;
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
            data: Data::Mapping(entries.into()),
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
}

fn block(column: usize) -> Form {
    Form::Block {
        column,
        after: Vec::new(),
    }
}
