//! Where in a document of a patch the work is, and what was found on the way.

use std::borrow::Cow;

use serde_json::Value;

use super::json::{self, Operation};
use crate::schema::Schema;
use crate::yaml::{Node, Step, Stream};
use crate::{Error, Place};

/// How many problems are told one by one.
const MOST: usize = 1000;

/// A way through one document of a patch: checked, then held against the configuration.
pub(super) struct Walk<'a> {
    pub(super) schema: Schema,
    /// Whether the result has to be the official tool's in everything.
    pub(super) compat: bool,
    /// The configuration, for scalars as they are written.
    pub(super) config: &'a Stream,
    /// The patch, for scalars as they are written and for lines.
    pub(super) patch: &'a Stream,
    /// The position of the document in the patch.
    pub(super) index: usize,
    /// How messages name the document; empty for the main one.
    pub(super) document: String,
    /// The kind of the document as the table of fields has it.
    pub(super) kind: String,
    /// The operations that wrote what is read, if a JSON Patch did: lines are theirs then, and `$patch` is a key like
    /// any other.
    pub(super) operations: Option<&'a [Operation]>,
    pub(super) path: Vec<Step>,
    pub(super) problems: Vec<Error>,
    pub(super) warnings: Vec<String>,
}

impl Walk<'_> {
    /// Runs `inside` one step further down.
    pub(super) fn at<T>(
        &mut self,
        step: impl Into<Step>,
        inside: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.path.push(step.into());
        let result = inside(self);
        self.path.pop();
        result
    }

    /// Returns where the work is.
    pub(super) fn place(&self) -> Place {
        Place {
            document: self.document.clone(),
            path: path(&self.path),
            line: match self.operations {
                Some(operations) => json::line_of(operations, &self.path),
                None => self.patch.line(self.index, &self.path),
            },
        }
    }

    pub(super) fn problem(&mut self, make: impl FnOnce(Place) -> Error) {
        if is_full(&self.problems) {
            return more(&mut self.problems, 1);
        }
        let place = self.place();
        self.problems.push(make(place));
    }

    /// Returns whether so much was said already that what comes is only counted.
    pub(super) fn is_full(&self) -> bool {
        is_full(&self.problems) || self.warnings.len() >= MOST
    }

    pub(super) fn warning(&mut self, make: impl FnOnce(&Self) -> String) {
        match self.warnings.len() {
            MOST => self.warnings.push("there are more warnings".to_owned()),
            0..MOST => {
                let warning = make(self);
                self.warnings.push(warning);
            }
            _ => {}
        }
    }
}

/// Adds problems to others, up to as many as are told one by one.
pub(super) fn append(problems: &mut Vec<Error>, others: impl IntoIterator<Item = Error>) {
    for other in others {
        match other {
            Error::MoreProblems { count } => more(problems, count),
            _ if is_full(problems) => more(problems, 1),
            other => problems.push(other),
        }
    }
}

fn is_full(problems: &[Error]) -> bool {
    problems.len() >= MOST
}

/// Counts problems that are not told.
fn more(problems: &mut Vec<Error>, number: usize) {
    match problems.last_mut() {
        Some(Error::MoreProblems { count }) => *count += number,
        _ => problems.push(Error::MoreProblems { count: number }),
    }
}

/// Writes a path; positions stand in brackets.
fn path(steps: &[Step]) -> String {
    let mut out = String::new();
    for step in steps {
        match step {
            Step::Key(key) => {
                if !out.is_empty() && !key.starts_with('[') {
                    out.push('.');
                }
                out.push_str(key);
            }
            Step::Index(index) => out.push_str(&format!("[{index}]")),
        }
    }
    out
}

/// Returns a scalar as the text that a field for text gets: not what it reads as, but what is written.
pub(super) fn text<'n>(source: &'n Stream, node: &'n Node) -> Option<Cow<'n, str>> {
    match node.as_scalar()? {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        other => Some(match source.written(node) {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(other.to_string()),
        }),
    }
}

/// Names the type of a value without showing it.
pub(super) fn found(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}
