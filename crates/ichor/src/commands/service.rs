//! `ichor service`.

use crate::error::{Error, Outcome, not_implemented};
use crate::session::Session;

/// Show services of nodes, start, stop or restart one
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the verb.
pub(crate) fn run(_args: Args, _session: &mut Session) -> Result<Outcome, Error> {
    Err(not_implemented("ichor service"))
}
