//! The simulated Kubernetes API and reaching it.

mod order;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use talos_sim::{Cluster, Options};

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
                .as_ref()
                .unwrap()
                .node_info
                .as_ref()
                .unwrap()
                .kubelet_version
                .clone()
        })
        .collect();
    assert_eq!(versions, ["v1.33.4", "v1.33.4"]);

    let pods: Api<Pod> = Api::namespaced(client, "kube-system");
    let pods = pods
        .list(&ListParams::default().labels("tier=control-plane"))
        .await
        .unwrap();
    let names: Vec<&str> = pods
        .iter()
        .map(|pod| pod.metadata.name.as_deref().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "kube-apiserver-cluster-1-controlplane-1",
            "kube-controller-manager-cluster-1-controlplane-1",
            "kube-scheduler-cluster-1-controlplane-1",
        ]
    );
}

/// Connects as the administrator of the kubeconfig.
async fn client(cluster: &Cluster) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&cluster.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.unwrap()).unwrap()
}
