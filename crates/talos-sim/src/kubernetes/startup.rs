//! Bringing Kubernetes up: the resources and objects of every node, and the servers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;

use super::api::ApiServer;
use super::talos::{self, Component, Settings, tag};
use super::{kubelet, listening, lock, reactions, seed, workloads};
use crate::apid::tls::Identity;
use crate::config::Documents;
use crate::error::Error;
use crate::net::Port;
use crate::node::NodeState;
use crate::servers::{self, Server};
use crate::shared::Shared;

/// Fills the objects and serves the API on the port of every control plane.
///
/// # Errors
///
/// A certificate could not be made, TLS not be set up, or a port not be listened on.
pub(crate) async fn start(shared: &Arc<Shared>) -> Result<(), Error> {
    let kubernetes = &shared.kubernetes;
    // All machines of a fresh cluster say the same about Kubernetes.
    let first = shared
        .control_planes()
        .next()
        .and_then(|node| node.documents());
    let config = first.unwrap_or_default();
    let settings = Settings::read(&config, &shared.options.kubernetes_version);
    seed::basics(shared, &settings);
    let configured = |node: &&Arc<NodeState>| !node.configs.in_maintenance();
    for node in shared.nodes.iter().filter(configured) {
        install(shared, node, &config, &settings).await?;
        seed::node(shared, node, &settings);
    }
    for (index, node) in shared.control_planes().enumerate() {
        if index == 0 {
            seed::manifests(shared, node);
        }
        seed::mirror_pods(shared, node);
    }
    workloads::settle(shared);
    for node in &shared.nodes {
        let (sender, receiver) = mpsc::unbounded_channel();
        *lock(&kubernetes.member(node.index).configs) = Some(sender);
        shared.spawn(reactions::run(
            Arc::clone(shared),
            Arc::clone(node),
            receiver,
        ));
        // Followed from here on, so that nothing is missed before the tasks begin.
        let (services, pods) = (kubelet::services(node), kubelet::static_pods(node));
        let starts = kubelet::report_starts(Arc::clone(shared), Arc::clone(node), services);
        shared.spawn(starts);
        shared.spawn(kubelet::run(Arc::clone(shared), Arc::clone(node), pods));
        if node.is_control_plane() {
            serve(shared, node)?;
        }
    }
    shared.spawn(workloads::run(Arc::clone(shared)));
    Ok(())
}

/// Reacts to a machine configuration that has become active on a node.
pub(crate) fn config_applied(shared: &Arc<Shared>, node: usize, config: &Arc<Documents>) {
    let member = shared.kubernetes.member(node);
    if let Some(configs) = lock(&member.configs).as_ref() {
        // The receiver lives as long as the cluster.
        let _stopped = configs.send(Arc::clone(config));
    }
}

/// Writes the Kubernetes resources of a node that boots with its active configuration; one that is
/// new joins the cluster.
///
/// # Errors
///
/// A certificate could not be made, TLS not be set up, or a port not be listened on.
pub(crate) async fn booted(shared: &Arc<Shared>, node: &Arc<NodeState>) -> Result<(), Error> {
    let Some(config) = node.documents() else {
        return Ok(());
    };
    let settings = Settings::read(&config, &shared.options.kubernetes_version);
    install(shared, node, &config, &settings).await?;
    if shared.kubernetes.node(&node.name).is_none() {
        seed::node(shared, node, &settings);
        if node.is_control_plane() {
            seed::mirror_pods(shared, node);
            serve(shared, node)?;
        }
    }
    Ok(())
}

/// Starts or stops the kube-apiserver of a node, as when the machine goes down for a reboot.
pub(crate) fn set_running(shared: &Shared, node: usize, running: bool) {
    let member = shared.kubernetes.member(node);
    if member.identity.get().is_some() {
        if !running {
            member.outages.fetch_add(1, Ordering::Relaxed);
        }
        member.running.send_replace(running);
        member.faults.drop_watches();
    }
}

/// Writes the resources that follow from a configuration for the first time.
async fn install(
    shared: &Shared,
    node: &NodeState,
    config: &Documents,
    settings: &Settings,
) -> Result<(), Error> {
    talos::kubelet_secrets(shared, node, settings);
    talos::kubelet(shared, node, settings);
    if !node.is_control_plane() {
        return Ok(());
    }
    let issued = talos::install_secrets(shared, node, config, settings)?;
    talos::render(shared, node, settings, Duration::ZERO).await;
    talos::render_manifests(shared, node, settings);
    let member = shared.kubernetes.member(node.index);
    *lock(&member.names) = talos::names(node, settings);
    tag(settings.image(Component::ApiServer)).clone_into(&mut lock(&member.version));
    let tls_failed = |source| Error::Tls {
        owner: node.name.clone(),
        source,
    };
    let chain = servers::kube_chain(shared, node);
    match member.identity.get() {
        Some(identity) => identity.replace(&issued, &chain).map_err(tls_failed)?,
        None => {
            let identity = Arc::new(Identity::new(&issued, &chain).map_err(tls_failed)?);
            member.identity.get_or_init(|| identity);
        }
    }
    member.running.send_replace(true);
    Ok(())
}

/// Serves the API on a control plane.
fn serve(shared: &Arc<Shared>, node: &Arc<NodeState>) -> Result<(), Error> {
    let kubernetes = &shared.kubernetes;
    let member = kubernetes.member(node.index);
    let minor = shared
        .options
        .kubernetes_version
        .split('.')
        .nth(1)
        .and_then(|minor| minor.parse().ok());
    member
        .faults
        .refuse_streaming_lists(minor.unwrap_or(0) < FIRST_STREAMING_MINOR);
    let server = Arc::new(ApiServer {
        shared: Arc::clone(shared),
        node: node.name.clone(),
        member,
    });
    // Listens from now on, so that a cluster that has started can be dialled.
    let listen = |port: &Port| {
        let address = port.address();
        let listener = port.listen();
        listener.map_err(|source| Error::Listen { address, source })
    };
    let port = node.ports.get(&Server::KubeApiServer);
    let first = port.map(listen).transpose()?;
    shared.spawn(listening::serve(server, Arc::clone(node), first));
    Ok(())
}

/// Kubernetes 1.34 is the first version whose watches can begin with what exists.
const FIRST_STREAMING_MINOR: u32 = 34;
