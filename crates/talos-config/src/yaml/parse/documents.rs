//! The documents of a text: what stands before, between and behind them.

use serde_json::Value;

use super::builder::Builder;
use super::events::{Mark, Token};
use super::resolve;
use crate::Error;
use crate::yaml::layout::{Document, Form, Span};
use crate::yaml::node::{Data, Node};

impl Builder<'_> {
    /// Builds all documents; their pieces tile the text.
    pub(super) fn documents(&mut self) -> Result<Vec<Document>, Error> {
        let mut documents: Vec<Document> = Vec::new();
        // Where the document that is being read starts, if a `...` told.
        let mut from = Some(self.mark_end());
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
        if let Some(prefix) = documents
            .first_mut()
            .and_then(|first| first.prefix.as_mut())
        {
            prefix.start = 0;
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
