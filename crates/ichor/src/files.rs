//! Files on the user's machine: read with the file's name in the error, written atomically.

mod lock;

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

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

/// Reads a text file.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    let bytes = std::fs::read(path).map_err(|error| {
        let code = if error.kind() == ErrorKind::NotFound {
            Code::Invalid
        } else {
            Code::Failed
        };
        Error::new(code, format!("failed to read {}", path.display())).caused_by(&error)
    })?;
    String::from_utf8(bytes).map_err(|_| {
        Error::new(
            Code::Invalid,
            format!("{} is not UTF-8 text", path.display()),
        )
    })
}

/// Writes a file so that a reader sees the old or the new content and never a part: temporary file beside it, fsync,
/// rename. Folders that are missing are made (mode 0700 for credentials). A symbolic link stays one.
pub(crate) fn write(path: &Path, content: &[u8], access: Access) -> Result<(), Error> {
    let problem = |error: std::io::Error| {
        Error::new(Code::Failed, format!("failed to write {}", path.display())).caused_by(&error)
    };
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    make_folder(folder, access).map_err(problem)?;
    let mut temporary = tempfile::Builder::new()
        .prefix(".ichor-")
        .tempfile_in(folder)
        .map_err(problem)?;
    temporary.write_all(content).map_err(problem)?;
    set_mode(temporary.as_file(), &target, access).map_err(problem)?;
    temporary.as_file().sync_all().map_err(problem)?;
    temporary
        .persist(&target)
        .map_err(|error| problem(error.error))?;
    // The rename itself survives a power cut only once the folder is on disk; not every file system can do it.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
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

#[cfg(unix)]
fn set_mode(file: &File, target: &Path, access: Access) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = match access {
        Access::Owner => 0o600,
        Access::Everyone => std::fs::metadata(target)
            .map_or(0o644, |existing| existing.permissions().mode() & 0o777),
    };
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_file: &File, _target: &Path, _access: Access) -> std::io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
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
    fn a_missing_file_is_named() {
        let error = read(Path::new("/nowhere/at/all")).unwrap_err();
        assert_eq!(error.to_string(), "failed to read /nowhere/at/all");
        assert_eq!(error.code(), Code::Invalid);
    }
}
