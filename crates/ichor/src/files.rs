//! Files on the user's machine: read with the file's name in the error, written atomically.

mod lock;
mod placed;
mod set;
mod stream;

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use talos_config::mask;

use crate::error::{Code, Error};

pub(crate) use self::lock::{Protocol, lock};
pub(crate) use self::placed::{Existing, taken};
pub(crate) use self::set::write_all;

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
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]
        .iter()
        .any(|name| path == Path::new(name))
}

/// How the names of temporary files go on after the name of the file that they become.
const TEMPORARY: &str = "ichor-";

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
///
/// A run that is killed leaves the temporary file. Other runs cannot know that it is not in use; [`remove`] takes it away
/// where a lock tells.
pub(crate) fn write(path: &Path, content: &[u8], access: Access) -> Result<(), Error> {
    let write = || match Place::of(path)? {
        Place::Stream(target) => send(&target, content),
        Place::File(target) => {
            make_folder(folder_of(&target), access)?;
            let mut temporary = make_file(&target, TEMPORARY, access)?;
            temporary.write_all(content)?;
            temporary.as_file().sync_all()?;
            temporary.persist(&target).map_err(|error| error.error)?;
            sync(folder_of(&target));
            Ok(())
        }
    };
    write().map_err(|error| unwritable(path, &error))
}

/// Refuses what a flag names if it is not, and cannot become, a regular file: for files that are written again and again.
pub(crate) fn regular(path: &Path, flag: &str) -> Result<(), Error> {
    let is_fit = match std::fs::metadata(path) {
        Ok(existing) => existing.is_file(),
        Err(_) => !is_stdout(path),
    };
    match is_fit {
        true => Ok(()),
        false => {
            let message = format!("{flag} {} is no regular file", path.display());
            Err(Error::new(Code::Usage, message).hint("name a file: it is written several times"))
        }
    }
}

/// Removes a file whose lock the caller holds, and what killed runs left of it: nobody is writing it now.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    /// Random letters at the end of the name of a temporary file.
    const LETTERS: usize = 6;
    let failed = |path: &Path, error: &std::io::Error| {
        let message = format!("failed to remove {}", path.display());
        Error::new(Code::Failed, message).caused_by(error)
    };
    let begin = placed::prefix(path, TEMPORARY).len();
    for left in set::leftovers(path, TEMPORARY) {
        let is_temporary = left
            .file_name()
            .is_some_and(|name| name.len() == begin + LETTERS);
        if is_temporary {
            std::fs::remove_file(&left).map_err(|error| failed(&left, &error))?;
        }
    }
    std::fs::remove_file(path).map_err(|error| failed(path, &error))
}

/// Where the content of a file goes.
enum Place {
    /// A regular file, which is there or not: links are followed.
    File(PathBuf),
    /// What is written into as it is.
    Stream(PathBuf),
}

impl Place {
    fn of(path: &Path) -> std::io::Result<Self> {
        if is_descriptor(path) {
            return Ok(Self::Stream(path.to_owned()));
        }
        match std::fs::metadata(path) {
            Ok(existing) if existing.is_dir() => Err(ErrorKind::IsADirectory.into()),
            Ok(existing) if !existing.is_file() => match unfit(existing.file_type()) {
                Some(reason) => Err(std::io::Error::new(ErrorKind::InvalidInput, reason)),
                None => Ok(Self::Stream(path.to_owned())),
            },
            _ => behind_links(path).map(Self::File),
        }
    }
}

/// Returns whether a path is something that the process has open already, such as `/dev/fd/63`; such a file has no name
/// that another one could take over.
pub(crate) fn is_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stderr")
        || ["/dev/fd", "/proc/self/fd"]
            .iter()
            .any(|folder| path.parent() == Some(Path::new(folder)))
}

/// Says why something that is no file cannot be written to.
#[cfg(unix)]
fn unfit(kind: std::fs::FileType) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt;
    if kind.is_socket() {
        return Some("it is a socket");
    }
    kind.is_block_device().then_some("it is a disk")
}

#[cfg(not(unix))]
fn unfit(_: std::fs::FileType) -> Option<&'static str> {
    None
}

/// Writes into what is no file, after what others write into it.
fn send(target: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().append(true).open(target)?;
    file.write_all(content)
}

/// Sees to it that a rename survives a power cut, where the file system can do that.
fn sync(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
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

/// Makes a temporary file beside the target, with the mode that the target is to have.
#[cfg(unix)]
fn make_file(
    target: &Path,
    purpose: &str,
    access: Access,
) -> std::io::Result<tempfile::NamedTempFile> {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    let folder = folder_of(target);
    let existing = match access {
        Access::Owner => Some(0o600),
        Access::Everyone => std::fs::metadata(target)
            .ok()
            .map(|existing| existing.permissions().mode() & 0o777),
    };
    let prefix = placed::prefix(target, purpose);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix);
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
    target: &Path,
    purpose: &str,
    _access: Access,
) -> std::io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new()
        .prefix(&placed::prefix(target, purpose))
        .tempfile_in(folder_of(target))
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
    fn what_a_killed_run_left_goes_with_the_file_and_a_lock_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let names = [
            "state",
            ".state.ichor-dK6r2J",
            ".state.ichor-lock",
            ".other.ichor-dK6r2J",
        ];
        for name in names {
            std::fs::write(path(name), "").unwrap();
        }
        remove(&path("state")).unwrap();
        let left = names.map(|name| path(name).exists());
        assert_eq!(left, [false, false, true, true]);
    }

    #[test]
    fn only_regular_files_are_written_again_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let check = |path: &Path, fine: bool| {
            assert_eq!(regular(path, "--state").is_ok(), fine, "{path:?}");
        };
        check(&folder.path().join("new"), true);
        check(folder.path(), false);
        check(Path::new("/dev/null"), false);
        check(Path::new("-"), false);
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
    fn what_cannot_hold_a_text_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, reason) in [
            (folder.path(), "is a directory"),
            (&socket, "it is a socket"),
        ] {
            let error = write(path, b"one", Access::Owner).unwrap_err();
            let expected = format!("failed to write {}", path.display());
            assert_eq!(error.to_string(), expected);
            assert_eq!(error.details().causes, [reason]);
        }
    }

    #[test]
    fn what_the_process_has_open_is_not_replaced() {
        for path in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
            assert!(is_stdout(Path::new(path)), "{path}");
        }
        for path in ["/dev/stderr", "/dev/fd/63", "/proc/self/fd/2"] {
            assert!(is_descriptor(Path::new(path)), "{path}");
            assert!(!is_stdout(Path::new(path)), "{path}");
        }
        assert!(!is_descriptor(Path::new("/dev/full")) && !is_descriptor(Path::new("dev/fd/1")));
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
