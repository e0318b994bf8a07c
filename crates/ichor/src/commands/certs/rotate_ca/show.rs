//! What people see of a rotation.

use talos_certs::{RotateEvent, RotatePlan};

use super::Document;
use crate::error::Error;
use crate::output::{Output, columns};

/// Prints a plan, or what was done.
pub(super) fn document(output: &mut Output, document: &Document) -> Result<(), Error> {
    if output.data(document)? {
        return Ok(());
    }
    if document.done.is_empty() {
        for one in &document.plans {
            plan(output, one)?;
        }
        if document.dry_run {
            output.note("nothing was written; --dry-run=false does it");
        }
        return Ok(());
    }
    for done in &document.done {
        output.line(&format!(
            "{}: rotated, {} configurations written",
            done.authority.label(),
            done.written
        ))?;
    }
    let note = format!("the talosconfig is {}", document.output);
    output.note(&note);
    output.note("a new kubeconfig comes from `ichor kubeconfig`; `ichor gen secrets --from-controlplane-config` makes a new secrets bundle");
    Ok(())
}

fn plan(output: &mut Output, plan: &RotatePlan) -> Result<(), Error> {
    let again = if plan.resumed { ", continued" } else { "" };
    output.line(&format!("{}{again}", plan.authority.label()))?;
    for reason in &plan.blocked {
        output.line(&format!("blocked: {reason}"))?;
    }
    for warning in &plan.warnings {
        output.warn(warning);
    }
    let mut table = columns(["STEP", "NODE", "ACTION", "SETTINGS", "STATE"]);
    for step in &plan.steps {
        table.add_row([
            step.number.to_string(),
            step.node.clone().unwrap_or_else(|| "-".to_owned()),
            step.action.clone(),
            step.settings.join(", "),
            if step.done { "done" } else { "to do" }.to_owned(),
        ]);
    }
    output.table(&table)
}

/// Tells what happens while it happens.
pub(super) fn event(output: &mut Output, event: &RotateEvent) {
    let line = match event {
        RotateEvent::Made {
            authority,
            fingerprint,
        } => format!("new {}: {fingerprint}", authority.label()),
        RotateEvent::Changing {
            authority,
            round,
            node,
        } => format!("{node}: {}: {}", authority.label(), round.label()),
        RotateEvent::Written { node, warnings } => {
            for warning in warnings {
                output.warn(&format!("{node}: {warning}"));
            }
            format!("{node}: configuration written")
        }
        RotateEvent::Waiting { node, state } => format!("{node}: waiting: {state}"),
        RotateEvent::Verified { node, .. } => format!("{node}: verified"),
        RotateEvent::Credentials { .. } => "talosconfig written".to_owned(),
        RotateEvent::RoundDone { authority, round } => {
            format!(
                "{}: every node does it: {}",
                authority.label(),
                round.label()
            )
        }
        _ => return,
    };
    output.note(&format!("rotate-ca: {line}"));
}
