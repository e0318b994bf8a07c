//! `ichor apply-config`: give nodes a machine config from a file.

use std::path::PathBuf;

use talos_config::Schema;
use talos_config::patch::apply;

use super::patch::change::{self, Current, Made};
use super::patch::input;
use super::patch::order::OrderArgs;
use crate::error::{Code, Error, Outcome};
use crate::output::OutputArgs;
use crate::session::Session;

/// Apply a machine config from a file to nodes
///
/// Nodes that wait in maintenance mode are reached with --insecure, and -n names what is dialled.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to apply; only machineconfig
    #[arg(value_name = "RESOURCE", hide = true, value_parser = input::machine_config_type)]
    _resource: Option<String>,
    /// The file with the machine config, - for standard input
    #[arg(short, long, value_name = "FILE", required = true)]
    file: PathBuf,
    /// A patch of the file, or @FILE to read one; may be given several times, applied in order
    #[arg(short = 'p', long, value_name = "PATCH")]
    config_patch: Vec<String>,
    /// Apply to nodes in maintenance mode: no client certificate, and the server is not verified
    #[arg(short, long)]
    insecure: bool,
    /// Accept only a server whose key has one of these fingerprints (with --insecure)
    #[arg(long, value_name = "FINGERPRINT", value_delimiter = ',')]
    cert_fingerprint: Vec<String>,
    #[command(flatten)]
    order: OrderArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let order = args.order.order();
    if !args.insecure && !args.cert_fingerprint.is_empty() {
        return Err(Error::new(
            Code::Usage,
            "--cert-fingerprint needs --insecure",
        ));
    }
    let target = match args.insecure {
        true => {
            let target = session.maintenance(&args.cert_fingerprint)?;
            session.announce(order.verb("apply-config"), &target.nodes);
            target
        }
        false => session.changing(order.verb("apply-config"))?,
    };
    let path = args.file.display().to_string();
    let text = input::text_of(session, &path)?;
    session.output.learn_secrets_of(&text);
    if text.trim().is_empty() {
        return Err(Error::new(Code::Invalid, format!("{path} is empty")));
    }
    let patches = input::read(session, "--config-patch", &args.config_patch)?;
    let make = |current: &Current| {
        let schema = Schema::for_talos(current.talos());
        let patched = apply(&text, &patches, schema).map_err(|error| {
            input::refused(&error, &args.config_patch).context(format!("{path} cannot be used"))
        })?;
        Ok(Made {
            text: patched.text,
            warnings: patched.warnings,
            expected: None,
        })
    };
    if !args.insecure {
        return change::run(session, &target, order, &make);
    }
    let runtime = session.runtime()?;
    let currents = runtime.run(async {
        Ok(target
            .each(async |node| Ok(Current::read_version(&node).await))
            .await)
    })?;
    change::apply_all(session, &target, order, currents, &make)
}
