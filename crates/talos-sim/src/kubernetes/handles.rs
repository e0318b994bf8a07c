//! What tests may do with the simulated Kubernetes from outside.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use jiff::Timestamp;
use serde_json::Value;

use super::kinds::Kind;
use super::{KubeFaults, Kubernetes, objects};
use crate::cluster::Cluster;
use crate::node::Node;
use crate::store::ChangeKind;

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

    /// How often kube-apiserver of this machine has gone away to start anew, for any reason.
    pub fn kube_outages(&self) -> u64 {
        let member = self.shared.kubernetes.member(self.index);
        member.outages.load(Ordering::Relaxed)
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
