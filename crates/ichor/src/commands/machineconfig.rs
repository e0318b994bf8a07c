//! `ichor machineconfig`: machine configs in files.

pub(crate) mod diff;
pub(crate) mod generate;
pub(crate) mod migrate;
pub(crate) mod patch;

use crate::error::{Error, Outcome};
use crate::session::Session;

/// Work with machine configs in files
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Diff(diff::Args),
    Gen(generate::Args),
    Migrate(migrate::Args),
    Patch(patch::Args),
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    match args.command {
        Command::Diff(args) => diff::run(args, session),
        Command::Gen(args) => generate::run(args, session),
        Command::Migrate(args) => migrate::run(args, session),
        Command::Patch(args) => patch::run(args, session),
    }
}
