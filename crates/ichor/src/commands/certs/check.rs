//! `ichor certs check`: what servers present, judged against how they are reached.

use super::gather::{GatherArgs, Gatherer};
use super::show;
use crate::error::{Error, Outcome};
use crate::output::OutputArgs;
use crate::session::Session;

/// Judge what servers present against the names by which they are reached
///
/// Looks at apid (port 50000) of every node and at kube-apiserver (port 6443) of control planes, also where the server
/// refuses us. What cannot be dialled is judged from the node's resources, which takes os:admin. Behind forwarded loopback
/// ports, nodes are not dialled at their own addresses. Exits with 3 when something was
/// found, else with 4 when something could not be looked at.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    gather: GatherArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Runs the verb.
pub(super) fn run(args: &Args, session: &mut Session) -> Result<Outcome, Error> {
    let gatherer = Gatherer::new(&args.gather, session)?;
    let judged = session
        .runtime()?
        .run(async { Ok(gatherer.judge().await) })?;
    let output = &mut session.output;
    if !output.data(&judged.report)? {
        show::report(output, &judged.report, judged.at)?;
    }
    judged.outcome()
}
