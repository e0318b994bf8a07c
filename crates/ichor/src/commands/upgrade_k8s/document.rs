//! A plan and its report as people and scripts read them.

use schemars::JsonSchema;
use serde::Serialize;
use talos_kube::Kubernetes;
use talos_upgrade::{
    Action, Blocked, Event, ManifestPlan, ObjectChange, Plan, PlannedNode, Preview, Pull, Report,
    Source, Step, Warning,
};

use crate::error::Error;
use crate::output::{Output, columns};

/// What `-o json` prints.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document<'a> {
    /// What will be, would be, or was done.
    plan: PlanDocument<'a>,
    /// What was done; absent in a dry run and when the plan is blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<&'a Report>,
}

/// What `-o ndjson` prints on each line while an upgrade runs.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EventLine<'a> {
    #[serde(flatten)]
    pub(super) event: &'a Event,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PlanDocument<'a> {
    /// The version to start from.
    from: String,
    /// The version to reach.
    to: String,
    /// The address of the Kubernetes API that answers.
    kubernetes_endpoint: String,
    /// The name its certificate was verified for.
    verified_name: String,
    /// The pod with the lowest version.
    lowest: Option<&'a Source>,
    /// The nodes, control planes first.
    nodes: &'a [PlannedNode],
    /// Images to pull first.
    pulls: &'a [Pull],
    /// The steps, in order.
    steps: &'a [Step],
    /// The last stage.
    manifests: &'a ManifestPlan,
    /// What that stage would do with each object; only in a dry run.
    objects: &'a [Preview],
    /// What forbids the upgrade.
    blocked: Vec<Remark<'a, Blocked>>,
    /// What the user should know.
    warnings: Vec<Remark<'a, Warning>>,
}

#[derive(Serialize, JsonSchema)]
struct Remark<'a, T> {
    #[serde(flatten)]
    what: &'a T,
    /// The same in words.
    message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

impl<'a> Document<'a> {
    pub(super) fn new(plan: &'a Plan, kubernetes: &Kubernetes, objects: &'a [Preview]) -> Self {
        let blocked = plan.blocked.iter().map(|what| Remark {
            what,
            message: what.to_string(),
            hint: Some(what.hint()),
        });
        let warnings = plan.warnings.iter().map(|what| Remark {
            what,
            message: what.to_string(),
            hint: None,
        });
        Self {
            plan: PlanDocument {
                from: plan.from.to_string(),
                to: plan.to.to_string(),
                kubernetes_endpoint: kubernetes.address().to_string(),
                verified_name: kubernetes.verified_name().to_string(),
                lowest: plan.lowest.as_ref(),
                nodes: &plan.nodes,
                pulls: &plan.pulls,
                steps: &plan.steps,
                manifests: &plan.manifests,
                objects,
                blocked: blocked.collect(),
                warnings: warnings.collect(),
            },
            report: None,
        }
    }

    /// Prints the plan.
    pub(super) fn print(&self, output: &mut Output) -> Result<(), Error> {
        if output.data(self)? {
            return Ok(());
        }
        let plan = &self.plan;
        output.line(&format!(
            "Kubernetes {} to {} through {} (certificate for {})",
            plan.from, plan.to, plan.kubernetes_endpoint, plan.verified_name
        ))?;
        output.line("")?;
        let mut table = columns(["NODE", "ROLE", "ADDRESS", "TALOS", "KUBELET", "CHANGES"]);
        for node in plan.nodes {
            let role = if node.control_plane {
                "controlplane"
            } else {
                "worker"
            };
            let changes: Vec<&str> = node.changes.iter().map(|change| change.name()).collect();
            let talos = node.talos.as_ref().map(ToString::to_string);
            table.add_row([
                node.name.clone(),
                role.to_owned(),
                node.address.clone(),
                talos.unwrap_or_default(),
                node.kubelet.clone(),
                changes.join(","),
            ]);
        }
        output.table(&table)?;
        self.steps(output)?;
        self.objects(output)?;
        for warning in &plan.warnings {
            output.warn(&warning.message);
        }
        for blocked in &plan.blocked {
            output.line(&format!("blocked: {}", blocked.message))?;
            if let Some(hint) = blocked.hint {
                output.line(&format!("  hint: {hint}"))?;
            }
        }
        Ok(())
    }

    fn steps(&self, output: &mut Output) -> Result<(), Error> {
        if self.plan.steps.is_empty() {
            return Ok(());
        }
        output.line("")?;
        let mut table = columns(["STEP", "COMPONENT", "NODE", "FROM", "TO"]);
        for step in self.plan.steps {
            let word = match step.action {
                Action::Change => "change",
                Action::Record => "record",
                Action::Wait => "wait",
                Action::Done => "done",
                Action::Off => "off",
            };
            table.add_row([
                word,
                step.component.name(),
                &step.node,
                step.from.as_deref().unwrap_or_default(),
                &step.to,
            ]);
        }
        output.table(&table)
    }

    fn objects(&self, output: &mut Output) -> Result<(), Error> {
        let changed = |preview: &&Preview| preview.change != ObjectChange::Unchanged;
        let changed: Vec<&Preview> = self.plan.objects.iter().filter(changed).collect();
        if changed.is_empty() {
            return Ok(());
        }
        output.line("")?;
        let mut table = columns(["CHANGE", "OBJECT"]);
        for preview in &changed {
            table.add_row([preview.change.to_string(), preview.object.clone()]);
            for field in &preview.fields {
                table.add_row([String::new(), format!("  {field}")]);
            }
        }
        output.table(&table)
    }

    /// Takes in what was done.
    pub(super) fn report(&mut self, report: &'a Report) {
        self.report = Some(report);
    }

    /// Prints what was done.
    pub(super) fn print_report(&self, output: &mut Output) -> Result<(), Error> {
        use crate::output::Format;
        // Line by line, the last event has said it.
        if *output.format() == Format::Ndjson || output.data(self)? {
            return Ok(());
        }
        let Some(report) = self.report else {
            return Ok(());
        };
        output.line(&format!(
            "Kubernetes is on {}: {} changed, {} skipped, {} objects of the manifests changed",
            self.plan.to,
            report.changed.len(),
            report.skipped.len(),
            report.manifests_changed.len()
        ))?;
        if report.api_outages > 0 {
            let seconds = report.api_away_ms as f64 / 1000.0;
            output.line(&format!(
                "the Kubernetes API was away {}, {seconds:.1} s in all",
                times(report.api_outages)
            ))?;
        }
        Ok(())
    }
}

fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_outage_is_told_as_once() {
        assert_eq!((times(1).as_str(), times(2).as_str()), ("once", "2 times"));
    }
}
