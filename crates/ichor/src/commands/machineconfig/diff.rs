//! `ichor machineconfig diff`: what differs between two machine configs.

use crate::error::{Code, Error, Outcome};
use crate::session::Session;

/// Show what differs between two machine configs
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: Args, _session: &mut Session) -> Result<Outcome, Error> {
    Err(Error::new(Code::Unimplemented, "not built yet"))
}
