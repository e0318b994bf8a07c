//! `ichor certs`: the certificates of a cluster.

mod check;
mod export;
pub(crate) mod fix;
mod gather;
pub(crate) mod inspect;
mod list;
mod metrics;
pub(crate) mod renew;
mod report;
pub(crate) mod rotate_ca;
mod show;
pub(crate) mod watch;

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
    Fix(fix::Args),
    Inspect(inspect::Args),
    List(list::Args),
    Metrics(metrics::Args),
    Renew(renew::Args),
    Report(report::Args),
    RotateCa(rotate_ca::Args),
    Watch(watch::Args),
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    match args.command {
        Command::Check(args) => check::run(&args, session),
        Command::Fix(args) => fix::run(&args, session),
        Command::Inspect(args) => inspect::run(&args, session),
        Command::List(args) => list::run(&args, session),
        Command::Metrics(args) => metrics::run(&args, session),
        Command::Renew(args) => renew::run(args, session),
        Command::Report(args) => report::run(&args, session),
        Command::RotateCa(args) => rotate_ca::run(args, session),
        Command::Watch(args) => watch::run(&args, session),
    }
}
