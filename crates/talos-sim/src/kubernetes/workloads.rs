//! The controllers of a cluster: they run the pods of DaemonSets and Deployments and keep statuses true.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::objects::{seconds, suffix};
use super::pods::{Container, Place, digest, of_template, report};
use super::statuses::{daemon_set_status, deployment_status};
use crate::shared::Shared;

/// Label that tells from which version of a DaemonSet a pod was made.
pub(crate) const REVISION: &str = "controller-revision-hash";
/// Label that tells from which version of a Deployment a pod was made.
pub(crate) const TEMPLATE_HASH: &str = "pod-template-hash";

/// Follows workloads until the cluster stops.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut revisions = shared.kubernetes.objects.revisions();
    loop {
        revisions.borrow_and_update();
        shared.kubernetes.api_answers().await;
        if !step(&shared).await && revisions.changed().await.is_err() {
            return;
        }
    }
}

/// Runs the pods of all workloads at once, as in a cluster that has been up for a while.
pub(crate) fn settle(shared: &Shared) {
    let kubernetes = &shared.kubernetes;
    let places = places(shared);
    for set in kubernetes.all("apps/v1", "DaemonSet") {
        let revision = digest(&set["spec"]["template"], 10);
        for place in &places {
            let pod = daemon_pod(&set, &revision, place);
            start(shared, pod, place);
        }
        daemon_set_status(shared, &set, set["metadata"]["generation"].clone());
    }
    for deployment in kubernetes.all("apps/v1", "Deployment") {
        let replica_set = new_replica_set(shared, &deployment);
        let wanted = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
        if let Some(place) = places.first() {
            for _ in 0..wanted {
                start(shared, replica_pod(&replica_set), place);
            }
        }
        deployment_status(shared, &deployment);
    }
}

/// Does the next thing that has to be done and tells whether there was one.
async fn step(shared: &Shared) -> bool {
    let kubernetes = &shared.kubernetes;
    if collect_garbage(shared) {
        return true;
    }
    for set in kubernetes.all("apps/v1", "DaemonSet") {
        if daemon_set(shared, &set).await {
            return true;
        }
    }
    for deployment in kubernetes.all("apps/v1", "Deployment") {
        if self::deployment(shared, &deployment).await {
            return true;
        }
    }
    false
}

/// Deletes one object whose owner is gone.
fn collect_garbage(shared: &Shared) -> bool {
    let kubernetes = &shared.kubernetes;
    let mut owners: Vec<Value> = Vec::new();
    for kind in ["DaemonSet", "Deployment", "ReplicaSet"] {
        owners.extend(
            kubernetes
                .all("apps/v1", kind)
                .iter()
                .map(|owner| owner["metadata"]["uid"].clone()),
        );
    }
    for (version, kind) in [("v1", "Pod"), ("apps/v1", "ReplicaSet")] {
        for object in kubernetes.all(version, kind) {
            let owner = &object["metadata"]["ownerReferences"][0];
            let is_ours = matches!(
                owner["kind"].as_str(),
                Some("DaemonSet" | "Deployment" | "ReplicaSet")
            );
            if is_ours && !owners.contains(&owner["uid"]) {
                kubernetes.remove(&object, shared.now());
                return true;
            }
        }
    }
    false
}

/// Brings one DaemonSet one node further.
async fn daemon_set(shared: &Shared, set: &Value) -> bool {
    let kubernetes = &shared.kubernetes;
    let generation = &set["metadata"]["generation"];
    if set["status"]["observedGeneration"] != *generation {
        return daemon_set_status(shared, set, generation.clone());
    }
    let revision = digest(&set["spec"]["template"], 10);
    let mut by_node: BTreeMap<String, Vec<Arc<Value>>> = BTreeMap::new();
    for pod in owned(shared, "v1", "Pod", set) {
        let node = pod["spec"]["nodeName"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        by_node.entry(node).or_default().push(pod);
    }
    let places = places(shared);
    let next = places.iter().find(|place| {
        let pods = by_node.get(&place.node);
        !pods.is_some_and(|pods| {
            pods.iter()
                .any(|pod| pod["metadata"]["labels"][REVISION] == *revision)
        })
    });
    let Some(place) = next else {
        return daemon_set_status(shared, set, generation.clone());
    };
    let pause = shared.options.delays.daemon_set_pod / 2;
    let old = by_node.remove(&place.node).unwrap_or_default();
    for pod in &old {
        kubernetes.change(pod, shared.now(), |pod| {
            pod["metadata"]["deletionTimestamp"] = json!(seconds(shared.now()));
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        });
    }
    rest(pause).await;
    for pod in &old {
        kubernetes.change(pod, shared.now(), |pod| {
            report(pod, place, &Container::Terminated, shared.now())
        });
    }
    let new = kubernetes.store(daemon_pod(set, &revision, place), shared.now());
    daemon_set_status(shared, set, generation.clone());
    for pod in &old {
        kubernetes.remove(pod, shared.now());
    }
    run_pod(shared, &new, place, pause).await;
    daemon_set_status(shared, set, generation.clone());
    true
}

/// Brings one Deployment to its present template and size.
async fn deployment(shared: &Shared, deployment: &Value) -> bool {
    let kubernetes = &shared.kubernetes;
    let sets = owned(shared, "apps/v1", "ReplicaSet", deployment);
    let hash = digest(&deployment["spec"]["template"], 10);
    let current = sets
        .iter()
        .find(|set| set["metadata"]["labels"][TEMPLATE_HASH] == *hash);
    let wanted = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
    let Some(current) = current else {
        new_replica_set(shared, deployment);
        return true;
    };
    let pods = owned(shared, "v1", "Pod", current);
    let pause = shared.options.delays.daemon_set_pod / 2;
    let running = u64::try_from(pods.len()).unwrap_or_default();
    if running < wanted {
        let places = places(shared);
        let Some(place) = places.iter().cycle().nth(pods.len()) else {
            return false;
        };
        let pod = kubernetes.store(replica_pod(current), shared.now());
        deployment_status(shared, deployment);
        run_pod(shared, &pod, place, pause).await;
        deployment_status(shared, deployment);
        return true;
    }
    if let (true, Some(extra)) = (running > wanted, pods.last()) {
        kubernetes.remove(extra, shared.now());
        return true;
    }
    for set in sets
        .iter()
        .filter(|set| set["metadata"]["uid"] != current["metadata"]["uid"])
    {
        if let Some(old) = owned(shared, "v1", "Pod", set).first() {
            kubernetes.remove(old, shared.now());
            return true;
        }
    }
    deployment_status(shared, deployment)
}

/// Lets a pod come up on a node.
async fn run_pod(shared: &Shared, pod: &Value, place: &Place, pause: Duration) {
    let kubernetes = &shared.kubernetes;
    kubernetes.change(pod, shared.now(), |pod| {
        pod["spec"]["nodeName"] = json!(place.node)
    });
    let waiting = Container::Waiting("ContainerCreating");
    kubernetes.change(pod, shared.now(), |pod| {
        report(pod, place, &waiting, shared.now())
    });
    rest(pause).await;
    let running = Container::Running { ready: true };
    kubernetes.change(pod, shared.now(), |pod| {
        report(pod, place, &running, shared.now())
    });
}

/// Stores a pod that runs.
fn start(shared: &Shared, mut pod: Value, place: &Place) {
    pod["spec"]["nodeName"] = json!(place.node);
    report(
        &mut pod,
        place,
        &Container::Running { ready: true },
        shared.now(),
    );
    shared.kubernetes.store(pod, shared.now());
}

fn daemon_pod(set: &Value, revision: &str, place: &Place) -> Value {
    let name = set["metadata"]["name"].as_str().unwrap_or_default();
    let namespace = set["metadata"]["namespace"].as_str().unwrap_or_default();
    let template = &set["spec"]["template"];
    let mut pod = of_template(template, namespace, &format!("{name}-{}", suffix(5)), set);
    let labels = &mut pod["metadata"]["labels"];
    labels[REVISION] = json!(revision);
    let generation = set["metadata"]["generation"].as_u64().unwrap_or(1);
    labels["pod-template-generation"] = json!(generation.to_string());
    pod["spec"]["affinity"] = json!({ "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{
            "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [place.node] }],
        }] },
    } });
    pod
}

fn replica_pod(replica_set: &Value) -> Value {
    let name = replica_set["metadata"]["name"].as_str().unwrap_or_default();
    let namespace = replica_set["metadata"]["namespace"]
        .as_str()
        .unwrap_or_default();
    let template = &replica_set["spec"]["template"];
    of_template(
        template,
        namespace,
        &format!("{name}-{}", suffix(5)),
        replica_set,
    )
}

/// Creates the ReplicaSet of a Deployment's present template.
fn new_replica_set(shared: &Shared, deployment: &Value) -> Arc<Value> {
    let metadata = &deployment["metadata"];
    let hash = digest(&deployment["spec"]["template"], 10);
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"][TEMPLATE_HASH] = json!(hash);
    let mut template = deployment["spec"]["template"].clone();
    template["metadata"]["labels"][TEMPLATE_HASH] = json!(hash);
    let name = metadata["name"].as_str().unwrap_or_default();
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{name}-{hash}"),
            "namespace": metadata["namespace"],
            "labels": template["metadata"]["labels"],
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "blockOwnerDeletion": true,
                "controller": true,
                "kind": "Deployment",
                "name": name,
                "uid": metadata["uid"],
            }],
        },
        "spec": {
            "replicas": deployment["spec"]["replicas"],
            "selector": selector,
            "template": template,
        },
    });
    shared.kubernetes.store(set, shared.now())
}

/// Returns the objects of a kind that another object controls.
pub(crate) fn owned(shared: &Shared, version: &str, kind: &str, owner: &Value) -> Vec<Arc<Value>> {
    let mut objects = shared.kubernetes.all(version, kind);
    let uid = &owner["metadata"]["uid"];
    objects.retain(|object| object["metadata"]["ownerReferences"][0]["uid"] == *uid);
    objects
}

/// Returns where pods can run: on every node of the cluster.
pub(crate) fn places(shared: &Shared) -> Vec<Place> {
    shared
        .kubernetes
        .all("v1", "Node")
        .iter()
        .map(|node| place(node))
        .collect()
}

/// Returns the place that a Node object describes.
pub(crate) fn place(node: &Value) -> Place {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Place {
        node: text(&node["metadata"]["name"]),
        address: text(&node["status"]["addresses"][0]["address"]),
        uid: text(&node["metadata"]["uid"]),
    }
}

/// Tells whether a pod has the condition `Ready`.
pub(crate) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Sleeps, unless there is nothing to sleep.
async fn rest(pause: Duration) {
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
}
