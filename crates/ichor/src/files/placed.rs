//! Files that take their places one after the other, and how they are taken back.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempPath};

use super::{Access, folder_of, make_file, sync, unwritable};
use crate::error::{Code, Error};

/// What becomes of a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It stays, and nothing is written.
    Keep,
    /// It gets the new content.
    Replace,
}

/// How the names of new contents go on after the name of their file, until they take its place.
pub(super) const NEW: &str = "ichor-new-";
/// How the names of former contents go on, until all files of the set are in place.
pub(super) const OLD: &str = "ichor-old-";

/// A file whose content is on disk already, under another name.
pub(super) struct Ready<'a> {
    path: &'a Path,
    target: PathBuf,
    temporary: NamedTempFile,
}

impl<'a> Ready<'a> {
    pub(super) fn new(
        path: &'a Path,
        target: PathBuf,
        content: &[u8],
        access: Access,
    ) -> std::io::Result<Self> {
        let mut temporary = make_file(&target, NEW, access)?;
        temporary.write_all(content)?;
        temporary.as_file().sync_all()?;
        Ok(Self {
            path,
            target,
            temporary,
        })
    }
}

/// Files that have their new content, and how to take it back.
#[derive(Default)]
pub(super) struct Placed {
    files: Vec<(PathBuf, Before)>,
    /// What was sent into pipes and devices.
    pub(super) sent: Vec<String>,
}

/// What was there before.
enum Before {
    Nothing,
    /// The former content, under this name.
    Kept(TempPath),
}

impl Placed {
    pub(super) fn put(&mut self, ready: Ready<'_>, existing: Existing) -> Result<(), Error> {
        let Ready {
            path,
            target,
            temporary,
        } = ready;
        let before = match existing {
            Existing::Keep => create(temporary, &target).map(|()| Before::Nothing),
            Existing::Replace => replace(temporary, &target),
        };
        match before {
            Ok(before) => self.files.push((target, before)),
            Err(error)
                if existing == Existing::Keep && error.kind() == ErrorKind::AlreadyExists =>
            {
                return Err(taken(&[path]));
            }
            Err(error) => return Err(unwritable(path, &error)),
        }
        Ok(())
    }

    /// Forgets what was there before.
    pub(super) fn finish(self) {
        let targets = self.files.iter().map(|(target, _)| folder_of(target));
        for folder in targets.collect::<BTreeSet<_>>() {
            sync(folder);
        }
    }

    /// Brings back what was there before, and adds to the error what could not be.
    pub(super) fn take_back(self, error: Error) -> Error {
        let mut left = Vec::new();
        for (target, before) in self.files.into_iter().rev() {
            match before {
                Before::Nothing => {
                    if std::fs::remove_file(&target).is_err() {
                        left.push(format!("{} is new", target.display()));
                    }
                }
                Before::Kept(old) => {
                    let Err(failed) = old.persist(&target) else {
                        continue;
                    };
                    let old = failed.path.keep();
                    let old = old.unwrap_or_else(|error| error.path.to_path_buf());
                    left.push(format!(
                        "{} is new, and {} holds what was there before",
                        target.display(),
                        old.display()
                    ));
                }
            }
        }
        let sent = self
            .sent
            .into_iter()
            .map(|name| format!("{name} was written to"));
        left.extend(sent);
        match left.is_empty() {
            true => error,
            false => error.hint(format!("could not be taken back: {}", left.join("; "))),
        }
    }
}

/// Lets a new file take its place if nothing is there.
fn create(temporary: NamedTempFile, target: &Path) -> std::io::Result<()> {
    let Err(failed) = temporary.persist_noclobber(target) else {
        return Ok(());
    };
    if failed.error.kind() == ErrorKind::AlreadyExists {
        return Err(failed.error);
    }
    // The file system may know neither such a rename nor hard links. Whoever makes an empty file has the name.
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(target)?;
    failed
        .file
        .persist(target)
        .map(drop)
        .map_err(|failed| match std::fs::remove_file(target) {
            Ok(()) => failed.error,
            Err(error) => error,
        })
}

/// Lets a new file take its place, and keeps what was there under another name.
fn replace(temporary: NamedTempFile, target: &Path) -> std::io::Result<Before> {
    let before = match std::fs::symlink_metadata(target) {
        Err(error) if error.kind() == ErrorKind::NotFound => Before::Nothing,
        Err(error) => return Err(error),
        Ok(_) => Before::Kept(keep(target)?),
    };
    temporary.persist(target).map_err(|error| error.error)?;
    Ok(before)
}

/// Gives the content of a file a second name; the file itself stays.
fn keep(target: &Path) -> std::io::Result<TempPath> {
    let prefix = prefix(target, OLD);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix);
    let folder = folder_of(target);
    let linked = builder.make_in(folder, |path| std::fs::hard_link(target, path));
    if let Ok(kept) = linked {
        return Ok(kept.into_temp_path());
    }
    // Not every file system has hard links, and not every file may be linked to.
    let kept = builder.make_in(folder, |path| std::fs::copy(target, path).map(drop))?;
    Ok(kept.into_temp_path())
}

/// Makes the error for files that are there already.
pub(crate) fn taken(paths: &[&Path]) -> Error {
    let names: Vec<String> = paths
        .iter()
        .map(|path| format!("{:?}", path.display().to_string()))
        .collect();
    let message = match &names[..] {
        [one] => format!("file {one} already exists"),
        several => format!("files {} already exist", several.join(", ")),
    };
    Error::new(Code::Conflict, message).hint("use --force to overwrite; nothing was written")
}

/// Returns how the name of a temporary file begins, which tells the file that it stands for.
pub(super) fn prefix(target: &Path, purpose: &str) -> OsString {
    /// What is left of a name of 255 bytes, with room for the rest.
    const MOST: usize = 200;
    let name = target.file_name().unwrap_or_default();
    let mut prefix = OsString::from(".");
    match name.len() > MOST {
        // Names that long are told apart by their beginning as far as it goes.
        true => prefix.extend([OsStr::new(
            &name
                .to_string_lossy()
                .chars()
                .take(MOST / 4)
                .collect::<String>(),
        )]),
        false => prefix.push(name),
    }
    prefix.push(".");
    prefix.push(purpose);
    prefix
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::files::set::leftovers;

    fn ready<'a>(path: &'a Path, content: &[u8]) -> Ready<'a> {
        Ready::new(path, path.to_owned(), content, Access::Owner).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn failure() -> Error {
        Error::new(Code::Failed, "something later failed")
    }

    #[test]
    fn a_file_that_appears_meanwhile_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let late = ready(&path, b"ours");
        std::fs::write(&path, "theirs").unwrap();
        let error = Placed::default().put(late, Existing::Keep).unwrap_err();
        assert_eq!(error.code(), Code::Conflict);
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn what_was_written_before_a_failure_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        std::fs::write(&old, "before").unwrap();
        let mut placed = Placed::default();
        placed.put(ready(&old, b"1"), Existing::Replace).unwrap();
        placed.put(ready(&new, b"2"), Existing::Replace).unwrap();
        assert_eq!(std::fs::read(&old).unwrap(), b"1");
        let error = placed.take_back(failure());
        assert_eq!(error.details().hint, None);
        assert_eq!(std::fs::read(&old).unwrap(), b"before");
        assert_eq!(names(folder.path()), ["old"]);
    }

    #[test]
    fn nothing_is_left_of_the_former_content_in_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "before").unwrap();
        let mut placed = Placed::default();
        placed.put(ready(&path, b"1"), Existing::Replace).unwrap();
        let kept = format!(".file.{OLD}");
        assert!(names(folder.path())[0].starts_with(&kept));
        placed.finish();
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn what_cannot_be_taken_back_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        std::fs::write(&two, "before").unwrap();
        let mut placed = Placed::default();
        placed.put(ready(&one, b"1"), Existing::Replace).unwrap();
        placed.put(ready(&two, b"2"), Existing::Replace).unwrap();
        placed.sent.push("pipe".to_owned());
        for path in [&one, &two] {
            std::fs::remove_file(path).unwrap();
            std::fs::create_dir_all(path.join("below")).unwrap();
        }
        let hint = placed.take_back(failure()).details().hint.clone().unwrap();
        let kept = leftovers(&two, OLD);
        assert_eq!(
            hint,
            format!(
                "could not be taken back: {} is new, and {} holds what was there before; {} is new; pipe was written to",
                two.display(),
                kept[0].display(),
                one.display()
            )
        );
        assert_eq!(std::fs::read(&kept[0]).unwrap(), b"before");
    }

    #[test]
    fn names_of_temporary_files_tell_the_file_and_are_never_too_long() {
        let name = |text: &str| prefix(Path::new(text), NEW).into_string().unwrap();
        assert_eq!(name("a/secrets.yaml"), ".secrets.yaml.ichor-new-");
        let folder = tempfile::tempdir().unwrap();
        for letter in ["x", "\u{1f600}"] {
            let path = folder.path().join(letter.repeat(252 / letter.len()));
            let mut placed = Placed::default();
            placed.put(ready(&path, b"1"), Existing::Keep).unwrap();
            placed.put(ready(&path, b"2"), Existing::Replace).unwrap();
            placed.finish();
            assert_eq!(std::fs::read(&path).unwrap(), b"2");
        }
        assert_eq!(names(folder.path()).len(), 2);
    }
}
