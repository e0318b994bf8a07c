//! Files on the user's machine: read with the file's name in the error, written atomically.

mod lock;

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use talos_config::mask;

use crate::error::{Code, Error};

pub(crate) use self::lock::{Protocol, lock};

/// Who may read a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Credentials: only the user (mode 0600).
    Owner,
    /// Whoever the umask lets; an existing file keeps its mode.
    Everyone,
}

impl Access {
    /// Returns who may read a file with this text.
    pub(crate) fn of(text: &str) -> Self {
        match mask::text(text) == text {
            true => Self::Everyone,
            false => Self::Owner,
        }
    }
}

/// The largest file that is read: twice what Talos takes as one message.
const LARGEST: u64 = 64 << 20;

/// Returns whether a file that is to be written is standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// How the names of temporary files begin.
const TEMPORARY: &str = ".ichor-";

/// Reads a text file.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    let unreadable = |error: std::io::Error| {
        Error::new(Code::Invalid, format!("failed to read {}", path.display())).caused_by(&error)
    };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(Error::new(
            Code::Invalid,
            format!("{} is larger than 64 MiB", path.display()),
        ));
    }
    String::from_utf8(bytes).map_err(|_| {
        Error::new(
            Code::Invalid,
            format!("{} is not UTF-8 text", path.display()),
        )
    })
}

/// Writes a file so that a reader sees the old or the new content and never a part: temporary file beside it, fsync,
/// rename. Folders that are missing are made (mode 0700 for credentials). A symbolic link stays one, and what is no
/// regular file, such as a pipe or a device, is written to as it is.
pub(crate) fn write(path: &Path, content: &[u8], access: Access) -> Result<(), Error> {
    Prepared::new(path, content, access)?.finish()
}

/// Writes several files: none of them changes before all of them could be written beside where they go.
///
/// What then still can fail is a rename, or writing into a pipe or device. The files before it stay written, and the
/// error names them.
pub(crate) fn write_all(files: &[(&Path, &[u8])], access: Access) -> Result<(), Error> {
    let prepared = files
        .iter()
        .map(|(path, content)| Prepared::new(path, content, access))
        .collect::<Result<Vec<_>, _>>()?;
    let mut written: Vec<String> = Vec::new();
    for prepared in prepared {
        let name = prepared.path.display().to_string();
        prepared.finish().map_err(|error| match &written[..] {
            [] => error,
            written => error.hint(format!("written before it failed: {}", written.join(", "))),
        })?;
        written.push(name);
    }
    Ok(())
}

/// A file whose content is on disk already, under another name.
struct Prepared<'a> {
    path: &'a Path,
    way: Way<'a>,
}

/// How a file gets its content.
enum Way<'a> {
    /// By a rename.
    Rename(tempfile::NamedTempFile, PathBuf),
    /// By writing into it.
    Stream(PathBuf, &'a [u8]),
}

impl<'a> Prepared<'a> {
    fn new(path: &'a Path, content: &'a [u8], access: Access) -> Result<Self, Error> {
        let way = Way::prepare(path, content, access).map_err(|error| unwritable(path, &error))?;
        Ok(Self { path, way })
    }

    fn finish(self) -> Result<(), Error> {
        self.way
            .finish()
            .map_err(|error| unwritable(self.path, &error))
    }
}

impl<'a> Way<'a> {
    fn prepare(path: &Path, content: &'a [u8], access: Access) -> std::io::Result<Self> {
        let target = behind_links(path)?;
        if let Ok(existing) = std::fs::metadata(&target)
            && !existing.is_file()
        {
            return match existing.is_dir() {
                true => Err(ErrorKind::IsADirectory.into()),
                false => Ok(Self::Stream(target, content)),
            };
        }
        let folder = folder_of(&target);
        make_folder(folder, access)?;
        let mut temporary = make_file(folder, &target, access)?;
        temporary.write_all(content)?;
        temporary.as_file().sync_all()?;
        Ok(Self::Rename(temporary, target))
    }

    fn finish(self) -> std::io::Result<()> {
        match self {
            Self::Stream(target, content) => OpenOptions::new()
                .write(true)
                .open(target)
                .and_then(|mut file| file.write_all(content)),
            Self::Rename(temporary, target) => {
                temporary.persist(&target).map_err(|error| error.error)?;
                // The rename itself survives a power cut only once the folder is on disk; not every file system can
                // do it.
                if let Ok(folder) = File::open(folder_of(&target)) {
                    let _ = folder.sync_all();
                }
                Ok(())
            }
        }
    }
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Code::Failed, format!("failed to write {}", path.display())).caused_by(error)
}

/// Follows symbolic links, also to a file that is not there yet.
fn behind_links(path: &Path) -> std::io::Result<PathBuf> {
    /// What Linux follows at most.
    const MOST: usize = 40;
    let mut target = path.to_owned();
    for _ in 0..MOST {
        match std::fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(std::io::Error::other("too many symbolic links"))
}

#[cfg(unix)]
fn make_folder(folder: &Path, access: Access) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    if access == Access::Owner {
        builder.mode(0o700);
    }
    builder.create(folder)
}

#[cfg(not(unix))]
fn make_folder(folder: &Path, _access: Access) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)
}

/// Makes a temporary file with the mode that the target is to have.
#[cfg(unix)]
fn make_file(
    folder: &Path,
    target: &Path,
    access: Access,
) -> std::io::Result<tempfile::NamedTempFile> {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    let existing = match access {
        Access::Owner => Some(0o600),
        Access::Everyone => std::fs::metadata(target)
            .ok()
            .map(|existing| existing.permissions().mode() & 0o777),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    match existing {
        Some(mode) => {
            let file = builder.tempfile_in(folder)?;
            file.as_file()
                .set_permissions(Permissions::from_mode(mode))?;
            Ok(file)
        }
        // The system takes the umask off.
        None => builder
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder),
    }
}

#[cfg(not(unix))]
fn make_file(
    folder: &Path,
    _target: &Path,
    _access: Access,
) -> std::io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new()
        .prefix(TEMPORARY)
        .tempfile_in(folder)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn credentials_are_for_their_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/config");
        write(&path, b"one", Access::Owner).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
    }

    #[test]
    fn of_several_files_none_is_written_if_one_cannot_be_prepared() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        let below = one.join("a file is no folder");
        write_all(&[(&one, b"1"), (&two, b"2")], Access::Owner).unwrap();
        assert_eq!(mode(&two), 0o600);
        for bad in [below.as_path(), folder.path()] {
            let error = write_all(&[(&two, b"new"), (bad, b"new")], Access::Owner).unwrap_err();
            let expected = format!("failed to write {}", bad.display());
            assert_eq!(error.to_string(), expected);
        }
        assert_eq!(std::fs::read(&two).unwrap(), b"2");
        let names = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 2, "no temporary file is left");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_was_written_before_a_late_failure_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["one", "two", "three"].map(|name| folder.path().join(name));
        let full = Path::new("/dev/full");
        let files: [(&Path, &[u8]); 4] = [
            (&paths[0], b"1"),
            (&paths[1], b"2"),
            (full, b"x"),
            (&paths[2], b"3"),
        ];
        let error = write_all(&files, Access::Owner).unwrap_err();
        assert_eq!(error.to_string(), "failed to write /dev/full");
        let names = format!("{}, {}", paths[0].display(), paths[1].display());
        assert_eq!(
            error.details().hint,
            Some(format!("written before it failed: {names}"))
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        let error = write_all(&files[2..], Access::Owner).unwrap_err();
        assert_eq!(error.details().hint, None);
    }

    #[test]
    fn an_existing_file_keeps_its_mode_and_a_link_its_target() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        write(&path, b"one", Access::Everyone).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write(&link, b"two", Access::Everyone).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(mode(&path), 0o640);
        assert!(link.is_symlink());
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            2,
            "no temporary file is left"
        );
    }

    #[test]
    fn a_link_to_a_file_that_is_not_there_yet_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("sub/file"), folder.path().join("link"));
        std::os::unix::fs::symlink("sub/file", &link).unwrap();
        write(&link, b"one", Access::Owner).unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        let round = folder.path().join("round");
        std::os::unix::fs::symlink("round", &round).unwrap();
        assert!(write(&round, b"one", Access::Owner).is_err());
        assert!(round.is_symlink());
    }

    #[test]
    fn a_pipe_is_written_to_and_stays_a_pipe() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read(pipe).unwrap()
        });
        write(&pipe, b"one", Access::Owner).unwrap();
        assert_eq!(reader.join().unwrap(), b"one");
        assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
    }

    #[test]
    fn what_cannot_be_a_text_file_is_invalid_input() {
        for path in ["/", "/dev/zero"] {
            assert_eq!(read(Path::new(path)).unwrap_err().code(), Code::Invalid);
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read(Path::new("/nowhere/at/all")).unwrap_err();
        assert_eq!(error.to_string(), "failed to read /nowhere/at/all");
        assert_eq!(error.code(), Code::Invalid);
    }
}
