//! `ichor machineconfig migrate`: deprecated fields to their documents.

use crate::error::{Code, Error, Outcome};
use crate::session::Session;

/// Move deprecated fields to the documents of a newer Talos version
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: Args, _session: &mut Session) -> Result<Outcome, Error> {
    Err(Error::new(Code::Unimplemented, "not built yet"))
}
