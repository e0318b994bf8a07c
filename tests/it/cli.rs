//! The program's contract with scripts: flags, output, exit codes, masking.
