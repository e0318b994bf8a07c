//! The API as an ordinary client of Kubernetes sees it.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::discovery::Scope;
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

/// Returns the code of a refusal.
pub(super) fn code<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> u16 {
    match result {
        Err(kube::Error::Api(status)) => status.code,
        other => panic!("{other:?} is no refusal"),
    }
}
