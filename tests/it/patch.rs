//! Reading and patching machine configuration.

mod apply;
#[cfg(unix)]
mod edit;
mod file;
#[cfg(unix)]
mod interrupt;
mod nodes;
mod secrets;

use crate::cli::program::{Lab, Ran};

/// Returns the text of a node's active configuration.
fn active(lab: &Lab, index: usize) -> String {
    lab.cluster.nodes()[index].machine_config().unwrap()
}

/// Asserts a refusal: its exit code, and words of the message.
fn refused(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    for word in words {
        assert!(ran.stderr.contains(word), "{word:?} in {ran:?}");
    }
}

/// Asserts success.
fn done(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
