//! `ichor man`: manual pages from the program's own definitions.

use std::path::{Path, PathBuf};

use crate::cli;
use crate::error::{Code, Error, Outcome};
use crate::files::{self, Access};
use crate::session::Session;

/// Print the manual page, or write one for each command
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write a page per command into this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints or writes the pages.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let mut command = cli::plain_command();
    command.build();
    match args.dir {
        Some(dir) => write_all(&command, "ichor", &dir)?,
        None => session.output.bytes(&page(&command, "ichor")?)?,
    }
    Ok(Outcome::Done)
}

fn write_all(command: &clap::Command, name: &str, dir: &Path) -> Result<(), Error> {
    files::write(
        &dir.join(format!("{name}.1")),
        &page(command, name)?,
        Access::Everyone,
    )?;
    for below in command
        .get_subcommands()
        .filter(|below| below.get_name() != "help")
    {
        write_all(below, &format!("{name}-{}", below.get_name()), dir)?;
    }
    Ok(())
}

fn page(command: &clap::Command, name: &str) -> Result<Vec<u8>, Error> {
    let mut page = Vec::new();
    clap_mangen::Man::new(
        command
            .clone()
            .name(name.to_owned())
            .bin_name(name.to_owned()),
    )
    .render(&mut page)
    .map_err(|error| Error::of(Code::Failed, &error))?;
    Ok(page)
}
