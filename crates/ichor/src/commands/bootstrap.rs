//! `ichor bootstrap`: etcd's first member.

use serde::Serialize;

use crate::error::{Error, Outcome, not_implemented};
use crate::output::OutputArgs;
use crate::report::report;
use crate::session::Session;

/// Bootstrap etcd on one control plane
///
/// A new cluster needs this once, on one node: the others join by themselves.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Recover etcd from this snapshot file
    #[arg(long, value_name = "FILE")]
    recover_from: Option<String>,
    /// Accept a snapshot without a checksum, such as one copied from a data folder
    #[arg(long)]
    recover_skip_hash_check: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// What a node answers to a bootstrap.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Bootstrapped {
    /// Always true: the node accepted, and starts etcd now.
    accepted: bool,
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    if args.recover_from.is_some() || args.recover_skip_hash_check {
        return Err(not_implemented("recovering etcd from a snapshot"));
    }
    let target = session.changing_one("bootstrap")?;
    let results = session.change_each(&target, async |node| {
        node.bootstrap().await?;
        Ok(Bootstrapped { accepted: true })
    })?;
    report(&mut session.output, &results, |output, answered| {
        for (node, _) in answered {
            output.line(&format!("{node}: etcd is being bootstrapped"))?;
        }
        Ok(())
    })
}
