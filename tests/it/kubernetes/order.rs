//! What a simulated node does, in the order in which a real one did it.

use std::collections::BTreeMap;

use talos_api::machine::apply_configuration_request::Mode;
use talos_api::machine::machine_service_client::MachineServiceClient;
use talos_api::machine::{ApplyConfigurationRequest, ServiceRestartRequest};
use talos_sim::{ChangeKind, Changes, Cluster, Node, Options, Resource};

use super::super::sim::admin;

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

/// One event, comparable between a recording and the simulator.
#[derive(Debug, Clone)]
struct Row {
    at: String,
    event: String,
    what: String,
    detail: String,
}

/// Versions of the component configs and of the config files before the upgrade.
type Start = (i32, &'static str);

/// Those of a fresh cluster.
const FRESH: Start = (1, "1111");
/// Those that the recorded cluster had come to.
const RECORDED: Start = (2, "1122");

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

/// Reads the recorded rows of one step.
fn recorded(step: &str) -> Vec<Row> {
    include_str!("../../data/upgrade-order.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            let (kind, name) = columns[4].split_once('/').unwrap_or((columns[4], ""));
            let what = match (columns[2], name) {
                ("resource", name) => format!("{}/{name}", kind.split('.').next().unwrap()),
                ("node", _) => "node".to_owned(),
                _ => kind.to_owned(),
            };
            (columns[1] == step).then(|| Row {
                at: columns[0].to_owned(),
                event: columns[3].to_owned(),
                what,
                detail: columns[5].to_owned(),
            })
        })
        .collect()
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

/// Brings rows into a form in which the speed and the load of the machine do not show.
fn comparable(rows: Vec<Row>, start: Start) -> Vec<String> {
    let mut new_pods: Vec<String> = Vec::new();
    let mut lines: Vec<String> = Vec::new();
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    // The configuration is the cause; the recorder's watches were not in step with each other.
    let (configs, others): (Vec<Row>, Vec<Row>) = rows
        .into_iter()
        .partition(|row| row.what.starts_with("MachineConfigs"));
    for row in configs.into_iter().chain(together(others)) {
        let field = |name: &str| {
            let mut parts = row
                .detail
                .split(' ')
                .filter_map(|part| part.split_once('='));
            parts
                .find(|(found, _)| *found == name)
                .map(|(_, value)| value.to_owned())
        };
        let line = if let Some(uid) = field("uid") {
            let is_creation = row.event == "ADDED" && field("phase").as_deref() == Some("Pending");
            if is_creation {
                new_pods.push(uid.clone());
            }
            let is_new = new_pods.contains(&uid);
            let runs = match field("runs") {
                Some(image) if image.ends_with("1.36.4") => "old image",
                Some(image) if image.ends_with("1.36.3") => "new image",
                _ => "nothing",
            };
            let ready = field("Ready").unwrap_or_default();
            let deleting = field("deleting").as_deref() == Some("yes");
            let state = field("state").unwrap_or_default();
            match (is_new, row.event.as_str()) {
                // A watch that starts again shows what is there.
                (false, "ADDED") => continue,
                // The machine was so slow that pods failed now and then.
                (false, "MODIFIED") if !deleting && runs == "old image" => continue,
                (true, "MODIFIED") if state == "waiting" => continue,
                (false, "MODIFIED") if !deleting => {
                    format!("MODIFIED old {} {runs} Ready={ready}", row.what)
                }
                (false, event) => format!("{event} old {} deleting", row.what),
                (true, event) => {
                    let versions =
                        versions(start, field("config-version"), field("config-file-version"));
                    format!(
                        "{event} new {} {versions} {runs} {state} Ready={ready}",
                        row.what
                    )
                }
            }
        } else if row.what.starts_with("StaticPods/") {
            let versions = versions(start, field("config-version"), field("config-file-version"));
            format!("{} {} {versions}", row.event, row.what)
        } else if row.what.starts_with("Services/") {
            // Whether health is unknown at first differed from time to time.
            let healthy = field("healthy").unwrap();
            if row.event == "UPDATED" && healthy == "false" {
                continue;
            }
            format!("{} {} healthy={healthy}", row.event, row.what)
        } else if row.what == "node" {
            format!("{} node {}", row.event, row.detail)
        } else {
            format!("{} {}", row.event, row.what)
        };
        // A slow container fails and starts again; only what is new about it counts.
        if last.insert(row.what.clone(), line.clone()).as_ref() != Some(&line) {
            lines.push(line);
        }
    }
    lines
}

/// A removed resource does not say when it was removed: its row goes before the next of its type.
fn together(rows: Vec<Row>) -> Vec<Row> {
    let (destroyed, mut others): (Vec<Row>, Vec<Row>) =
        rows.into_iter().partition(|row| row.event == "DESTROYED");
    let kind = |row: &Row| row.what.split('/').next().unwrap().to_owned();
    for row in destroyed.into_iter().rev() {
        let next = others
            .iter()
            .position(|other| kind(other) == kind(&row) && other.event != "UPDATED");
        others.insert(next.unwrap_or(others.len()), row);
    }
    others
}

/// Versions relative to those before the upgrade, as counters of different age begin elsewhere.
fn versions(
    (config, files): Start,
    new_config: Option<String>,
    new_files: Option<String>,
) -> String {
    let new_config: i32 = new_config.unwrap().parse().unwrap();
    let moved: Vec<u8> = match new_files {
        Some(new) if new != "None" => new
            .bytes()
            .zip(files.bytes())
            .map(|(new, old)| new - old)
            .collect(),
        _ => Vec::new(),
    };
    format!("config+{} files+{moved:?}", new_config - config)
}
