//! The stage of a machine, as an event and as a resource.

use serde_json::{Value, json};
use talos_api::machine::MachineStatusEvent;
use talos_api::machine::machine_status_event::machine_status::UnmetCondition;
use talos_api::machine::machine_status_event::{MachineStage, MachineStatus};

use crate::node::NodeState;
use crate::shared::Shared;
use crate::store::Draft;

/// Says that a machine runs, and which conditions of readiness are unmet, by name and reason.
pub(crate) fn publish(shared: &Shared, node: &NodeState, unmet: &[(&str, &str)]) {
    publish_stage(shared, node, MachineStage::Running, unmet);
}

/// Says which stage a machine is in.
pub(crate) fn publish_stage(
    shared: &Shared,
    node: &NodeState,
    stage: MachineStage,
    unmet: &[(&str, &str)],
) {
    let now = node.now(shared);
    let is_ready = stage == MachineStage::Running && unmet.is_empty();
    let conditions = unmet.iter().map(|&(name, reason)| UnmetCondition {
        name: name.to_owned(),
        reason: reason.to_owned(),
    });
    let event = MachineStatusEvent {
        stage: stage.into(),
        status: Some(MachineStatus {
            ready: is_ready,
            unmet_conditions: conditions.collect(),
        }),
    };
    node.machine
        .events
        .publish("MachineStatusEvent", &event, "", now);
    let unmet: Vec<Value> = unmet
        .iter()
        .map(|(name, reason)| json!({ "name": name, "reason": reason }))
        .collect();
    let spec = json!({
        "stage": stage_name(stage),
        "status": { "ready": is_ready, "unmetConditions": unmet },
    });
    let owner = "runtime.MachineStatusController";
    let draft = Draft::new(
        "runtime",
        "MachineStatuses.runtime.talos.dev",
        "machine",
        owner,
        spec,
    );
    node.store.put(draft, now);
}

fn stage_name(stage: MachineStage) -> &'static str {
    match stage {
        MachineStage::Unknown => "unknown",
        MachineStage::Booting => "booting",
        MachineStage::Installing => "installing",
        MachineStage::Maintenance => "maintenance",
        MachineStage::Running => "running",
        MachineStage::Rebooting => "rebooting",
        MachineStage::ShuttingDown => "shuttingDown",
        MachineStage::Resetting => "resetting",
        MachineStage::Upgrading => "upgrading",
    }
}
