//! The API as an ordinary client of Kubernetes sees it.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent,
    WatchParams,
};
use kube::discovery::Scope;
use kube::runtime::watcher::{self, Event, InitialListStrategy, watcher};
use kube::{Discovery, ResourceExt as _};
use serde_json::json;
use talos_sim::{Cluster, Options};

use super::client;

#[tokio::test]
async fn lists_show_a_whole_cluster() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = client(&cluster).await;
    assert_eq!(
        client.apiserver_version().await.unwrap().git_version,
        "v1.33.4"
    );

    let nodes: Api<Node> = Api::all(client.clone());
    let nodes = nodes.list(&ListParams::default()).await.unwrap();
    let versions: Vec<String> = nodes
        .iter()
        .map(|node| {
            node.status
                .clone()
                .unwrap()
                .node_info
                .unwrap()
                .kubelet_version
        })
        .collect();
    assert_eq!(versions, ["v1.33.4", "v1.33.4"]);
    let is_control_plane = |node: &Node| {
        node.labels()
            .contains_key("node-role.kubernetes.io/control-plane")
    };
    assert_eq!(
        nodes.iter().map(is_control_plane).collect::<Vec<_>>(),
        [true, false]
    );

    let pods: Api<Pod> = Api::namespaced(client.clone(), "kube-system");
    let static_pods = pods
        .list(&ListParams::default().labels("tier=control-plane"))
        .await
        .unwrap();
    let address = cluster.nodes()[0].address().to_string();
    let mut files = Vec::new();
    for pod in &static_pods {
        let status = pod.status.clone().unwrap();
        assert_eq!(status.host_ip.as_ref(), Some(&address));
        let ready = status
            .conditions
            .unwrap()
            .into_iter()
            .find(|found| found.type_ == "Ready")
            .unwrap();
        assert_eq!(ready.status, "True");
        assert_eq!(pod.annotations()["talos.dev/config-version"], "1");
        assert_eq!(pod.annotations()["talos.dev/secrets-version"], "1");
        let name = &pod.labels()["k8s-app"];
        files.push((
            name.clone(),
            pod.annotations()
                .get("talos.dev/config-file-version")
                .cloned(),
        ));
        let image = &pod.spec.as_ref().unwrap().containers[0].image;
        assert_eq!(image, &Some(format!("registry.k8s.io/{name}:v1.33.4")));
    }
    files.sort();
    let expected = [
        ("kube-apiserver".to_owned(), Some("1111".to_owned())),
        ("kube-controller-manager".to_owned(), None),
        ("kube-scheduler".to_owned(), None),
    ];
    assert_eq!(files, expected);
    let proxies = pods
        .list(&ListParams::default().labels("k8s-app in (kube-proxy)"))
        .await
        .unwrap();
    assert_eq!(proxies.items.len(), 2);
    let field = format!("metadata.name={}", proxies.items[0].name_any());
    let one = pods
        .list(&ListParams::default().fields(&field))
        .await
        .unwrap();
    assert_eq!(one.items.len(), 1);
}

#[tokio::test]
async fn manifests_have_been_applied_and_applying_them_again_changes_nothing() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = client(&cluster).await;
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), "kube-system");
    let before = sets.get("kube-proxy").await.unwrap();
    let status = before.status.clone().unwrap();
    assert_eq!(
        (status.number_ready, status.updated_number_scheduled),
        (2, Some(2))
    );

    let manifests = cluster.nodes()[0]
        .store()
        .list("controlplane", "Manifests.kubernetes.talos.dev");
    let ids: Vec<&str> = manifests.iter().map(|found| &*found.metadata.id).collect();
    assert_eq!(
        ids,
        [
            "00-kubelet-bootstrapping-token",
            "01-csr-approver-role-binding",
            "01-csr-node-bootstrap",
            "01-csr-renewal-role-binding",
            "05-flannel",
            "10-kube-proxy",
            "11-core-dns",
            "11-core-dns-svc",
            "11-kube-config-in-cluster",
            "11-talos-node-rbac-template",
        ]
    );
    let discovery = Discovery::new(client.clone())
        .run_aggregated()
        .await
        .unwrap();
    let mut inventory = Vec::new();
    for manifest in &manifests {
        for object in manifest.spec.value().as_array().unwrap() {
            let mut object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
            let owner = "talos-bootstrap-manifests-inventory".to_owned();
            object
                .annotations_mut()
                .insert("config.k8s.io/owning-inventory".to_owned(), owner);
            let gvk =
                kube::core::GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap();
            let (resource, capabilities) = discovery.resolve_gvk(&gvk).unwrap();
            let api: Api<DynamicObject> = match capabilities.scope {
                Scope::Cluster => Api::all_with(client.clone(), &resource),
                Scope::Namespaced => Api::namespaced_with(client.clone(), "kube-system", &resource),
            };
            let live = api.get(&object.name_any()).await.unwrap();
            for params in [
                PatchParams::apply("talos").force().dry_run(),
                PatchParams::apply("talos").force(),
            ] {
                let applied = api
                    .patch(&object.name_any(), &params, &Patch::Apply(&object))
                    .await
                    .unwrap();
                assert_eq!(applied, live);
            }
            inventory.push(object.name_any());
        }
    }
    let maps: Api<ConfigMap> = Api::namespaced(client, "kube-system");
    let stored = maps
        .get("talos-bootstrap-manifests-inventory")
        .await
        .unwrap();
    assert_eq!(stored.data.unwrap().len(), inventory.len());
}

#[tokio::test]
async fn discovery_knows_the_recorded_kinds_in_both_forms() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = client(&cluster).await;
    for discovery in [
        Discovery::new(client.clone()).run().await.unwrap(),
        Discovery::new(client.clone())
            .run_aggregated()
            .await
            .unwrap(),
    ] {
        let kinds: Vec<String> = discovery
            .groups()
            .flat_map(|group| group.recommended_resources())
            .map(|(resource, _)| format!("{}/{}", resource.api_version, resource.kind))
            .collect();
        for kind in [
            "v1/Pod",
            "apps/v1/DaemonSet",
            "coordination.k8s.io/v1/Lease",
            "autoscaling/v2/HorizontalPodAutoscaler",
        ] {
            assert!(
                kinds.iter().any(|known| known == kind),
                "{kind} in {kinds:?}"
            );
        }
    }
    // An item that a later version removes can be served, and is not by default.
    let gvk = kube::core::GroupVersionKind::gvk("policy", "v1beta1", "PodSecurityPolicy");
    let resource = kube::core::ApiResource::from_gvk_with_plural(&gvk, "podsecuritypolicies");
    let policies: Api<DynamicObject> = Api::all_with(client, &resource);
    assert_eq!(code(policies.list(&ListParams::default()).await), 404);
    cluster.serve_kube_kind(
        "policy",
        "v1beta1",
        "PodSecurityPolicy",
        "podsecuritypolicies",
        false,
    );
    assert_eq!(
        policies
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        0
    );
}

#[tokio::test]
async fn writes_are_checked_against_the_present_object() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = client(&cluster).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let map = |data: &str| ConfigMap {
        metadata: kube::core::ObjectMeta {
            name: Some("settings".to_owned()),
            ..<_>::default()
        },
        data: Some(BTreeMap::from([("key".to_owned(), data.to_owned())])),
        ..ConfigMap::default()
    };
    let params = PostParams::default();
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    assert_eq!(
        maps.create(&dry, &map("0"))
            .await
            .unwrap()
            .resource_version(),
        None
    );
    assert_eq!(code(maps.get("settings").await), 404);
    let first = maps.create(&params, &map("1")).await.unwrap();
    assert_eq!(code(maps.create(&params, &map("1")).await), 409);

    let mut second = first.clone();
    second.data = map("2").data;
    let second = maps.replace("settings", &params, &second).await.unwrap();
    assert_ne!(second.resource_version(), first.resource_version());
    assert_eq!(
        code(maps.replace("settings", &params, &first).await),
        409,
        "an older version"
    );
    // Without a version the write is unconditional, and an equal one changes nothing.
    let third = maps.replace("settings", &params, &map("2")).await.unwrap();
    assert_eq!(third.resource_version(), second.resource_version());

    let merge = Patch::Merge(json!({ "data": { "more": "x", "key": null } }));
    let merged = maps
        .patch("settings", &PatchParams::default(), &merge)
        .await
        .unwrap();
    assert_eq!(
        merged.data.unwrap(),
        BTreeMap::from([("more".to_owned(), "x".to_owned())])
    );
    let steps =
        serde_json::from_value(json!([{ "op": "replace", "path": "/data/more", "value": "y" }]));
    let json_patch: Patch<ConfigMap> = Patch::Json(steps.unwrap());
    let patched = maps
        .patch("settings", &PatchParams::default(), &json_patch)
        .await
        .unwrap();
    assert_eq!(patched.data.unwrap()["more"], "y");

    maps.delete("settings", &DeleteParams::background())
        .await
        .unwrap();
    assert_eq!(code(maps.get("settings").await), 404);
    assert_eq!(
        code(maps.delete("settings", &DeleteParams::default()).await),
        404
    );
    let elsewhere: Api<ConfigMap> = Api::namespaced(client, "nowhere");
    assert_eq!(code(elsewhere.create(&params, &map("1")).await), 404);
}

#[tokio::test]
async fn apply_keeps_the_managers_of_fields_apart() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(client(&cluster).await, "default");
    let manifest = |text: serde_json::Value| {
        Patch::Apply(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": "s" },
            "stringData": text,
        }))
    };
    let one = PatchParams::apply("one");
    let created = secrets
        .patch("s", &one, &manifest(json!({ "a": "1", "b": "2" })))
        .await
        .unwrap();
    assert_eq!(created.data.unwrap()["a"].0, b"1");
    let again = secrets
        .patch("s", &one, &manifest(json!({ "a": "1", "b": "2" })))
        .await
        .unwrap();
    assert_eq!(again.resource_version(), created.metadata.resource_version);

    let labels = |value: &str| {
        Patch::Apply(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": "s", "labels": { "l": value } },
        }))
    };
    secrets.patch("s", &one, &labels("1")).await.unwrap();
    let two = PatchParams::apply("two");
    let refused = secrets.patch("s", &two, &labels("2")).await.unwrap_err();
    let kube::Error::Api(status) = refused else {
        panic!("{refused}")
    };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert_eq!(
        status.message,
        "Apply failed with 1 conflict: conflict with \"one\": .metadata.labels.l"
    );
    let dry = secrets
        .patch("s", &two.clone().force().dry_run(), &labels("2"))
        .await
        .unwrap();
    assert_eq!(dry.labels()["l"], "2");
    assert_eq!(secrets.get("s").await.unwrap().labels()["l"], "1");
    let forced = secrets
        .patch("s", &two.force(), &labels("2"))
        .await
        .unwrap();
    assert_eq!(forced.labels()["l"], "2");

    let requests = cluster.kube_requests();
    let dry_runs: Vec<bool> = requests
        .iter()
        .filter(|request| request.dry_run)
        .map(|request| request.mutating)
        .collect();
    assert_eq!(dry_runs, [false]);
    assert_eq!(
        requests.iter().filter(|request| request.mutating).count(),
        5
    );
}

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

/// Returns the code of a refusal.
pub(super) fn code<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> u16 {
    match result {
        Err(kube::Error::Api(status)) => status.code,
        other => panic!("{other:?} is no refusal"),
    }
}
