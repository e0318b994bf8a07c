//! Files people hold: talosconfig and kubeconfig through the program.

mod credentials;
mod kubeconfig;
mod talosconfig;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Reads a file, which must be its owner's alone.
fn private(path: &Path) -> String {
    let mode = std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    std::fs::read_to_string(path).unwrap()
}

/// Names of all files in a folder.
fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
