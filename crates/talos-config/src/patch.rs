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
mod judge;
mod merge;
mod names;
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
    /// A text that was not looked at yet.
    Unread(String),
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

    /// Takes a text as a patch without looking at it: what is wrong with it is told when it is applied.
    ///
    /// So it is told together with what is wrong with other patches.
    pub fn unread(text: impl Into<String>) -> Self {
        Self(Form::Unread(text.into()))
    }

    /// Makes a strategic merge patch of one document.
    pub fn strategic(document: Value) -> Self {
        Self(Form::Strategic(Arc::new(Stream::from(document))))
    }

    /// Returns whether this is a JSON Patch.
    pub fn is_json(&self) -> bool {
        matches!(self.0, Form::Json(_))
    }

    /// Returns whether this is a text that was not looked at yet.
    pub fn is_unread(&self) -> bool {
        matches!(self.0, Form::Unread(_))
    }

    /// Returns the Talos version whose installer the patch puts into a configuration.
    fn installed(&self) -> Option<String> {
        match &self.0 {
            Form::Strategic(stream) => Schema::installed(stream.roots()).map(str::to_owned),
            Form::Json(operations) => json::installed(operations).map(str::to_owned),
            Form::Unread(text) => Self::parse(text).ok()?.installed(),
        }
    }

    /// Applies the patch; a part of it may be applied when something is wrong with another.
    fn apply(
        &self,
        stream: &mut Stream,
        settings: &Settings,
        warnings: &mut Vec<String>,
    ) -> Result<(), Vec<Error>> {
        if self.says_nothing(settings.compat) {
            warnings.push("it says nothing, and changes nothing".to_owned());
            return Ok(());
        }
        match &self.0 {
            Form::Strategic(patch) => strategic::apply(stream, patch, settings, warnings),
            Form::Json(operations) => json::apply(stream, operations, settings, warnings),
            Form::Unread(text) => {
                let patch = Self::parse(text).map_err(|error| vec![error])?;
                patch.apply(stream, settings, warnings)
            }
        }
    }

    /// Returns whether the patch has no document or operation; one of an empty mapping is refused by the official tool.
    fn says_nothing(&self, compat: bool) -> bool {
        match &self.0 {
            Form::Strategic(stream) => stream
                .roots()
                .all(|root| root.is_null() || (!compat && documents::is_nothing(root, false))),
            Form::Json(operations) => operations.is_empty(),
            Form::Unread(_) => false,
        }
    }
}

impl std::fmt::Debug for Patch {
    /// Tells the form only: values may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Form::Strategic(stream) => {
                write!(f, "strategic merge patch of {} documents", stream.len())
            }
            Form::Unread(_) => f.write_str("patch that was not read yet"),
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
/// What is wrong with several patches is told together, as [`Error::Problems`] of an [`Error::InPatch`] each: those after
/// one that failed are judged too, as far as they do not change the same documents.
///
/// # Errors
///
/// As [`apply`], and [`Error::NotChosen`] if the chosen document is not there.
pub fn apply_with(config: &str, patches: &[Patch], options: &Options) -> Result<Patched, Error> {
    let mut stream = Stream::parse(config)?;
    documents::refuse_others(&stream)?;
    documents::refuse_doubles(&stream)?;
    let settings = Settings {
        schema: options
            .schema
            .unwrap_or_else(|| schema_of(&stream, patches)),
        compat: options.compat,
        document: options.document.clone(),
        strict: options.strict,
    };
    let mut warnings = Vec::new();
    for (index, patch) in patches.iter().enumerate() {
        let mut told = Vec::new();
        if let Err(problems) = patch.apply(&mut stream, &settings, &mut told) {
            let first = (index, problems);
            return Err(together(judge::rest(config, patches, &settings, first)));
        }
        warnings.extend(told.into_iter().map(|warning| match patches {
            [_] => warning,
            _ => format!("patch {}: {warning}", index + 1),
        }));
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

/// Returns the fields of the newer of two Talos versions: that whose installer the configuration names, and that of the
/// installer that a patch puts in its place.
fn schema_of(config: &Stream, patches: &[Patch]) -> Schema {
    let installed = Schema::installed(config.roots()).map(str::to_owned);
    let versions: Vec<String> = installed
        .into_iter()
        .chain(patches.iter().filter_map(Patch::installed))
        .collect();
    Schema::for_newest_of(versions.iter().map(String::as_str)).unwrap_or_else(Schema::newest)
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
