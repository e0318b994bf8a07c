//! Collections in brackets.

use super::builder::{Builder, Keys};
use super::events::Token;
use crate::Error;
use crate::yaml::layout::{Form, Place, Span};
use crate::yaml::node::{Child, Data, Node};

impl Builder<'_> {
    /// Builds a collection in brackets; `open` is its bracket, or nothing for a pair in a list.
    pub(super) fn flow(
        &mut self,
        is_mapping: bool,
        open: Span,
    ) -> Result<(Data, Form, usize), Error> {
        let is_pair = is_mapping && self.text.as_bytes().get(open.start) != Some(&b'{');
        let mut keys = Keys::default();
        let mut children = Vec::new();
        let mut cursor = open.end;
        let mut comma = false;
        let mut opaque = is_pair;
        self.last = if is_pair { open.start } else { cursor };
        let close = loop {
            let item = self.events.item()?;
            if matches!(item.token, Token::End) {
                break item.span;
            }
            let at = item.span.start;
            let mut child = Child::fresh(String::new(), serde_json::Value::Null);
            let (name, item) = if is_mapping {
                opaque |= !self.is_word(&item) || self.skip_blank(cursor) != at;
                (child.key, child.merge) = self.key(item)?;
                keys.check(self, &children, (&child.key, child.merge), at)?;
                let colon = self.skip_blank(self.last);
                let has_colon = self.text.as_bytes().get(colon) == Some(&b':');
                let end = if has_colon { colon + 1 } else { self.last };
                self.last = end;
                (at..end, self.events.item()?)
            } else {
                let start = self.skip_blank(cursor);
                (start..start, item)
            };
            let is_absent = item.is_absent();
            let from = match item.property {
                None if is_absent => name.end,
                Some(at) if is_absent => self.skip_word(at),
                _ => item.span.start,
            };
            let (node, end) = self.node(item, from, 0)?;
            let end = end.max(name.end);
            child.value = node;
            self.check_merge(&child)?;
            if !opaque {
                self.in_order(&[cursor, name.start, name.end, from, end])?;
                let stop = self.skip_blank(end);
                comma = self.text.as_bytes().get(stop) == Some(&b',');
                let tail = end..if comma { stop } else { end };
                child.place = Some(Place {
                    lead: cursor..name.start,
                    gap: name.end..from,
                    name,
                    comment: None,
                    keep: None,
                    tail: tail.clone(),
                });
                cursor = tail.end + usize::from(comma);
            }
            self.last = end;
            children.push(child);
        };
        let end = if is_pair { self.last } else { close.end };
        let data = match is_mapping {
            true => Data::Mapping(children.into()),
            false => Data::List(children.into()),
        };
        if opaque {
            let node = Node {
                data,
                form: Form::Opaque(open.start..end),
                anchor: None,
            };
            return Ok((Node::from(node.value()).data, node.form, end));
        }
        self.in_order(&[cursor, close.start])?;
        let tail = cursor..close.start;
        Ok((data, Form::Flow { tail, comma }, end))
    }
}
