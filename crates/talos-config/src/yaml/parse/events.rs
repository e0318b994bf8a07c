//! The events of the parser, counted so that no text takes more memory than its size allows.

use std::borrow::Cow;
use std::sync::Arc;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, StrInput, Tag};

use crate::Error;
use crate::yaml::layout::Span;

/// What the parser tells of a value or of its end.
pub(super) enum Token<'a> {
    Scalar(Cow<'a, str>, ScalarStyle),
    Alias(usize),
    /// A list or mapping begins.
    Start {
        is_mapping: bool,
        in_flow: bool,
    },
    /// A list or mapping ends.
    End,
}

/// A token, where it stands, and the anchor and tag before it.
pub(super) struct Item<'a> {
    pub(super) token: Token<'a>,
    pub(super) span: Span,
    pub(super) anchor: Option<(usize, Arc<str>)>,
    pub(super) tag: Option<Tag>,
    /// Where the last anchor or tag stands.
    pub(super) property: Option<usize>,
}

impl Item<'_> {
    /// Returns whether nothing is written where a value could stand.
    pub(super) fn is_absent(&self) -> bool {
        self.span.is_empty() && matches!(self.token, Token::Scalar(_, ScalarStyle::Plain))
    }
}

/// A mark between documents.
pub(super) enum Mark {
    /// A document starts, with or without a line `---`.
    Start(Span),
    /// A document ends, with or without a line `...`.
    End(Span),
    /// The text ends.
    Finished,
}

pub(super) struct Events<'a> {
    parser: Parser<'a, StrInput<'a>>,
    depth: usize,
    values: usize,
}

/// How deep lists and mappings may stand in each other.
const DEPTH: usize = 128;

/// How many values a text may hold, copies behind aliases counted.
const VALUES: usize = 250_000;

impl<'a> Events<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let options = granit_parser::options! {
            emit_comments: false,
            emit_anchor_events: true,
        };
        Self {
            parser: Parser::new_from_str_with_options(text, options),
            depth: 0,
            values: 0,
        }
    }

    /// Counts values that come in by an alias.
    pub(super) fn count(&mut self, values: usize) -> Result<(), &'static str> {
        self.values = self.values.saturating_add(values);
        match self.values > VALUES {
            true => Err("a text of more than 250,000 values, aliases followed,"),
            false => Ok(()),
        }
    }

    /// Returns the next mark between documents.
    pub(super) fn mark(&mut self) -> Result<Mark, Error> {
        loop {
            let (event, span) = match self.parser.next_event() {
                None => return Ok(Mark::Finished),
                Some(next) => next.map_err(|error| syntax(&error))?,
            };
            let span = span.byte_range().unwrap_or_default();
            match event {
                Event::DocumentStart(explicit, _) => {
                    let end = if explicit { span.end } else { span.start };
                    return Ok(Mark::Start(span.start..end));
                }
                Event::DocumentEnd => return Ok(Mark::End(span)),
                Event::StreamEnd => return Ok(Mark::Finished),
                _ => {}
            }
        }
    }

    /// Returns the next value, or the end of the list or mapping that is being read.
    pub(super) fn item(&mut self) -> Result<Item<'a>, Error> {
        loop {
            let (event, span) = self.next()?;
            let property = span.tag_start().and_then(|mark| mark.byte_offset());
            let line = span.start.line() as u64;
            let span = span.byte_range().unwrap_or_default();
            let too_much = |what| Error::Unsupported { line, what };
            let (token, id, tag) = match event {
                Event::Scalar(text, style, id, tag) => (Token::Scalar(text, style), id, tag),
                Event::Alias(id) => (Token::Alias(id), 0, None),
                Event::SequenceStart(style, id, tag) => (start(false, style), id, tag),
                Event::MappingStart(style, id, tag) => (start(true, style), id, tag),
                Event::SequenceEnd | Event::MappingEnd => (Token::End, 0, None),
                _ => continue,
            };
            match &token {
                Token::Start { .. } => self.depth += 1,
                Token::End => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            if self.depth > DEPTH {
                return Err(too_much("nesting of more than 128 levels"));
            }
            self.count(1).map_err(too_much)?;
            let mut item = Item {
                token,
                span,
                anchor: None,
                tag: tag.map(Cow::into_owned),
                property,
            };
            if id > 0 {
                self.anchor(&mut item)?;
            }
            return Ok(item);
        }
    }

    /// Reads the name of the anchor, which follows what it names.
    fn anchor(&mut self, item: &mut Item<'a>) -> Result<(), Error> {
        if let (Event::Anchor(id, name), span) = self.next()? {
            let at = span.byte_range().unwrap_or_default().start;
            item.anchor = Some((id, Arc::from(&*name)));
            item.property = item.property.max(Some(at));
        }
        Ok(())
    }

    fn next(&mut self) -> Result<(Event<'a>, granit_parser::Span), Error> {
        match self.parser.next_event() {
            Some(next) => next.map_err(|error| syntax(&error)),
            None => Ok((Event::StreamEnd, granit_parser::Span::default())),
        }
    }
}

fn start<'a>(is_mapping: bool, style: granit_parser::StructureStyle) -> Token<'a> {
    Token::Start {
        is_mapping,
        in_flow: style == granit_parser::StructureStyle::Flow,
    }
}

fn syntax(error: &ScanError) -> Error {
    let mark = error.marker();
    Error::Syntax {
        line: mark.line() as u64,
        column: mark.col() as u64 + 1,
        message: error.info(),
    }
}
