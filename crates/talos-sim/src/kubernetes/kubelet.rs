//! The kubelet of one node: static pods and their mirror pods, and what it reports when it has started.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Member;
use super::objects::seconds;
use super::pods::{Container, Place, digest, mirror, report};
use super::seed;
use super::talos::{Component, K8S, STATIC_POD_STATUSES, STATIC_PODS, kubelet_image, put, tag};
use super::workloads::{is_ready, place};
use crate::machine::publish_status;
use crate::node::NodeState;
use crate::shared::Shared;
use crate::store::{ChangeKind, Changes};

/// A static pod whose manifest is not what runs.
struct Restart {
    component: Component,
    manifest: Value,
    old: Option<Arc<Value>>,
}

/// Type of the resources that show which services run.
const SERVICES: &str = "Services.v1alpha1.talos.dev";
/// Type of the resource that shows whether a machine is ready.
const MACHINE_STATUSES: &str = "MachineStatuses.runtime.talos.dev";

/// Reports what a kubelet reports when its service has come up, until the cluster stops.
///
/// `changes` are those of the node's services.
pub(crate) async fn report_starts(shared: Arc<Shared>, node: Arc<NodeState>, mut changes: Changes) {
    loop {
        let Ok(change) = changes.next().await else {
            // The machine rebooted.
            changes = services(&node);
            started(&shared, &node).await;
            continue;
        };
        if *change.resource.metadata.id != *"kubelet" {
            continue;
        }
        // A tombstone still says healthy.
        match change.kind {
            ChangeKind::Destroyed => {
                for status in node.store.list(K8S, STATIC_POD_STATUSES) {
                    node.store
                        .destroy(K8S, STATIC_POD_STATUSES, &status.metadata.id);
                }
            }
            ChangeKind::Created | ChangeKind::Updated => {
                if change.resource.spec.value()["healthy"] == true {
                    started(&shared, &node).await;
                }
            }
        }
    }
}

/// Follows the services of a node from now on.
pub(crate) fn services(node: &NodeState) -> Changes {
    node.store.changes("runtime", SERVICES)
}

/// Follows the static pods of a node from now on.
pub(crate) fn static_pods(node: &NodeState) -> Changes {
    node.store.changes(K8S, STATIC_PODS)
}

/// Runs the static pods of a control plane until the cluster stops; `changes` are theirs.
pub(crate) async fn run(shared: Arc<Shared>, node: Arc<NodeState>, mut changes: Changes) {
    let member = shared.kubernetes.member(node.index);
    loop {
        if changes.next().await.is_err() {
            changes = static_pods(&node);
        }
        // The kubelet polls, so that it sees only the last of several changes.
        sleep(shared.options.delays.static_pod_poll).await;
        while let Ok(Some(_)) = changes.try_next() {}
        sync(&shared, &node, &member).await;
    }
}

/// The first status that a healthy kubelet sends carries its version; then it looks at its pods again.
async fn started(shared: &Shared, node: &NodeState) {
    let kubernetes = &shared.kubernetes;
    sleep(shared.options.delays.node_status).await;
    kubernetes.api_answers().await;
    let image = kubelet_image(node);
    let Some(object) = kubernetes.node(&node.name) else {
        return;
    };
    let place = place(&object);
    kubernetes.change(&object, shared.now(), |object| {
        if let Some(image) = &image {
            let version = tag(image)
                .trim_end_matches("-fat")
                .trim_end_matches("-slim");
            object["status"]["nodeInfo"]["kubeletVersion"] = json!(format!("v{version}"));
        }
        for condition in object["status"]["conditions"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            condition["lastHeartbeatTime"] =
                json!(later(&condition["lastHeartbeatTime"], shared.now()));
        }
    });
    if !node.is_control_plane() {
        return;
    }
    // Only kube-scheduler has a readiness probe, which has to answer again.
    let scheduler = kubernetes
        .pod(&pod_name(Component::Scheduler, node))
        .filter(|pod| is_ready(pod));
    let probe = |ready: bool| {
        if let Some(pod) = &scheduler {
            let container = Container::Running { ready };
            kubernetes.change(pod, shared.now(), |pod| {
                report(pod, &place, &container, shared.now())
            });
        }
        for component in Component::ALL {
            if let Some(pod) = kubernetes.pod(&pod_name(component, node)) {
                report_static_pod(shared, node, &pod);
            }
        }
        publish_readiness(shared, node);
    };
    probe(false);
    sleep(shared.options.delays.pod_ready).await;
    probe(true);
}

/// Restarts every static pod whose manifest changed, in the order of facts/real-upgrade.md §3.
async fn sync(shared: &Shared, node: &NodeState, member: &Member) {
    let Some(place) = shared
        .kubernetes
        .node(&node.name)
        .map(|object| place(&object))
    else {
        return;
    };
    remove_disabled(shared, node);
    let restarts = changed(shared, node);
    let delays = &shared.options.delays;
    for restart in &restarts {
        let spec = json!({ "phase": "Pending" });
        write_status(shared, node, &pod_name(restart.component, node), spec);
    }
    if restarts.is_empty() {
        return;
    }
    publish_readiness(shared, node);
    if let Some(api) = restarts
        .iter()
        .find(|restart| restart.component == Component::ApiServer)
    {
        member.running.send_replace(false);
        member.outages.fetch_add(1, Ordering::Relaxed);
        member.faults.drop_watches();
        sleep(delays.api_server_outage).await;
        let image = image(&api.manifest);
        if node.faults.is_missing(image) {
            // Without its image it stays away, and nobody can be told through it.
            return;
        }
        tag(image).clone_into(&mut super::lock(&member.version));
        member.running.send_replace(true);
        for restart in &restarts {
            show_new_container(shared, restart, &place);
        }
        seed::publish_authorities(shared, node);
    }
    sleep(delays.mirror_pod).await;
    let mut replaced = Vec::new();
    for restart in &restarts {
        let pod = replace(shared, restart, &place);
        come_up(shared, node, restart.component, &pod, &place);
        replaced.push((restart.component, pod));
    }
    // kube-apiserver has no probes to wait for.
    for without_probes in [true, false] {
        sleep(delays.pod_ready / 2).await;
        for (component, pod) in &replaced {
            if (*component == Component::ApiServer) == without_probes {
                become_ready(shared, node, member, *component, pod, &place);
            }
        }
    }
    publish_readiness(shared, node);
}

/// Removes the mirror pods of components that are not rendered any more.
fn remove_disabled(shared: &Shared, node: &NodeState) {
    for component in Component::ALL {
        let name = pod_name(component, node);
        let pod = shared.kubernetes.pod(&name);
        if let (None, Some(pod)) = (node.store.get(K8S, STATIC_PODS, component.name()), pod) {
            shared.kubernetes.remove(&pod, shared.now());
            node.store
                .destroy(K8S, STATIC_POD_STATUSES, &format!("kube-system/{name}"));
        }
    }
}

/// Finds the static pods that do not run as they are rendered, kube-apiserver last.
fn changed(shared: &Shared, node: &NodeState) -> Vec<Restart> {
    let resources = node.store.list(K8S, STATIC_PODS);
    let wanted = resources.iter().rev().filter_map(|resource| {
        Some((
            Component::of(&resource.metadata.id)?,
            resource.spec.value().clone(),
        ))
    });
    wanted
        .filter_map(|(component, manifest)| {
            let old = shared.kubernetes.pod(&pod_name(component, node));
            let hash = digest(&manifest, 32);
            let runs = old.as_ref().is_some_and(|pod| {
                pod["metadata"]["annotations"]["kubernetes.io/config.mirror"] == hash
            });
            (!runs).then_some(Restart {
                component,
                manifest,
                old,
            })
        })
        .collect()
}

/// Once the API is back, the old mirror pod shows the new container before it is replaced.
fn show_new_container(shared: &Shared, restart: &Restart, place: &Place) {
    let Some(old) = &restart.old else { return };
    // kube-apiserver has no probes, so that it is ready as soon as it runs.
    let container = if restart.component == Component::ApiServer {
        Container::Running { ready: true }
    } else {
        Container::Waiting("ContainerCreating")
    };
    shared.kubernetes.change(old, shared.now(), |pod| {
        let declared = pod["spec"].clone();
        pod["status"]["containerStatuses"] = json!([]);
        pod["spec"]["containers"][0]["image"] = json!(image(&restart.manifest));
        report(pod, place, &container, shared.now());
        pod["spec"] = declared;
    });
}

/// Deletes the old mirror pod and creates the new one.
fn replace(shared: &Shared, restart: &Restart, place: &Place) -> Arc<Value> {
    let kubernetes = &shared.kubernetes;
    if let Some(old) = &restart.old {
        kubernetes.change(old, shared.now(), |pod| {
            pod["metadata"]["deletionTimestamp"] = json!(seconds(shared.now()));
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(0);
        });
        kubernetes.remove(old, shared.now());
    }
    kubernetes.store(mirror(&restart.manifest, place, shared.now()), shared.now())
}

/// Lets the container of a new mirror pod start; kube-apiserver runs already.
fn come_up(shared: &Shared, node: &NodeState, component: Component, pod: &Value, place: &Place) {
    if component == Component::ApiServer {
        return;
    }
    let show = |container: Container| {
        shared.kubernetes.change(pod, shared.now(), |pod| {
            report(pod, place, &container, shared.now());
        });
    };
    if node.faults.is_missing(image(pod)) {
        show(Container::Waiting("ErrImagePull"));
        return;
    }
    show(Container::Waiting("ContainerCreating"));
    show(Container::Running { ready: false });
}

fn become_ready(
    shared: &Shared,
    node: &NodeState,
    member: &Member,
    component: Component,
    pod: &Value,
    place: &Place,
) {
    if !node.faults.is_missing(image(pod)) {
        let ready = !member.faults.stays_unready(component.name());
        shared.kubernetes.change(pod, shared.now(), |pod| {
            report(pod, place, &Container::Running { ready }, shared.now());
        });
    }
    if let Some(pod) = shared.kubernetes.pod(&pod_name(component, node)) {
        report_static_pod(shared, node, &pod);
    }
}

/// Shows the status of a mirror pod as a resource of its node.
pub(crate) fn report_static_pod(shared: &Shared, node: &NodeState, pod: &Value) {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    write_status(shared, node, name, pod["status"].clone());
}

/// Says whether the machine is ready as far as its static pods go, if that changed.
fn publish_readiness(shared: &Shared, node: &NodeState) {
    let statuses = node.store.list(K8S, STATIC_POD_STATUSES);
    let problems: Vec<String> = statuses
        .iter()
        .filter_map(|resource| {
            let status = resource.spec.value();
            let problem = if status["phase"] == "Pending" {
                "pending"
            } else if is_ready(&json!({ "status": status })) {
                return None;
            } else {
                "not ready"
            };
            Some(format!("{} {problem}", resource.metadata.id))
        })
        .collect();
    let reason = problems.join(", ");
    let unmet: &[(&str, &str)] = if reason.is_empty() {
        &[]
    } else {
        &[("staticPods", &reason)]
    };
    let shown = node.store.get("runtime", MACHINE_STATUSES, "machine");
    let shown = shown.map(|resource| resource.spec.value()["status"]["unmetConditions"].clone());
    let wanted: Vec<Value> = unmet
        .iter()
        .map(|(name, reason)| json!({ "name": name, "reason": reason }))
        .collect();
    if shown != Some(Value::Array(wanted)) {
        publish_status(shared, node, unmet);
    }
}

/// Returns the time as Kubernetes writes it, at least a second after the last heartbeat, so that
/// each one can be seen.
fn later(last: &Value, now: Timestamp) -> String {
    let last = last
        .as_str()
        .and_then(|last| last.parse::<Timestamp>().ok());
    let next = last.and_then(|last| last.checked_add(SignedDuration::from_secs(1)).ok());
    seconds(next.map_or(now, |next| next.max(now)))
}

fn write_status(shared: &Shared, node: &NodeState, pod: &str, status: Value) {
    let id = format!("kube-system/{pod}");
    let owner = "k8s.KubeletStaticPodController";
    put(shared, node, (K8S, STATIC_POD_STATUSES, &id), owner, status);
}

fn pod_name(component: Component, node: &NodeState) -> String {
    format!("{}-{}", component.name(), node.name)
}

fn image(pod: &Value) -> &str {
    pod["spec"]["containers"][0]["image"]
        .as_str()
        .unwrap_or_default()
}
