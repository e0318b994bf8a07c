//! Machine configurations in files, from generation to migration.

mod diff;
mod generate;
mod lossless;
mod migrate;
mod validate;
