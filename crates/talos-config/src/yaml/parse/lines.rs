//! What lines of the text tell: where things end, whose a comment is, and how the writer indents.

use granit_parser::ScalarStyle;

use super::builder::Builder;
use crate::Error;
use crate::yaml::layout::Span;
use crate::yaml::node::{Data, Node};

impl Builder<'_> {
    /// Returns where a scalar ends: blank lines below a block of lines belong to it only if it keeps them.
    pub(super) fn scalar_end(
        &self,
        from: usize,
        style: ScalarStyle,
        span: &Span,
    ) -> Result<usize, Error> {
        if !matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) {
            return Ok(span.end.max(from));
        }
        let header = self.text[from..].lines().next().unwrap_or_default();
        let header = header.split(" #").next().unwrap_or_default();
        // The parser may take in the indentation of what follows, and blanks at the end of the text.
        let mut end = span.end.max(from);
        let line = self.line_start(end).max(from);
        let is_blank = self.text[line..end].trim().is_empty();
        let keeps = header.contains('+');
        if keeps && is_blank && line < end && end == self.text.len() {
            return Err(self.unsupported(end, "a last line of blanks in a block that keeps them"));
        }
        if is_blank && end < self.text.len() {
            end = line;
        }
        if keeps {
            return Ok(end.max(self.line_end(from)));
        }
        let trimmed = self.text[from..end].trim_end_matches(['\n', '\r']);
        Ok(self.line_end(from + trimmed.len()))
    }

    /// Returns where something other than white space and comments stands, at `at` or behind.
    pub(super) fn skip_blank(&self, mut at: usize) -> usize {
        loop {
            let rest = &self.text[at..];
            at += rest.len()
                - rest
                    .trim_start_matches([' ', '\t', '\n', '\r', '\u{feff}'])
                    .len();
            match self.text.as_bytes().get(at) {
                Some(b'#') => at = self.line_end(at),
                _ => return at,
            }
        }
    }

    /// Returns where the spaces at `at` end.
    pub(super) fn skip_spaces(&self, at: usize) -> usize {
        let rest = &self.text[at..];
        at + rest.len() - rest.trim_start_matches([' ', '\t']).len()
    }

    /// Returns where the word at `at` ends.
    pub(super) fn skip_word(&self, at: usize) -> usize {
        let rest = &self.text[at..];
        at + rest
            .find([' ', '\t', '\n', '\r', ',', ']', '}'])
            .unwrap_or(rest.len())
    }

    /// Returns where content starts behind anchors and tags.
    pub(super) fn skip_properties(&self, at: usize) -> usize {
        let at = self.skip_blank(at);
        match self.text.as_bytes().get(at) {
            Some(b'&' | b'!') => {
                let rest = &self.text[at..];
                let word = rest.find([' ', '\t', '\n', '\r']).unwrap_or(rest.len());
                self.skip_properties(at + word)
            }
            _ => at,
        }
    }

    /// Returns the comment in a part of a line, with the white space before it.
    pub(super) fn comment(&self, part: Span) -> Option<Span> {
        let text = self.text[part.clone()].trim_end_matches(['\n', '\r']);
        let mut search = 0;
        let hash = loop {
            let at = search + text[search..].find('#')?;
            if text[..at].ends_with([' ', '\t']) {
                break at;
            }
            search = at + 1;
        };
        let start = text[..hash].trim_end_matches([' ', '\t']).len();
        Some(part.start + start..part.start + text.len())
    }

    /// Returns the part of the lines above a child that is not the child's own comment.
    pub(super) fn keep(&self, lead: &Span) -> Option<Span> {
        let text = &self.text[lead.clone()];
        if !text.contains('#') {
            return None;
        }
        let column = text.len() - text.rfind('\n').map_or(0, |at| at + 1);
        let mut own = text.len() - column;
        for line in text[..own].split_inclusive('\n').rev() {
            let indent = line.len() - line.trim_start().len();
            if !line.trim_start().starts_with('#') || indent != column {
                break;
            }
            own -= line.len();
        }
        let kept = lead.start..lead.start + own;
        self.text[kept.clone()].contains('#').then_some(kept)
    }

    /// Lets the comments at the head of a document stay when its first key goes.
    pub(super) fn keep_head(&self, root: &mut Node) {
        if let Data::Mapping(children) | Data::List(children) = &mut root.data
            && let Some(place) = children.first_mut().and_then(|child| child.place.as_mut())
        {
            let head = place.lead.start..self.line_start(place.lead.end).max(place.lead.start);
            place.keep = self.text[head.clone()].contains('#').then_some(head);
        }
    }

    /// Remembers how nested content is indented, from the first place that shows it.
    pub(super) fn learn(&mut self, is_mapping: bool, column: usize, parent: usize, from: usize) {
        let nested = from > 0 && self.text[..from].ends_with('\n') && column >= parent;
        if is_mapping && nested && column > parent {
            self.step.get_or_insert(column - parent);
        } else if !is_mapping && nested {
            self.list.get_or_insert(column - parent);
        }
    }

    /// Refuses a text whose pieces are not in the order they are expected in.
    pub(super) fn in_order(&self, places: &[usize]) -> Result<(), Error> {
        match places.is_sorted() && places.iter().all(|at| self.text.is_char_boundary(*at)) {
            true => Ok(()),
            false => Err(self.unsupported(places[0], "this form of YAML")),
        }
    }

    /// Returns where the line of a place starts, behind a byte order mark.
    pub(super) fn line_start(&self, at: usize) -> usize {
        let start = self.text[..at].rfind('\n').map_or(0, |found| found + 1);
        start.max(self.mark_end().min(at))
    }

    /// Returns where the byte order mark at the head of the text ends, if there is one.
    pub(super) fn mark_end(&self) -> usize {
        match self.text.starts_with('\u{feff}') {
            true => '\u{feff}'.len_utf8(),
            false => 0,
        }
    }

    /// Returns where the line of `at` ends, its line break included.
    pub(super) fn line_end(&self, at: usize) -> usize {
        self.text[at..]
            .find('\n')
            .map_or(self.text.len(), |found| at + found + 1)
    }

    pub(super) fn at_line_start(&self, at: usize) -> bool {
        at > 0 && self.text.as_bytes()[at - 1] == b'\n'
    }

    /// Returns the line of a place, counted from 1.
    pub(super) fn line(&self, at: usize) -> u64 {
        let before = self.text.as_bytes().iter().take(at);
        before.filter(|byte| **byte == b'\n').count() as u64 + 1
    }

    pub(super) fn unsupported(&self, at: usize, what: &'static str) -> Error {
        Error::Unsupported {
            line: self.line(at),
            what,
        }
    }
}
