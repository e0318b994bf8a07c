//! Statuses of DaemonSets and Deployments, counted from their pods.

use std::sync::Arc;

use serde_json::{Value, json};

use super::objects::seconds;
use super::pods::digest;
use super::workloads::{REVISION, TEMPLATE_HASH, is_ready, owned, places};
use crate::shared::Shared;

/// Writes the status of a DaemonSet and tells whether that changed anything.
pub(crate) fn daemon_set_status(shared: &Shared, set: &Value, observed: Value) -> bool {
    let revision = digest(&set["spec"]["template"], 10);
    let pods = owned(shared, "v1", "Pod", set);
    let desired = places(shared).len();
    let alive = |pod: &&Arc<Value>| pod["status"]["phase"] != "Failed";
    let updated = pods
        .iter()
        .filter(alive)
        .filter(|pod| pod["metadata"]["labels"][REVISION] == *revision)
        .count();
    let ready = pods.iter().filter(|pod| is_ready(pod)).count();
    let mut status = json!({
        "currentNumberScheduled": pods.iter().filter(alive).count().min(desired),
        "desiredNumberScheduled": desired,
        "numberAvailable": ready,
        "numberMisscheduled": 0,
        "numberReady": ready,
        "observedGeneration": observed,
    });
    // Zero is shown by absence.
    if updated > 0 {
        status["updatedNumberScheduled"] = json!(updated);
    }
    if ready < desired {
        status["numberUnavailable"] = json!(desired - ready);
    }
    shared
        .kubernetes
        .change(set, shared.now(), |set| set["status"] = status)
}

/// Writes the statuses of a Deployment and its ReplicaSets and tells whether that changed anything.
pub(crate) fn deployment_status(shared: &Shared, deployment: &Value) -> bool {
    let kubernetes = &shared.kubernetes;
    let hash = digest(&deployment["spec"]["template"], 10);
    let wanted = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
    let (mut all, mut ready, mut updated) = (0, 0, 0);
    let mut changed = false;
    let mut current_name = String::new();
    for set in owned(shared, "apps/v1", "ReplicaSet", deployment) {
        let pods = owned(shared, "v1", "Pod", &set);
        let ready_pods = pods.iter().filter(|pod| is_ready(pod)).count() as u64;
        let is_current = set["metadata"]["labels"][TEMPLATE_HASH] == *hash;
        let size = if is_current { wanted } else { 0 };
        all += pods.len() as u64;
        ready += ready_pods;
        if is_current {
            updated = pods.len() as u64;
            set["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .clone_into(&mut current_name);
        }
        changed |= kubernetes.change(&set, shared.now(), |set| {
            set["spec"]["replicas"] = json!(size);
            set["status"] = json!({
                "availableReplicas": ready_pods,
                "fullyLabeledReplicas": pods.len(),
                "observedGeneration": set["metadata"]["generation"],
                "readyReplicas": ready_pods,
                "replicas": pods.len(),
            });
        });
    }
    let done = updated == wanted && all == wanted && ready == wanted;
    let time = seconds(shared.now());
    let condition = |kind: &str, holds: bool, reason: &str, message: &str| {
        let old = deployment["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten();
        let status = if holds { "True" } else { "False" };
        let since = old
            .filter(|old| old["type"] == kind && old["status"] == status && old["reason"] == reason)
            .find_map(|old| old["lastUpdateTime"].as_str())
            .unwrap_or(&time);
        json!({
            "lastTransitionTime": since,
            "lastUpdateTime": since,
            "message": message,
            "reason": reason,
            "status": status,
            "type": kind,
        })
    };
    let progressing = if done {
        let message = format!("ReplicaSet \"{current_name}\" has successfully progressed.");
        condition("Progressing", true, "NewReplicaSetAvailable", &message)
    } else {
        let message = format!("ReplicaSet \"{current_name}\" is progressing.");
        condition("Progressing", true, "ReplicaSetUpdated", &message)
    };
    let available = if ready > 0 || wanted == 0 {
        let message = "Deployment has minimum availability.";
        condition("Available", true, "MinimumReplicasAvailable", message)
    } else {
        let message = "Deployment does not have minimum availability.";
        condition("Available", false, "MinimumReplicasUnavailable", message)
    };
    let mut status = json!({
        "conditions": [progressing, available],
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": all,
        "updatedReplicas": updated,
        "readyReplicas": ready,
        "availableReplicas": ready,
    });
    if ready < wanted {
        status["unavailableReplicas"] = json!(wanted - ready);
    }
    changed |= kubernetes.change(deployment, shared.now(), |deployment| {
        deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = json!("1");
        deployment["status"] = status;
    });
    changed
}
