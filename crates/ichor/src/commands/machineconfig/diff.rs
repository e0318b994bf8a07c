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
    /// Print the smallest strategic merge patch that turns A into B
    #[arg(long)]
    as_patch: bool,
    /// Print the JSON Patch that turns A into B
    #[arg(long)]
    json_patch: bool,
    /// Read the configs as this Talos version does; otherwise that of the node, of A's installer, or the newest
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
    let schema = args
        .talos_version
        .as_deref()
        .or(first.talos.as_deref())
        .or(second.talos.as_deref())
        .or_else(|| Schema::installed(a.roots()))
        .map_or_else(Schema::newest, Schema::for_talos);
    let changes = compare::streams(&a, &b, schema);
    let wanted = match (args.json_patch, args.as_patch) {
        (true, _) => Some(patches::json(&first, &second, schema)?),
        (false, true) => Some(patches::strategic(&first, &second, schema)?),
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
