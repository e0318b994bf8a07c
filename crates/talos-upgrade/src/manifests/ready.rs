//! When an object counts as ready.

use serde_json::Value;

/// How far an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// It is ready.
    Ready,
    /// It is not, for this reason.
    Waiting(String),
    /// It will not be, for this reason.
    Failed(String),
}

/// Judges an object by its status.
pub(crate) fn readiness(object: &Value) -> Readiness {
    let waiting = |text: &str| Readiness::Waiting(text.to_owned());
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        return waiting("it is being deleted");
    }
    let generation = number(object, "/metadata/generation");
    let observed = number(object, "/status/observedGeneration");
    if observed.is_some() && observed != generation {
        return waiting("its controller has not seen the change yet");
    }
    if condition(object, "Stalled") == Some("True") {
        return Readiness::Failed("it is stalled".to_owned());
    }
    if condition(object, "Reconciling") == Some("True") {
        return waiting("it is being reconciled");
    }
    match object.pointer("/kind").and_then(Value::as_str) {
        Some("DaemonSet") if observed.is_none() => waiting("its controller has not seen it yet"),
        Some("DaemonSet") => daemon_set(object),
        Some("Deployment") => deployment(object),
        Some("StatefulSet") => {
            let wanted = number(object, "/spec/replicas").unwrap_or(1);
            counts(object, wanted, &["readyReplicas", "currentReplicas"])
        }
        Some("CustomResourceDefinition") => definition(object),
        Some("ConfigMap" | "Secret") => Readiness::Ready,
        Some("Service") => service(object),
        Some("PersistentVolumeClaim") => phase(object, "Bound"),
        Some("Namespace") => phase(object, "Active"),
        _ => match condition(object, "Ready") {
            None | Some("True") => Readiness::Ready,
            Some(_) => waiting("its condition Ready is not true"),
        },
    }
}

fn daemon_set(object: &Value) -> Readiness {
    let wanted = number(object, "/status/desiredNumberScheduled").unwrap_or(0);
    let counters = [
        "currentNumberScheduled",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberReady",
    ];
    counts(object, wanted, &counters)
}

fn deployment(object: &Value) -> Readiness {
    let progressing = conditions(object).find(|condition| condition["type"] == "Progressing");
    let reason = progressing.and_then(|condition| condition["reason"].as_str());
    if reason == Some("ProgressDeadlineExceeded") {
        return Readiness::Failed("it made no progress in time".to_owned());
    }
    let wanted = number(object, "/spec/replicas").unwrap_or(1);
    let counters = [
        "replicas",
        "updatedReplicas",
        "availableReplicas",
        "readyReplicas",
    ];
    let counted = counts(object, wanted, &counters);
    if counted != Readiness::Ready {
        return counted;
    }
    match condition(object, "Available") {
        Some("True") => Readiness::Ready,
        _ => Readiness::Waiting("it is not available".to_owned()),
    }
}

fn definition(object: &Value) -> Readiness {
    if condition(object, "NamesAccepted") == Some("False") {
        return Readiness::Failed("its names are not accepted".to_owned());
    }
    match condition(object, "Established") {
        Some("True") => Readiness::Ready,
        _ => Readiness::Waiting("it is not established".to_owned()),
    }
}

fn service(object: &Value) -> Readiness {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let balanced = text("/spec/type") == Some("LoadBalancer");
    if balanced && text("/spec/clusterIP").is_none_or(str::is_empty) {
        return Readiness::Waiting("it has no address".to_owned());
    }
    Readiness::Ready
}

fn phase(object: &Value, wanted: &str) -> Readiness {
    match object.pointer("/status/phase").and_then(Value::as_str) {
        Some(phase) if phase != wanted => Readiness::Waiting(format!("its phase is {phase}")),
        _ => Readiness::Ready,
    }
}

/// Wants each counter of the status to reach a number; one that is absent is zero.
fn counts(object: &Value, wanted: i64, counters: &[&str]) -> Readiness {
    for counter in counters {
        let found = number(object, &format!("/status/{counter}")).unwrap_or(0);
        if found < wanted {
            return Readiness::Waiting(format!("{counter} is {found} of {wanted}"));
        }
    }
    Readiness::Ready
}

fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    let list = object.pointer("/status/conditions");
    list.and_then(Value::as_array).into_iter().flatten()
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    conditions(object)
        .find(|condition| condition["type"] == kind)
        .and_then(|condition| condition["status"].as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(object: Value, expected: &str) {
        let shown = match readiness(&object) {
            Readiness::Ready => "ready".to_owned(),
            Readiness::Waiting(text) => text,
            Readiness::Failed(text) => format!("failed: {text}"),
        };
        assert_eq!(shown, expected, "{object}");
    }

    #[test]
    fn a_daemon_set_is_ready_when_every_node_runs_the_new_pod() {
        let set = |updated: Value, observed: i64| {
            json!({
                "kind": "DaemonSet",
                "metadata": {"generation": 2},
                "status": {
                    "observedGeneration": observed,
                    "desiredNumberScheduled": 2,
                    "currentNumberScheduled": 2,
                    "updatedNumberScheduled": updated,
                    "numberAvailable": 2,
                    "numberReady": 2,
                },
            })
        };
        check(
            set(json!(2), 1),
            "its controller has not seen the change yet",
        );
        check(set(json!(null), 2), "updatedNumberScheduled is 0 of 2");
        check(set(json!(1), 2), "updatedNumberScheduled is 1 of 2");
        check(set(json!(2), 2), "ready");
        check(
            json!({"kind": "DaemonSet", "metadata": {"generation": 1}, "status": {}}),
            "its controller has not seen it yet",
        );
    }

    #[test]
    fn a_deployment_is_ready_when_it_is_available() {
        let deployment = |ready: i64, conditions: Value| {
            json!({
                "kind": "Deployment",
                "spec": {"replicas": 2},
                "status": {
                    "replicas": 2,
                    "updatedReplicas": 2,
                    "availableReplicas": 2,
                    "readyReplicas": ready,
                    "conditions": conditions,
                },
            })
        };
        let available = json!([{"type": "Available", "status": "True"}]);
        check(deployment(1, available.clone()), "readyReplicas is 1 of 2");
        check(deployment(2, available), "ready");
        check(deployment(2, json!([])), "it is not available");
        let late = json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]);
        check(deployment(1, late), "failed: it made no progress in time");
    }

    #[test]
    fn other_kinds_follow_their_own_rules() {
        check(json!({"kind": "ConfigMap"}), "ready");
        check(json!({"kind": "ClusterRole"}), "ready");
        check(
            json!({"kind": "CustomResourceDefinition", "status": {"conditions": []}}),
            "it is not established",
        );
        check(
            json!({"kind": "Thing", "status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
            "its condition Ready is not true",
        );
        check(
            json!({"kind": "ConfigMap", "metadata": {"deletionTimestamp": "2026-11-30T00:00:00Z"}}),
            "it is being deleted",
        );
    }
}
