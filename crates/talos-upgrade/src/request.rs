//! What the user asked for.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use semver::Version;
use serde::{Serialize, Serializer};
use talos_kube::Component;

/// An upgrade as requested.
#[derive(Clone, Debug)]
pub struct Request {
    /// The version to start from, believed as it is; `None` detects it.
    pub from: Option<Version>,
    /// The version to reach; `None` takes the default of the oldest Talos version among the nodes.
    pub to: Option<Version>,
    /// Repositories that replace the configured ones, without tag.
    pub repositories: BTreeMap<Component, String>,
    /// Pull every image on every node before anything is changed.
    pub pre_pull: bool,
    /// Upgrade kubelets too; without it workers are not changed.
    pub upgrade_kubelet: bool,
    /// How the bootstrap manifests are brought up to date.
    pub manifests: ManifestOptions,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            from: None,
            to: None,
            repositories: BTreeMap::new(),
            pre_pull: true,
            upgrade_kubelet: true,
            manifests: ManifestOptions::default(),
        }
    }
}

/// How the bootstrap manifests are brought up to date. Only `reconcile` counts below Talos 1.13.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestOptions {
    /// Delete and create again what cannot be changed.
    pub force: bool,
    /// Delete what left the manifests.
    pub prune: bool,
    /// Which objects may be taken over.
    pub policy: InventoryPolicy,
    /// How long to wait until the changed objects are ready; zero does not wait.
    #[serde(rename = "reconcileMs", serialize_with = "as_millis")]
    #[schemars(with = "u64")]
    pub reconcile: Duration,
}

impl Default for ManifestOptions {
    fn default() -> Self {
        Self {
            force: false,
            prune: true,
            policy: InventoryPolicy::AdoptIfNoInventory,
            reconcile: Duration::from_secs(300),
        }
    }
}

/// Which live objects the manifests may take over, by the inventory they belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum InventoryPolicy {
    /// Only those of this inventory.
    MustMatch,
    /// Those of this inventory and of none.
    AdoptIfNoInventory,
    /// The same; an object of another inventory is refused under every policy.
    AdoptAll,
}

fn as_millis<S: Serializer>(duration: &Duration, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
