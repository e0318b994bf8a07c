//! From tree to text: what was not edited is copied, the rest is written in the habits of the text.

mod aliases;
mod flow;

use std::collections::HashSet;

use serde_json::Value;

use super::layout::{Document, Form, Place, Quote, Source, Span, Style};
use super::node::{Child, Data, Node};
use super::scalar;

/// Writes a value as a document of its own, indented as Talos does.
pub fn write(value: &Value) -> String {
    let style = Style {
        step: 4,
        list: 4,
        crlf: false,
    };
    let mut printer = Printer {
        source: "",
        style,
        broken: HashSet::new(),
        out: String::new(),
        block: None,
    };
    printer.fresh_root(&Node::from(value.clone()));
    printer.out
}

/// Prints a stream.
pub(super) fn stream(source: &Source, documents: &[Document]) -> String {
    let mut printer = Printer {
        source: &source.text,
        style: source.style,
        broken: aliases::broken_aliases(documents),
        out: String::with_capacity(source.text.len() + 256),
        block: None,
    };
    for (index, document) in documents.iter().enumerate() {
        printer.document(document, index == 0);
    }
    printer.out
}

struct Printer<'a> {
    source: &'a str,
    style: Style,
    /// Where the aliases stood that no longer mean what they meant.
    broken: HashSet<usize>,
    out: String,
    /// The literal block at the end of what is written, while nothing but blank lines follows.
    block: Option<OpenBlock>,
}

/// A literal block just written.
struct OpenBlock {
    start: usize,
    indent: usize,
    /// The same string on one line.
    text: String,
}

impl Printer<'_> {
    fn document(&mut self, document: &Document, first: bool) {
        let Some(prefix) = &document.prefix else {
            self.fresh_line();
            if !first {
                self.out.push_str("---");
                self.newline();
            }
            self.fresh_root(&document.root);
            return;
        };
        if !first {
            self.fresh_line();
            let closed = self.out.trim_end().ends_with("\n...");
            if !self.source[prefix.clone()].contains("---") && !closed {
                self.out.push_str("---");
                self.newline();
            }
        }
        self.copy(prefix);
        if self.is_fresh(&document.root) {
            self.fresh_line();
            self.fresh_root(&document.root);
        } else {
            self.node(&document.root, false);
        }
        self.copy(&document.suffix);
    }

    /// Prints a node that stood in the text; `compact` if its first child goes on the line that is being written.
    fn node(&mut self, node: &Node, compact: bool) {
        let node = &*self.unmerged(node);
        match (&node.form, &node.data) {
            (Form::Block { column, after }, Data::Mapping(children) | Data::List(children)) => {
                for (index, child) in children.iter().enumerate() {
                    self.block_child(
                        child,
                        *column,
                        compact && index == 0,
                        matches!(node.data, Data::List(_)),
                    );
                }
                for kept in after {
                    self.fresh_line();
                    self.copy(kept);
                }
            }
            (Form::Flow { tail, comma }, Data::Mapping(children) | Data::List(children)) => {
                self.flow(node, children, tail, *comma);
            }
            (Form::Plain(span, _) | Form::Opaque(span), _) => self.copy(span),
            _ => {}
        }
    }

    /// Prints a child that has lines of its own.
    fn block_child(&mut self, child: &Child, column: usize, compact: bool, is_item: bool) {
        let start = self.out.len();
        if !compact {
            self.fresh_line();
        }
        for kept in &child.before {
            self.copy(kept);
        }
        if let Some(place) = &child.place {
            self.copy(&place.lead);
        }
        if compact {
            let blank = self.out[start..].len() - self.out[start..].trim_start().len();
            self.out.replace_range(start..start + blank, "");
        }
        // What stood behind a dash before has no indentation of its own.
        if self.out.ends_with('\n') || self.out.is_empty() {
            self.indent(column);
        }
        let Some(place) = &child.place else {
            self.name(child, is_item);
            self.fresh_value(&child.value, None, column, is_item);
            return;
        };
        if place.name.is_empty() {
            self.name(child, is_item);
        } else {
            self.copy(&place.name);
        }
        if self.is_fresh(&child.value) {
            self.fresh_value(&child.value, Some(place), column, is_item);
        } else {
            self.copy(&place.gap);
            let compact = !self.source[place.gap.clone()].ends_with('\n');
            self.node(&child.value, compact);
            self.copy(&place.tail);
        }
    }

    /// Prints the name of a new child.
    fn name(&mut self, child: &Child, is_item: bool) {
        self.block = None;
        if is_item {
            self.out.push('-');
        } else {
            self.out
                .push_str(&scalar::string(&child.key, Quote::None, false));
            self.out.push(':');
        }
    }

    /// Prints a new value behind its key or dash, and ends the line.
    fn fresh_value(&mut self, node: &Node, place: Option<&Place>, column: usize, is_item: bool) {
        let comment = place.and_then(|place| place.comment.clone());
        let node = node.followed();
        match &node.data {
            Data::Mapping(children) | Data::List(children) if !children.is_empty() => {
                let is_list = matches!(node.data, Data::List(_));
                let compact = is_item && comment.is_none();
                let inner = match (is_item, is_list) {
                    (true, _) => column + 2,
                    (false, true) => column + self.style.list,
                    (false, false) => column + self.style.step,
                };
                if compact {
                    self.out.push(' ');
                } else {
                    self.comment(comment);
                    self.newline();
                }
                self.fresh_children(children, is_list, inner, compact);
            }
            Data::Scalar(Value::String(text)) if scalar::fits_block(text) => {
                let start = self.out.len();
                self.out
                    .push_str(if text.ends_with('\n') { " |" } else { " |-" });
                self.comment(comment);
                self.newline();
                let indent = column + self.style.step;
                for line in text.lines() {
                    if !line.is_empty() {
                        self.indent(indent);
                        self.out.push_str(line);
                    }
                    self.newline();
                }
                let text = format!(" {}", scalar::string(text, Quote::Double, false));
                self.block = Some(OpenBlock {
                    start,
                    indent,
                    text,
                });
            }
            _ => {
                let gap = place.map_or("", |place| &self.source[place.gap.clone()]);
                let blank = !gap.is_empty() && gap.bytes().all(|b| b == b' ');
                self.out.push_str(if blank { gap } else { " " });
                self.flow_value(node, false);
                self.comment(comment);
                let unended = place.is_some_and(|place| {
                    place.tail.end == self.source.len() && !self.source.ends_with('\n')
                });
                if !unended {
                    self.newline();
                }
                if let Form::Block { after, .. } = &node.form {
                    for kept in after {
                        self.fresh_line();
                        self.copy(kept);
                    }
                }
            }
        }
    }

    fn fresh_children(&mut self, children: &[Child], is_list: bool, column: usize, compact: bool) {
        for (index, child) in children.iter().enumerate() {
            if !(compact && index == 0) {
                self.indent(column);
            }
            self.name(child, is_list);
            self.fresh_value(&child.value, None, column, is_list);
        }
    }

    fn fresh_root(&mut self, node: &Node) {
        match &node.followed().data {
            Data::Mapping(children) | Data::List(children) if !children.is_empty() => {
                self.fresh_children(children, matches!(node.data, Data::List(_)), 0, false);
            }
            _ => {
                self.flow_value(node, false);
                self.newline();
            }
        }
    }

    /// Returns whether a node has to be written anew.
    fn is_fresh(&self, node: &Node) -> bool {
        match &node.form {
            Form::Fresh(_) => true,
            Form::Block { .. } => node.is_empty(),
            Form::Plain(span, _) => {
                matches!(node.data, Data::Alias(_)) && self.broken.contains(&span.start)
            }
            _ => false,
        }
    }

    fn copy(&mut self, span: &Span) {
        // A span that is no piece of the text prints as nothing, which the check after parsing finds.
        let text = self.source.get(span.clone()).unwrap_or_default();
        if let Some(block) = self.block.take() {
            // A comment or blanks that are indented as far as the block would be read as a part of it.
            let blanks = text.lines().take_while(|line| line.trim().is_empty());
            let is_deep = blanks.map(str::len).any(|len| len >= block.indent);
            let first = text.lines().find(|line| !line.trim().is_empty());
            let indent = first.map(|line| line.len() - line.trim_start().len());
            let is_comment = indent.is_some_and(|indent| indent >= block.indent)
                && text.trim_start().starts_with('#');
            if is_comment || is_deep {
                self.out.truncate(block.start);
                self.out.push_str(&block.text);
                self.newline();
            } else if first.is_none() {
                self.block = Some(block);
            }
        }
        self.out.push_str(text);
    }

    fn comment(&mut self, comment: Option<Span>) {
        if let Some(span) = comment {
            self.copy(&span);
        }
    }

    fn indent(&mut self, columns: usize) {
        self.out.extend(std::iter::repeat_n(' ', columns));
    }

    fn newline(&mut self) {
        self.out
            .push_str(if self.style.crlf { "\r\n" } else { "\n" });
    }

    /// Ends the line that is being written, if any.
    fn fresh_line(&mut self) {
        // A byte order mark is no part of the first line.
        if !self.out.is_empty() && !self.out.ends_with(['\n', '\u{feff}']) {
            self.newline();
        }
    }
}
