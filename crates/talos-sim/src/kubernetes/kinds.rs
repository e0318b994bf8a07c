//! The kinds of objects that the simulated Kubernetes API serves.

use std::cmp::Ordering;
use std::sync::{Arc, PoisonError, RwLock};

/// One kind of object under one group and version.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    /// API group, empty for the core group.
    pub(crate) group: String,
    /// API version such as `v1`.
    pub(crate) version: String,
    /// Name of the kind such as `DaemonSet`.
    pub(crate) kind: String,
    /// Name in URLs such as `daemonsets`.
    pub(crate) plural: String,
    /// Whether objects live in a namespace.
    pub(crate) namespaced: bool,
    /// Short names that command lines accept.
    pub(crate) short_names: Vec<String>,
    /// Verbs that discovery announces.
    pub(crate) verbs: Vec<String>,
    /// Categories such as `all`.
    pub(crate) categories: Vec<String>,
}

impl Kind {
    /// Returns a kind with all verbs, as a custom resource definition adds it.
    pub(crate) fn custom(
        group: &str,
        version: &str,
        kind: &str,
        plural: &str,
        namespaced: bool,
    ) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            namespaced,
            short_names: Vec::new(),
            verbs: words(ALL_VERBS),
            categories: Vec::new(),
        }
    }

    /// Returns `v1` or `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns `pods` or `daemonsets.apps`, the form of messages.
    pub(crate) fn resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Tells whether the kind announces a verb.
    pub(crate) fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// Tells whether `/status` is separate from the object.
    pub(crate) fn has_status(&self) -> bool {
        WITH_STATUS.contains(&self.kind.as_str())
    }

    /// Tells whether `metadata.generation` counts changes of the specification.
    pub(crate) fn has_generation(&self) -> bool {
        WITH_GENERATION.contains(&self.kind.as_str())
    }
}

/// Kinds are told apart by what URLs say.
impl Ord for Kind {
    fn cmp(&self, other: &Self) -> Ordering {
        let left = (&self.plural, &self.group, &self.version);
        left.cmp(&(&other.plural, &other.group, &other.version))
    }
}

impl PartialOrd for Kind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Kind {}

/// All kinds served at present; custom resource definitions and knobs add to it.
#[derive(Debug)]
pub(crate) struct Catalog(RwLock<Vec<Arc<Kind>>>);

impl Catalog {
    /// Returns the kinds that Kubernetes 1.36 serves by default.
    pub(crate) fn recorded() -> Self {
        let kinds = include_str!("../../data/kubernetes-resources.tsv")
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(parse)
            .map(Arc::new)
            .collect();
        Self(RwLock::new(kinds))
    }

    /// Starts serving a kind; a second time changes nothing.
    pub(crate) fn serve(&self, kind: Kind) {
        let mut kinds = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !kinds.iter().any(|known| known.as_ref() == &kind) {
            kinds.push(Arc::new(kind));
        }
    }

    /// Returns the kind behind a URL.
    pub(crate) fn by_plural(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        self.find(|kind| kind.group == group && kind.version == version && kind.plural == plural)
    }

    /// Returns the kind that an object names.
    pub(crate) fn by_kind(&self, api_version: &str, name: &str) -> Option<Arc<Kind>> {
        self.find(|kind| kind.kind == name && kind.api_version() == api_version)
    }

    /// Returns all kinds in the order in which discovery shows them.
    pub(crate) fn all(&self) -> Vec<Arc<Kind>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn find(&self, wanted: impl Fn(&Kind) -> bool) -> Option<Arc<Kind>> {
        let kinds = self.0.read().unwrap_or_else(PoisonError::into_inner);
        kinds.iter().find(|kind| wanted(kind)).cloned()
    }
}

const ALL_VERBS: &str = "create,delete,deletecollection,get,list,patch,update,watch";

const WITH_STATUS: &[&str] = &[
    "CertificateSigningRequest",
    "CronJob",
    "CustomResourceDefinition",
    "DaemonSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "Ingress",
    "Job",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "ReplicaSet",
    "ReplicationController",
    "ResourceQuota",
    "Service",
    "StatefulSet",
];

const WITH_GENERATION: &[&str] = &[
    "CronJob",
    "CustomResourceDefinition",
    "DaemonSet",
    "Deployment",
    "Ingress",
    "Job",
    "NetworkPolicy",
    "Pod",
    "PodDisruptionBudget",
    "ReplicaSet",
    "StatefulSet",
];

/// Reads a row of the recorded resource list.
fn parse(line: &str) -> Option<Kind> {
    let mut columns = line.split('\t');
    let plural = columns.next()?.to_owned();
    let api_version = columns.next()?;
    let namespaced = columns.next()? == "true";
    let kind = columns.next()?.to_owned();
    let short_names = words(columns.next()?);
    let verbs = words(columns.next()?);
    let categories = words(columns.next()?);
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Some(Kind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind,
        plural,
        namespaced,
        short_names,
        verbs,
        categories,
    })
}

fn words(text: &str) -> Vec<String> {
    text.split(',')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_list_is_read_completely() {
        let catalog = Catalog::recorded();
        assert_eq!(catalog.all().len(), 67);
        let pods = catalog.by_plural("", "v1", "pods").unwrap();
        assert_eq!((pods.kind.as_str(), pods.namespaced), ("Pod", true));
        assert_eq!(pods.short_names, ["po"]);
        let sets = catalog.by_kind("apps/v1", "DaemonSet").unwrap();
        assert_eq!(sets.resource(), "daemonsets.apps");
        assert!(sets.allows("deletecollection"));
        assert!(catalog.by_plural("apps", "v1beta1", "daemonsets").is_none());
    }
}
