//! The kubelet of one node: it restarts static pods whose manifests changed, and keeps their mirror pods.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::Member;
use super::objects::seconds;
use super::pods::{Container, Place, digest, mirror, report};
use super::talos::{Component, K8S, STATIC_POD_STATUSES, STATIC_PODS, put, tag};
use super::workloads::place;
use crate::node::NodeState;
use crate::shared::Shared;

/// A static pod whose manifest is not what runs.
struct Restart {
    component: Component,
    manifest: Value,
    old: Option<Arc<Value>>,
}

/// Runs the static pods of a control plane until the cluster stops.
pub(crate) async fn run(shared: Arc<Shared>, node: Arc<NodeState>) {
    let member = shared.kubernetes.member(node.index);
    let mut changes = node.store.changes(K8S, STATIC_PODS);
    loop {
        if changes.next().await.is_err() {
            changes = node.store.changes(K8S, STATIC_PODS);
        }
        // The kubelet polls, so that it sees only the last of several changes.
        sleep(shared.options.delays.static_pod_poll).await;
        while let Ok(Some(_)) = changes.try_next() {}
        sync(&shared, &node, &member).await;
    }
}

/// Restarts every static pod whose manifest changed, in the order of facts/real-upgrade.md §3.
async fn sync(shared: &Shared, node: &NodeState, member: &Member) {
    let Some(place) = shared.kubernetes.node(&node.name).map(|object| place(&object)) else { return };
    let restarts = changed(shared, node);
    let delays = &shared.options.delays;
    for restart in &restarts {
        let spec = json!({ "phase": "Pending" });
        write_status(shared, node, &pod_name(restart.component, node), spec);
    }
    if let Some(api) = restarts.iter().find(|restart| restart.component == Component::ApiServer) {
        member.running.send_replace(false);
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
    }
    sleep(delays.mirror_pod).await;
    let replaced: Vec<(Component, Arc<Value>)> = restarts
        .iter()
        .map(|restart| (restart.component, replace(shared, restart, &place)))
        .collect();
    for (component, pod) in &replaced {
        come_up(shared, node, *component, pod, &place);
    }
    sleep(delays.pod_ready).await;
    for (component, pod) in &replaced {
        become_ready(shared, node, member, *component, pod, &place);
    }
}

/// Finds the static pods that do not run as they are rendered.
fn changed(shared: &Shared, node: &NodeState) -> Vec<Restart> {
    let resources = node.store.list(K8S, STATIC_PODS);
    let wanted = resources.iter().filter_map(|resource| {
        Some((Component::of(&resource.metadata.id)?, resource.spec.value().clone()))
    });
    wanted
        .filter_map(|(component, manifest)| {
            let old = shared.kubernetes.pod(&pod_name(component, node));
            let hash = digest(&manifest, 32);
            let runs = old.as_ref().is_some_and(|pod| {
                pod["metadata"]["annotations"]["kubernetes.io/config.mirror"] == hash
            });
            (!runs).then_some(Restart { component, manifest, old })
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

fn write_status(shared: &Shared, node: &NodeState, pod: &str, status: Value) {
    let id = format!("kube-system/{pod}");
    let owner = "k8s.KubeletStaticPodController";
    put(shared, node, (K8S, STATIC_POD_STATUSES, &id), owner, status);
}

fn pod_name(component: Component, node: &NodeState) -> String {
    format!("{}-{}", component.name(), node.name)
}

fn image(pod: &Value) -> &str {
    pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default()
}
