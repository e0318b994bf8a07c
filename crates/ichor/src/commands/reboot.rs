//! `ichor reboot`: nodes start over, one call each, and are waited for.

mod wait;

use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;
use talos_client::{Node, RebootMode};

use self::wait::Progress;
use crate::error::{Code, Error, Outcome, not_implemented};
use crate::output::OutputArgs;
use crate::report::report;
use crate::runtime::interrupted;
use crate::session::Session;
use crate::values;

/// Reboot nodes and wait until they are back
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How to reboot
    #[arg(short, long, value_enum, default_value = "default")]
    mode: Mode,
    /// Wait until the nodes are up and ready again
    #[arg(long, default_value_t = true)]
    wait: bool,
    /// Wait at most this long
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = values::duration)]
    timeout: Duration,
    /// Print every event of the nodes while waiting; implies --wait
    #[arg(long)]
    debug: bool,
    /// Move workloads away first
    #[arg(long)]
    drain: bool,
    /// Wait at most this long for workloads to move
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = values::duration)]
    drain_timeout: Duration,
    /// How to show progress: auto, plain or off
    #[arg(long, value_enum, default_value = "auto")]
    progress: Show,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    /// Straight into the new kernel where the machine can do that
    Default,
    /// Through the firmware
    Powercycle,
    /// Without stopping anything in order
    Force,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Show {
    Auto,
    Plain,
    Off,
}

/// What became of a node that was told to reboot.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rebooted {
    /// Who caused the reboot's events, for `ichor events --actor-id`.
    actor_id: String,
    /// Whether the node was seen up and ready again; false without `--wait`.
    back: bool,
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    if args.drain {
        return Err(not_implemented("moving workloads away (--drain)"));
    }
    let mode = match args.mode {
        Mode::Default => RebootMode::Default,
        Mode::Powercycle => RebootMode::PowerCycle,
        Mode::Force => RebootMode::Force,
    };
    let waits = args.wait || args.debug;
    let target = session.changing("reboot")?;
    let progress = Progress::new(args.progress != Show::Off, args.debug);
    let runtime = session.runtime()?;
    let output = &mut session.output;
    let results = runtime.run(async {
        let work = target.each(async |node| {
            if !waits {
                let actor_id = node.reboot(mode).await?;
                return Ok(Rebooted {
                    actor_id,
                    back: false,
                });
            }
            let waited = tokio::time::timeout(args.timeout, wait::reboot(&node, mode, &progress));
            match waited.await {
                Ok(actor_id) => Ok(Rebooted {
                    actor_id: actor_id?,
                    back: true,
                }),
                Err(_) => Err(late(&node, args.timeout)),
            }
        });
        Ok(progress.print_while(output, work).await)
    });
    let results = results.map_err(|error| match error.code() {
        Code::Interrupted => interrupted().hint("nodes that were told to reboot go on doing so"),
        _ => error,
    })?;
    report(&mut session.output, &results, |output, answered| {
        for (node, rebooted) in answered {
            let what = if rebooted.back {
                "back after its reboot"
            } else {
                "rebooting"
            };
            output.line(&format!("{node}: {what}"))?;
        }
        Ok(())
    })
}

fn late(node: &Node, timeout: Duration) -> Error {
    let name = node.name().unwrap_or_default();
    Error::new(
        Code::TimedOut,
        format!("{name} was not seen back within {timeout:?}"),
    )
    .hint(format!(
        "look at it with `ichor -n {name} get machinestatus`; --timeout waits longer"
    ))
}
