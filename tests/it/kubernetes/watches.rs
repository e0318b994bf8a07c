//! What clients see happen: watches, and workloads that roll out.

use std::pin::pin;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::ResourceExt as _;
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::runtime::watcher::{self, Event, InitialListStrategy, watcher};
use serde_json::json;
use talos_sim::{Cluster, Options};

use super::client;

#[tokio::test]
async fn watches_follow_changes_from_a_version_on() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = client(&cluster).await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let version = maps
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap();
    let params = WatchParams::default().labels("watched=yes");
    let mut events = pin!(maps.watch(&params, &version).await.unwrap());
    let map = |watched: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": "m", "labels": { "watched": watched } },
        })
    };
    let apply = PatchParams::apply("test");
    for watched in ["no", "yes", "no"] {
        maps.patch("m", &apply, &Patch::Apply(map(watched)))
            .await
            .unwrap();
    }
    maps.delete("m", &DeleteParams::default()).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        match events.try_next().await.unwrap().unwrap() {
            WatchEvent::Added(map) => seen.push(format!("added {}", map.name_any())),
            WatchEvent::Modified(map) => seen.push(format!("modified {}", map.name_any())),
            WatchEvent::Deleted(map) => seen.push(format!("deleted {}", map.name_any())),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(status) => panic!("{status}"),
        }
    }
    // Leaving the selection looks like a deletion.
    assert_eq!(seen, ["added m", "deleted m"]);

    cluster.compact_kube_history();
    let mut events = pin!(maps.watch(&params, &version).await.unwrap());
    let Some(Ok(WatchEvent::Error(status))) = events.next().await else {
        panic!("no error")
    };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
}

#[tokio::test]
async fn watches_can_begin_with_what_exists_where_the_version_allows_it() {
    for (version, works) in [("1.33.4", false), ("1.34.0", true)] {
        let options = Options {
            kubernetes_version: version.to_owned(),
            ..Options::default()
        };
        let cluster = Cluster::start(options).await.unwrap();
        let nodes: Api<Node> = Api::all(client(&cluster).await);
        let config = watcher::Config {
            initial_list_strategy: InitialListStrategy::StreamingList,
            ..watcher::Config::default()
        };
        let mut events = pin!(watcher(nodes, config));
        let mut seen = Vec::new();
        loop {
            match events.next().await.unwrap() {
                Ok(Event::InitApply(node)) => seen.push(node.name_any()),
                Ok(Event::InitDone) => break,
                Ok(_) => {}
                Err(error) => {
                    assert!(
                        error.to_string().contains("sendInitialEvents is forbidden"),
                        "{error}"
                    );
                    break;
                }
            }
        }
        assert_eq!(seen.len() == 2, works, "{version}");
    }
}

#[tokio::test]
async fn a_changed_daemon_set_rolls_out_one_node_after_the_other() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = client(&cluster).await;
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), "kube-system");
    let image = json!({ "spec": { "template": { "spec": { "containers": [
        { "name": "kube-proxy", "image": "registry.k8s.io/kube-proxy:v1.34.0" },
    ] } } } });
    let version = sets
        .get("kube-proxy")
        .await
        .unwrap()
        .resource_version()
        .unwrap();
    let mut events = pin!(
        sets.watch(
            &WatchParams::default().fields("metadata.name=kube-proxy"),
            &version
        )
        .await
        .unwrap()
    );
    sets.patch(
        "kube-proxy",
        &PatchParams::default(),
        &Patch::Strategic(image),
    )
    .await
    .unwrap();
    let mut progress = Vec::new();
    loop {
        let Some(WatchEvent::Modified(set)) = events.try_next().await.unwrap() else {
            continue;
        };
        let status = set.status.unwrap();
        progress.push((
            set.metadata.generation.unwrap(),
            status.observed_generation.unwrap(),
            status.updated_number_scheduled.unwrap_or(0),
            status.number_ready,
        ));
        if progress.last() == Some(&(2, 2, 2, 2)) {
            break;
        }
    }
    // As recorded: observedGeneration lags, nothing is updated at first, one pod at a time is away.
    assert_eq!(
        progress,
        [
            (2, 1, 2, 2),
            (2, 2, 0, 2),
            (2, 2, 1, 1),
            (2, 2, 1, 2),
            (2, 2, 2, 1),
            (2, 2, 2, 2)
        ]
    );
    let pods: Api<Pod> = Api::namespaced(client, "kube-system");
    let pods = pods
        .list(&ListParams::default().labels("k8s-app=kube-proxy"))
        .await
        .unwrap();
    let images = pods.iter().map(|pod| {
        pod.spec.clone().unwrap().containers[0]
            .image
            .clone()
            .unwrap()
    });
    assert_eq!(
        images.collect::<Vec<_>>(),
        ["registry.k8s.io/kube-proxy:v1.34.0"; 2]
    );
}

#[tokio::test]
async fn a_new_deployment_becomes_available() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(client(&cluster).await, "default");
    let labels = json!({ "app": "web" });
    let deployment = serde_json::from_value(json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    }));
    deployments
        .create(&PostParams::default(), &deployment.unwrap())
        .await
        .unwrap();
    let config = watcher::Config::default();
    let mut events = pin!(watcher(deployments, config));
    loop {
        let (Event::Apply(found) | Event::InitApply(found)) = events.next().await.unwrap().unwrap()
        else {
            continue;
        };
        if found.status.and_then(|status| status.available_replicas) == Some(2) {
            break;
        }
    }
}
