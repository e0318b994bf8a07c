//! What a simulated node does, in the order in which a real one did it.

use std::collections::BTreeMap;

use talos_api::machine::apply_configuration_request::Mode;
use talos_api::machine::machine_service_client::MachineServiceClient;
use talos_api::machine::{ApplyConfigurationRequest, ServiceRestartRequest};
use talos_sim::{ChangeKind, Changes, Cluster, Node, Options, Resource};

use super::super::sim::admin;
use super::recording::{FRESH, RECORDED, Row, comparable, recorded, together};

/// Types whose events are compared.
const TYPES: [(&str, &str); 11] = [
    ("config", "MachineConfigs.config.talos.dev"),
    ("controlplane", "APIServerConfigs.kubernetes.talos.dev"),
    ("controlplane", "ConfigStatuses.kubernetes.talos.dev"),
    (
        "controlplane",
        "ControllerManagerConfigs.kubernetes.talos.dev",
    ),
    ("controlplane", "Manifests.kubernetes.talos.dev"),
    ("controlplane", "SchedulerConfigs.kubernetes.talos.dev"),
    ("k8s", "KubeletSpecs.kubernetes.talos.dev"),
    ("k8s", "StaticPods.kubernetes.talos.dev"),
    ("k8s", "StaticPodStatuses.kubernetes.talos.dev"),
    ("runtime", "MachineStatuses.runtime.talos.dev"),
    ("runtime", "Services.v1alpha1.talos.dev"),
];

/// Takes down what happens on the first control plane from now on.
struct Recorder<'a> {
    cluster: &'a Cluster,
    streams: BTreeMap<&'static str, Changes>,
    pods: usize,
    nodes: usize,
}

impl<'a> Recorder<'a> {
    fn start(cluster: &'a Cluster) -> Self {
        let store = cluster.nodes()[0].store();
        Self {
            cluster,
            streams: TYPES
                .map(|(namespace, kind)| (kind, store.changes(namespace, kind)))
                .into(),
            pods: cluster.kube_changes("v1", "Pod").len(),
            nodes: cluster.kube_changes("v1", "Node").len(),
        }
    }

    /// Waits for a change of a type that fits, keeping all changes for [`Recorder::rows`].
    async fn wait(&mut self, rows: &mut Vec<Row>, kind: &str, fits: impl Fn(&Resource) -> bool) {
        let stream = self.streams.get_mut(kind).unwrap();
        loop {
            let change = stream.next().await.unwrap();
            rows.push(resource_row(change.kind, &change.resource));
            if change.kind != ChangeKind::Destroyed && fits(&change.resource) {
                return;
            }
        }
    }

    /// Returns everything that happened, in order.
    fn rows(mut self, mut rows: Vec<Row>) -> Vec<Row> {
        for stream in self.streams.values_mut() {
            while let Some(change) = stream.try_next().unwrap() {
                rows.push(resource_row(change.kind, &change.resource));
            }
        }
        rows.retain(|row| !row.what.starts_with("MachineStatuses"));
        let name = self.cluster.nodes()[0].name();
        for change in self.cluster.kube_changes("v1", "Pod").split_off(self.pods) {
            let pod = &change.object;
            let metadata = &pod["metadata"];
            if pod["spec"]["nodeName"] != name || !metadata["annotations"].is_object() {
                continue;
            }
            let text = |value: &serde_json::Value| value.as_str().unwrap_or("None").to_owned();
            let container = &pod["status"]["containerStatuses"][0];
            let state = container["state"]
                .as_object()
                .and_then(|state| state.keys().next().cloned());
            let conditions = pod["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let ready = conditions
                .iter()
                .find(|condition| condition["type"] == "Ready");
            let detail = format!(
                "uid={} config-version={} config-file-version={} image={} runs={} state={} phase={} Ready={} deleting={}",
                text(&metadata["uid"]),
                text(&metadata["annotations"]["talos.dev/config-version"]),
                text(&metadata["annotations"]["talos.dev/config-file-version"]),
                text(&pod["spec"]["containers"][0]["image"]),
                container["image"].as_str().unwrap_or("-"),
                state.unwrap_or_default(),
                text(&pod["status"]["phase"]),
                ready.map_or_else(|| "None".to_owned(), |ready| text(&ready["status"])),
                if metadata["deletionTimestamp"].is_string() {
                    "yes"
                } else {
                    "no"
                },
            );
            rows.push(Row {
                at: change.at.to_string(),
                event: kubernetes_event(change.kind).to_owned(),
                what: text(&metadata["name"]).replace(&format!("-{name}"), ""),
                detail,
            });
        }
        for change in self
            .cluster
            .kube_changes("v1", "Node")
            .split_off(self.nodes)
        {
            if change.object["metadata"]["name"] == name {
                let version = &change.object["status"]["nodeInfo"]["kubeletVersion"];
                rows.push(Row {
                    at: change.at.to_string(),
                    event: kubernetes_event(change.kind).to_owned(),
                    what: "node".to_owned(),
                    detail: format!("kubelet={}", version.as_str().unwrap()),
                });
            }
        }
        rows.sort_by(|left, right| left.at.cmp(&right.at));
        rows
    }
}

#[tokio::test]
async fn an_upgrade_happens_in_the_order_of_a_real_cluster() {
    let cluster = Cluster::start(Options {
        kubernetes_version: "1.36.4".to_owned(),
        ..Options::default()
    });
    let cluster = cluster.await.unwrap();
    let node = &cluster.nodes()[0];
    for step in [
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kube-proxy",
        "kubelet",
    ] {
        let mut recorder = Recorder::start(&cluster);
        let mut rows = Vec::new();
        change_image(&cluster, node, step, "1.36.4", "1.36.3").await;
        match step {
            "kube-proxy" => {
                recorder
                    .wait(&mut rows, "Manifests.kubernetes.talos.dev", |_| true)
                    .await
            }
            "kubelet" => {
                let created = "kube-system/kube-scheduler";
                recorder
                    .wait(
                        &mut rows,
                        "StaticPodStatuses.kubernetes.talos.dev",
                        |status| status.metadata.id.starts_with(created),
                    )
                    .await;
            }
            _ => {
                recorder
                    .wait(&mut rows, "MachineStatuses.runtime.talos.dev", |status| {
                        status.spec.value()["status"]["ready"] == true
                    })
                    .await;
            }
        }
        let mut rows = recorder.rows(rows);
        // The recorded statuses of static pods show the load of the machine.
        rows.retain(|row| !row.what.starts_with("StaticPodStatuses"));
        if step == "kubelet" {
            rows.retain(|row| row.what == "node" || row.what.contains('/'));
        }
        assert_eq!(
            comparable(rows, FRESH),
            comparable(recorded(step), RECORDED),
            "{step}"
        );
    }
    // The DaemonSet is left to whoever applies the manifests.
    let sets = cluster.kube_objects("apps/v1", "DaemonSet");
    let proxy = sets
        .iter()
        .find(|set| set["metadata"]["name"] == "kube-proxy")
        .unwrap();
    let image = &proxy["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "registry.k8s.io/kube-proxy:v1.36.4");
    // The node's own controller looked at the cluster and saved the inventory it found.
    let own: Vec<(String, String, bool)> = cluster
        .kube_requests()
        .into_iter()
        .filter(|request| request.user.as_deref() == Some("talos:admin"))
        .map(|request| (request.method, request.path, request.mutating))
        .collect();
    let inventory = "/api/v1/namespaces/kube-system/configmaps/talos-bootstrap-manifests-inventory";
    assert_eq!(
        own.last(),
        Some(&("PUT".to_owned(), inventory.to_owned(), true))
    );
}

#[tokio::test]
async fn a_kubelet_restart_happens_in_the_order_of_a_real_cluster() {
    let options = Options {
        kubernetes_version: "1.36.3".to_owned(),
        ..Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let node = &cluster.nodes()[0];
    let mut recorder = Recorder::start(&cluster);
    let mut rows = Vec::new();
    let request = ServiceRestartRequest {
        id: "kubelet".to_owned(),
    };
    MachineServiceClient::new(admin(&cluster, node).await)
        .service_restart(request)
        .await
        .unwrap();
    recorder
        .wait(
            &mut rows,
            "StaticPodStatuses.kubernetes.talos.dev",
            |status| status.metadata.version == 2 && status.metadata.id.contains("kube-scheduler"),
        )
        .await;
    let rows = recorder.rows(rows);
    // Whether the other pods change depends on the clock's second.
    let scheduler = |rows: Vec<Row>| -> Vec<String> {
        let kept =
            |row: &Row| !["kube-apiserver", "kube-controller-manager"].contains(&row.what.as_str());
        let short = |row: Row| Row {
            detail: row
                .detail
                .split(' ')
                .filter(|part| {
                    ["Ready", "kubelet", "healthy", "unknown"]
                        .iter()
                        .any(|name| part.starts_with(name))
                })
                .collect::<Vec<_>>()
                .join(" "),
            ..row
        };
        together(rows.into_iter().filter(kept).map(short).collect())
            .into_iter()
            .map(|row| format!("{} {} {}", row.event, row.what, row.detail))
            .collect()
    };
    assert_eq!(scheduler(rows), scheduler(recorded("service-restart")));
}

#[tokio::test]
async fn an_identical_configuration_moves_only_its_own_version() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let node = &cluster.nodes()[0];
    let mut recorder = Recorder::start(&cluster);
    let mut rows = Vec::new();
    let text = node.machine_config().unwrap();
    apply(&cluster, node, text.clone()).await;
    // A change afterwards tells that the first one is worked off.
    change_image(&cluster, node, "kube-proxy", "1.33.4", "1.33.5").await;
    recorder
        .wait(&mut rows, "Manifests.kubernetes.talos.dev", |_| true)
        .await;
    let events: Vec<String> = recorder
        .rows(rows)
        .into_iter()
        .map(|row| format!("{} {}", row.event, row.what))
        .collect();
    assert_eq!(
        events,
        [
            "UPDATED MachineConfigs/persistent",
            "UPDATED MachineConfigs/v1alpha1",
            "UPDATED MachineConfigs/persistent",
            "UPDATED MachineConfigs/v1alpha1",
            "UPDATED Manifests/10-kube-proxy",
        ]
    );
}

/// Sets the image of a component to another version.
pub(super) async fn change_image(
    cluster: &Cluster,
    node: &Node,
    component: &str,
    from: &str,
    to: &str,
) {
    let text = node.machine_config().unwrap();
    let old = format!("/{component}:v{from}");
    assert!(text.contains(&old), "{old} is not in the configuration");
    apply(
        cluster,
        node,
        text.replace(&old, &format!("/{component}:v{to}")),
    )
    .await;
}

/// Applies a configuration without a reboot.
pub(super) async fn apply(cluster: &Cluster, node: &Node, text: String) {
    let request = ApplyConfigurationRequest {
        data: text.into_bytes(),
        mode: Mode::NoReboot.into(),
        ..ApplyConfigurationRequest::default()
    };
    let mut client = MachineServiceClient::new(admin(cluster, node).await);
    client.apply_configuration(request).await.unwrap();
}

fn resource_row(kind: ChangeKind, resource: &Resource) -> Row {
    let metadata = &resource.metadata;
    let spec = resource.spec.value();
    let short = metadata.kind.split('.').next().unwrap();
    let detail = match short {
        "Services" => format!(
            "healthy={} running={} unknown={}",
            spec["healthy"], spec["running"], spec["unknown"]
        ),
        "StaticPods" => {
            let annotations = &spec["metadata"]["annotations"];
            let files = annotations["talos.dev/config-file-version"].as_str();
            format!(
                "config-version={} config-file-version={}",
                annotations["talos.dev/config-version"].as_str().unwrap(),
                files.unwrap_or("None"),
            )
        }
        _ => String::new(),
    };
    let id = match short {
        // Statuses carry the name of the node.
        "StaticPodStatuses" => metadata.id.split("-cluster-1").next().unwrap(),
        _ => &metadata.id,
    };
    Row {
        at: metadata.updated.to_string(),
        event: match kind {
            ChangeKind::Created => "CREATED",
            ChangeKind::Updated => "UPDATED",
            ChangeKind::Destroyed => "DESTROYED",
        }
        .to_owned(),
        what: format!("{short}/{id}"),
        detail,
    }
}

fn kubernetes_event(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Created => "ADDED",
        ChangeKind::Updated => "MODIFIED",
        ChangeKind::Destroyed => "DELETED",
    }
}
