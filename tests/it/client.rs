//! Our client against simulated nodes: endpoints, TLS, errors, node targeting.

mod endpoints;
mod errors;
mod machine;
mod maintenance;
mod proxies;
mod tls;

use std::time::Duration;

use jiff::Timestamp;
use talos_client::{Client, Error, Node, Options};
use talos_config::talosconfig::TalosConfig;
use talos_sim::Cluster;

/// Starts a simulated cluster.
pub(crate) async fn start(options: talos_sim::Options) -> Cluster {
    Cluster::start(options).await.unwrap()
}

/// A cluster of so many control planes and workers.
pub(crate) async fn cluster(controlplanes: usize, workers: usize) -> Cluster {
    start(talos_sim::Options {
        controlplanes,
        workers,
        ..Default::default()
    })
    .await
}

/// What the cluster's own talosconfig says, with these roles.
pub(crate) fn options(cluster: &Cluster, roles: &[&str]) -> Options {
    let config = TalosConfig::parse("talosconfig", &cluster.talosconfig(roles)).unwrap();
    let mut options = Options::from_context(&config, None, Timestamp::now()).unwrap();
    options.connect_timeout = Duration::from_secs(5);
    options.request_timeout = Duration::from_secs(20);
    options
}

/// A client with these roles.
pub(crate) fn client_as(cluster: &Cluster, roles: &[&str]) -> Client {
    Client::new(options(cluster, roles)).unwrap()
}

/// An administrator's client.
pub(crate) fn client(cluster: &Cluster) -> Client {
    client_as(cluster, &["os:admin"])
}

/// A handle for the node at this position.
pub(crate) fn node(client: &Client, cluster: &Cluster, index: usize) -> Node {
    client.node(address(cluster, index))
}

/// What `-n` takes for the node at this position.
pub(crate) fn address(cluster: &Cluster, index: usize) -> String {
    cluster.nodes()[index].address().to_string()
}

/// An error with all its causes, as the program prints it.
fn text(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
