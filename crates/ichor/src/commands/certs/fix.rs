//! `ichor certs fix`: the names that certificates miss, added and verified.

use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use talos_certs::{
    FixAccess, FixConfig, FixEvent, FixOptions, FixPlan, FixReport, FixState, FixTiming, Report,
    Stop, fix, plan_fix,
};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::gather::{GatherArgs, Gatherer};
use crate::commands::patch::change::Current;
use crate::connect::Target;
use crate::error::{Code, Error, Outcome};
use crate::output::{Format, Output, OutputArgs};
use crate::session::Session;
use crate::values;

/// Add the names that certificates miss to the configuration of nodes, and verify that they are served
///
/// Judges as `certs check` does, then adds each missing name to the setting that drives the certificate, without a
/// reboot; nothing else of the configuration changes. Nodes are done one after the other, the next only when the last
/// one serves the names and its Kubernetes API is back. --dry-run shows the plan and writes nothing. What no setting
/// repairs is listed, and then the exit code is 3.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    gather: GatherArgs,
    /// Show the plan and the differences, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Look at kube-apiserver for this long, once it serves the names, before its restart counts as over or not coming; four times as long
    /// where it cannot be dialled
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = values::duration)]
    settle: Duration,
    /// Give a node up after this long
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = values::duration)]
    timeout: Duration,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// The plan, and what came of it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fixed {
    /// Whether nothing was to be written.
    dry_run: bool,
    /// Whether something could not be looked at, so that more may be missing.
    incomplete: bool,
    /// The plan.
    plan: FixPlan,
    /// What came of it; absent in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<FixReport>,
}

/// Runs the verb.
pub(super) fn run(args: &Args, session: &mut Session) -> Result<Outcome, Error> {
    let verb = match args.dry_run {
        true => "certs fix (dry run)",
        false => "certs fix",
    };
    let target = session.changing(verb)?;
    let gatherer = Gatherer::new(&args.gather, session)?;
    let runtime = session.runtime()?;
    let judged = runtime.run(async { Ok(gatherer.judge().await) })?;
    let report = &judged.report;
    if report.servers.is_empty() {
        super::show::not_checked(&mut session.output, report);
        return judged.outcome();
    }
    let configs = configs(session, &target)?;
    let plan = plan_fix(report, &configs).map_err(|error| Error::of(Code::Invalid, &error))?;
    let mut document = Fixed {
        dry_run: args.dry_run,
        incomplete: report.incomplete,
        plan,
        result: None,
    };
    super::show::not_checked(&mut session.output, report);
    if *session.output.format() == Format::Table {
        show_plan(&mut session.output, &document.plan, report.has_failures())?;
    }
    if args.dry_run || document.plan.nodes.is_empty() {
        finish(&mut session.output, &document)?;
        return Ok(outcome(&document, report));
    }
    if let Some(node) = document.plan.nodes.iter().find(|node| node.pending) {
        return Err(Error::new(
            Code::Precondition,
            "a configuration is being tried or staged, and another one would replace it",
        )
        .node(&node.node)
        .hint("nothing was changed; wait until it is over, or apply it for good"));
    }
    document.result = Some(carry_out(
        args,
        session,
        &target,
        &gatherer,
        &document.plan,
    )?);
    finish(&mut session.output, &document)?;
    Ok(outcome(&document, report))
}

/// Reads the configurations of the nodes that may be changed.
fn configs(session: &mut Session, target: &Target) -> Result<Vec<FixConfig>, Error> {
    let runtime = session.runtime()?;
    let currents =
        runtime.run(async { Ok(target.each(async |node| Current::read(&node).await).await) })?;
    let mut configs = Vec::new();
    let mut failures = Vec::new();
    for (node, current) in currents {
        let read = current.and_then(|current| {
            let active = current.active()?.clone();
            Ok((current, active))
        });
        match read {
            Ok((current, active)) => {
                session.output.learn_secrets_of(&active.text);
                configs.push(FixConfig {
                    pending: current.is_pending(),
                    talos: current.talos().to_owned(),
                    text: active.text,
                    version: active.version,
                    node,
                });
            }
            Err(error) => failures.push(error.node(&node)),
        }
    }
    match (failures.is_empty(), configs.is_empty()) {
        (true, _) => Ok(configs),
        (false, true) => Err(failures.swap_remove(0)),
        (false, false) => {
            for failure in &failures {
                session.output.error(failure);
            }
            Err(Error::new(
                Code::Precondition,
                "not every node could be read, and none was changed",
            ))
        }
    }
}

fn carry_out(
    args: &Args,
    session: &mut Session,
    target: &Target,
    gatherer: &Gatherer,
    plan: &FixPlan,
) -> Result<FixReport, Error> {
    let (sender, mut events) = unbounded_channel();
    let told = Told(Mutex::new(sender));
    let observer = |event: &FixEvent| told.tell(event);
    let stop = Stop::default();
    let options = FixOptions {
        timing: FixTiming {
            settle: args.settle,
            limit: args.timeout,
            ..FixTiming::default()
        },
        stop: stop.clone(),
        now: &Timestamp::now,
        observer: &observer,
    };
    let access = FixAccess {
        client: &target.client,
        collecting: &gatherer.collecting,
    };
    let runtime = session.runtime()?;
    let output = &mut session.output;
    let work = fix(plan, access, &options);
    let (report, asked) = runtime.run_steps(async |mut interrupt| {
        let asked = interrupt.clone();
        let mut work = pin!(work);
        let mut stopping = false;
        loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => output.note(&format!("{}: {}", event.node, event.message)),
                report = &mut work => return Ok((report, asked.is_asked())),
                () = interrupt.wait(), if !stopping => {
                    stopping = true;
                    stop.request();
                    output.note("stopping: the node under way is finished first; Ctrl-C again stops at once");
                }
            }
        }
    })?;
    while let Ok(event) = events.try_recv() {
        output.note(&format!("{}: {}", event.node, event.message));
    }
    if asked {
        let left = report
            .nodes
            .iter()
            .filter(|node| node.state == FixState::NotStarted);
        let left: Vec<String> = left.map(|node| node.node.clone()).collect();
        session.stopped(&left);
    }
    Ok(report)
}

/// Passes events on from wherever they happen.
struct Told(Mutex<UnboundedSender<FixEvent>>);

impl Told {
    fn tell(&self, event: &FixEvent) {
        if let Ok(sender) = self.0.lock() {
            // Nobody listens any more when the run is over.
            let _ = sender.send(event.clone());
        }
    }
}

fn show_plan(output: &mut Output, plan: &FixPlan, is_partial: bool) -> Result<(), Error> {
    for node in &plan.nodes {
        output.line(&format!("{}:", node.node))?;
        for change in &node.changes {
            output.line(&format!(
                "  {} gets {}",
                change.setting,
                change.names.join(", ")
            ))?;
            output.line(&format!("    cost: {}", change.cost))?;
            output.line(&format!("    patch: {}", change.patch))?;
        }
        if node.pending {
            output.line("  a configuration is being tried or staged, which has to end first")?;
        }
        let names = format!("--- {0} active\n+++ {0} new\n", node.node);
        output.text(&node.diff.replacen("--- active\n+++ new\n", &names, 1))?;
        output.line("")?;
    }
    if plan.nodes.is_empty() {
        output.line(match is_partial {
            true => "No name is missing, as far as servers could be looked at, that a setting of these nodes adds.",
            false => "No name is missing that a setting of these nodes adds.",
        })?;
    }
    for left in &plan.not_fixable {
        let kind = left.kind.map(|kind| format!(" {}", kind.as_str()));
        let kind = kind.unwrap_or_default();
        output.line(&format!(
            "not fixable: {}{kind}: {}: {}",
            left.place, left.code, left.message
        ))?;
        if let Some(advice) = &left.advice {
            output.line(&format!("  {advice}"))?;
        }
    }
    Ok(())
}

fn finish(output: &mut Output, document: &Fixed) -> Result<(), Error> {
    if output.data(document)? {
        return Ok(());
    }
    for node in document.result.iter().flat_map(|result| &result.nodes) {
        match (node.state, &node.error) {
            (FixState::Done, _) => {
                output.line(&format!("{}: fixed", node.node))?;
                for verified in &node.verified {
                    let kind = verified.kind.as_str();
                    let how = match &verified.address {
                        Some(address) => format!("verified by a handshake at {address}"),
                        None => {
                            "in the certificate that the node holds; it cannot be dialled from here"
                                .to_owned()
                        }
                    };
                    output.line(&format!("  {kind} {}: {how}", verified.name))?;
                }
            }
            (FixState::Failed, error) => {
                let applied = match node.applied {
                    true => "the configuration was applied",
                    false => "nothing was changed",
                };
                let why = error.as_deref().unwrap_or("failed");
                output.line(&format!("{}: failed, {applied}: {why}", node.node))?;
            }
            (FixState::NotStarted, _) => {
                output.line(&format!("{}: not started, nothing was changed", node.node))?;
            }
        }
    }
    Ok(())
}

fn outcome(document: &Fixed, report: &Report) -> Outcome {
    let nodes = document.result.iter().flat_map(|result| &result.nodes);
    let (done, open): (Vec<_>, Vec<_>) = nodes.partition(|node| node.state == FixState::Done);
    match (done.is_empty(), open.is_empty()) {
        (_, true) if !document.plan.not_fixable.is_empty() => Outcome::Found,
        (_, true) if report.has_failures() => Outcome::SomeNodesFailed,
        (_, true) => Outcome::Done,
        (true, false) => Outcome::AllNodesFailed(Code::Failed),
        (false, false) => Outcome::SomeNodesFailed,
    }
}
