//! The three standard streams as a value.

use std::io::{IsTerminal, Read, Write};

/// The streams of a run and what is known about them.
pub struct Io {
    /// Where input is read from.
    pub stdin: Box<dyn Read + Send>,
    /// Where results go.
    pub stdout: Box<dyn Write + Send>,
    /// Where progress, warnings and errors go.
    pub stderr: Box<dyn Write + Send>,
    /// Whether a person types the input.
    pub stdin_is_terminal: bool,
    /// Whether a person reads the results.
    pub stdout_is_terminal: bool,
    /// Whether a person reads progress and errors.
    pub stderr_is_terminal: bool,
}

impl Io {
    /// Takes the streams of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self {
            stdin_is_terminal: std::io::stdin().is_terminal(),
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
            stdin: Box::new(std::io::stdin()),
            stdout: Box::new(std::io::stdout()),
            stderr: Box::new(std::io::stderr()),
        }
    }
}

impl std::fmt::Debug for Io {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Io")
            .field("stdin_is_terminal", &self.stdin_is_terminal)
            .field("stdout_is_terminal", &self.stdout_is_terminal)
            .field("stderr_is_terminal", &self.stderr_is_terminal)
            .finish_non_exhaustive()
    }
}
