//! What differs between two machine configurations, and the patches that turn one into the other.
//!
//! Configurations are compared by what they mean to Talos: documents are known by `apiVersion`, `kind` and `name`,
//! wherever they stand; the order of keys, comments and the way a value is written mean nothing, and neither does an
//! empty value where an absent one is the same. Lists are compared in their order, except those whose elements have a
//! name, such as network interfaces.
//!
//! [`as_patch`] plans strategic merge patches by the rules of [`crate::patch`] and applies what it planned before it
//! returns it: a patch that does not hold is never given out.

mod changes;
mod documents;
mod json;
mod lists;
mod meaning;
mod plan;
mod strategic;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::patch::documents::{refuse_doubles, refuse_others};
use crate::yaml::{Step, Stream};
use crate::{Error, Schema};

pub use json::{DocumentPatch, as_json_patch};
pub use strategic::as_patch;

/// How a value differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// Only the second configuration has it.
    Added,
    /// Only the first configuration has it.
    Removed,
    /// Both have it, with different values.
    Changed,
}

impl std::fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
        })
    }
}

/// One difference.
#[derive(Clone, PartialEq)]
pub struct Change {
    /// The kind and name of the document, such as `VLANConfig/eth0.5`; empty for the main one.
    pub document: String,
    /// The path of the value, such as `machine.network.interfaces[interface=eth0].mtu`; empty for a whole document.
    pub path: String,
    /// The keys and positions that lead to the value, in the first configuration if that has it.
    pub steps: Vec<Step>,
    /// How it differs.
    pub kind: ChangeKind,
    /// The value of the first configuration.
    pub old: Option<Value>,
    /// The value of the second configuration.
    pub new: Option<Value>,
    /// The line of the value in the first text, or of what is nearest to it.
    pub old_line: Option<u64>,
    /// The line of the value in the second text, or of what is nearest to it.
    pub new_line: Option<u64>,
}

impl std::fmt::Debug for Change {
    /// Leaves the values out: they may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.kind, self.document, self.path)
    }
}

/// Compares two texts.
///
/// # Errors
///
/// [`Error::Side`] with what is wrong with which text.
pub fn texts(a: &str, b: &str, schema: Schema) -> Result<Vec<Change>, Error> {
    let (a, b) = parse_both(a, b)?;
    Ok(streams(&a, &b, schema))
}

/// Compares two parsed texts.
pub fn streams(a: &Stream, b: &Stream, schema: Schema) -> Vec<Change> {
    changes::all(a, b, schema)
}

/// Parses a text that is to be compared.
///
/// # Errors
///
/// [`Error::Syntax`] for a text that is not YAML, [`Error::UnknownDocument`] for one that is no configuration,
/// [`Error::DocumentTwice`] for one that says something twice.
pub fn parse(text: &str) -> Result<Stream, Error> {
    let stream = Stream::parse(text)?;
    refuse_others(&stream)?;
    refuse_doubles(&stream)?;
    Ok(stream)
}

/// Parses both texts and says which one is at fault.
fn parse_both(a: &str, b: &str) -> Result<(Stream, Stream), Error> {
    let side = |text: &str, name: &'static str| {
        parse(text).map_err(|source| Error::Side {
            side: name,
            source: Box::new(source),
        })
    };
    Ok((
        side(a, "the first configuration")?,
        side(b, "the second configuration")?,
    ))
}
