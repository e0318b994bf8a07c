//! `ichor certs report`: the verdict as a page for people.

use std::path::PathBuf;

use talos_certs::{list, page};

use super::gather::{GatherArgs, Gatherer};
use crate::error::{Error, Outcome};
use crate::files::{self, Access, Existing};
use crate::session::Session;

/// Write the verdict as one page for people
///
/// The page shows findings with the commands that repair them, when each certificate ends, and which names each server
/// covers. It is one file that loads nothing and runs nothing. Exits with 3 when something was
/// found, else with 4 when something could not be looked at.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Write the page to this file, or to standard output if it is -
    #[arg(long, value_name = "FILE")]
    html: PathBuf,
    #[command(flatten)]
    gather: GatherArgs,
}

/// Runs the verb.
pub(super) fn run(args: &Args, session: &mut Session) -> Result<Outcome, Error> {
    let gatherer = Gatherer::new(&args.gather, session)?;
    let judged = session
        .runtime()?
        .run(async { Ok(gatherer.judge().await) })?;
    let inventory = list(&judged.evidence, judged.at);
    let page = page(&judged.report, &inventory, judged.at);
    if files::is_stdout(&args.html) {
        session.output.text(&page)?;
    } else {
        let file = [(args.html.as_path(), page.as_bytes())];
        files::write_all(&file, Access::Everyone, Existing::Replace, session)?;
    }
    judged.outcome()
}
