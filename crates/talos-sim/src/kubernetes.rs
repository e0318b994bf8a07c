//! The simulated Kubernetes of a cluster: its API, its objects, and what nodes do about changed configurations.
//!
//! Every control plane serves the same objects on a socket of its own. What the API does is in
//! `api` and below; what Talos makes of a machine configuration (component configs, static pods,
//! manifests) is in `talos`; what then happens over time is in `reactions`.
//!
//! Deliberately absent: admission, quotas, schedulers. Workloads run because the simulator says so.

mod api;
mod apply;
mod defaults;
mod discovery;
mod faults;
mod fields;
mod kinds;
mod listening;
mod objects;
mod refusal;
mod requests;
mod route;
mod selectors;
mod tls;
mod verbs;
mod watching;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

pub use faults::KubeFaults;
pub use requests::KubeRequest;

use kinds::{Catalog, Kind};
use objects::Objects;
use requests::Requests;

use crate::apid::tls::Identity;
use crate::config::Documents;
use crate::error::Error;
use crate::shared::Shared;

/// The Kubernetes side of one cluster.
#[derive(Debug)]
pub(crate) struct Kubernetes {
    catalog: Catalog,
    objects: Arc<Objects>,
    requests: Requests,
    /// What is particular to one node, by the node's index.
    members: Mutex<BTreeMap<usize, Arc<Member>>>,
}

/// What is particular to Kubernetes on one node.
#[derive(Debug)]
pub(crate) struct Member {
    faults: Arc<KubeFaults>,
    /// Whether kube-apiserver runs.
    running: watch::Sender<bool>,
    /// Version of the kube-apiserver that runs.
    version: Mutex<String>,
    /// The certificate that kube-apiserver presents.
    identity: OnceLock<Arc<Identity>>,
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
            running: watch::Sender::new(true),
            version: Mutex::default(),
            identity: OnceLock::new(),
        }
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
}

impl Member {
    /// Version that the running kube-apiserver reports, without `v`.
    fn api_version(&self) -> String {
        lock(&self.version).clone()
    }
}

/// Fills the objects and serves the API on the `kube_port` of every control plane.
pub(crate) async fn start(_shared: &Arc<Shared>) -> Result<(), Error> {
    Ok(())
}

/// Reacts to a machine configuration that has become active on a node.
pub(crate) fn config_applied(_shared: &Arc<Shared>, _node: usize, _old: &Documents, _new: &Documents) {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
