//! Independent peers: programs on the official libraries, built from `tests/peers` with Go.

mod config;
mod expressions;
mod generation;
mod migration;
mod official_client;
mod official_server;
mod patches;
mod validation;
mod validation_documents;
mod verifiers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Builds one of the programs, the first time it is asked for, and returns where it is.
fn program(name: &'static str) -> PathBuf {
    static BUILT: Mutex<BTreeMap<&str, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    built.entry(name).or_insert_with(|| build(name)).clone()
}

fn build(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("peer-{name}"));
    let status = Command::new("go")
        .arg("-C")
        .arg(folder)
        .args(["build", "-o"])
        .arg(&program)
        .arg(format!("./{name}"))
        .status()
        .expect("Go is installed");
    assert!(status.success(), "the peer {name} does not build");
    program
}
