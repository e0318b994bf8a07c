//! `ichor version`.

use crate::error::{Error, Outcome, not_implemented};
use crate::session::Session;

/// Print the version of this program and of nodes
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the verb.
pub(crate) fn run(_args: Args, _session: &mut Session) -> Result<Outcome, Error> {
    Err(not_implemented("ichor version"))
}
