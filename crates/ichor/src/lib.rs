//! The program `ichor` as a library.
//!
//! [`run`] is the whole program: arguments, environment and streams come in, an exit code goes out. Everything that
//! touches the user's machine is in this crate: only here is the environment read, a file found or written, a line
//! printed or an exit code chosen. The crates below take text, paths, proxies and clocks as arguments.
//!
//! A verb is one file in `commands/`: its `Args` (whose doc comment is the `--help` text) and a `run` function that
//! gets the [`Session`](session::Session) and returns an [`Outcome`](error::Outcome) or an [`Error`](error::Error).
//! Nothing below the verbs sees clap.

mod cli;
mod commands;
mod connect;
mod env;
mod error;
mod files;
mod flags;
mod io;
mod masker;
mod nodes;
mod output;
mod report;
mod runtime;
mod session;
mod steps;
mod times;
mod values;

use std::ffi::OsString;
use std::process::ExitCode;

pub use env::Env;
pub use io::Io;

/// Runs the program with these arguments (the first is the program's name), this environment and these streams.
#[must_use]
pub fn run(args: impl IntoIterator<Item = OsString>, env: Env, io: Io) -> ExitCode {
    ExitCode::from(session::run(args.into_iter().collect(), env, io))
}
