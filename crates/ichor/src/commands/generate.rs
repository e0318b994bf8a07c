//! `ichor gen`: secrets, machine configs, keys and certificates from nothing.

use crate::error::{Code, Error, Outcome};
use crate::session::Session;

/// Generate secrets, machine configs, keys and certificates
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: Args, _session: &mut Session) -> Result<Outcome, Error> {
    Err(Error::new(Code::Unimplemented, "not built yet"))
}
