//! Several files that are written together: all of them, or none.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempPath};

use super::{Access, Place, Protocol, folder_of, lock, make_file, make_folder, sync, unwritable};
use crate::error::{Code, Error};
use crate::session::Session;

/// What becomes of a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It stays, and nothing is written.
    Keep,
    /// It gets the new content.
    Replace,
}

/// How the names of new contents go on after the name of their file, until they take its place.
const NEW: &str = "ichor-new-";
/// How the names of former contents go on, until all files of the set are in place.
const OLD: &str = "ichor-old-";

/// Writes several files together.
///
/// Everything is on disk, under other names, before the first file changes. When a file then cannot take its place,
/// those before it are taken back, and what was replaced is there again. Two runs never mix: they wait for each other
/// by a lock on the folder, and without it a file that must not be there is still made only if it is not. What is no
/// file, such as a pipe, comes last: it alone cannot be taken back.
///
/// A run that is killed leaves files whose names tell what they are. The next one for the same files removes those
/// with a new content if it has the lock, as nobody can be about to use them; those with a former content stay, as they
/// may be the only copy of a secret, and are told of.
pub(crate) fn write_all(
    files: &[(&Path, &[u8])],
    access: Access,
    existing: Existing,
    session: &mut Session,
) -> Result<(), Error> {
    let (mut wanted, mut streams) = (Vec::new(), Vec::new());
    for (path, content) in files {
        match Place::of(path).map_err(|error| unwritable(path, &error))? {
            Place::File(target) => wanted.push((*path, target, *content)),
            Place::Stream(target) => streams.push((*path, target, *content)),
        }
    }
    // Held until what was made in vain is gone.
    let _locks;
    let mut made = Folders::default();
    for (path, target, _) in &wanted {
        let folder = made.make(folder_of(target), access);
        folder.map_err(|error| unwritable(path, &error))?;
    }
    refuse_twins(&wanted)?;
    _locks = lock_all(&wanted, session)?;
    let mut prepared = Vec::with_capacity(wanted.len());
    for (path, target, content) in wanted {
        let ready = Ready::new(path, target, content, access);
        prepared.push(ready.map_err(|error| unwritable(path, &error))?);
    }
    let mut placed = Placed::default();
    let result = prepared
        .into_iter()
        .try_for_each(|ready| placed.put(ready, existing));
    let result = result.and_then(|()| {
        streams.iter().try_for_each(|(path, target, content)| {
            stream(path, target, content, session)?;
            placed.sent.push(path.display().to_string());
            Ok(())
        })
    });
    match result {
        Ok(()) => {
            placed.finish();
            made.0.clear();
            Ok(())
        }
        Err(error) => Err(placed.take_back(error)),
    }
}

/// Folders that were made for the files, the outer ones first; those still empty go when this is dropped.
#[derive(Default)]
struct Folders(Vec<PathBuf>);

impl Folders {
    fn make(&mut self, folder: &Path, access: Access) -> std::io::Result<()> {
        let above = folder.ancestors().filter(|path| *path != Path::new(""));
        let missing = above.take_while(|path| !path.exists());
        let first = self.0.len();
        self.0.extend(missing.map(Path::to_owned));
        self.0[first..].reverse();
        make_folder(folder, access)
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            // One with something in it is in use by now.
            let _ = std::fs::remove_dir(folder);
        }
    }
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

/// A file whose content is on disk already, under another name.
struct Ready<'a> {
    path: &'a Path,
    target: PathBuf,
    temporary: NamedTempFile,
}

impl<'a> Ready<'a> {
    fn new(
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
struct Placed {
    files: Vec<(PathBuf, Before)>,
    /// What was sent into pipes and devices.
    sent: Vec<String>,
}

/// What was there before.
enum Before {
    Nothing,
    /// The former content, under this name.
    Kept(TempPath),
}

impl Placed {
    fn put(&mut self, ready: Ready<'_>, existing: Existing) -> Result<(), Error> {
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
    fn finish(self) {
        let targets = self.files.iter().map(|(target, _)| folder_of(target));
        for folder in targets.collect::<BTreeSet<_>>() {
            sync(folder);
        }
    }

    /// Brings back what was there before, and adds to the error what could not be.
    fn take_back(self, error: Error) -> Error {
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

/// Refuses two outputs that are one file.
fn refuse_twins(wanted: &[(&Path, PathBuf, &[u8])]) -> Result<(), Error> {
    let real = |target: &Path| {
        let folder = std::fs::canonicalize(folder_of(target)).ok()?;
        Some(folder.join(target.file_name()?))
    };
    let mut seen: Vec<(PathBuf, &Path)> = Vec::new();
    for (path, target, _) in wanted {
        let real = real(target).unwrap_or_else(|| target.clone());
        if let Some((_, twin)) = seen.iter().find(|(seen, _)| *seen == real) {
            let message = format!(
                "{} and {} are the same file",
                twin.display(),
                path.display()
            );
            return Err(
                Error::new(Code::Invalid, message).hint("choose other names; nothing was written")
            );
        }
        seen.push((real, path));
    }
    Ok(())
}

/// Locks the folders of all files, always in the same order, and removes what killed runs left in them.
fn lock_all(
    wanted: &[(&Path, PathBuf, &[u8])],
    session: &mut Session,
) -> Result<Vec<lock::Lock>, Error> {
    let folder = |target: &Path| {
        let folder = folder_of(target);
        std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
    };
    let folders: BTreeSet<PathBuf> = wanted.iter().map(|(_, target, _)| folder(target)).collect();
    let mut locks = Vec::with_capacity(folders.len());
    for folder in folders {
        locks.push(lock::lock(&folder, Protocol::Folder, session)?);
    }
    let is_alone = locks.iter().all(lock::Lock::is_held);
    for (path, target, _) in wanted {
        if is_alone {
            for stale in leftovers(target, NEW) {
                // What cannot be removed does no harm.
                let _ = std::fs::remove_file(stale);
            }
        }
        for kept in leftovers(target, OLD) {
            session.output.warn(&format!(
                "a run that replaced {} was killed: {} holds what was there before",
                path.display(),
                kept.display()
            ));
        }
    }
    Ok(locks)
}

/// Finds files that killed runs left for a file.
fn leftovers(target: &Path, purpose: &str) -> Vec<PathBuf> {
    let prefix = prefix(target, purpose);
    let entries = std::fs::read_dir(folder_of(target)).into_iter().flatten();
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    let mut found: Vec<PathBuf> = names
        .filter(|name| {
            name.as_encoded_bytes()
                .starts_with(prefix.as_encoded_bytes())
        })
        .map(|name| target.with_file_name(name))
        .collect();
    found.sort();
    found
}

/// Returns how the name of a temporary file begins, which tells the file that it stands for.
pub(super) fn prefix(target: &Path, purpose: &str) -> std::ffi::OsString {
    /// What is left of a name of 255 bytes, with room for the rest.
    const MOST: usize = 200;
    let name = target.file_name().unwrap_or_default();
    let mut prefix = std::ffi::OsString::from(".");
    match name.len() > MOST {
        // Names that long are told apart by their beginning as far as it goes.
        true => prefix.extend([std::ffi::OsStr::new(
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

/// Writes into what is no file. For the reader of a pipe it waits, and says so.
#[cfg(unix)]
fn stream(path: &Path, target: &Path, content: &[u8], session: &mut Session) -> Result<(), Error> {
    use std::os::unix::fs::FileTypeExt;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;
    use tokio::net::unix::pipe;
    /// What the system says of a pipe without a reader: there is no such device.
    const NO_READER: i32 = 6;
    const PAUSE: Duration = Duration::from_millis(50);
    let is_pipe = std::fs::metadata(target).is_ok_and(|found| found.file_type().is_fifo());
    if !is_pipe {
        return super::send(target, content).map_err(|error| unwritable(path, &error));
    }
    let runtime = session.runtime()?;
    let output = &mut session.output;
    runtime.run(async {
        let mut says = true;
        let mut sender = loop {
            match pipe::OpenOptions::new().open_sender(target) {
                Ok(sender) => break sender,
                Err(error) if error.raw_os_error() == Some(NO_READER) => {
                    if std::mem::take(&mut says) {
                        let name = path.display();
                        output.note(&format!(
                            "{name} is a pipe: waiting for somebody to read it"
                        ));
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(unwritable(path, &error)),
            }
        };
        let sent = sender.write_all(content).await;
        sent.map_err(|error| unwritable(path, &error))
    })
}

#[cfg(not(unix))]
fn stream(path: &Path, target: &Path, content: &[u8], _: &mut Session) -> Result<(), Error> {
    super::send(target, content).map_err(|error| unwritable(path, &error))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

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
    fn folders_that_were_made_for_nothing_go_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mut made = Folders::default();
        for name in ["a/b/c", "a/d"] {
            made.make(&path(name), Access::Owner).unwrap();
            assert!(path(name).is_dir());
        }
        std::fs::write(path("a/d/file"), "").unwrap();
        drop(made);
        assert_eq!(names(folder.path()), ["a"]);
        assert_eq!(names(&path("a")), ["d"]);
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
