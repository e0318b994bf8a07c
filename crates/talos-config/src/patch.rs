//! Patches of machine configurations, in the two forms that Talos knows.
//!
//! A strategic merge patch is a piece of configuration that is merged document by document, field by field; what merges
//! how comes from the table behind [`Schema`]. A JSON Patch (RFC 6902) is a list of operations on the main document.
//! Both are applied to the lossless tree: lines that a patch does not touch stay as they are.

mod check;
mod delete;
mod json;
mod merge;
mod strategic;

use serde_json::Value;

use crate::yaml::{Stream, read_documents};
use crate::{Error, Schema};

/// A patch, parsed but not yet held against a configuration.
#[derive(Clone)]
pub struct Patch(Form);

#[derive(Clone)]
enum Form {
    Strategic(Vec<Value>),
    Json(Vec<json::Operation>),
}

/// A patched configuration.
#[derive(Clone)]
pub struct Patched {
    /// The text.
    pub text: String,
    /// What the patch did that its author may not expect, and what a newer Talos has to judge.
    pub warnings: Vec<String>,
}

impl Patch {
    /// Parses a patch of either form, in YAML or JSON.
    ///
    /// # Errors
    ///
    /// [`Error::Syntax`] for a text that is not YAML, [`Error::NoPatch`] for one that is neither form,
    /// [`Error::Operation`] for an operation that is unknown or incomplete.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut documents = read_documents(text)?;
        if documents.iter().all(Value::is_object) {
            return Ok(Self(Form::Strategic(documents)));
        }
        if documents.len() > 1 {
            return Err(Error::NoPatch {
                reason: "documents that are no mappings".to_owned(),
            });
        }
        match documents.pop() {
            Some(Value::Array(items)) => Ok(Self(Form::Json(json::parse(items)?))),
            Some(Value::String(text)) if !text.contains(char::is_whitespace) => {
                Err(Error::NoPatch {
                    reason: "a single word; a file is named by `@FILE`".to_owned(),
                })
            }
            _ => Err(Error::NoPatch {
                reason: "a single value".to_owned(),
            }),
        }
    }

    /// Makes a strategic merge patch of one document.
    pub fn strategic(document: Value) -> Self {
        Self(Form::Strategic(vec![document]))
    }

    /// Returns whether this is a JSON Patch.
    pub fn is_json(&self) -> bool {
        matches!(self.0, Form::Json(_))
    }
}

impl std::fmt::Debug for Patch {
    /// Tells the form only: values may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Form::Strategic(documents) => {
                write!(f, "strategic merge patch of {} documents", documents.len())
            }
            Form::Json(operations) => write!(f, "JSON Patch of {} operations", operations.len()),
        }
    }
}

impl std::fmt::Debug for Patched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Patched")
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

/// Applies patches to a machine configuration, each to the result of the one before.
///
/// # Errors
///
/// [`Error::Syntax`] for a configuration that is not YAML, else [`Error::InPatch`] with what is wrong in which patch: an
/// unknown field or kind, a value of the wrong type, a place that is not there.
pub fn apply(config: &str, patches: &[Patch], schema: Schema) -> Result<Patched, Error> {
    let mut stream = Stream::parse(config)?;
    let mut warnings = Vec::new();
    for (index, patch) in patches.iter().enumerate() {
        let applied = match &patch.0 {
            Form::Strategic(documents) => {
                strategic::apply(&mut stream, documents, schema, &mut warnings)
            }
            Form::Json(operations) => json::apply(&mut stream, operations),
        };
        applied.map_err(|source| Error::InPatch {
            number: index + 1,
            source: Box::new(source),
        })?;
    }
    let text = stream.to_string();
    if text != config {
        let again = read_documents(&text).map_err(|_| Error::NotReadable)?;
        let meant = stream.roots().filter(|root| !root.is_null());
        if again.len() != stream.roots().filter(|root| !root.is_null()).count()
            || !meant.zip(&again).all(|(root, value)| root.means(value))
        {
            return Err(Error::NotReadable);
        }
    }
    Ok(Patched { text, warnings })
}

#[cfg(test)]
mod tests;
