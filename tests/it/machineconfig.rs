//! Machine configurations in files, from generation to migration.

mod diff;
mod generate;
pub(crate) mod generator;
mod lossless;
mod migrate;
mod validate;
mod written;
