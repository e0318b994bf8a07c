//! Collections in brackets.

use serde_json::Value;
use yaml_edit::SyntaxKind;

use super::builder::Builder;
use super::content::{Syntax, Values, has_token, span};
use crate::Error;
use crate::yaml::layout::{Form, Place};
use crate::yaml::node::{Child, Data, Node};

impl Builder<'_> {
    /// Builds a collection in brackets.
    pub(super) fn flow(
        &mut self,
        syntax: &Syntax,
        value: Value,
    ) -> Result<(Data, Form, usize), Error> {
        let whole = span(syntax);
        let is_mapping = syntax.kind() == SyntaxKind::MAPPING;
        let pair = is_mapping && !self.text[whole.clone()].starts_with('{');
        let explicit = syntax
            .children()
            .any(|entry| has_token(&entry, SyntaxKind::QUESTION));
        if pair || explicit {
            return Ok((
                Node::from(value).data,
                Form::Opaque(whole.clone()),
                whole.end,
            ));
        }
        let mut values = Values::new(value, self.merges);
        let mut children = Vec::new();
        let mut cursor = whole.start + 1;
        let mut comma = false;
        for entry in syntax.children() {
            let start = span(&entry).start;
            let (key, merge, name) = self.name(&entry, is_mapping, true)?;
            let (key, value) = values
                .take(key, merge)
                .ok_or_else(|| self.unsupported(start, "an entry that cannot be read"))?;
            let content = self.entry_content(&entry, is_mapping, merge)?;
            let from = content
                .node
                .as_ref()
                .map_or(name.end, |node| span(node).start);
            let (node, end) = self.node(content, value, from, 0)?;
            let end = end.max(name.end);
            self.in_order(&[cursor, name.start, name.end, from, end, whole.end - 1])?;
            let stop = entry
                .children_with_tokens()
                .filter(|child| child.kind() == SyntaxKind::COMMA)
                .map(|child| usize::from(child.text_range().start()))
                .last();
            comma = stop.is_some();
            let tail = end..stop.unwrap_or(end).max(end);
            let place = Place {
                lead: cursor..name.start,
                gap: name.end..from,
                name,
                tail,
                comment: None,
                keep: None,
            };
            cursor = stop.map_or(end, |stop| stop + 1);
            children.push(Child {
                key,
                merge,
                value: node,
                place: Some(place),
                before: Vec::new(),
            });
        }
        let form = Form::Flow {
            tail: cursor..whole.end - 1,
            comma,
        };
        Ok((
            if is_mapping {
                Data::Mapping(children)
            } else {
                Data::List(children)
            },
            form,
            whole.end,
        ))
    }
}
