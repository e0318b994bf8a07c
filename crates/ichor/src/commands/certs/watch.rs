//! `ichor certs watch`: what changes, as it changes.

use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use talos_certs::{Change, Spot};

use super::export::{self, ExportArgs};
use super::gather::GatherArgs;
use crate::error::{Error, Outcome};
use crate::output::{Format, Output, OutputArgs};
use crate::session::Session;
use crate::values;

/// Print certificates, findings and failures as they come and go
///
/// The first look tells what is there; each later one tells what changed since. With -o ndjson or -o json every event is
/// an object on a line of its own. Ctrl-C ends it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Time between two looks
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = values::duration)]
    interval: Duration,
    #[command(flatten)]
    export: ExportArgs,
    #[command(flatten)]
    gather: GatherArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// One change, as `-o ndjson` prints it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Event<'change> {
    /// When it was seen.
    #[schemars(with = "String")]
    time: Timestamp,
    /// What changed.
    #[serde(flatten)]
    change: &'change Change,
}

/// Runs the verb.
pub(super) fn run(args: &Args, session: &mut Session) -> Result<Outcome, Error> {
    let runtime = session.runtime()?;
    let show_all = |output: &mut Output, time, changes: &[Change]| {
        let mut changes = changes.iter();
        changes.try_for_each(|change| show(output, time, change))
    };
    runtime.run(export::follow(
        session,
        &args.export,
        &args.gather,
        args.interval,
        show_all,
    ))
}

fn show(output: &mut Output, time: Timestamp, change: &Change) -> Result<(), Error> {
    if *output.format() != Format::Table {
        return output.json_line(&Event { time, change });
    }
    let at = time.strftime("%Y-%m-%dT%H:%M:%SZ");
    output.line(&format!("{at} {}", words(change)))
}

/// Puts a change into words.
fn words(change: &Change) -> String {
    match change {
        Change::Appeared { spot, certificate } => {
            format!(
                "{}: {}, ends {}",
                of(spot),
                certificate.subject,
                certificate.not_after
            )
        }
        Change::Replaced {
            spot, certificate, ..
        } => format!(
            "{}: replaced, {} ends {}",
            of(spot),
            certificate.subject,
            certificate.not_after
        ),
        Change::Gone { spot, before } => format!("{}: gone, was {}", of(spot), before.subject),
        Change::Found {
            spot,
            code,
            message,
            ..
        } => format!("{}: {code}: {message}", of(spot)),
        Change::Resolved { spot, code, name } => {
            let name = name.as_ref().map(|name| format!(" {name}"));
            format!("{}: resolved: {code}{}", of(spot), name.unwrap_or_default())
        }
        Change::Failed { spot, why } => format!("{}: not looked at: {why}", of(spot)),
        Change::Recovered { spot } => format!("{}: can be looked at again", of(spot)),
    }
}

fn of(spot: &Spot) -> String {
    format!("{} {}", spot.node, spot.place).trim().to_owned()
}
