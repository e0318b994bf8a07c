//! What a node does about Kubernetes when its machine configuration changed.

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;

use super::requests::KubeRequest;
use super::seed::INVENTORY;
use super::talos::{self, Settings};
use super::{Member, lock};
use crate::config::Documents;
use crate::machine::restart_kubelet;
use crate::node::NodeState;
use crate::options::TalosVersion;
use crate::servers;
use crate::shared::Shared;

/// Works off the configurations of one node in the order in which they became active.
pub(crate) async fn run(
    shared: Arc<Shared>,
    node: Arc<NodeState>,
    mut configs: UnboundedReceiver<Arc<Documents>>,
) {
    while let Some(config) = configs.recv().await {
        react(&shared, &node, &config).await;
    }
}

async fn react(shared: &Arc<Shared>, node: &Arc<NodeState>, config: &Documents) {
    if shared.kubernetes.node(&node.name).is_none() {
        // It joins the cluster when it has booted.
        return;
    }
    let member = shared.kubernetes.member(node.index);
    let settings = Settings::read(config, &shared.options.kubernetes_version);
    if node.is_control_plane() {
        certificates(shared, node, &member, config, &settings).await;
        talos::render(shared, node, &settings, shared.options.delays.phase).await;
        sleep(shared.options.delays.manifest).await;
        if talos::render_manifests(shared, node, &settings) {
            check_manifests(shared, node);
        }
    }
    let other_authorities = talos::kubelet_secrets(shared, node, &settings);
    if talos::kubelet(shared, node, &settings) || other_authorities {
        let (shared, node) = (Arc::clone(shared), Arc::clone(node));
        Arc::clone(&shared).spawn(async move {
            let member = shared.kubernetes.member(node.index);
            let _one_at_a_time = member.kubelet.lock().await;
            restart_kubelet(&shared, &node).await;
            node.reopen_kubernetes_gate();
        });
    }
}

/// Re-issues certificates if the names or the authorities changed: once with the old names, then with the new ones.
async fn certificates(
    shared: &Shared,
    node: &NodeState,
    member: &Member,
    config: &Documents,
    settings: &Settings,
) {
    let names = talos::names(node, settings);
    let other_roots = talos::roots_differ(node, config, settings);
    if !talos::publish_names(shared, node, &names) && !other_roots {
        return;
    }
    let chain = servers::kube_chain(shared, node);
    let old = std::mem::replace(&mut *lock(&member.names), names.clone());
    for names in [old, names] {
        sleep(shared.options.delays.certificate).await;
        // Issuing for names that were parsed fails only if the random source does.
        if let (Ok(issued), Some(identity)) = (
            talos::issue_serving(shared, node, names),
            member.identity.get(),
        ) {
            let _kept_if_unusable = identity.replace(&issued, &chain);
        }
    }
    node.reopen_kubernetes_gate();
    let _kept_if_failed = talos::reissue(shared, node, config, settings);
}

/// The node's own manifest controller looks at the cluster when its manifests changed, and saves the
/// inventory that is there already (facts/real-upgrade.md §3, 7).
fn check_manifests(shared: &Shared, node: &NodeState) {
    if shared.options.talos_version < TalosVersion::V1_13_9 {
        return;
    }
    let inventory = format!("/api/v1/namespaces/kube-system/configmaps/{INVENTORY}");
    for (method, verb, path) in [
        ("GET", "get", "/api/v1/namespaces/kube-system"),
        ("GET", "get", &inventory),
        ("GET", "get", "/api"),
        ("GET", "get", "/apis"),
        ("PUT", "update", &inventory),
    ] {
        shared.kubernetes.requests.record(KubeRequest {
            node: node.name.clone(),
            method: method.to_owned(),
            verb: verb.to_owned(),
            path: path.to_owned(),
            query: String::new(),
            user_agent: "Go-http-client/2.0".to_owned(),
            user: Some("talos:admin".to_owned()),
            groups: vec!["system:masters".to_owned()],
            dry_run: false,
            mutating: method == "PUT",
        });
    }
}
