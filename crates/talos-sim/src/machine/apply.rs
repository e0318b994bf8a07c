//! `ApplyConfiguration`: checks in the machine's order, then one of its modes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use talos_api::machine::apply_configuration_request::Mode;
use talos_api::machine::{
    ApplyConfiguration, ApplyConfigurationRequest, ApplyConfigurationResponse,
};
use tonic::Status;

use crate::apid::Context;
use crate::certificates;
use crate::config::{self, ConfigText, Documents};
use crate::kubernetes;
use crate::machine::reboot;
use crate::node::NodeState;
use crate::options::TalosVersion;
use crate::seeding;
use crate::shared::Shared;

/// Rollback time of try mode when the request names none.
const TRY_TIMEOUT: Duration = Duration::from_secs(60);

/// What a machine remembers between calls.
#[derive(Debug, Default)]
pub(crate) struct Apply {
    running: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// A configuration was applied that reboots the machine.
    rebooting: bool,
    /// Number of the last trial; an older trial's timer does nothing.
    trial: u64,
    /// What the running trial falls back to.
    before: Option<Arc<ConfigText>>,
}

impl Apply {
    /// The machine has booted.
    pub(crate) fn booted(&self) {
        let mut state = self.lock();
        state.rebooting = false;
        state.before = None;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Applies a configuration.
pub(crate) async fn apply(
    context: Context,
    request: ApplyConfigurationRequest,
) -> Result<ApplyConfigurationResponse, Status> {
    let Context { shared, node, .. } = &context;
    let version = shared.options.talos_version;
    let apply = &node.machine.apply;
    let running = apply.running.try_lock();
    if running.is_err() && version >= TalosVersion::V1_13_9 {
        return Err(Status::failed_precondition(
            "another apply configuration is in progress",
        ));
    }
    if apply.lock().rebooting && version == TalosVersion::V1_13_9 {
        return Err(Status::failed_precondition(
            "the machine is about to reboot",
        ));
    }
    if !shared.options.delays.apply.is_zero() {
        tokio::time::sleep(shared.options.delays.apply).await;
    }
    let asked = Mode::try_from(request.mode).unwrap_or(Mode::Reboot);
    if asked != Mode::Try {
        apply.lock().before = None;
    }

    let text = String::from_utf8_lossy(&request.data).into_owned();
    let new = config::decode(&text, version).map_err(Status::invalid_argument)?;
    let in_maintenance = node.configs.in_maintenance();
    if !in_maintenance && new.main().is_none() {
        let text = "the applied machine configuration doesn't contain v1alpha1 config, did you mean to patch the machine config instead?";
        return Err(Status::invalid_argument(text));
    }
    let findings = config::validate(&new, shared.options.platform);
    if !findings.errors.is_empty() {
        return Err(Status::invalid_argument(config::report(&findings.errors)));
    }
    let old = node.documents().unwrap_or_default();
    let (mode, reason) = resolve(asked, version, in_maintenance, &old, &new)?;
    let timeout = trial_timeout(&request);

    let mut entry = ApplyConfiguration {
        mode: mode.into(),
        ..ApplyConfiguration::default()
    };
    if request.dry_run {
        let (done, diff) = (dry_details(mode), config::diff(&old, &new));
        entry.mode_details =
            format!("Dry run summary:\n{done} (skipped in dry-run).\nConfig diff:\n\n{diff}");
        return Ok(ApplyConfigurationResponse {
            messages: vec![entry],
        });
    }
    entry.warnings = findings.warnings;
    entry.mode_details = match (&reason, mode) {
        (Some(reason), _) => {
            let diff = config::diff(&old, &new);
            format!("{}: {reason} has changed\n{diff}", dry_details(mode))
        }
        (None, Mode::Try) => format!("Applied configuration for a trial, rollback in {timeout:?}"),
        (None, _) => dry_details(mode).to_owned(),
    };
    act(
        shared,
        node,
        mode,
        ConfigText::read(text, Arc::new(new)),
        timeout,
    );
    Ok(ApplyConfigurationResponse {
        messages: vec![entry],
    })
}

/// The mode that is really used, and for a reboot that was not asked for, what causes it.
fn resolve(
    asked: Mode,
    version: TalosVersion,
    in_maintenance: bool,
    old: &Documents,
    new: &Documents,
) -> Result<(Mode, Option<String>), Status> {
    if in_maintenance {
        return Ok(match asked {
            Mode::Reboot | Mode::Auto => (Mode::NoReboot, None),
            other => (other, None),
        });
    }
    if version >= TalosVersion::V1_14 {
        return match asked {
            Mode::Reboot => Err(Status::unimplemented("reboot mode is no longer supported")),
            Mode::Auto => Ok((Mode::NoReboot, None)),
            other => Ok((other, None)),
        };
    }
    let cause = config::needs_reboot(version, old, new);
    match (asked, cause) {
        (Mode::Auto, None) => Ok((Mode::NoReboot, None)),
        (Mode::Auto, Some(cause)) => Ok((Mode::Reboot, Some(cause))),
        (Mode::NoReboot | Mode::Try, Some(cause)) => {
            let diff = config::diff(old, new);
            let text = format!(
                "this config change can't be applied without a reboot: {cause} has changed\ndiff: {diff}"
            );
            Err(Status::invalid_argument(text))
        }
        (other, _) => Ok((other, None)),
    }
}

fn dry_details(mode: Mode) -> &'static str {
    match mode {
        Mode::Reboot => "Applied configuration with a reboot",
        Mode::Staged => "Staged configuration to be applied after the next reboot",
        Mode::Auto | Mode::NoReboot | Mode::Try => "Applied configuration without a reboot",
    }
}

fn trial_timeout(request: &ApplyConfigurationRequest) -> Duration {
    let Some(asked) = request.try_mode_timeout else {
        return TRY_TIMEOUT;
    };
    let seconds = u64::try_from(asked.seconds).unwrap_or_default();
    Duration::new(seconds, u32::try_from(asked.nanos).unwrap_or_default())
}

fn act(
    shared: &Arc<Shared>,
    node: &Arc<NodeState>,
    mode: Mode,
    new: Arc<ConfigText>,
    timeout: Duration,
) {
    match mode {
        Mode::Staged => {
            node.configs.set_persistent(new);
            seeding::write_persistent(shared, node);
        }
        Mode::Reboot => {
            node.configs.set_persistent(new);
            seeding::write_persistent(shared, node);
            node.machine.apply.lock().rebooting = true;
            reboot::start(shared, node, reboot::Kind::Graceful);
        }
        Mode::Try => {
            let before = node.configs.active_config();
            activate(shared, node, new);
            if let Some(before) = before {
                roll_back_later(shared, node, before, timeout);
            }
        }
        Mode::Auto | Mode::NoReboot => {
            node.configs.set_persistent(new.clone());
            seeding::write_persistent(shared, node);
            activate(shared, node, new);
        }
    }
}

/// Makes a configuration active and lets everything react to it.
fn activate(shared: &Arc<Shared>, node: &Arc<NodeState>, new: Arc<ConfigText>) {
    let was_in_maintenance = node.configs.in_maintenance();
    let documents = new.documents();
    node.configs.set_active(new);
    seeding::write_active(shared, node);
    if node.configs.in_maintenance() {
        return;
    }
    if was_in_maintenance {
        reboot::leave_maintenance(shared, node);
    } else {
        certificates::config_applied(shared, node, &documents);
    }
    kubernetes::config_applied(shared, node.index, &documents);
}

fn roll_back_later(
    shared: &Arc<Shared>,
    node: &Arc<NodeState>,
    before: Arc<ConfigText>,
    timeout: Duration,
) {
    let trial = {
        let mut state = node.machine.apply.lock();
        state.before = Some(before);
        state.trial += 1;
        state.trial
    };
    let timeout = match shared.options.delays.try_rollback {
        Some(instead) if !timeout.is_zero() => instead,
        _ => timeout,
    };
    let (shared, node) = (shared.clone(), node.clone());
    shared.clone().spawn(async move {
        tokio::time::sleep(timeout).await;
        let is_last = node.machine.apply.lock().trial == trial;
        if is_last {
            roll_back(&shared, &node);
        }
    });
}

/// Ends a running trial; tells whether there was one.
pub(crate) fn roll_back(shared: &Arc<Shared>, node: &Arc<NodeState>) -> bool {
    let before = node.machine.apply.lock().before.take();
    let Some(before) = before else { return false };
    activate(shared, node, before);
    true
}
