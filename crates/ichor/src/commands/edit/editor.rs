//! The text that is edited, in a file that only the user can read and that is never lost.

use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use crate::env::Env;
use crate::error::{Code, Error};
use crate::files::{self, Access};
use crate::runtime::interrupted;

/// What lines of ours at the top of the file begin with.
const MARK: &str = "# ichor: ";

/// A text being edited.
pub(super) struct Draft {
    node: String,
    path: PathBuf,
    editor: String,
    text: String,
}

impl Draft {
    /// Puts a text into a file of its own.
    pub(super) fn new(env: &Env, node: &str, text: &str) -> Result<Self, Error> {
        let editor = env
            .get("TALOS_EDITOR")
            .or_else(|| env.get("EDITOR"))
            .unwrap_or("vi")
            .to_owned();
        let file = tempfile::Builder::new()
            .prefix("ichor-machineconfig-")
            .suffix(".yaml")
            .tempfile();
        let path = file
            .and_then(|file| file.keep().map_err(Into::into))
            .map_err(|error| {
                Error::new(Code::Failed, "failed to make a file to edit").caused_by(&error)
            })?
            .1;
        Ok(Self {
            node: node.to_owned(),
            path,
            editor,
            text: text.to_owned(),
        })
    }

    /// Opens the editor and returns the text it leaves behind.
    pub(super) fn edit(&mut self, problem: Option<&Error>) -> Result<String, Error> {
        let content = format!("{}{}", self.head(problem), self.text);
        files::write(&self.path, content.as_bytes(), Access::Owner)?;
        let status = self.command().status();
        let text = files::read(&self.path).map_err(|error| self.lost(error))?;
        self.text = body(&text).to_owned();
        match status {
            Ok(status) if status.success() => Ok(self.text.clone()),
            Ok(status) if was_interrupted(status) => Err(self.lost(interrupted())),
            Ok(status) => Err(self.lost(Error::new(
                Code::Failed,
                format!("the editor `{}` ended with {status}", self.editor),
            ))),
            Err(error) => Err(self.lost(
                Error::new(
                    Code::Failed,
                    format!("failed to start the editor `{}`", self.editor),
                )
                .caused_by(&error)
                .hint("set TALOS_EDITOR or EDITOR to an editor that exists"),
            )),
        }
    }

    /// Removes the file.
    pub(super) fn discard(self) {
        // A file that is gone already is as good.
        let _ = std::fs::remove_file(&self.path);
    }

    /// Leaves the file and tells where it is.
    pub(super) fn keep(&self, error: Error) -> Error {
        self.lost(error)
    }

    fn lost(&self, error: Error) -> Error {
        error.cause(format!("the text is kept in {}", self.path.display()))
    }

    fn head(&self, problem: Option<&Error>) -> String {
        let mut lines = vec![
            format!(
                "the machine configuration of {}. Lines that begin with `{}` are removed.",
                self.node,
                MARK.trim_end()
            ),
            "An empty or unchanged text is not sent.".to_owned(),
        ];
        if let Some(error) = problem {
            lines.push("It was refused:".to_owned());
            let details = error.details();
            let texts = std::iter::once(&details.message).chain(&details.causes);
            lines.extend(
                texts
                    .flat_map(|text| text.lines())
                    .map(|line| format!("  {line}")),
            );
        }
        lines
            .into_iter()
            .map(|line| format!("{MARK}{line}\n"))
            .collect()
    }

    /// Returns the editor as a command; what the variable says may have arguments.
    #[cfg(unix)]
    fn command(&self) -> Command {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("{} \"$1\"", self.editor))
            .arg("sh")
            .arg(&self.path);
        command
    }

    #[cfg(not(unix))]
    fn command(&self) -> Command {
        let mut words = self.editor.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or("notepad"));
        command.args(words).arg(&self.path);
        command
    }
}

/// Tells whether Ctrl-C ended the editor, or the shell that ran it.
fn was_interrupted(status: ExitStatus) -> bool {
    const SHELL: i32 = 130;
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        const SIGINT: i32 = 2;
        if status.signal() == Some(SIGINT) {
            return true;
        }
    }
    status.code() == Some(SHELL)
}

/// Returns a text without the lines of ours at its top.
fn body(text: &str) -> &str {
    let mut rest = text;
    while rest.starts_with(MARK.trim_end()) {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_ours_are_removed() {
        assert_eq!(
            body("# ichor: a\n# ichor:\n# mine\nx: 1\n"),
            "# mine\nx: 1\n"
        );
        assert_eq!(body("# mine\n# ichor: a\n"), "# mine\n# ichor: a\n");
        assert_eq!(body("# ichor: a"), "");
    }
}
