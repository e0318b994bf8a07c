//! Where nodes stood in the text they were read from.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::node::Node;

/// A range of bytes of the source text.
pub(super) type Span = Range<usize>;

/// The text a stream was read from and the habits of whoever wrote it.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) text: Arc<str>,
    pub(super) style: Style,
    /// Where lines start, once somebody asked.
    lines: OnceLock<Vec<usize>>,
}

impl Source {
    pub(super) fn new(text: &str, style: Style) -> Self {
        Self {
            text: Arc::from(text),
            style,
            lines: OnceLock::new(),
        }
    }

    /// Returns the line of a place, counted from 1.
    pub(super) fn line(&self, at: usize) -> u64 {
        let lines = self.lines.get_or_init(|| {
            let breaks = self.text.bytes().enumerate();
            let starts = breaks
                .filter(|(_, byte)| *byte == b'\n')
                .map(|(at, _)| at + 1);
            std::iter::once(0).chain(starts).collect()
        });
        lines.partition_point(|start| *start <= at) as u64
    }

    /// Returns the source of what stands in no text.
    pub(super) fn empty() -> Self {
        Self::new(
            "",
            Style {
                step: 4,
                list: 4,
                crlf: false,
            },
        )
    }
}

/// The habits that new content follows.
#[derive(Clone, Copy)]
pub(super) struct Style {
    /// Columns by which a nested mapping is indented.
    pub(super) step: usize,
    /// Columns by which a list is indented below its key.
    pub(super) list: usize,
    /// Whether lines end with a carriage return too.
    pub(super) crlf: bool,
}

/// One document and the text around its root.
#[derive(Clone)]
pub(super) struct Document {
    /// Directives, `---` and comments of an empty document; absent for a new document.
    pub(super) prefix: Option<Span>,
    pub(super) root: Node,
    /// Comments below the root and `...`.
    pub(super) suffix: Span,
}

impl Document {
    pub(super) fn fresh(value: Value) -> Self {
        Self {
            prefix: None,
            root: Node::from(value),
            suffix: 0..0,
        }
    }
}

/// How a node stood in the text.
#[derive(Clone)]
pub(super) enum Form {
    /// Not read from the text, or replaced since.
    Fresh(Quote),
    /// A scalar or an alias.
    Plain(Span, Quote),
    /// A collection with one child per line or more, its children's column, and comments left by removed children.
    Block { column: usize, after: Vec<Span> },
    /// A collection in brackets: the text from the opening bracket on and before the closing one, and whether a comma
    /// stands behind the last child.
    Flow { tail: Span, comma: bool },
    /// A form that is copied while untouched and written anew once edited.
    Opaque(Span),
}

/// The quotes a string is written with where it may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    None,
    Single,
    Double,
}

/// Where a child of a collection stood: the pieces tile the text from the end of the previous child.
#[derive(Clone)]
pub(super) struct Place {
    /// Line breaks, comments and indentation above or before the child.
    pub(super) lead: Span,
    /// The key with its colon, or the dash.
    pub(super) name: Span,
    /// White space, anchors, tags and comments up to the value.
    pub(super) gap: Span,
    /// The rest of the line behind the value; in brackets, up to the comma.
    pub(super) tail: Span,
    /// The comment on the line of the key, with the white space before it.
    pub(super) comment: Option<Span>,
    /// The part of `lead` that stays when the child goes: comments that are not directly above it.
    pub(super) keep: Option<Span>,
}
