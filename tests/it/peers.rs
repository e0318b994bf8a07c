//! Independent peers: programs on the official libraries, built from `tests/peers` with Go.

mod official_client;
mod official_server;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds one of the programs and returns where it is.
fn program(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers");
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("peer-{name}"));
    let status = Command::new("go")
        .arg("-C")
        .arg(folder)
        .args(["build", "-o"])
        .arg(&built)
        .arg(format!("./{name}"))
        .status()
        .expect("Go is installed");
    assert!(status.success(), "the peer {name} does not build");
    built
}
