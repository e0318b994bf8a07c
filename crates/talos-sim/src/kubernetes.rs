//! The simulated Kubernetes of a cluster: its API, its objects, and what nodes do about changed configurations.
//!
//! Every control plane serves the same objects on a socket of its own: `listening`, `api` and what
//! is below. What Talos makes of a machine configuration is in `talos`, what then happens over time
//! in `reactions` and `kubelet`, and `workloads` plays the controllers that run pods.
//!
//! Deliberately absent: admission, quotas, a scheduler. Workloads run because the simulator says so.

mod api;
mod apply;
mod defaults;
mod discovery;
mod faults;
mod fields;
mod kinds;
mod kubelet;
mod listening;
mod objects;
mod pods;
mod reactions;
mod refusal;
mod requests;
mod route;
mod seed;
mod selectors;
mod talos;
mod tls;
mod verbs;
mod watching;
mod workloads;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use jiff::Timestamp;
use serde_json::Value;
use talos_pki::Name;
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;

pub use faults::KubeFaults;
pub use requests::KubeRequest;
pub(crate) use talos::PROVIDED;

use api::ApiServer;
use kinds::{Catalog, Kind};
use objects::{Next, Objects};
use requests::Requests;
use talos::{Component, Settings, tag};
use tls::Gate;
use verbs::key;

use crate::apid::tls::{Identity, provider};
use crate::cluster::Cluster;
use crate::config::Documents;
use crate::error::Error;
use crate::faults::Reach;
use crate::node::{Node, NodeState};
use crate::shared::Shared;
use crate::store::ChangeKind;

/// The Kubernetes side of one cluster.
#[derive(Debug)]
pub(crate) struct Kubernetes {
    catalog: Catalog,
    objects: Arc<Objects>,
    requests: Requests,
    /// What is particular to one node, by the node's index.
    members: Mutex<BTreeMap<usize, Arc<Member>>>,
}

/// Something that happened to an object of the simulated Kubernetes.
#[derive(Debug, Clone)]
pub struct KubeChange {
    /// What happened.
    pub kind: ChangeKind,
    /// The object after it, or the last content of a deleted one.
    pub object: Arc<Value>,
    /// When it happened.
    pub at: Timestamp,
}

/// What is particular to Kubernetes on one node.
#[derive(Debug)]
pub(crate) struct Member {
    faults: Arc<KubeFaults>,
    /// Whether kube-apiserver runs.
    running: watch::Sender<bool>,
    /// Version of the kube-apiserver that runs.
    version: Mutex<String>,
    /// The certificate that kube-apiserver presents; control planes only.
    identity: OnceLock<Arc<Identity>>,
    /// What that certificate covers.
    names: Mutex<Vec<Name>>,
    /// Configurations that became active and are not worked off yet.
    configs: Mutex<Option<mpsc::UnboundedSender<Arc<Documents>>>>,
    /// Held while the kubelet restarts.
    kubelet: tokio::sync::Mutex<()>,
}

impl Default for Kubernetes {
    fn default() -> Self {
        Self {
            catalog: Catalog::recorded(),
            objects: Arc::new(Objects::new()),
            requests: Requests::default(),
            members: Mutex::default(),
        }
    }
}

impl Default for Member {
    fn default() -> Self {
        Self {
            faults: Arc::default(),
            running: watch::Sender::new(false),
            version: Mutex::default(),
            identity: OnceLock::new(),
            names: Mutex::default(),
            configs: Mutex::default(),
            kubelet: tokio::sync::Mutex::default(),
        }
    }
}

impl Cluster {
    /// Forgets the requests that kube-apiservers received so far.
    pub fn clear_kube_requests(&self) {
        self.kubernetes().requests.clear();
    }

    /// Returns the present objects of a kind such as `apps/v1` and `DaemonSet`.
    pub fn kube_objects(&self, api_version: &str, kind: &str) -> Vec<Arc<Value>> {
        self.kubernetes().all(api_version, kind)
    }

    /// Returns what happened to the objects of a kind, oldest first, as far as it is still known.
    pub fn kube_changes(&self, api_version: &str, kind: &str) -> Vec<KubeChange> {
        let changes = self.kubernetes().objects.known_changes();
        let wanted = changes.into_iter().filter(|change| {
            change.key.kind.kind == kind && change.key.kind.api_version() == api_version
        });
        wanted
            .filter_map(|change| {
                let (kind, object) = match (change.before, change.after) {
                    (None, Some(after)) => (ChangeKind::Created, after),
                    (Some(_), Some(after)) => (ChangeKind::Updated, after),
                    (before, None) => (ChangeKind::Destroyed, before?),
                };
                Some(KubeChange {
                    kind,
                    object,
                    at: change.at,
                })
            })
            .collect()
    }

    /// Stores an object as a controller inside the cluster would, whatever the API would say about it.
    pub fn put_kube_object(&self, object: Value) -> Arc<Value> {
        self.kubernetes().store(object, self.shared.now())
    }

    /// Starts serving a further kind of objects, such as one that a later Kubernetes version removes.
    pub fn serve_kube_kind(
        &self,
        group: &str,
        version: &str,
        kind: &str,
        plural: &str,
        namespaced: bool,
    ) {
        let kind = Kind::custom(group, version, kind, plural, namespaced);
        self.kubernetes().catalog.serve(kind);
    }

    /// Forgets the history of all objects, so that watches from older versions are told `410 Gone`.
    pub fn compact_kube_history(&self) {
        self.kubernetes().objects.compact();
    }

    fn kubernetes(&self) -> &Kubernetes {
        &self.shared.kubernetes
    }
}

impl Node {
    /// What goes wrong with Kubernetes on this machine.
    pub fn kube_faults(&self) -> Arc<KubeFaults> {
        Arc::clone(&self.shared.kubernetes.member(self.index).faults)
    }

    /// Sets the condition `Ready` of this machine's Node object.
    pub fn set_kube_node_ready(&self, ready: bool) {
        let kubernetes = &self.shared.kubernetes;
        let Some(object) = kubernetes.node(self.name()) else {
            return;
        };
        let now = self.shared.now();
        kubernetes.change(&object, now, |object| {
            for condition in object["status"]["conditions"]
                .as_array_mut()
                .into_iter()
                .flatten()
            {
                if condition["type"] == "Ready" {
                    let (status, reason) = if ready {
                        ("True", "KubeletReady")
                    } else {
                        ("False", "KubeletNotReady")
                    };
                    condition["status"] = status.into();
                    condition["reason"] = reason.into();
                    condition["lastTransitionTime"] = objects::seconds(now).into();
                }
            }
        });
    }
}

impl Kubernetes {
    /// All requests that arrived so far.
    pub(crate) fn requests(&self) -> Vec<KubeRequest> {
        self.requests.all()
    }

    /// What is particular to a node.
    pub(crate) fn member(&self, node: usize) -> Arc<Member> {
        Arc::clone(lock(&self.members).entry(node).or_default())
    }

    /// Returns all objects of a kind, in all namespaces.
    pub(crate) fn all(&self, api_version: &str, kind: &str) -> Vec<Arc<Value>> {
        let kind = self.catalog.by_kind(api_version, kind);
        kind.map(|kind| self.objects.list(&kind, None).0)
            .unwrap_or_default()
    }

    /// Returns a pod of `kube-system`.
    pub(crate) fn pod(&self, name: &str) -> Option<Arc<Value>> {
        let kind = self.catalog.by_kind("v1", "Pod")?;
        self.objects.get(&key(&kind, "kube-system", name))
    }

    /// Creates or replaces an object without asking anybody.
    pub(crate) fn store(&self, mut object: Value, now: Timestamp) -> Arc<Value> {
        let Some(place) = self.place_of(&object) else {
            return Arc::new(object);
        };
        defaults::complete(&mut object);
        let stored = self
            .objects
            .write(&place, now, false, |_| Ok(Next::Put(object.clone())));
        stored.ok().flatten().unwrap_or_else(|| Arc::new(object))
    }

    /// Changes an object if it still exists, and tells whether that made a difference.
    pub(crate) fn change(
        &self,
        object: &Value,
        now: Timestamp,
        edit: impl FnOnce(&mut Value),
    ) -> bool {
        let Some(place) = self.place_of(object) else {
            return false;
        };
        let mut before = None;
        let after = self.objects.write(&place, now, false, |live| {
            let Some(live) =
                live.filter(|live| live["metadata"]["uid"] == object["metadata"]["uid"])
            else {
                return Ok(Next::Keep);
            };
            before = Some(live["metadata"]["resourceVersion"].clone());
            let mut new = live.clone();
            edit(&mut new);
            Ok(Next::Put(new))
        });
        let after = after.ok().flatten();
        after.is_some_and(|after| {
            before.is_some_and(|before| after["metadata"]["resourceVersion"] != before)
        })
    }

    /// Deletes an object if it still exists.
    pub(crate) fn remove(&self, object: &Value, now: Timestamp) {
        let Some(place) = self.place_of(object) else {
            return;
        };
        // Deleting is never refused here.
        let _gone = self.objects.write(&place, now, false, |live| {
            let same =
                live.is_some_and(|live| live["metadata"]["uid"] == object["metadata"]["uid"]);
            Ok(if same { Next::Delete } else { Next::Keep })
        });
    }

    /// Waits until a kube-apiserver runs, without which nobody can change anything.
    pub(crate) async fn api_answers(&self) {
        let members: Vec<Arc<Member>> = lock(&self.members).values().cloned().collect();
        let mut waits = Vec::new();
        for member in members
            .iter()
            .filter(|member| member.identity.get().is_some())
        {
            let mut running = member.running.subscribe();
            waits.push(Box::pin(async move {
                let _closed = running.wait_for(|running| *running).await;
            }));
        }
        if !waits.is_empty() {
            futures::future::select_all(waits).await;
        }
    }

    /// Does at once what an object brings about: a definition of custom resources adds kinds.
    fn notice(&self, written: &Value) {
        if written["kind"] != "CustomResourceDefinition" {
            return;
        }
        let spec = &written["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for version in spec["versions"].as_array().into_iter().flatten() {
            self.catalog.serve(Kind::custom(
                &text(&spec["group"]),
                &text(&version["name"]),
                &text(&spec["names"]["kind"]),
                &text(&spec["names"]["plural"]),
                spec["scope"] == "Namespaced",
            ));
        }
    }

    fn place_of(&self, object: &Value) -> Option<objects::Key> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = self
            .catalog
            .by_kind(&text(&object["apiVersion"]), &text(&object["kind"]))?;
        let metadata = &object["metadata"];
        Some(key(
            &kind,
            &text(&metadata["namespace"]),
            &text(&metadata["name"]),
        ))
    }
}

impl Member {
    /// Whether kube-apiserver runs and can be reached.
    fn answers(&self) -> bool {
        *self.running.borrow() && *self.faults.watch_reach().borrow() == Reach::Up
    }

    /// Version that the running kube-apiserver reports, without `v`.
    fn api_version(&self) -> String {
        lock(&self.version).clone()
    }
}

/// Fills the objects and serves the API on the `kube_port` of every control plane.
///
/// # Errors
///
/// A certificate could not be made, or TLS not be set up.
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
        shared.spawn(kubelet::report_starts(Arc::clone(shared), Arc::clone(node)));
        shared.spawn(kubelet::run(Arc::clone(shared), Arc::clone(node)));
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
/// A certificate could not be made, or TLS not be set up.
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
    talos::kubelet(shared, node, settings);
    if !node.is_control_plane() {
        return Ok(());
    }
    let issued = talos::install_secrets(shared, node, config, settings)?;
    talos::render(shared, node, settings, std::time::Duration::ZERO).await;
    talos::render_manifests(shared, node, settings);
    let member = shared.kubernetes.member(node.index);
    *lock(&member.names) = talos::names(node, settings);
    tag(settings.image(Component::ApiServer)).clone_into(&mut lock(&member.version));
    let tls_failed = |source| Error::Tls {
        owner: node.name.clone(),
        source,
    };
    match member.identity.get() {
        Some(identity) => identity.replace(&issued).map_err(tls_failed)?,
        None => {
            let identity = Arc::new(Identity::new(&issued).map_err(tls_failed)?);
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
    let Some(identity) = member.identity.get().cloned() else {
        return Ok(());
    };
    if node.kube_port.is_none() {
        return Ok(());
    }
    let tls_failed = |source| Error::Tls {
        owner: node.name.clone(),
        source,
    };
    let provider = provider();
    let authority = shared.pki.kubernetes.certificate();
    let gate = Arc::new(Gate::new(authority, &provider).map_err(tls_failed)?);
    let config = tls::server_config(identity, Arc::clone(&gate), &provider).map_err(tls_failed)?;
    let server = Arc::new(ApiServer {
        shared: Arc::clone(shared),
        node: node.name.clone(),
        member,
        gate,
    });
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let node = Arc::clone(node);
    shared.spawn(async move {
        if let Some(port) = &node.kube_port {
            listening::serve(server, port, acceptor).await;
        }
    });
    Ok(())
}

/// Kubernetes 1.34 is the first version whose watches can begin with what exists.
const FIRST_STREAMING_MINOR: u32 = 34;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
