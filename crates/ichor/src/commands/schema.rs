//! `ichor schema`.

use crate::error::{Error, Outcome, not_implemented};
use crate::session::Session;

/// Print the JSON Schema of a command's JSON output
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the verb.
pub(crate) fn run(_args: Args, _session: &mut Session) -> Result<Outcome, Error> {
    Err(not_implemented("ichor schema"))
}
