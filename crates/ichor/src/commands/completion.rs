//! `ichor completion`: completion scripts from the program's own definitions.

use clap_complete::Shell;

use crate::cli;
use crate::error::{Error, Outcome};
use crate::session::Session;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
    /// Accepted for talosctl's sake; bash shows no descriptions anyway
    #[arg(long, hide = true)]
    no_descriptions: bool,
}

/// Prints the script.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::plain_command(), "ichor", &mut script);
    session.output.bytes(&script)?;
    Ok(Outcome::Done)
}
