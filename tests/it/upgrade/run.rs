//! Upgrades from the first image to the last object.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use talos_kube::{Component, Progress};
use talos_sim::{Delays, Options, TalosVersion};
use talos_upgrade::{Event, Image, ObjectChange, Report};

use super::lab::{Lab, NEW, behind_nat, request};

/// Every node and component is on the new version, and all is well.
async fn check_done(lab: &Lab) {
    for node in lab.kubernetes.nodes().await.unwrap() {
        assert_eq!(node.kubelet_version, format!("v{NEW}"), "{}", node.name);
        assert!(node.ready);
    }
    let pods = lab.kubernetes.component_pods().await.unwrap();
    assert!(!pods.is_empty());
    for pod in pods {
        let version = Image::parse(&pod.image).unwrap().version().unwrap();
        assert_eq!(version.to_string(), NEW, "{pod:?}");
        assert!(pod.ready, "{pod:?}");
    }
}

fn changed(report: &Report) -> Vec<String> {
    let place = |place: &talos_upgrade::Place| {
        let node = place.node.trim_start_matches("cluster-1-");
        format!("{} {node}", place.component)
    };
    report.changed.iter().map(place).collect()
}

#[tokio::test]
async fn a_cluster_behind_nat_is_upgraded_through_its_forwarded_ports() {
    let lab = Lab::start(behind_nat()).await;
    let before = lab.node("controlplane-1").machine_config().unwrap();
    let report = lab.upgrade().await;
    assert_eq!(
        changed(&report),
        [
            "kube-apiserver controlplane-1",
            "kube-controller-manager controlplane-1",
            "kube-scheduler controlplane-1",
            "kube-proxy controlplane-1",
            "kubelet controlplane-1",
            "kubelet worker-1",
        ]
    );
    assert_eq!(
        report.manifests_changed,
        ["DaemonSet/kube-system/kube-proxy"]
    );
    check_done(&lab).await;
    // The five images and nothing else.
    let after = lab.node("controlplane-1").machine_config().unwrap();
    let old: Vec<&str> = before.lines().collect();
    let new: Vec<&str> = after.lines().filter(|line| !old.contains(line)).collect();
    assert_eq!(new.len(), 5, "{new:?}");
    assert!(
        new.iter()
            .all(|line| line.contains("image:") && line.contains(NEW)),
        "{new:?}"
    );
    assert_eq!(old.len(), after.lines().count());
    assert_eq!(lab.writes(), 6);
}

#[tokio::test]
async fn two_control_planes_are_changed_one_after_the_other() {
    let options = Options {
        controlplanes: 2,
        forward_all: true,
        ..behind_nat()
    };
    let lab = Lab::start(options).await;
    let report = lab.upgrade().await;
    assert_eq!(
        changed(&report),
        [
            "kube-apiserver controlplane-1",
            "kube-apiserver controlplane-2",
            "kube-controller-manager controlplane-1",
            "kube-controller-manager controlplane-2",
            "kube-scheduler controlplane-1",
            "kube-scheduler controlplane-2",
            "kube-proxy controlplane-1",
            "kube-proxy controlplane-2",
            "kubelet controlplane-1",
            "kubelet controlplane-2",
            "kubelet worker-1",
        ]
    );
    check_done(&lab).await;
}

#[tokio::test]
async fn an_api_server_that_restarts_is_waited_for_and_told() {
    let delays = Delays {
        api_server_outage: Duration::from_millis(250),
        ..Delays::default()
    };
    let lab = Lab::start(Options {
        delays,
        ..Options::default()
    })
    .await;
    let report = lab.upgrade().await;
    check_done(&lab).await;
    // Once with its own image, once more with the scheduler's configuration.
    assert!(report.api_outages >= 2, "{report:?}");
    assert!(report.api_away_ms >= 300, "{report:?}");
    let told = lab.events().into_iter().filter_map(|event| match event {
        Event::Api { progress } => Some(progress),
        _ => None,
    });
    let (away, back): (Vec<Progress>, Vec<Progress>) =
        told.partition(|progress| matches!(progress, Progress::Away { .. }));
    assert!(away.len() >= back.len());
    assert_eq!(back.len(), report.api_outages as usize);
}

#[tokio::test]
async fn the_second_restart_of_an_api_server_is_over_before_the_next_node() {
    let options = Options {
        controlplanes: 2,
        workers: 0,
        delays: Delays {
            api_server_outage: Duration::from_millis(60),
            mirror_pod: Duration::from_millis(60),
            ..Delays::default()
        },
        ..Options::default()
    };
    let lab = Arc::new(Lab::start(options).await);
    let plan = lab.plan(&request()).await;
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let (watched, sim) = (Arc::clone(&seen), Arc::clone(&lab));
    let report = lab
        .carry_out_watched(&plan, move |event| {
            if let Event::Written {
                component: Component::KubeScheduler,
                node,
                ..
            } = event
                && node.ends_with("-2")
            {
                watched
                    .lock()
                    .unwrap()
                    .push(sim.api_server("controlplane-1"));
            }
        })
        .await;
    report.unwrap();
    // When the second node's scheduler was written, the first node's API server had restarted for the last time.
    let then = seen.lock().unwrap()[0].clone();
    assert_eq!(
        then["metadata"]["annotations"],
        lab.api_server("controlplane-1")["metadata"]["annotations"]
    );
    assert_eq!(
        then["metadata"]["uid"],
        lab.api_server("controlplane-1")["metadata"]["uid"]
    );
}

#[tokio::test]
async fn own_repositories_flavors_and_comments_stay() {
    let lab = Lab::start(Options::default()).await;
    let node = lab.node("controlplane-1");
    let config = node.machine_config().unwrap();
    let config = config
        .replace(
            "registry.k8s.io/kube-apiserver:",
            "reg.local:5000/k8s/kube-apiserver:",
        )
        .replace(
            "siderolabs/kubelet:v1.33.4",
            "siderolabs/kubelet:v1.33.4-fat # pinned",
        );
    let machine = lab.client.node(node.address().to_string());
    let applied = machine
        .apply_configuration(talos_client::ApplyRequest {
            config,
            mode: talos_client::ApplyMode::NoReboot,
            dry_run: false,
            try_timeout: None,
        })
        .await;
    applied.unwrap();
    let report = lab.upgrade().await;
    assert_eq!(report.changed.len(), 6);
    check_done(&lab).await;
    let config = node.machine_config().unwrap();
    for line in [
        format!("image: reg.local:5000/k8s/kube-apiserver:v{NEW}\n"),
        format!("image: ghcr.io/siderolabs/kubelet:v{NEW}-fat # pinned"),
    ] {
        let images: Vec<&str> = config
            .lines()
            .filter(|line| line.contains("image:"))
            .collect();
        assert!(config.contains(&line), "{images:?}");
    }
}

#[tokio::test]
async fn older_talos_gets_whole_objects_and_no_inventory() {
    let lab = Lab::start(Options {
        talos_version: TalosVersion::V1_11_5,
        ..Options::default()
    })
    .await;
    let report = lab.upgrade().await;
    assert_eq!(
        report.manifests_changed,
        ["DaemonSet/kube-system/kube-proxy"]
    );
    check_done(&lab).await;
    let requests = lab.sim.kube_requests();
    assert!(
        !requests
            .iter()
            .any(|request| request.method == "PATCH" && request.user.as_deref() == Some("admin"))
    );
}

#[tokio::test]
async fn talos_1_14_is_upgraded_by_its_final_configurations() {
    let lab = Lab::start(Options {
        talos_version: TalosVersion::V1_14,
        ..Options::default()
    })
    .await;
    lab.upgrade().await;
    check_done(&lab).await;
}

#[tokio::test]
async fn objects_that_left_the_manifests_are_pruned() {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, Patch, PatchParams, PostParams};

    let lab = Lab::start(Options::default()).await;
    let maps: Api<ConfigMap> = Api::namespaced(lab.kubernetes.client(), "kube-system");
    let owner = "config.k8s.io/owning-inventory";
    let inventory = "talos-bootstrap-manifests-inventory";
    let map = serde_json::json!({
        "metadata": {"name": "left", "annotations": {owner: inventory}},
        "data": {"a": "b"},
    });
    let map: ConfigMap = serde_json::from_value(map).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let entry = serde_json::json!({"data": {"kube-system_left__ConfigMap": ""}});
    let params = PatchParams::default();
    maps.patch(inventory, &params, &Patch::Merge(&entry))
        .await
        .unwrap();

    let report = lab.upgrade().await;
    assert!(
        report
            .manifests_changed
            .contains(&"ConfigMap/kube-system/left".to_owned())
    );
    assert!(lab.events().iter().any(|event| matches!(event,
        Event::Manifest { object, change: ObjectChange::Pruned, .. } if object == "ConfigMap/kube-system/left")));
    assert!(maps.get_opt("left").await.unwrap().is_none());
    let data = maps.get(inventory).await.unwrap().data.unwrap();
    assert!(!data.contains_key("kube-system_left__ConfigMap"));
    assert!(
        data.contains_key("kube-system_kube-proxy_apps_DaemonSet"),
        "{data:?}"
    );
    assert_eq!(
        lab.plan(&request())
            .await
            .steps
            .iter()
            .filter(|step| step.action.writes())
            .count(),
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_put_into_the_inventory_during_a_run_stays() {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, Patch, PatchParams};

    let lab = Lab::start(Options::default()).await;
    let maps: Api<ConfigMap> = Api::namespaced(lab.kubernetes.client(), "kube-system");
    let inventory = "talos-bootstrap-manifests-inventory";
    let proxy = "kube-system_kube-proxy_apps_DaemonSet";
    let theirs = "kube-system_theirs__ConfigMap";
    // So that the run has something to add.
    let without = Patch::Merge(serde_json::json!({"data": {proxy: null}}));
    let params = PatchParams::default();
    maps.patch(inventory, &params, &without).await.unwrap();
    let plan = lab.plan(&request()).await;
    let watched = maps.clone();
    let report = lab
        .carry_out_watched(&plan, move |event| {
            // The run has read the inventory and not yet saved it.
            let Event::Manifest { .. } = event else {
                return;
            };
            let change = serde_json::json!({"data": {theirs: ""}});
            let (patch, params) = (Patch::Merge(change), PatchParams::default());
            let patched = watched.patch(inventory, &params, &patch);
            tokio::task::block_in_place(|| {
                tokio::runtime::Handle::current().block_on(patched).unwrap();
            });
        })
        .await;
    report.unwrap();
    let data = maps.get(inventory).await.unwrap().data.unwrap();
    for key in [theirs, proxy] {
        assert!(data.contains_key(key), "{key}: {data:?}");
    }
}
