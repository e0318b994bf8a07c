//! The program's contract with scripts: flags, output, exit codes, masking.

mod flags;
mod program;
mod usage;
