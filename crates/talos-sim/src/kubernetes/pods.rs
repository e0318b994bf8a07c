//! Pods as they run on simulated nodes: mirror pods of static pods, and pods of workloads.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::objects::{random_uid, seconds};

/// Where pods run.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Name of the node.
    pub(crate) node: String,
    /// Address of the node.
    pub(crate) address: String,
    /// UID of the Node object.
    pub(crate) uid: String,
}

/// What a container is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Container {
    /// Created and not started; the reason says why.
    Waiting(&'static str),
    /// Started, and perhaps not ready yet.
    Running {
        /// Whether it answers.
        ready: bool,
    },
    /// Ended.
    Terminated,
}

/// Returns the mirror pod of a static pod as it is when it has just been created.
pub(crate) fn mirror(static_pod: &Value, place: &Place, now: Timestamp) -> Value {
    let mut pod = static_pod.clone();
    let hash = digest(static_pod, 32);
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    pod["metadata"]["name"] = json!(format!("{name}-{}", place.node));
    let annotations = &mut pod["metadata"]["annotations"];
    annotations["kubernetes.io/config.hash"] = json!(hash);
    annotations["kubernetes.io/config.mirror"] = json!(hash);
    annotations["kubernetes.io/config.seen"] = json!(now.to_string());
    annotations["kubernetes.io/config.source"] = json!("http");
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1",
        "controller": true,
        "kind": "Node",
        "name": place.node,
        "uid": place.uid,
    }]);
    pod["spec"]["nodeName"] = json!(place.node);
    pod["status"] = json!({ "phase": "Pending", "qosClass": quality(&pod) });
    pod
}

/// Returns a new pod of a workload: its template and owner, on no node yet.
pub(crate) fn of_template(template: &Value, namespace: &str, name: &str, owner: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": template["metadata"],
        "spec": template["spec"],
    });
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["namespace"] = json!(namespace);
    if let Some((prefix, _)) = name.rsplit_once('-') {
        pod["metadata"]["generateName"] = json!(format!("{prefix}-"));
    }
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"],
        "blockOwnerDeletion": true,
        "controller": true,
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }]);
    pod["status"] = json!({ "phase": "Pending", "qosClass": quality(&pod) });
    pod
}

/// Writes into a pod what the kubelet reports about its containers.
pub(crate) fn report(pod: &mut Value, place: &Place, container: &Container, now: Timestamp) {
    let time = seconds(now);
    let ready = *container == Container::Running { ready: true };
    let phase = match container {
        Container::Running { .. } => "Running",
        Container::Terminated => "Failed",
        Container::Waiting(_) if pod["status"]["phase"] == "Running" => "Running",
        Container::Waiting(_) => "Pending",
    };
    let containers = pod["spec"]["containers"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let names: Vec<&str> = containers
        .iter()
        .filter_map(|item| item["name"].as_str())
        .collect();
    let condition = |name: &str, holds: bool| {
        let status = if holds { "True" } else { "False" };
        let mut condition = json!({
            "lastProbeTime": null,
            "lastTransitionTime": time,
            "status": status,
            "type": name,
        });
        if !holds {
            let names = names.join(" ");
            condition["message"] = json!(format!("containers with unready status: [{names}]"));
            condition["reason"] = json!("ContainersNotReady");
        }
        condition
    };
    let conditions = json!([
        condition("PodReadyToStartContainers", true),
        condition("Initialized", true),
        condition("Ready", ready),
        condition("ContainersReady", ready),
        condition("PodScheduled", true),
    ]);
    let conditions = keep_transitions(&pod["status"]["conditions"], conditions);
    let before = pod["status"]["containerStatuses"].clone();
    let statuses: Vec<Value> = containers
        .iter()
        .enumerate()
        .map(|(index, item)| container_status(item, container, &before[index], &time))
        .collect();
    let host_network = pod["spec"]["hostNetwork"] == true;
    let number = u16::from_str_radix(&digest(&pod["metadata"]["name"], 4), 16).unwrap_or_default();
    let [high, low] = number.to_be_bytes();
    let own_address = format!("10.244.{high}.{}", low.clamp(2, 254));
    let status = &mut pod["status"];
    let pod_address = if host_network {
        place.address.clone()
    } else {
        status["podIP"].as_str().map_or(own_address, str::to_owned)
    };
    status["conditions"] = conditions;
    status["containerStatuses"] = json!(statuses);
    status["hostIP"] = json!(place.address);
    status["hostIPs"] = json!([{ "ip": place.address }]);
    status["phase"] = json!(phase);
    status["podIP"] = json!(pod_address);
    status["podIPs"] = json!([{ "ip": pod_address }]);
    if !status["startTime"].is_string() {
        status["startTime"] = json!(time);
    }
}

/// Returns a short hash of a value that is always the same, as a name may hold it.
pub(crate) fn digest(value: &Value, length: usize) -> String {
    let hash = Sha256::digest(value.to_string().as_bytes());
    let mut text = String::with_capacity(64);
    for byte in hash {
        // Writing to a string cannot fail.
        let _written = write!(text, "{byte:02x}");
    }
    text.truncate(length);
    text
}

/// Returns the status of one container; one that ran before and still does is the same container.
fn container_status(item: &Value, container: &Container, before: &Value, time: &str) -> Value {
    let image = item["image"].as_str().unwrap_or_default();
    let repository = image
        .rsplit_once(':')
        .map_or(image, |(repository, _)| repository);
    let goes_on = before["image"] == image && before["state"]["running"].is_object();
    let id = if goes_on {
        before["containerID"].clone()
    } else {
        let random = digest(&json!(random_uid()), 64);
        json!(format!("containerd://{random}"))
    };
    let since = before["state"]["running"]["startedAt"]
        .as_str()
        .unwrap_or(time);
    let state = match container {
        Container::Waiting(reason) => json!({ "waiting": { "reason": reason } }),
        Container::Running { .. } if goes_on => json!({ "running": { "startedAt": since } }),
        Container::Running { .. } => json!({ "running": { "startedAt": time } }),
        Container::Terminated => json!({ "terminated": {
            "containerID": id,
            "exitCode": 2,
            "finishedAt": time,
            "reason": "Error",
            "startedAt": since,
        } }),
    };
    // A container with a startup probe counts as started when it is ready.
    let ready = *container == Container::Running { ready: true };
    let mut status = json!({
        "image": image,
        "imageID": "",
        "lastState": {},
        "name": item["name"],
        "ready": ready,
        "resources": item["resources"],
        "restartCount": 0,
        "started": ready,
        "state": state,
    });
    if !matches!(container, Container::Waiting(_)) {
        status["containerID"] = id;
        let image_id = digest(&json!(image), 64);
        status["imageID"] = json!(format!("{repository}@sha256:{image_id}"));
    }
    status
}

/// Conditions whose status stays keep the time of their last transition.
fn keep_transitions(old: &Value, mut new: Value) -> Value {
    for condition in new.as_array_mut().into_iter().flatten() {
        let before =
            old.as_array().into_iter().flatten().find(|old| {
                old["type"] == condition["type"] && old["status"] == condition["status"]
            });
        if let Some(before) = before {
            condition["lastTransitionTime"] = before["lastTransitionTime"].clone();
        }
    }
    new
}

fn quality(pod: &Value) -> &'static str {
    let containers = pod["spec"]["containers"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let asks = |item: &Value| {
        item["resources"]["requests"].is_object() || item["resources"]["limits"].is_object()
    };
    if containers.iter().any(asks) {
        "Burstable"
    } else {
        "BestEffort"
    }
}
