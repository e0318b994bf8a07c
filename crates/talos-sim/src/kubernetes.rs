//! The simulated Kubernetes of a cluster: its API, its objects, and what nodes do about changed configurations.
//!
//! Every control plane serves the same objects on a socket of its own: `listening`, `api` and what
//! is below. What Talos makes of a machine configuration is in `talos`, what then happens over time
//! in `reactions` and `kubelet`, and `workloads` plays the controllers that run pods.
//!
//! Deliberately absent: admission, quotas, a scheduler. Workloads run because the simulator says so.

mod api;
mod apply;
mod bodies;
mod certificates;
mod defaults;
mod discovery;
mod faults;
mod fields;
mod handles;
mod kinds;
mod kubelet;
mod listening;
mod managers;
mod objects;
mod pods;
mod reactions;
mod refusal;
mod requests;
mod route;
mod seed;
mod selectors;
mod startup;
mod statuses;
mod tables;
mod talos;
mod tls;
mod verbs;
mod watching;
mod workloads;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use jiff::Timestamp;
use rustls::sign::CertifiedKey;
use serde_json::Value;
use talos_pki::Name;
use tokio::sync::{mpsc, watch};

pub use certificates::KubeRequestState;
pub use faults::KubeFaults;
pub use handles::KubeChange;
pub use requests::KubeRequest;
pub(crate) use startup::{booted, config_applied, set_running, start};
pub(crate) use talos::{PROVIDED, kubelet_image};
pub(crate) use tls::{Gate, User};

use kinds::{Catalog, Kind};
use objects::{Next, Objects};
use verbs::key;

use crate::apid::tls::Identity;
use crate::calls::Record;
use crate::config::Documents;
use crate::faults::Reach;

/// The Kubernetes side of one cluster.
#[derive(Debug)]
pub(crate) struct Kubernetes {
    catalog: Catalog,
    objects: Arc<Objects>,
    requests: Record<KubeRequest>,
    /// What is particular to one node, by the node's index.
    members: Mutex<BTreeMap<usize, Arc<Member>>>,
}

/// What is particular to Kubernetes on one node.
#[derive(Debug)]
pub(crate) struct Member {
    faults: Arc<KubeFaults>,
    /// Whether kube-apiserver runs.
    running: watch::Sender<bool>,
    /// How often it went away to start anew.
    outages: AtomicU64,
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
            requests: Record::default(),
            members: Mutex::default(),
        }
    }
}

impl Default for Member {
    fn default() -> Self {
        Self {
            faults: Arc::default(),
            running: watch::Sender::new(false),
            outages: AtomicU64::new(0),
            version: Mutex::default(),
            identity: OnceLock::new(),
            names: Mutex::default(),
            configs: Mutex::default(),
            kubelet: tokio::sync::Mutex::default(),
        }
    }
}

impl Kubernetes {
    /// All requests that arrived so far.
    pub(crate) fn requests(&self) -> Vec<KubeRequest> {
        self.requests.all()
    }

    /// What the kube-apiserver of a node presents when nothing is wrong with it.
    pub(crate) fn presented(&self, node: usize) -> Option<Arc<CertifiedKey>> {
        let member = self.member(node);
        member.identity.get().map(|identity| identity.current())
    }

    /// What the certificate of a node's kube-apiserver covers.
    pub(crate) fn covered(&self, node: usize) -> Vec<Name> {
        lock(&self.member(node).names).clone()
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
