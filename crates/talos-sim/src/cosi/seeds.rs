//! What a node holds when it has booted: definitions, namespaces and instances as on a real machine.
//!
//! The instances were recorded on a control plane and a worker of a real cluster (`data/cosi`).
//! Where they name the machine or the cluster, the data holds a placeholder. Nodes share what has
//! none, so that a cluster of a thousand needs little memory.

mod fill;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{DEFINITIONS, NAMESPACES, definitions};
use crate::node::MachineType;
use crate::options::{Platform, TalosVersion};
use crate::store::{Draft, Resource, Store};

use fill::Words;

/// What resources say about a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// `cluster.clusterName`.
    pub(crate) cluster_name: String,
    /// `cluster.id`, in base64.
    pub(crate) cluster_id: String,
    /// `cluster.controlPlane.endpoint`, such as `https://10.5.0.2:6443`.
    pub(crate) endpoint: String,
    /// The Talos version of all nodes.
    pub(crate) talos_version: TalosVersion,
    /// The Kubernetes version without a leading `v`.
    pub(crate) kubernetes_version: String,
    /// Where the machines run.
    pub(crate) platform: Platform,
    /// All machines, also those in maintenance mode.
    pub(crate) machines: Vec<Machine>,
}

/// What resources say about one machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// The host name, which is also its Kubernetes node name.
    pub(crate) name: String,
    /// The address it is reached by.
    pub(crate) address: IpAddr,
    /// What its configuration makes of it; unknown while it waits for one.
    pub(crate) kind: MachineType,
}

/// The resources of freshly booted nodes of one cluster.
pub(crate) struct Seeds {
    site: Site,
    now: Timestamp,
    /// Collections that are equal on all nodes: definitions, namespaces, members.
    common: Vec<Arc<Items>>,
    /// Instances without placeholders, ready to be shared, with the machines they belong to.
    fixed: Vec<(&'static Instance, Arc<Resource>)>,
    /// Instances to fill in for each node.
    templates: Vec<&'static Instance>,
}

/// All resources of one type in one namespace, by id.
type Items = BTreeMap<Arc<str>, Arc<Resource>>;

/// One recorded resource; see data/cosi/README.md.
#[derive(Debug, Deserialize)]
struct Instance {
    on: On,
    /// Present where there is one resource for each such machine of the cluster.
    r#for: Option<Each>,
    namespace: String,
    r#type: String,
    id: String,
    version: u64,
    owner: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    #[serde(default)]
    finalizers: Vec<String>,
    spec: Value,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum On {
    Controlplane,
    Worker,
    Both,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Each {
    Controlplanes,
    Workers,
}

impl Seeds {
    /// Prepares the resources of a cluster's nodes; `now` is their creation time.
    pub(crate) fn new(site: Site, now: Timestamp) -> Self {
        let mut common = vec![
            described_types(site.talos_version, now),
            described_namespaces(now),
        ];
        let mut fixed = Vec::new();
        let mut templates = Vec::new();
        let mut members: BTreeMap<(&str, &str), Items> = BTreeMap::new();
        let known = |instance: &&Instance| {
            definitions::find(&instance.r#type).is_some_and(|d| d.exists_in(site.talos_version))
        };
        for instance in INSTANCES.iter().filter(known) {
            if let Some(each) = instance.r#for {
                let place = (instance.namespace.as_str(), instance.r#type.as_str());
                let machines = site.machines.iter().filter(|m| each.includes(m.kind));
                members.entry(place).or_default().extend(machines.map(|m| {
                    let resource = instance.resource(&Words::new(&site, m), now);
                    (Arc::clone(&resource.metadata.id), resource)
                }));
            } else if instance.has_placeholder() {
                templates.push(instance);
            } else {
                fixed.push((instance, instance.resource(&Words::default(), now)));
            }
        }
        common.extend(members.into_values().map(Arc::new));
        Self {
            site,
            now,
            common,
            fixed,
            templates,
        }
    }

    /// Fills an empty store, leaving out the types in `without`, which others provide.
    pub(crate) fn install(&self, store: &Store, machine: &Machine, without: &[&str]) {
        let wanted = |kind: &str| !without.contains(&kind);
        for items in &self.common {
            let Some(first) = items.values().next() else {
                continue;
            };
            let described = &*first.metadata.namespace == "meta";
            let configured = machine.kind != MachineType::Unknown;
            if (described || configured) && wanted(&first.metadata.kind) {
                store.seed_all(Arc::clone(items));
            }
        }
        let belongs = |instance: &Instance| {
            wanted(&instance.r#type) && instance.on.includes(machine.kind, instance)
        };
        let fixed = self.fixed.iter().filter(|(instance, _)| belongs(instance));
        store.seed(fixed.map(|(_, resource)| Arc::clone(resource)));
        let words = Words::new(&self.site, machine);
        let templates = self.templates.iter().filter(|instance| belongs(instance));
        store.seed(templates.map(|instance| instance.resource(&words, self.now)));
    }
}

impl Instance {
    fn has_placeholder(&self) -> bool {
        fill::has_placeholder(&Value::String(self.id.clone()))
            || fill::has_placeholder(&self.spec)
            || self.annotations.values().any(|text| text.contains("{{"))
    }

    fn resource(&self, words: &Words, now: Timestamp) -> Arc<Resource> {
        let mut draft = Draft::new(
            &self.namespace,
            &self.r#type,
            &words.text(&self.id),
            &self.owner,
            words.value(&self.spec),
        );
        draft.labels = self.labels.clone();
        draft.annotations = self.annotations.clone();
        draft.finalizers = self.finalizers.clone();
        Arc::new(draft.into_resource(self.version, now, now))
    }
}

impl On {
    /// Tells whether a machine has an instance; without a configuration it has little.
    fn includes(self, kind: MachineType, instance: &Instance) -> bool {
        match (self, kind) {
            (Self::Both, MachineType::Unknown) => BARE.contains(&instance.namespace.as_str()),
            (_, MachineType::Unknown) => false,
            (Self::Both, _) => true,
            (Self::Controlplane, kind) => kind == MachineType::ControlPlane,
            (Self::Worker, kind) => kind == MachineType::Worker,
        }
    }
}

impl Each {
    fn includes(self, kind: MachineType) -> bool {
        match self {
            Self::Controlplanes => kind == MachineType::ControlPlane,
            Self::Workers => kind == MachineType::Worker,
        }
    }
}

fn described_types(version: TalosVersion, now: Timestamp) -> Arc<Items> {
    let types = definitions::all().iter().filter(|d| d.exists_in(version));
    items(
        types.map(|d| (d.kind.to_lowercase(), d.spec())),
        DEFINITIONS,
        now,
    )
}

fn described_namespaces(now: Timestamp) -> Arc<Items> {
    let names: Vec<(String, String)> =
        serde_json::from_str(include_str!("../../data/cosi/namespaces.json"))
            .expect("the list of namespaces is valid");
    let specs = names
        .into_iter()
        .map(|(name, description)| (name, json!({"description": description})));
    items(specs, NAMESPACES, now)
}

/// Makes the resources of a type that describes others.
fn items(specs: impl Iterator<Item = (String, Value)>, kind: &str, now: Timestamp) -> Arc<Items> {
    let made = specs.map(|(id, spec)| {
        let draft = Draft::new("meta", kind, &id, "meta", spec);
        let resource = Arc::new(draft.into_resource(1, now, now));
        (Arc::clone(&resource.metadata.id), resource)
    });
    Arc::new(made.collect())
}

static INSTANCES: LazyLock<Vec<Instance>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../data/cosi/instances.json"))
        .expect("the recorded instances are valid")
});

/// Namespaces that hold something before a machine has a configuration.
const BARE: [&str; 4] = ["hardware", "network", "perf", "runtime"];

#[cfg(test)]
pub(super) mod tests;
