//! Locks of files that several processes change.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Access, make_folder};
use crate::error::{Code, Error};
use crate::session::Session;

/// How long another process is waited for; whoever holds a lock only reads and writes a small file.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the lock is tried meanwhile.
const PAUSE: Duration = Duration::from_millis(50);

/// How processes agree on who may change a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// That of kubectl and every other program built on client-go: whoever creates `<file>.lock` holds the lock, and
    /// removes that file in the end.
    Kubeconfig,
    /// The program's own: an advisory lock on `.<file>.ichor-lock`, which stays and ends with the process.
    Own,
    /// An advisory lock on a folder, which leaves nothing behind; not every file system has it.
    Folder,
}

/// Holds the lock of a file; released when dropped.
#[derive(Debug)]
pub(crate) enum Lock {
    /// The file whose existence is the lock.
    Created(PathBuf),
    /// The open file that is locked.
    Locked(#[expect(dead_code, reason = "the lock lasts as long as the open file")] File),
    /// There is no lock to be had.
    Absent,
}

impl Lock {
    /// Returns whether others are kept out.
    pub(super) fn is_held(&self) -> bool {
        !matches!(self, Self::Absent)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Self::Created(path) = self {
            // One that somebody removed already is as good.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Takes the lock of `path`; says so if it has to wait for it, and gives up after a while.
pub(crate) fn lock(path: &Path, protocol: Protocol, session: &mut Session) -> Result<Lock, Error> {
    let place = place(path, protocol);
    let problem = |error: std::io::Error| {
        Error::new(Code::Failed, format!("failed to lock {}", path.display()))
            .caused_by(&error)
            .cause(format!("the lock is {}", place.display()))
    };
    if let Some(folder) = place
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        make_folder(folder, Access::Owner).map_err(problem)?;
    }
    if let Some(lock) = attempt(&place, protocol).map_err(problem)? {
        return Ok(lock);
    }
    let note = format!("waiting for the lock of {}", path.display());
    session.output.note(&note);
    let waiting = wait(&place, protocol, PATIENCE);
    let lock = session
        .runtime()?
        .run(async { waiting.await.map_err(problem) })?;
    lock.ok_or_else(|| held(path, &place, protocol))
}

/// Tries again and again; returns nothing if somebody else holds the lock all the time.
async fn wait(
    place: &Path,
    protocol: Protocol,
    patience: Duration,
) -> std::io::Result<Option<Lock>> {
    let start = Instant::now();
    loop {
        let lock = attempt(place, protocol)?;
        if lock.is_some() || start.elapsed() >= patience {
            return Ok(lock);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Tries once; returns nothing if somebody else holds the lock.
fn attempt(place: &Path, protocol: Protocol) -> std::io::Result<Option<Lock>> {
    match protocol {
        Protocol::Kubeconfig => {
            let created = OpenOptions::new().write(true).create_new(true).open(place);
            match created {
                Ok(_) => Ok(Some(Lock::Created(place.to_owned()))),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
                Err(error) => Err(error),
            }
        }
        Protocol::Own => {
            let file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(place)?;
            match file.try_lock() {
                Ok(()) => Ok(Some(Lock::Locked(file))),
                Err(TryLockError::WouldBlock) => Ok(None),
                Err(TryLockError::Error(error)) => Err(error),
            }
        }
        Protocol::Folder => {
            let Ok(folder) = File::open(place) else {
                return Ok(Some(Lock::Absent));
            };
            match folder.try_lock() {
                Ok(()) => Ok(Some(Lock::Locked(folder))),
                Err(TryLockError::WouldBlock) => Ok(None),
                Err(TryLockError::Error(_)) => Ok(Some(Lock::Absent)),
            }
        }
    }
}

/// Returns the file that stands for the lock of `path`.
fn place(path: &Path, protocol: Protocol) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    match protocol {
        Protocol::Folder => return path.to_owned(),
        Protocol::Kubeconfig => name.push(".lock"),
        Protocol::Own => {
            let mut own = std::ffi::OsString::from(".");
            own.push(name);
            own.push(".ichor-lock");
            name = own;
        }
    }
    path.with_file_name(name)
}

fn held(path: &Path, place: &Path, protocol: Protocol) -> Error {
    let place = place.display();
    let message = match protocol {
        Protocol::Folder => format!("another run writes to {place}"),
        Protocol::Kubeconfig | Protocol::Own => format!(
            "another program holds the lock of {}: {place}",
            path.display()
        ),
    };
    Error::new(Code::Conflict, message).hint(match protocol {
        Protocol::Kubeconfig => {
            format!("if no program is changing the file, one left its lock behind: remove {place}")
        }
        Protocol::Own | Protocol::Folder => "try again when it has ended".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(protocol: Protocol, name: &str, left: bool) {
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder.path().join("config"), protocol);
        assert_eq!(place, folder.path().join(name));
        let held = attempt(&place, protocol).unwrap();
        assert!(held.is_some() && place.exists(), "{protocol:?}");
        assert!(attempt(&place, protocol).unwrap().is_none(), "{protocol:?}");
        drop(held);
        assert_eq!(place.exists(), left, "{protocol:?}");
        assert!(attempt(&place, protocol).unwrap().is_some(), "{protocol:?}");
    }

    #[test]
    fn a_lock_is_held_until_dropped() {
        check(Protocol::Kubeconfig, "config.lock", false);
        check(Protocol::Own, ".config.ichor-lock", true);
    }

    #[test]
    fn the_lock_of_a_folder_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let attempt = || attempt(folder.path(), Protocol::Folder).unwrap();
        let held = attempt();
        assert!(held.as_ref().is_some_and(Lock::is_held));
        assert!(attempt().is_none());
        drop(held);
        assert!(attempt().is_some_and(|lock| lock.is_held()));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        // Where there is no lock to be had, writing goes on without.
        let nowhere = super::attempt(&folder.path().join("none"), Protocol::Folder).unwrap();
        assert!(nowhere.is_some_and(|lock| !lock.is_held()));
    }

    #[tokio::test]
    async fn a_lock_that_is_never_released_is_not_waited_for_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let place = place(&path, Protocol::Kubeconfig);
        let held = attempt(&place, Protocol::Kubeconfig).unwrap();
        let waited = wait(&place, Protocol::Kubeconfig, Duration::ZERO).await;
        assert!(waited.unwrap().is_none());
        let error = super::held(&path, &place, Protocol::Kubeconfig);
        assert_eq!(error.code(), Code::Conflict);
        assert!(error.to_string().contains("config.lock"), "{error}");
        drop(held);
    }
}
