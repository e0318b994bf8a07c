//! `ichor certs metrics`: expiry, findings and failures for Prometheus.

use talos_certs::Change;

use super::export::{self, ExportArgs, Exporter};
use super::gather::{GatherArgs, Gatherer};
use crate::error::{Error, Outcome};
use crate::output::Output;
use crate::session::Session;
use crate::values;

/// Write expiry, findings and failures as metrics for Prometheus
///
/// Looks once and prints the metrics, or writes them with --textfile. With --listen it goes on: it looks again and again,
/// and serves what it saw last. Times are absolute. Findings are metrics here and do not change the exit code.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    export: ExportArgs,
    /// Time between two looks with --listen
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = values::duration)]
    interval: std::time::Duration,
    #[command(flatten)]
    gather: GatherArgs,
}

/// Runs the verb.
pub(super) fn run(args: &Args, session: &mut Session) -> Result<Outcome, Error> {
    let runtime = session.runtime()?;
    if args.export.listen.is_some() {
        let silent = |_: &mut Output, _, _: &[Change]| Ok(());
        return runtime.run(export::follow(
            session,
            &args.export,
            &args.gather,
            args.interval,
            silent,
        ));
    }
    let gatherer = Gatherer::new(&args.gather, session)?;
    let output = &mut session.output;
    runtime.run(async {
        let mut exporter = Exporter::start(&args.export, output).await?;
        let published = exporter.publish(&gatherer.judge().await);
        published.written?;
        if args.export.textfile.is_none() {
            output.text(&published.text)?;
        }
        Ok(Outcome::Done)
    })
}
