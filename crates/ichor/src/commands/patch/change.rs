//! Giving nodes a changed machine config: the difference, the question in a dry run, and the call.

use std::collections::BTreeMap;

use serde::Serialize;
use talos_client::{ApplyMode, MachineConfig, Node};
use talos_config::machine::is_same;
use talos_config::{diff, mask};

use super::order::Order;
use crate::connect::Target;
use crate::error::{Code, Error, Outcome};
use crate::output::Output;
use crate::report::{self, NodeResult};
use crate::session::Session;

/// What a node has before the change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Current {
    active: Option<MachineConfig>,
    persistent: Option<MachineConfig>,
    talos: Option<String>,
}

impl Current {
    /// Reads the configurations and the Talos version of a node.
    pub(crate) async fn read(node: &Node) -> Result<Self, Error> {
        let (configs, version) = futures::join!(node.machine_configs(), node.version());
        let mut current = Self {
            talos: version.ok().map(|version| version.tag),
            ..Self::default()
        };
        for config in configs? {
            match config.id.as_str() {
                MachineConfig::ACTIVE => current.active = Some(config),
                MachineConfig::PERSISTENT => current.persistent = Some(config),
                _ => {}
            }
        }
        Ok(current)
    }

    /// Reads only the version of a node, one in maintenance mode that shows its configuration to nobody.
    pub(crate) async fn read_version(node: &Node) -> Self {
        let version = node.version().await.ok();
        Self {
            talos: version.map(|version| version.tag),
            ..Self::default()
        }
    }

    /// Returns the active configuration.
    pub(crate) fn active(&self) -> Result<&MachineConfig, Error> {
        self.active.as_ref().ok_or_else(|| {
            Error::new(Code::NotFound, "the node has no machine configuration yet")
                .hint("give it one with `ichor apply-config --insecure -f FILE`")
        })
    }

    /// Returns the Talos version; empty if the node did not tell it.
    pub(crate) fn talos(&self) -> &str {
        self.talos.as_deref().unwrap_or_default()
    }

    /// Returns the text of the active configuration; empty if there is none.
    pub(crate) fn text(&self) -> &str {
        self.active
            .as_ref()
            .map(|config| config.text.as_str())
            .unwrap_or_default()
    }

    /// Returns whether a configuration was tried or staged and is not both active and persistent yet.
    pub(crate) fn is_pending(&self) -> bool {
        match (&self.active, &self.persistent) {
            (Some(active), Some(persistent)) => !is_same(&active.text, &persistent.text)
                // What cannot be read is the same only if it is so letter by letter.
                .unwrap_or(false),
            _ => false,
        }
    }
}

/// A changed configuration, not applied yet.
#[derive(Clone)]
pub(crate) struct Made {
    /// The text.
    pub(crate) text: String,
    /// What its author should know.
    pub(crate) warnings: Vec<String>,
    /// The version of the configuration it was made from; another one by now is a conflict.
    pub(crate) expected: Option<String>,
}

/// What became of the configuration of a node.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Change {
    /// Whether the new configuration differs from the active one.
    changed: bool,
    /// Whether the node took it; false in a dry run and where nothing changes.
    applied: bool,
    /// Whether another configuration was tried or staged and is not both active and persistent.
    pending: bool,
    /// How the node applies it: no-reboot, reboot, staged or try; null if it was not asked.
    mode: Option<&'static str>,
    /// What the node says about it.
    details: String,
    /// What the patch or the node warns of.
    warnings: Vec<String>,
    /// The unified difference to the active configuration, secrets masked.
    diff: String,
}

impl Change {
    /// Makes the result for a node that was left as it is.
    pub(crate) fn unchanged(details: &str) -> Self {
        Self {
            changed: false,
            applied: false,
            pending: false,
            mode: None,
            details: details.to_owned(),
            warnings: Vec::new(),
            diff: String::new(),
        }
    }
}

/// Changes the configuration of every node and reports.
///
/// `make` gets what a node has and returns what it shall have.
pub(crate) fn run(
    session: &mut Session,
    target: &Target,
    order: Order,
    make: &dyn Fn(&Current) -> Result<Made, Error>,
) -> Result<Outcome, Error> {
    let runtime = session.runtime()?;
    let currents =
        runtime.run(async { Ok(target.each(async |node| Current::read(&node).await).await) })?;
    apply_all(session, target, order, currents, make)
}

/// Applies what `make` returns to every node that could be read.
pub(crate) fn apply_all(
    session: &mut Session,
    target: &Target,
    order: Order,
    currents: Vec<NodeResult<Current>>,
    make: &dyn Fn(&Current) -> Result<Made, Error>,
) -> Result<Outcome, Error> {
    let mut plans = BTreeMap::new();
    for (name, current) in currents {
        let plan = current.and_then(|current| {
            session.output.learn_secrets_of(current.text());
            let made = check_mode(&current, order)
                .and_then(|()| make(&current))
                .map_err(|error| error.node(&name))?;
            session.output.learn_secrets_of(&made.text);
            warn_pending(&mut session.output, &name, &current, order);
            Ok((current, made))
        });
        plans.insert(name, plan);
    }
    let shown = session.output.shows_secrets();
    let results = session.change_each(target, async |node| {
        let name = node.name().unwrap_or_default();
        match plans.get(name) {
            Some(Ok((current, made))) => apply(&node, current, made.clone(), order, shown).await,
            Some(Err(error)) => Err(error.clone()),
            None => Err(Error::new(Code::Failed, "the node was not read")),
        }
    })?;
    show(&mut session.output, order, &results)
}

/// Refuses a mode that the node's version of Talos does not have.
pub(crate) fn check_mode(current: &Current, order: Order) -> Result<(), Error> {
    if order.mode != ApplyMode::Reboot || !has_no_reboot_mode(current.talos()) {
        return Ok(());
    }
    Err(Error::new(
        Code::Invalid,
        format!("Talos {} has no mode reboot", current.talos()),
    )
    .hint("use --mode auto, and `ichor reboot` if the machine shall start over"))
}

/// Warns, while it can still be stopped, that applying a configuration ends what is being tried or staged.
pub(crate) fn warn_pending(output: &mut Output, node: &str, current: &Current, order: Order) {
    if !order.dry_run && current.is_pending() {
        output.warn(&format!(
            "{node}: a configuration is being tried or staged, and is replaced"
        ));
    }
}

/// Gives a node a configuration, or tells in a dry run what it would do.
pub(crate) async fn apply(
    node: &Node,
    current: &Current,
    made: Made,
    order: Order,
    show_secrets: bool,
) -> Result<Change, Error> {
    let pending = current.is_pending();
    let difference = match show_secrets {
        true => diff::unified(current.text(), &made.text, "active", "new"),
        false => mask::diff(current.text(), &made.text, "active", "new"),
    };
    let mut change = Change {
        changed: made.text != current.text(),
        applied: false,
        pending,
        mode: None,
        details: String::new(),
        warnings: made.warnings,
        diff: difference,
    };
    match (order.dry_run, change.changed) {
        // Only a reboot is something to ask for when nothing changes.
        (false, false) if !pending && order.mode != ApplyMode::Reboot => {
            change.details = "nothing changes".to_owned();
        }
        (true, _) if pending => {
            change.details = "a configuration is being tried or staged, and asking the node would end that: the node was not asked".to_owned();
        }
        (true, false) => change.details = "nothing changes".to_owned(),
        (dry, _) => {
            if let Some(expected) = made.expected.filter(|_| !dry) {
                check_version(node, &expected).await?;
            }
            let applied = node.apply_configuration(order.request(made.text)).await;
            let applied = applied.map_err(|error| unanswered(error.into(), dry))?;
            change.applied = !dry;
            change.mode = applied.mode.map(ApplyMode::as_str);
            change.details = summary(&applied.details);
            change.warnings.extend(applied.warnings);
        }
    }
    Ok(change)
}

/// Prints what became of the nodes.
pub(crate) fn show(
    output: &mut Output,
    order: Order,
    results: &[NodeResult<Change>],
) -> Result<Outcome, Error> {
    report::report(output, results, |output, answered| {
        for (node, change) in answered {
            for warning in &change.warnings {
                output.warn(&format!("{node}: {warning}"));
            }
            if order.dry_run && !change.diff.is_empty() {
                let diff = change.diff.replacen(
                    "--- active\n+++ new\n",
                    &format!("--- {node} active\n+++ {node} new\n"),
                    1,
                );
                output.text(&diff)?;
            }
            let details = change.details.lines().collect::<Vec<_>>().join("\n  ");
            output.line(&format!("{node}: {details}"))?;
        }
        Ok(())
    })
}

/// Refuses to overwrite what somebody else changed since the configuration was read.
async fn check_version(node: &Node, expected: &str) -> Result<(), Error> {
    let now = node.machine_config().await?;
    if now.version == expected {
        return Ok(());
    }
    Err(Error::new(
        Code::Conflict,
        format!(
            "the configuration was changed meanwhile: it was read at version {expected} and is at version {} now",
            now.version
        ),
    )
    .hint("nothing was changed by this run; try again"))
}

/// Warns that a configuration may have been applied although no answer came, as when it changes the node's network.
fn unanswered(error: Error, dry: bool) -> Error {
    match error.code() {
        Code::Unreachable | Code::TimedOut if !dry => error
            .hint("the configuration may have been applied all the same: look with `ichor get mc`"),
        _ => error,
    }
}

/// Returns what a node says without the difference it adds, which may show secrets and is shown already.
fn summary(details: &str) -> String {
    let lines = details
        .lines()
        .take_while(|line| !line.starts_with("Config diff") && !line.starts_with("--- "));
    let lines: Vec<&str> = lines
        .map(str::trim_end)
        .filter(|line| !line.is_empty() && *line != "Dry run summary:")
        .collect();
    lines.join("\n")
}

/// Returns whether a Talos version refuses the mode `reboot`: since 1.14.
fn has_no_reboot_mode(talos: &str) -> bool {
    semver::Version::parse(talos.trim_start_matches('v'))
        .is_ok_and(|version| (version.major, version.minor) >= (1, 14))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_leaves_the_difference_out() {
        let details = "Dry run summary:\nApplied configuration without a reboot (skipped in dry-run).\nConfig diff:\n\n--- a\n+++ b\n-token: x\n";
        assert_eq!(
            summary(details),
            "Applied configuration without a reboot (skipped in dry-run)."
        );
        assert_eq!(summary("Staged configuration"), "Staged configuration");
        assert_eq!(
            summary("with a reboot: type has changed\n--- a\n+++ b\n"),
            "with a reboot: type has changed"
        );
    }

    fn check_pending(active: &str, persistent: Option<&str>, pending: bool) {
        let config = |text: &str| MachineConfig {
            id: String::new(),
            version: String::new(),
            text: text.to_owned(),
        };
        let current = Current {
            active: Some(config(active)),
            persistent: persistent.map(config),
            talos: None,
        };
        assert_eq!(current.is_pending(), pending, "{active:?} {persistent:?}");
    }

    #[test]
    fn a_configuration_is_pending_if_it_means_something_else() {
        check_pending("a: 1", Some("a: 2"), true);
        check_pending("a: 1 # one\n", Some("a: 1\n"), false);
        check_pending("a: [", Some("a: 1"), true);
        check_pending("a: 1", None, false);
    }

    #[test]
    fn the_mode_reboot_is_gone_since_1_14() {
        for (talos, gone) in [
            ("v1.13.9", false),
            ("v1.14.0", true),
            ("v1.14.0-rc.1", true),
            ("", false),
        ] {
            assert_eq!(has_no_reboot_mode(talos), gone, "{talos}");
        }
    }
}
