//! The program's contract with scripts: flags, output, exit codes, masking.

mod bad_input;
mod flags;
mod get;
mod many_nodes;
pub(crate) mod program;
mod schema;
mod services;
mod sim;
mod streams;
mod usage;
