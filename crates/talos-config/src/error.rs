//! What can be wrong with a text that people hold.

/// A text that cannot be read or changed as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not YAML, or a key appears twice.
    #[error("not valid YAML at line {line}, column {column}: {message}")]
    Syntax {
        /// The line, counted from 1.
        line: u64,
        /// The column, counted from 1.
        column: u64,
        /// What is wrong there.
        message: String,
    },

    /// The text is YAML in a form that cannot be edited.
    #[error("line {line}: {what} is not supported")]
    Unsupported {
        /// The line, counted from 1.
        line: u64,
        /// The form.
        what: &'static str,
    },

    /// One document was expected.
    #[error("one YAML document expected, found {count}")]
    Documents {
        /// How many there are.
        count: usize,
    },

    /// A patch of several is at fault; the source says how.
    #[error("patch {number}")]
    InPatch {
        /// The patch, counted from 1.
        number: usize,
        /// What is wrong with it.
        source: Box<Self>,
    },

    /// The text is no patch.
    #[error("neither a strategic merge patch nor a JSON Patch: {reason}")]
    NoPatch {
        /// What was found instead.
        reason: String,
    },

    /// An operation of a JSON Patch is incomplete or unknown.
    #[error("operation {number} of the JSON Patch: {reason}")]
    Operation {
        /// The operation, counted from 1.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },

    /// A JSON Patch takes, replaces or adds at a place that is not there.
    #[error("operation {number} of the JSON Patch: `{op}` finds nothing at `{path}`")]
    MissingPath {
        /// The operation, counted from 1.
        number: usize,
        /// Its name.
        op: &'static str,
        /// The JSON pointer.
        path: String,
    },

    /// A `test` of a JSON Patch does not hold.
    #[error("operation {number} of the JSON Patch: `test` finds another value at `{path}`")]
    TestFailed {
        /// The operation, counted from 1.
        number: usize,
        /// The JSON pointer.
        path: String,
    },

    /// A configuration of several documents has no main one for a JSON Patch to change.
    #[error(
        "a JSON Patch changes the main document, which this configuration of {count} documents lacks"
    )]
    NoMainDocument {
        /// How many documents there are.
        count: usize,
    },

    /// A strategic patch names a field that the Talos version does not have.
    #[error("{place}: no such field in Talos {version}{}", since(newer.as_deref()))]
    UnknownField {
        /// The field.
        place: Place,
        /// The Talos version whose fields were searched.
        version: String,
        /// A version that has the field.
        newer: Option<String>,
    },

    /// A strategic patch has a document of a kind that the Talos version does not have.
    #[error("document {document}: no such kind in Talos {version}{}", since(newer.as_deref()))]
    UnknownKind {
        /// The document.
        document: String,
        /// The Talos version whose kinds were searched.
        version: String,
        /// A version that has the kind.
        newer: Option<String>,
    },

    /// A document of a patch cannot be told.
    #[error("{reason}")]
    UnknownDocument {
        /// What is missing.
        reason: String,
    },

    /// A patch has a value of another type than the field.
    #[error("{place}: expected {expected}, found {found}")]
    WrongType {
        /// The field.
        place: Place,
        /// What the field or the configuration holds.
        expected: &'static str,
        /// What the patch has.
        found: &'static str,
    },

    /// A `$patch: delete` finds nothing to delete.
    #[error("{place}: nothing to delete")]
    NothingToDelete {
        /// The field or element.
        place: Place,
    },

    /// A `$patch: delete` of a document that the configuration does not have.
    #[error("document {document}: nothing to delete, the configuration has no such document")]
    NoDocument {
        /// The document.
        document: String,
    },

    /// A `$patch` that cannot be carried out.
    #[error("{place}: {reason}")]
    Directive {
        /// Where it stands.
        place: Place,
        /// Why not.
        reason: &'static str,
    },

    /// Something in a configuration has no equal in the documents of a newer version.
    #[error("{}", not_movable(plan))]
    NotMovable {
        /// What would move, and what was refused.
        plan: Box<crate::migrate::Plan>,
    },

    /// One of two configurations is at fault; the source says how.
    #[error("{side}")]
    Side {
        /// Which one.
        side: &'static str,
        /// What is wrong with it.
        source: Box<Self>,
    },

    /// A configuration has two documents that are known by the same kind and name.
    #[error("{document} is there twice")]
    SameDocument {
        /// The document.
        document: String,
    },

    /// No strategic merge patch turns one configuration into the other.
    #[error("{place}: {reason}")]
    NoStrategicPatch {
        /// Where it fails.
        place: Place,
        /// Why.
        reason: &'static str,
    },

    /// No JSON Patch turns one configuration into the other, because their documents are not the same.
    #[error(
        "a JSON Patch changes a document and can neither add nor remove one{}",
        documents_of(first, second)
    )]
    NoJsonPatch {
        /// The documents that only the first configuration has.
        first: Vec<String>,
        /// The documents that only the second configuration has.
        second: Vec<String>,
    },

    /// The patched text would not read as what the patch made.
    #[error("the patched configuration does not read back as intended; nothing was changed")]
    NotReadable,
}

/// A place in a machine configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The kind and name of the document; empty for the main one.
    pub document: String,
    /// The path of the field, such as `cluster.apiServer.certSANs`.
    pub path: String,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.document.is_empty(), self.path.is_empty()) {
            (true, true) => f.write_str("the main document"),
            (true, false) => f.write_str(&self.path),
            (false, true) => f.write_str(&self.document),
            (false, false) => write!(f, "{}: {}", self.document, self.path),
        }
    }
}

/// Says which version has what this one lacks.
fn since(newer: Option<&str>) -> String {
    newer.map_or_else(String::new, |version| format!(", Talos {version} has it"))
}

/// Says what cannot be moved, one field a line.
fn not_movable(plan: &crate::migrate::Plan) -> String {
    let lines: Vec<String> = plan.refusals.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// Says which documents only one of two configurations has.
fn documents_of(first: &[String], second: &[String]) -> String {
    let only = |side: &str, documents: &[String]| match documents {
        [] => String::new(),
        documents => format!(
            "; only the {side} configuration has {}",
            documents.join(", ")
        ),
    };
    format!("{}{}", only("first", first), only("second", second))
}
