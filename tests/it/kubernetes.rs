//! The simulated Kubernetes API and reaching it.

mod api;
mod certificates;
mod faults;
mod order;
mod reach;
mod recording;
mod watches;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use talos_sim::Cluster;

/// Connects as the administrator of the kubeconfig.
async fn client(cluster: &Cluster) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&cluster.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.unwrap()).unwrap()
}
