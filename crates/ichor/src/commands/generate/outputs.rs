//! Where generated texts go: files, none of which is touched before all are prepared, or standard output.

use std::path::{Path, PathBuf};

use super::{Generated, GeneratedFile};
use crate::error::{Code, Error, Outcome};
use crate::files::{self, Access, Existing, is_descriptor, is_stdout};
use crate::session::Session;

/// One text on its way.
pub(super) struct Output {
    pub(super) kind: &'static str,
    /// The file, or `-` for standard output.
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl Output {
    pub(super) fn new(
        kind: &'static str,
        path: impl Into<PathBuf>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            path: path.into(),
            text: text.into(),
        }
    }
}

/// Refuses to write to a file that is also read: a key or a bundle would be lost.
pub(super) fn check_inputs<'a>(
    paths: &[PathBuf],
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<(), Error> {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let inputs: Vec<PathBuf> = inputs
        .into_iter()
        .filter(|path| !is_stdout(path))
        .map(real)
        .collect();
    let shared = paths
        .iter()
        .find(|path| !is_stdout(path) && inputs.contains(&real(path)));
    match shared {
        None => Ok(()),
        Some(path) => Err(Error::new(
            Code::Usage,
            format!("file {path:?} would be read and then overwritten"),
        )
        .hint("choose another name; nothing was written")),
    }
}

/// Refuses folders, and files that exist already, all of them at once, before anything is made.
pub(super) fn check(paths: &[PathBuf], force: bool) -> Result<(), Error> {
    let named = |is_named: fn(&Path) -> bool| -> Vec<&Path> {
        let paths = paths.iter().map(PathBuf::as_path);
        paths.filter(|path| is_named(path)).collect()
    };
    if let Some(folder) = named(Path::is_dir).first() {
        let message = format!("{:?} is a folder, not a file", folder.display().to_string());
        return Err(Error::new(Code::Invalid, message)
            .hint("choose another name for the file; nothing was written"));
    }
    let taken = named(is_taken);
    match force || taken.is_empty() {
        true => Ok(()),
        false => Err(files::taken(&taken)),
    }
}

/// Writes all texts, readable for the user only, or the only one to standard output.
pub(super) fn write(
    outputs: Vec<Output>,
    force: bool,
    session: &mut Session,
) -> Result<Outcome, Error> {
    let paths: Vec<PathBuf> = outputs.iter().map(|output| output.path.clone()).collect();
    check(&paths, force)?;
    let files: Vec<(&Path, &[u8])> = outputs
        .iter()
        .filter(|output| !is_stdout(&output.path))
        .map(|output| (output.path.as_path(), output.text.as_bytes()))
        .collect();
    let existing = match force {
        true => Existing::Replace,
        false => Existing::Keep,
    };
    files::write_all(&files, Access::Owner, existing, session)?;
    for (path, _) in &files {
        session.output.note(&format!("Created {}", path.display()));
    }
    let files = outputs.into_iter().map(|output| {
        let to_stdout = is_stdout(&output.path);
        GeneratedFile {
            kind: output.kind,
            content: to_stdout.then_some(output.text),
            path: (!to_stdout).then_some(output.path),
        }
    });
    let document = Generated {
        files: files.collect(),
    };
    say(&document, session)?;
    Ok(Outcome::Done)
}

/// Prints the document, or the text that is for standard output.
fn say(document: &Generated, session: &mut Session) -> Result<(), Error> {
    let output = &mut session.output;
    let content = document
        .files
        .iter()
        .find_map(|file| file.content.as_deref());
    let Some(content) = content else {
        output.data(document)?;
        return Ok(());
    };
    if output.format().is_json() {
        // Whoever asks for the text on standard output wants it with its secrets.
        return output.credentials_json(document);
    }
    output.credentials(content, "a file, a pipe")
}

/// Makes a file's name of what a user calls a thing.
pub(super) fn file_name(flag: &str, name: &str, ending: &str) -> Result<PathBuf, Error> {
    let is_plain = !name.is_empty()
        && !matches!(name, "." | "..")
        && !name.contains(['/', '\\'])
        && !name.chars().any(char::is_control);
    match is_plain {
        true => Ok(PathBuf::from(format!("{name}{ending}"))),
        false => Err(Error::new(
            Code::Usage,
            format!("--{flag} {name:?} cannot be the name of a file"),
        )
        .hint(
            "files are written to the current folder; the name must not be empty or have a slash",
        )),
    }
}

/// Tells whether a file is there that would be replaced; what is no file, such as a pipe, is written into.
fn is_taken(path: &Path) -> bool {
    !is_stdout(path) && !is_descriptor(path) && path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_lead_out_of_the_folder() {
        let made = file_name("organization", "my org", ".crt").unwrap();
        assert_eq!(made, Path::new("my org.crt"));
        for name in ["", ".", "..", "a/b", "/a", "a\\b", "a\nb"] {
            let error = file_name("organization", name, ".crt").unwrap_err();
            assert_eq!(error.code(), Code::Usage, "{name}");
        }
    }
}
