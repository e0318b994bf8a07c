//! `ichor patch`: change the machine config of nodes by patches.

pub(super) mod change;
pub(super) mod input;
pub(super) mod order;

use std::path::PathBuf;

use talos_config::Schema;
use talos_config::patch::apply;

use self::change::{Current, Made};
use self::order::OrderArgs;
use crate::error::{Code, Error, Outcome};
use crate::output::OutputArgs;
use crate::session::Session;

/// Patch the machine config of nodes
///
/// A patch is a piece of machine config (strategic merge) or a JSON Patch, in YAML or JSON. What a patch does not name stays
/// as it is, comments included. --dry-run shows the difference and writes nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to patch: machineconfig, or mc for short
    #[arg(value_name = "RESOURCE", value_parser = input::machine_config_type)]
    _resource: String,
    /// Which one; the active configuration is the only one that can be patched
    #[arg(value_name = "ID", value_parser = ["v1alpha1"])]
    _id: Option<String>,
    /// A patch, or @FILE to read one; may be given several times, applied in order
    #[arg(short, long, value_name = "PATCH")]
    patch: Vec<String>,
    /// Read a patch from this file; applied after those of --patch
    #[arg(long, value_name = "FILE")]
    patch_file: Option<PathBuf>,
    /// The resource's namespace; machine configurations are in `config`
    #[arg(long, value_name = "NAME", value_parser = input::namespace)]
    namespace: Option<String>,
    #[command(flatten)]
    order: OrderArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let mut sources = args.patch;
    if let Some(path) = args.patch_file {
        sources.push(format!("@{}", path.display()));
    }
    if sources.is_empty() {
        return Err(Error::new(Code::Usage, "no patch is given")
            .hint("give one with -p PATCH, -p @FILE or --patch-file FILE"));
    }
    let order = args.order.order();
    let target = session.changing(order.verb("patch"))?;
    let patches = input::read(session, "--patch", &sources)?;
    change::run(session, &target, order, &|current: &Current| {
        let active = current.active()?;
        let schema = Schema::for_talos(current.talos());
        let patched = apply(&active.text, &patches, schema)
            .map_err(|error| input::refused(&error, &sources))?;
        Ok(Made {
            text: patched.text,
            warnings: patched.warnings,
            expected: Some(active.version.clone()),
        })
    })
}
