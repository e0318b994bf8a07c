//! What goes wrong when a test says so, and who is let in.

use std::pin::pin;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Config};
use talos_sim::{ChangeKind, Cluster, Options, Reach, TalosVersion};

use super::api::code;
use super::client;
use super::order::{apply, change_image};

#[tokio::test]
async fn only_client_certificates_of_the_cluster_are_let_in() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let other = Cluster::start(Options::default()).await.unwrap();
    let own = Kubeconfig::from_yaml(&cluster.kubeconfig()).unwrap();
    let foreign = Kubeconfig::from_yaml(&other.kubeconfig()).unwrap();
    let mut stranger = own.clone();
    stranger.auth_infos = foreign.auth_infos;
    let mut nobody = own;
    nobody.auth_infos[0].auth_info = Some(<_>::default());
    for kubeconfig in [stranger, nobody] {
        let config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.unwrap()).unwrap();
        assert_eq!(code(client.apiserver_version().await), 401);
        let nodes: Api<Node> = Api::all(client);
        assert_eq!(code(nodes.list(&ListParams::default()).await), 401);
    }
    assert!(
        cluster
            .kube_requests()
            .iter()
            .all(|request| request.user.is_none())
    );
}

#[tokio::test]
async fn control_planes_serve_the_same_objects_and_fail_alone() {
    let options = Options {
        controlplanes: 2,
        workers: 0,
        ..Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let mut clients = Vec::new();
    for node in cluster.nodes() {
        let mut kubeconfig = Kubeconfig::from_yaml(&cluster.kubeconfig()).unwrap();
        let server = format!("https://{}", node.kube_dial().unwrap());
        kubeconfig.clusters[0].cluster.as_mut().unwrap().server = Some(server);
        let config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        clients.push(Api::<Node>::all(Client::try_from(config.unwrap()).unwrap()));
    }
    let params = ListParams::default();
    let names = |nodes: kube::core::ObjectList<Node>| {
        nodes
            .items
            .into_iter()
            .map(|node| node.metadata.name.unwrap())
            .collect::<Vec<_>>()
    };
    let first = names(clients[0].list(&params).await.unwrap());
    assert_eq!(first, names(clients[1].list(&params).await.unwrap()));
    assert_eq!(first.len(), 2);

    cluster.nodes()[0].kube_faults().set_reach(Reach::Refusing);
    assert!(matches!(
        clients[0].list(&params).await,
        Err(kube::Error::HyperError(_) | kube::Error::Service(_))
    ));
    assert_eq!(first, names(clients[1].list(&params).await.unwrap()));
    cluster.nodes()[0].kube_faults().set_reach(Reach::Up);
    let back = loop {
        if let Ok(nodes) = clients[0].list(&params).await {
            break nodes;
        }
    };
    assert_eq!(first, names(back));

    cluster.nodes()[1].kube_faults().fail_requests(1, 500);
    assert_eq!(code(clients[1].list(&params).await), 500);
    assert_eq!(first, names(clients[1].list(&params).await.unwrap()));
}

#[tokio::test]
async fn a_static_pod_can_stay_unready_or_without_its_image() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let node = &cluster.nodes()[0];
    node.kube_faults().never_ready("kube-scheduler");
    node.faults()
        .miss_image("registry.k8s.io/kube-controller-manager:v1.34.0");
    change_image(
        &cluster,
        node,
        "kube-controller-manager",
        "1.33.4",
        "1.34.0",
    )
    .await;
    let pods: Api<Pod> = Api::namespaced(client(&cluster).await, "kube-system");
    let managers = watcher::Config::default().labels("k8s-app=kube-controller-manager");
    let reason = wait_for(pods.clone(), managers, |pod| {
        let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
        status
            .state
            .as_ref()?
            .waiting
            .as_ref()?
            .reason
            .clone()
            .filter(|reason| reason == "ErrImagePull")
    });
    assert_eq!(reason.await, "ErrImagePull");

    let mut changes = node
        .store()
        .changes("k8s", "StaticPodStatuses.kubernetes.talos.dev");
    change_image(&cluster, node, "kube-scheduler", "1.33.4", "1.34.0").await;
    // Pending when it is stopped, then whatever it comes to.
    let status = loop {
        let change = changes.next().await.unwrap();
        if change.resource.metadata.id.contains("scheduler")
            && change.resource.spec.value()["hostIP"].is_string()
        {
            break change.resource.spec.value().clone();
        }
    };
    let conditions = status["conditions"].as_array().unwrap();
    let ready = conditions
        .iter()
        .find(|condition| condition["type"] == "Ready")
        .unwrap();
    assert_eq!(ready["status"], "False");
    assert_eq!(
        status["containerStatuses"][0]["image"],
        "registry.k8s.io/kube-scheduler:v1.34.0"
    );
}

#[tokio::test]
async fn a_kubelet_without_its_image_stays_down_until_it_gets_another() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let node = &cluster.nodes()[1];
    node.faults()
        .miss_image("ghcr.io/siderolabs/kubelet:v1.34.0");
    let mut services = node
        .store()
        .changes("runtime", "Services.v1alpha1.talos.dev");
    change_image(&cluster, node, "kubelet", "1.33.4", "1.34.0").await;
    assert_eq!(services.next().await.unwrap().kind, ChangeKind::Destroyed);
    change_image(&cluster, node, "kubelet", "1.34.0", "1.34.1").await;
    assert_eq!(services.next().await.unwrap().kind, ChangeKind::Created);
    let nodes: Api<Node> = Api::all(client(&cluster).await);
    let config = watcher::Config::default().fields(&format!("metadata.name={}", node.name()));
    let version = wait_for(nodes, config, |node| {
        let version = &node.status.as_ref()?.node_info.as_ref()?.kubelet_version;
        (version != "v1.33.4").then(|| version.clone())
    });
    assert_eq!(version.await, "v1.34.1");
}

#[tokio::test]
async fn a_disabled_component_has_no_pod() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let node = &cluster.nodes()[0];
    let mut statuses = node
        .store()
        .changes("k8s", "StaticPodStatuses.kubernetes.talos.dev");
    let text = node.machine_config().unwrap();
    let disabled = "machine:\n    controlPlane:\n        scheduler:\n            disabled: true\n";
    apply(&cluster, node, text.replacen("machine:\n", disabled, 1)).await;
    let gone = loop {
        let change = statuses.next().await.unwrap();
        if change.kind == ChangeKind::Destroyed {
            break change.resource.metadata.id.to_string();
        }
    };
    assert_eq!(gone, format!("kube-system/kube-scheduler-{}", node.name()));
    let pods = cluster.kube_objects("v1", "Pod");
    assert!(
        !pods
            .iter()
            .any(|pod| pod["metadata"]["labels"]["k8s-app"] == "kube-scheduler")
    );
    let config = node.store().get(
        "controlplane",
        "SchedulerConfigs.kubernetes.talos.dev",
        "kube-scheduler",
    );
    assert_eq!(config.unwrap().spec.value()["enabled"], false);
}

#[tokio::test]
async fn a_node_can_be_not_ready() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    cluster.nodes()[1].set_kube_node_ready(false);
    let nodes: Api<Node> = Api::all(client(&cluster).await);
    let nodes = nodes.list(&ListParams::default()).await.unwrap();
    let ready = nodes.iter().map(|node| {
        let conditions = node.status.as_ref().unwrap().conditions.as_ref().unwrap();
        conditions
            .iter()
            .find(|condition| condition.type_ == "Ready")
            .unwrap()
            .status
            .clone()
    });
    assert_eq!(ready.collect::<Vec<_>>(), ["True", "False"]);
}

#[tokio::test]
async fn talos_1_14_counts_pods_by_the_final_config() {
    let options = Options {
        talos_version: TalosVersion::V1_14,
        ..Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let node = &cluster.nodes()[0];
    let configs = node
        .store()
        .list("controlplane", "SchedulerConfigs.kubernetes.talos.dev");
    let ids: Vec<&str> = configs.iter().map(|config| &*config.metadata.id).collect();
    assert_eq!(ids, ["final-kube-scheduler", "kube-scheduler"]);
    let mut pods = node
        .store()
        .changes("k8s", "StaticPods.kubernetes.talos.dev");
    change_image(&cluster, node, "kube-scheduler", "1.33.4", "1.34.0").await;
    let pod = pods.next().await.unwrap().resource;
    assert_eq!(&*pod.metadata.id, "kube-scheduler");
    let version = &pod.spec.value()["metadata"]["annotations"]["talos.dev/config-version"];
    let config = node.store().get(
        "controlplane",
        "SchedulerConfigs.kubernetes.talos.dev",
        "final-kube-scheduler",
    );
    assert_eq!(
        version.as_str().unwrap(),
        config.unwrap().metadata.version.to_string()
    );
    assert_eq!(version, "2");
}

/// Waits until one of the watched objects yields something.
async fn wait_for<K, T>(api: Api<K>, config: watcher::Config, find: impl Fn(&K) -> Option<T>) -> T
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
    K::DynamicType: Default + Clone + Eq + std::hash::Hash,
{
    let mut events = pin!(watcher(api, config));
    loop {
        if let Some(Ok(Event::Apply(object) | Event::InitApply(object))) = events.next().await
            && let Some(found) = find(&object)
        {
            return found;
        }
    }
}
