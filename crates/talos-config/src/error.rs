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

    /// A patch has several problems, each of which stands alone.
    #[error("{} problems{}", number_of(problems), one_a_line(problems))]
    Problems {
        /// The problems in their order.
        problems: Vec<Self>,
    },

    /// There are more problems than are told one by one.
    #[error("and {count} more")]
    MoreProblems {
        /// How many.
        count: usize,
    },

    /// An operation of a JSON Patch is incomplete or unknown.
    #[error("{}operation {number} of the JSON Patch: {reason}", at_line(*line))]
    Operation {
        /// The operation, counted from 1.
        number: usize,
        /// What is wrong with it.
        reason: String,
        /// The line of the patch, counted from 1.
        line: Option<u64>,
    },

    /// Operations of a JSON Patch touch what one that failed was to change, so that nothing can be said of them.
    #[error(
        "not judged, since they touch what a failed one was to change: {}",
        listed("operation", "operations", operations)
    )]
    NotJudged {
        /// The operations, counted from 1.
        operations: Vec<usize>,
    },

    /// Patches change what one that failed was to change, so that nothing can be said of them.
    #[error(
        "not judged, since they change what a failed one was to change: {}",
        listed("patch", "patches", patches)
    )]
    PatchesNotJudged {
        /// The patches, counted from 1.
        patches: Vec<usize>,
    },

    /// A JSON Patch takes, replaces or adds at a place that is not there.
    #[error("{}operation {number} of the JSON Patch: `{op}` finds nothing at `{}` of {}", at_line(place.line), place.path, place.document_name())]
    MissingPath {
        /// The operation, counted from 1.
        number: usize,
        /// Its name.
        op: &'static str,
        /// The document and the JSON pointer.
        place: Place,
    },

    /// A `test` of a JSON Patch does not hold.
    #[error("{}operation {number} of the JSON Patch: `test` finds another value at `{}` of {}", at_line(place.line), place.path, place.document_name())]
    TestFailed {
        /// The operation, counted from 1.
        number: usize,
        /// The document and the JSON pointer.
        place: Place,
    },

    /// A configuration of several documents has no main one for a JSON Patch to change.
    #[error(
        "a JSON Patch changes the main document, which this configuration of {count} documents lacks"
    )]
    NoMainDocument {
        /// How many documents there are.
        count: usize,
    },

    /// The official tool has no JSON Patch for a configuration of several documents.
    #[error("the official tool refuses a JSON Patch on a configuration of {count} documents")]
    SeveralDocuments {
        /// How many documents there are.
        count: usize,
    },

    /// The document that was chosen for a JSON Patch cannot be told.
    #[error("no document `{wanted}` to patch; there are {}", there.join(", "))]
    NotChosen {
        /// What was asked for.
        wanted: String,
        /// The documents there are.
        there: Vec<String>,
    },

    /// A document stands twice in a configuration, so that no patch can tell which is meant.
    #[error("{document} stands twice in the configuration, on lines {first} and {second}")]
    DocumentTwice {
        /// The document.
        document: String,
        /// The line of the first one, counted from 1.
        first: u64,
        /// The line of the second one, counted from 1.
        second: u64,
    },

    /// A patched configuration has two documents of which Talos accepts one only.
    #[error("{}document {document} conflicts with {other}", at_line(*line))]
    Conflict {
        /// The document that came with the patch.
        document: String,
        /// The one that was there.
        other: String,
        /// The line of the patch, counted from 1.
        line: Option<u64>,
    },

    /// The configuration itself is none that the official tool reads.
    #[error("the configuration")]
    InConfiguration {
        /// What is wrong with it.
        source: Box<Self>,
    },

    /// A strategic patch names a field that the Talos version does not have.
    #[error("{place}: no such field in Talos {version}{}", since(*newer))]
    UnknownField {
        /// The field.
        place: Place,
        /// The Talos version whose fields were searched.
        version: &'static str,
        /// A version that has the field.
        newer: Option<&'static str>,
    },

    /// A strategic patch has a document of a kind that the Talos version does not have.
    #[error("{}document {document}: no such kind in Talos {version}{}", at_line(*line), since(*newer))]
    UnknownKind {
        /// The document.
        document: String,
        /// The Talos version whose kinds were searched.
        version: &'static str,
        /// A version that has the kind.
        newer: Option<&'static str>,
        /// The line of the patch, counted from 1.
        line: Option<u64>,
    },

    /// A document of a patch cannot be told.
    #[error("{}{reason}", at_line(*line))]
    UnknownDocument {
        /// What is missing.
        reason: String,
        /// The line of the patch, counted from 1.
        line: Option<u64>,
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

    /// A patch has a value that the field cannot hold.
    #[error("{place}: {reason}")]
    BadValue {
        /// The field.
        place: Place,
        /// What the value is not.
        reason: String,
    },

    /// The official tool fails to merge a value.
    #[error("{place}: {reason}")]
    Unmergeable {
        /// The field.
        place: Place,
        /// What it fails at.
        reason: &'static str,
    },

    /// A `$patch: delete` finds nothing to delete.
    #[error("{place}: nothing to delete")]
    NothingToDelete {
        /// The field or element.
        place: Place,
    },

    /// A `$patch: delete` of, or in, a document that the configuration does not have.
    #[error("{}document {document}: nothing to delete, the configuration has no such document", at_line(*line))]
    NoDocument {
        /// The document.
        document: String,
        /// The line of the patch, counted from 1.
        line: Option<u64>,
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

impl Error {
    /// Returns whether it is, or one of several problems is, a kind or field that the Talos version does not have.
    pub fn is_unknown(&self) -> bool {
        match self {
            Self::UnknownKind { .. } | Self::UnknownField { .. } => true,
            Self::InPatch { source, .. } => source.is_unknown(),
            Self::Problems { problems } => problems.iter().any(Self::is_unknown),
            _ => false,
        }
    }
}

/// A place in a machine configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The kind and name of the document; empty for the main one.
    pub document: String,
    /// The path of the field, such as `cluster.apiServer.certSANs`.
    pub path: String,
    /// The line of the text that names the place, counted from 1, if there is one.
    pub line: Option<u64>,
}

impl Place {
    /// Returns how a sentence names the document.
    fn document_name(&self) -> &str {
        match self.document.as_str() {
            "" => "the main document",
            document => document,
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&at_line(self.line))?;
        match (self.document.is_empty(), self.path.is_empty()) {
            (true, true) => f.write_str("the main document"),
            (true, false) => f.write_str(&self.path),
            (false, true) => f.write_str(&self.document),
            (false, false) => write!(f, "{}: {}", self.document, self.path),
        }
    }
}

/// Says on which line something stands, in front of what is wrong with it.
fn at_line(line: Option<u64>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: "))
}

/// Names things by their numbers, not too many of them.
fn listed(one: &str, several: &str, numbers: &[usize]) -> String {
    const MOST: usize = 20;
    let told = numbers.iter().take(MOST);
    let told: Vec<String> = told.map(ToString::to_string).collect();
    let noun = match numbers {
        [_] => one,
        _ => several,
    };
    match numbers.len().saturating_sub(MOST) {
        0 => format!("{noun} {}", told.join(", ")),
        more => format!("{noun} {} and {more} more", told.join(", ")),
    }
}

/// Counts problems, those that are not told included.
fn number_of(problems: &[Error]) -> usize {
    let number = |problem: &Error| match problem {
        Error::MoreProblems { count } => *count,
        Error::InPatch { source, .. } => match &**source {
            Error::Problems { problems } => number_of(problems),
            _ => 1,
        },
        _ => 1,
    };
    problems.iter().map(number).sum()
}

/// Lists problems below the line that counts them.
fn one_a_line(problems: &[Error]) -> String {
    problems
        .iter()
        .map(|problem| match std::error::Error::source(problem) {
            Some(source) => format!(
                "\n  {problem}: {}",
                source.to_string().replace('\n', "\n  ")
            ),
            None => format!("\n  {problem}"),
        })
        .collect()
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
