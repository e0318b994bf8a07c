//! Going down and coming up again, and leaving maintenance mode.

use std::sync::Arc;

use talos_api::common;
use talos_api::machine::machine_status_event::MachineStage;
use talos_api::machine::{
    PhaseEvent, Reboot, RebootRequest, RebootResponse, RestartEvent, SequenceEvent, TaskEvent,
    phase_event, reboot_request, sequence_event, task_event,
};
use tonic::Status;

use crate::apid::Context;
use crate::certificates;
use crate::cosi::Seeds;
use crate::faults::Reach;
use crate::kubernetes;
use crate::machine::state::uuid;
use crate::machine::status;
use crate::node::NodeState;
use crate::options::Platform;
use crate::seeding;
use crate::servers;
use crate::shared::Shared;

/// What the kernel is told in order to restart the machine.
const LINUX_REBOOT_RESTART: i64 = 0x0123_4567;
/// The same for a restart without going through firmware.
const LINUX_REBOOT_KEXEC: i64 = 0x4558_4543;

/// Phases of a reboot with the task of each.
const PHASES: [(&str, &str); 9] = [
    ("cleanup", "stopAllPods"),
    ("dbus", "stopDBus"),
    ("stopServices", "stopServicesForUpgrade"),
    ("umount", "umountPodMounts"),
    ("unmountBind", "unmountBindMounts"),
    ("unmountSystem", "unmountSystemDisks"),
    ("volumeFinalize", "teardownVolumes"),
    ("kexec", "kexecPrepare"),
    ("stopEverything", "stopAllServices"),
];

/// How a machine reboots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Through all phases, into the next kernel directly.
    Graceful,
    /// Through all phases, with a power cycle.
    PowerCycle,
    /// At once.
    Forced,
}

/// `Reboot`: answers at once, then the machine goes away and comes back.
pub(crate) async fn reboot(
    context: Context,
    request: RebootRequest,
) -> Result<RebootResponse, Status> {
    if context.shared.options.platform == Platform::Container {
        return Err(Status::failed_precondition(
            "method is not supported in container mode",
        ));
    }
    let kind = match reboot_request::Mode::try_from(request.mode) {
        Ok(reboot_request::Mode::Powercycle) => Kind::PowerCycle,
        Ok(reboot_request::Mode::Force) => Kind::Forced,
        _ => Kind::Graceful,
    };
    let actor_id = start(&context.shared, &context.node, kind);
    Ok(RebootResponse {
        messages: vec![Reboot {
            metadata: None,
            actor_id,
        }],
    })
}

/// Starts a reboot and returns the id of its events.
pub(crate) fn start(shared: &Arc<Shared>, node: &Arc<NodeState>, kind: Kind) -> String {
    let actor = uuid();
    let (shared, node, id) = (shared.clone(), node.clone(), actor.clone());
    shared.clone().spawn(async move {
        go_down(&shared, &node, kind, &id).await;
        tokio::time::sleep(shared.options.delays.reboot).await;
        come_up(&shared, &node).await;
    });
    actor
}

/// A configured machine takes its place in the cluster, on the same port with another certificate.
pub(crate) fn leave_maintenance(shared: &Arc<Shared>, node: &Arc<NodeState>) {
    let (shared, node) = (shared.clone(), node.clone());
    shared.clone().spawn(async move {
        // The answer still goes out over the old connection.
        tokio::time::sleep(shared.options.delays.phase).await;
        node.store.reboot();
        fill(&shared, &node).await;
        node.faults.drop_connections();
        status::publish(&shared, &node, &[]);
    });
}

async fn go_down(shared: &Shared, node: &NodeState, kind: Kind, actor: &str) {
    let delay = shared.options.delays.phase;
    sequence(shared, node, sequence_event::Action::Start, actor);
    status::publish_stage(shared, node, MachineStage::Rebooting, &[]);
    tokio::time::sleep(delay).await;
    let skipped = |name: &str| match kind {
        Kind::Graceful => false,
        Kind::PowerCycle => name == "kexec",
        Kind::Forced => true,
    };
    for (phase, task) in PHASES.into_iter().filter(|(phase, _)| !skipped(phase)) {
        phase_event(shared, node, phase, phase_event::Action::Start, actor);
        task_event(shared, node, task, task_event::Action::Start, actor);
        task_event(shared, node, task, task_event::Action::Stop, actor);
        phase_event(shared, node, phase, phase_event::Action::Stop, actor);
        tokio::time::sleep(delay).await;
    }
    phase_event(shared, node, "reboot", phase_event::Action::Start, actor);
    task_event(shared, node, "reboot", task_event::Action::Start, actor);
    let cmd = if kind == Kind::Graceful {
        LINUX_REBOOT_KEXEC
    } else {
        LINUX_REBOOT_RESTART
    };
    node.machine.events.publish(
        "RestartEvent",
        &RestartEvent { cmd },
        actor,
        node.now(shared),
    );
    // Streams get a moment to carry the last events away.
    tokio::time::sleep(delay).await;
    kubernetes::set_running(shared, node.index, false);
    node.faults.set_reach(Reach::Refusing);
}

async fn come_up(shared: &Arc<Shared>, node: &Arc<NodeState>) {
    if let Some(persistent) = node.configs.persistent_config() {
        node.configs.set_active(persistent);
    }
    node.machine.reboot();
    node.store.reboot();
    fill(shared, node).await;
    kubernetes::set_running(shared, node.index, true);
    status::publish_stage(shared, node, MachineStage::Booting, &[]);
    node.faults.set_reach(Reach::Up);
    tokio::time::sleep(shared.options.delays.phase).await;
    tell_boot(shared, node);
}

/// Tells that a machine has booted.
pub(crate) fn tell_boot(shared: &Shared, node: &NodeState) {
    sequence_named(shared, node, "boot", sequence_event::Action::Start, "");
    sequence_named(shared, node, "boot", sequence_event::Action::Stop, "");
    let stage = match node.configs.in_maintenance() {
        true => MachineStage::Maintenance,
        false => MachineStage::Running,
    };
    status::publish_stage(shared, node, stage, &[]);
}

/// Fills the store of a machine that starts with its active configuration.
async fn fill(shared: &Arc<Shared>, node: &Arc<NodeState>) {
    let seeds = Seeds::new(seeding::site(shared), shared.now());
    if let Some(config) = node.documents() {
        node.adopt(&config);
        node.reopen_kubernetes_gate();
    }
    // Issuing fails only if the random source does; the machine then keeps its old certificate.
    let _kept = seeding::boot(shared, &seeds, node, &node.cert_sans());
    if !node.configs.in_maintenance() {
        let _kept = certificates::issue(shared, node);
        let _kept = kubernetes::booted(shared, node).await;
        let _kept = servers::start(shared, node);
    }
}

fn sequence(shared: &Shared, node: &NodeState, action: sequence_event::Action, actor: &str) {
    sequence_named(shared, node, "reboot", action, actor);
}

fn sequence_named(
    shared: &Shared,
    node: &NodeState,
    name: &str,
    action: sequence_event::Action,
    actor: &str,
) {
    let error: Option<common::Error> = None;
    let event = SequenceEvent {
        sequence: name.to_owned(),
        action: action.into(),
        error,
    };
    node.machine
        .events
        .publish("SequenceEvent", &event, actor, node.now(shared));
}

fn phase_event(
    shared: &Shared,
    node: &NodeState,
    phase: &str,
    action: phase_event::Action,
    actor: &str,
) {
    let event = PhaseEvent {
        phase: phase.to_owned(),
        action: action.into(),
    };
    node.machine
        .events
        .publish("PhaseEvent", &event, actor, node.now(shared));
}

fn task_event(
    shared: &Shared,
    node: &NodeState,
    task: &str,
    action: task_event::Action,
    actor: &str,
) {
    let event = TaskEvent {
        task: task.to_owned(),
        action: action.into(),
    };
    node.machine
        .events
        .publish("TaskEvent", &event, actor, node.now(shared));
}
