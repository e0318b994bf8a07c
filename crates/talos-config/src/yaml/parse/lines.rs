//! What lines of the text tell: where things end, whose a comment is, and how the writer indents.

use super::builder::Builder;
use crate::Error;
use crate::yaml::layout::{Quote, Span};
use crate::yaml::node::{Data, Node};

impl Builder<'_> {
    /// Returns where a scalar ends: blank lines below a block scalar belong to it only if it keeps them.
    pub(super) fn scalar_end(&self, whole: &Span) -> usize {
        let text = &self.text[whole.clone()];
        let header = text.lines().next().unwrap_or_default();
        if !text.starts_with(['|', '>']) || header.contains('+') {
            return whole.end;
        }
        let trimmed = text.trim_end();
        if trimmed.len() == text.len() {
            return whole.end;
        }
        self.line_end(whole.start + trimmed.len()).min(whole.end)
    }

    pub(super) fn quote(&self, start: usize) -> Quote {
        match self.text.as_bytes().get(start) {
            Some(b'"') => Quote::Double,
            Some(b'\'') => Quote::Single,
            _ => Quote::None,
        }
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

    pub(super) fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |found| found + 1)
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

    pub(super) fn unsupported(&self, at: usize, what: &'static str) -> Error {
        let before = self.text.as_bytes().iter().take(at);
        let line = before.filter(|byte| **byte == b'\n').count() as u64 + 1;
        Error::Unsupported { line, what }
    }
}
