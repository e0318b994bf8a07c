//! Several files that are written together: all of them, or none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::placed::{Existing, NEW, OLD, Placed, Ready, prefix};
use super::stream::stream;
use super::{Access, Place, Protocol, folder_of, lock, make_folder, unwritable};
use crate::error::{Code, Error};
use crate::session::Session;

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
pub(super) fn leftovers(target: &Path, purpose: &str) -> Vec<PathBuf> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(path("a/d/file").exists() && !path("a/b").exists());
    }
}
