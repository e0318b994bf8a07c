//! `ichor machineconfig gen`: the same as `gen config`.

use crate::commands::generate::config;
use crate::error::{Error, Outcome};
use crate::session::Session;

/// Generate the machine configs and talosconfig of a new cluster
///
/// The same as `ichor gen config`, with the same flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    config: Box<config::Args>,
    /// Replace files that exist already
    #[arg(short, long)]
    force: bool,
}

/// Runs the command.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    config::run(*args.config, args.force, session)
}
