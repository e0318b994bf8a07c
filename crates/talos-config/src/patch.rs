//! Patches of machine configurations, in the two forms that Talos knows.
//!
//! A strategic merge patch is a piece of configuration that is merged document by document, field by field; what merges
//! how comes from the table behind [`Schema`]. A JSON Patch (RFC 6902) is a list of operations on the main document.
//! Both are applied to the lossless tree: lines that a patch does not touch stay as they are.

mod check;
mod conflicts;
mod decode;
mod delete;
pub(crate) mod documents;
mod json;
mod merge;
mod strategic;
mod url;
mod walk;
mod zero;

use std::sync::Arc;

use serde_json::Value;

use crate::yaml::{Kind, Node, Stream, read_documents};
use crate::{Error, Schema};

/// A patch, parsed but not yet held against a configuration.
#[derive(Clone)]
pub struct Patch(Form);

#[derive(Clone)]
enum Form {
    Strategic(Arc<Stream>),
    Json(Vec<json::Operation>),
}

/// How patches are applied.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The fields that a patch may have; if not given, those of the Talos version whose installer the configuration
    /// names, else of the newest version.
    pub schema: Option<Schema>,
    /// Whether the result is the official tool's of that version in everything, its defects and refusals included.
    ///
    /// Without it, a field that a patch leaves out stays as it is, a URL is replaced as a whole, and deleting a document
    /// that is not there is an error.
    pub compat: bool,
    /// The document that JSON Patches change, as `KIND` or `KIND/NAME`; the main one if not given.
    pub document: Option<String>,
    /// Whether a JSON Patch that adds what Talos does not decode is an error, instead of a warning.
    pub strict: bool,
}

impl From<Schema> for Options {
    fn from(schema: Schema) -> Self {
        Self {
            schema: Some(schema),
            ..Self::default()
        }
    }
}

/// The options once the configuration is known.
struct Settings {
    schema: Schema,
    compat: bool,
    document: Option<String>,
    strict: bool,
}

impl Settings {
    /// Returns whether a patch may not have two documents that are known by the same.
    fn refuses_doubles(&self) -> bool {
        !self.schema.several_of_one_document()
    }
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
        let stream = Stream::parse(text)?;
        let roots = stream.roots().enumerate();
        let roots: Vec<(usize, &Node)> = roots.filter(|(_, root)| !root.is_null()).collect();
        let no_patch = |reason: &str| Error::NoPatch {
            reason: reason.to_owned(),
        };
        let Some((index, root)) = roots.iter().find(|(_, root)| root.kind() != Kind::Mapping)
        else {
            return Ok(Self(Form::Strategic(Arc::new(stream))));
        };
        if roots.len() > 1 {
            return Err(no_patch("documents that are no mappings"));
        }
        match root.as_str() {
            None if root.kind() == Kind::List => {
                Ok(Self(Form::Json(json::parse(&stream, *index, root)?)))
            }
            Some(text) if !text.contains(char::is_whitespace) => {
                Err(no_patch("a single word; a file is named by `@FILE`"))
            }
            _ => Err(no_patch("a single value")),
        }
    }

    /// Makes a strategic merge patch of one document.
    pub fn strategic(document: Value) -> Self {
        Self(Form::Strategic(Arc::new(Stream::from(document))))
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
            Form::Strategic(stream) => {
                write!(f, "strategic merge patch of {} documents", stream.len())
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
/// [`Error::Syntax`] for a configuration that is not YAML, [`Error::DocumentTwice`] for one that says something twice,
/// else [`Error::InPatch`] with what is wrong in which patch: an unknown field or kind, a value of the wrong type, a
/// place that is not there. Several problems of one patch come together as [`Error::Problems`].
pub fn apply(config: &str, patches: &[Patch], schema: Schema) -> Result<Patched, Error> {
    apply_with(config, patches, &Options::from(schema))
}

/// Applies patches as [`apply`] does, with all options.
///
/// # Errors
///
/// As [`apply`], and [`Error::NotChosen`] if the chosen document is not there.
pub fn apply_with(config: &str, patches: &[Patch], options: &Options) -> Result<Patched, Error> {
    let mut stream = Stream::parse(config)?;
    documents::refuse_no_mappings(&stream)?;
    documents::refuse_doubles(&stream)?;
    let installed = || Schema::installed(stream.roots()).map(Schema::for_talos);
    let settings = Settings {
        schema: options
            .schema
            .or_else(installed)
            .unwrap_or_else(Schema::newest),
        compat: options.compat,
        document: options.document.clone(),
        strict: options.strict,
    };
    let mut warnings = Vec::new();
    for (index, patch) in patches.iter().enumerate() {
        let applied = match &patch.0 {
            Form::Strategic(patch) => {
                strategic::apply(&mut stream, patch, &settings, &mut warnings)
            }
            Form::Json(operations) => {
                json::apply(&mut stream, operations, &settings, &mut warnings)
            }
        };
        applied.map_err(|problems| Error::InPatch {
            number: index + 1,
            source: Box::new(together(problems)),
        })?;
    }
    let text = stream.to_string();
    if text != config {
        let again = read_documents(&text).map_err(|_| Error::NotReadable)?;
        let meant: Vec<&Node> = stream.roots().filter(|root| !root.is_null()).collect();
        let is_same = again.len() == meant.len()
            && meant
                .iter()
                .zip(&again)
                .all(|(root, value)| root.means(value));
        if !is_same {
            return Err(Error::NotReadable);
        }
    }
    Ok(Patched { text, warnings })
}

/// Makes one error of several.
fn together(mut problems: Vec<Error>) -> Error {
    match problems.len() {
        1 => problems.remove(0),
        _ => Error::Problems { problems },
    }
}

#[cfg(test)]
mod tests;
