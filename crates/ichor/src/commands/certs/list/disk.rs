//! Files and folders that may hold certificates, read from the disk.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use talos_certs::{Evidence, FileContents, Kept, NotChecked, Place, read_file};
use talos_pki::Certificate;

/// The largest file that is read.
const LARGEST: u64 = 64 << 20;
/// Folders inside of folders that are looked into.
const DEEPEST: usize = 16;
/// Files of one folder, with all below it, that are read.
const MOST: usize = 10_000;

/// Adds the certificates of a file, or of every file of a folder; what cannot be read is noted.
pub(in super::super) fn take(path: &Path, evidence: &mut Evidence) {
    if path.is_dir() {
        let mut files = Vec::new();
        find(path, DEEPEST, &mut files, evidence);
        files.sort();
        if files.len() > MOST {
            note(
                evidence,
                path,
                format!("only the first {MOST} of its files were read"),
            );
        }
        for file in files.iter().take(MOST) {
            match bytes(file) {
                Ok(bytes) => take_contents(file, read(file, &bytes), true, evidence),
                Err(why) => note(evidence, file, why),
            }
        }
        return;
    }
    match bytes(path) {
        Ok(bytes) => take_contents(path, read(path, &bytes), false, evidence),
        Err(why) => note(evidence, path, why),
    }
}

/// Reads a file, whatever it holds.
pub(in super::super) fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.len() as u64 > LARGEST {
        return Err("it is larger than 64 MiB".to_owned());
    }
    Ok(bytes)
}

/// Reads the certificates of a file, and of the files that it names.
pub(in super::super) fn read(path: &Path, content: &[u8]) -> FileContents {
    let shown = path.display().to_string();
    let mut contents = read_file(&shown, content);
    let folder = path.parent().unwrap_or(Path::new(""));
    for reference in std::mem::take(&mut contents.references) {
        let target = folder.join(&reference.path);
        let read = bytes(&target)
            .and_then(|bytes| Certificate::many_from_pem(bytes).map_err(|error| error.to_string()));
        match read {
            Ok(chain) => contents
                .kept
                .extend(chain.into_iter().map(|certificate| Kept {
                    node: None,
                    place: Place::File {
                        path: target.display().to_string(),
                        part: reference.part.clone(),
                    },
                    purpose: reference.purpose.clone(),
                    certificate,
                    manager: None,
                })),
            Err(why) => contents.problems.push(talos_certs::FileProblem {
                part: format!("{}: {}", reference.part, target.display()),
                why,
                der: Vec::new(),
            }),
        }
    }
    contents
}

/// Adds what a file holds; a file of a folder that holds no certificate is no problem.
fn take_contents(path: &Path, contents: FileContents, in_folder: bool, evidence: &mut Evidence) {
    let matters = !in_folder || contents.kind.is_some() && !contents.kept.is_empty() || {
        let name = path.extension().and_then(|name| name.to_str());
        matches!(name, Some("pem" | "crt" | "cer" | "der"))
    };
    evidence.kept.extend(contents.kept);
    if !matters {
        return;
    }
    for problem in contents.problems {
        let why = match problem.part.as_str() {
            "" => problem.why,
            part => format!("{part}: {}", problem.why),
        };
        note(evidence, path, why);
    }
}

fn find(folder: &Path, depth: usize, files: &mut Vec<PathBuf>, evidence: &mut Evidence) {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => return note(evidence, folder, format!("it cannot be read: {error}")),
    };
    for entry in entries.flatten() {
        if files.len() > MOST {
            return;
        }
        let path = entry.path();
        // What Kubernetes mounts has the real folder behind a link named `..data`.
        let hidden = entry.file_name().to_string_lossy().starts_with("..");
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && !hidden && depth > 0 {
            find(&path, depth - 1, files, evidence);
        } else if std::fs::metadata(&path).is_ok_and(|found| found.is_file()) {
            files.push(path);
        }
    }
}

fn note(evidence: &mut Evidence, path: &Path, why: String) {
    evidence.not_checked.push(NotChecked {
        node: path.display().to_string(),
        kind: None,
        why,
    });
}
