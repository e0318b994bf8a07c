//! `ichor machineconfig diff`: what differs between two machine configs.

mod patches;
mod show;
mod sides;

use talos_config::Schema;
use talos_config::compare;

use crate::error::{Code, Error, Outcome};
use crate::output::OutputArgs;
use crate::session::Session;
use crate::values;

pub(crate) use patches::PatchesData;
pub(crate) use show::DiffData;

/// Show what differs between two machine configs
///
/// Each is a file, - for standard input, or the active config of a node: node:NAME, or just its name where no file has it.
/// Documents are matched by kind and name; their order, the order of keys, comments and ways of writing mean nothing.
/// Exits with 0 also if something differs, with --exit-code with 3.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The first config: a file, -, or a node
    #[arg(value_name = "A")]
    first: String,
    /// The second config: a file, -, or a node
    #[arg(value_name = "B")]
    second: String,
    /// Exit with 3 if something differs
    #[arg(long)]
    exit_code: bool,
    /// Print the smallest strategic merge patch that turns A into B; one text, which `machineconfig patch A -p @FILE` takes
    #[arg(long)]
    as_patch: bool,
    /// Print the JSON Patch that turns A into B; if several documents differ, -o json prints one for each
    #[arg(long)]
    json_patch: bool,
    /// Read the configs as this Talos version does; if not given, the newer of both, told by nodes and installer images, else
    /// the newest that is known
    #[arg(long, value_name = "VERSION", value_parser = values::talos_version)]
    talos_version: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the command.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    if args.first == "-" && args.second == "-" {
        return Err(Error::new(
            Code::Usage,
            "standard input can be one of the two configs, not both",
        ));
    }
    let first = sides::read(session, &args.first)?;
    let second = sides::read(session, &args.second)?;
    let (a, b) = (first.parse()?, second.parse()?);
    let schema = match args.talos_version.as_deref() {
        Some(version) => Schema::for_talos(version),
        None => {
            let nodes = [first.talos.as_deref(), second.talos.as_deref()];
            let installed = [Schema::installed(a.roots()), Schema::installed(b.roots())];
            let versions = nodes.into_iter().chain(installed).flatten();
            Schema::for_newest_of(versions).unwrap_or_else(Schema::newest)
        }
    };
    let changes = compare::streams(&a, &b, schema);
    let wanted = match (args.json_patch, args.as_patch) {
        (true, _) => Some(patches::json(&first, &second, schema)?),
        (false, true) => {
            let is_fixed = args.talos_version.is_some();
            Some(patches::strategic(&first, &second, schema, is_fixed)?)
        }
        _ => None,
    };
    match wanted {
        Some(wanted) => patches::print(session, &wanted)?,
        None => show::print(session, &first, &second, &changes)?,
    }
    Ok(match args.exit_code && !changes.is_empty() {
        true => Outcome::Found,
        false => Outcome::Done,
    })
}
