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
}
