//! `ichor schema`: the JSON Schema of what commands print with `-o json`.

use schemars::{Schema, schema_for};

use super::{sim, upgrade_k8s, version};
use crate::error::{Code, Error, Outcome};
use crate::output::Output;

use crate::session::Session;

/// Print the JSON Schema of a command's JSON output
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The command, such as `get` or `sim up`; without one, the commands that have a schema are listed
    command: Vec<String>,
}

/// Makes the schema of a command's document.
type Make = fn() -> Schema;

/// The commands whose output has a schema.
const SCHEMAS: &[(&str, Make)] = &[
    ("certs check", || schema_for!(talos_certs::Report)),
    ("error", || schema_for!(crate::output::ErrorDocument)),
    ("sim up", || schema_for!(sim::Started)),
    ("upgrade-k8s", || schema_for!(upgrade_k8s::Document)),
    ("version", || schema_for!(version::Document)),
];

/// Prints the schema.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let wanted = args.command.join(" ");
    if wanted.is_empty() {
        return list(&mut session.output);
    }
    let (_, make) = SCHEMAS
        .iter()
        .find(|(command, _)| *command == wanted)
        .ok_or_else(|| {
            Error::new(Code::NotFound, format!("there is no schema for {wanted:?}"))
                .hint("`ichor schema` lists the commands that have one")
        })?;
    session.output.json(&make())?;
    Ok(Outcome::Done)
}

fn list(output: &mut Output) -> Result<Outcome, Error> {
    for (command, _) in SCHEMAS {
        output.line(command)?;
    }
    Ok(Outcome::Done)
}
