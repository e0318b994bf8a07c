//! `ichor certs`: the certificates of a cluster.

mod check;
mod gather;
pub(crate) mod inspect;
mod list;
mod report;
mod show;

use crate::error::{Error, Outcome};
use crate::session::Session;

/// Check the certificates of a cluster
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Check(check::Args),
    Inspect(inspect::Args),
    List(list::Args),
    Report(report::Args),
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    match args.command {
        Command::Check(args) => check::run(&args, session),
        Command::Inspect(args) => inspect::run(&args, session),
        Command::List(args) => list::run(&args, session),
        Command::Report(args) => report::run(&args, session),
    }
}
