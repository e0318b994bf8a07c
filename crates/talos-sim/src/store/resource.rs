//! One resource: metadata as COSI defines it, and the spec as YAML and as a value.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use serde_json::Value;

use crate::cosi::{proto, yaml};

/// A stored resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// What identifies and describes it.
    pub metadata: Metadata,
    /// Its content.
    pub spec: Spec,
}

/// What identifies and describes a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The namespace, such as `runtime`.
    pub namespace: Arc<str>,
    /// The type, such as `Services.v1alpha1.talos.dev`.
    pub kind: Arc<str>,
    /// The id, unique within namespace and type.
    pub id: Arc<str>,
    /// Counts changes, from 1.
    pub version: u64,
    /// The controller that writes it; empty if anyone may.
    pub owner: Arc<str>,
    /// Whether it is being torn down.
    pub phase: Phase,
    /// When it was created.
    pub created: Timestamp,
    /// When it was last changed.
    pub updated: Timestamp,
    /// Labels, which lists and watches can select by.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Who has to agree before it is destroyed.
    pub finalizers: Vec<String>,
}

/// The life of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// It is in use.
    #[default]
    Running,
    /// It waits for its finalizers to go.
    TearingDown,
}

impl Phase {
    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::TearingDown => "tearingDown",
        }
    }
}

/// The content of a resource in the forms in which it is given out.
#[derive(Clone)]
pub struct Spec {
    value: Arc<Value>,
    /// The forms for the wire, made when they are first asked for unless they were given.
    yaml: OnceLock<Arc<str>>,
    proto: OnceLock<Arc<[u8]>>,
    given: bool,
}

impl Spec {
    /// Makes a spec of a value; its forms on the wire follow from it.
    pub fn from_value(value: Value) -> Self {
        Self {
            value: Arc::new(value),
            yaml: OnceLock::new(),
            proto: OnceLock::new(),
            given: false,
        }
    }

    /// Makes a spec whose forms do not follow from each other, such as a machine configuration's.
    pub fn from_parts(value: Value, yaml: String, proto: Vec<u8>) -> Self {
        Self {
            value: Arc::new(value),
            yaml: OnceLock::from(Arc::from(yaml)),
            proto: OnceLock::from(Arc::from(proto)),
            given: true,
        }
    }

    /// Returns the content as a value, keys in the order of the YAML.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the YAML text, `yaml_spec` on the wire.
    pub fn yaml(&self) -> &str {
        self.yaml.get_or_init(|| yaml::render(&self.value).into())
    }

    /// Returns the protobuf encoding, `proto_spec` on the wire, for the type that the spec is of.
    pub fn proto(&self, kind: &str) -> &[u8] {
        self.proto
            .get_or_init(|| proto::encode(kind, &self.value).into())
    }
}

impl PartialEq for Spec {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
            && self.given == other.given
            && (!self.given || (self.yaml == other.yaml && self.proto == other.proto))
    }
}

/// Specs hold keys and tokens, so nothing of them is shown.
impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec")
            .field("given", &self.given)
            .finish_non_exhaustive()
    }
}

/// A resource to be stored, which has no version and times yet.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The type.
    pub kind: Arc<str>,
    /// The id.
    pub id: Arc<str>,
    /// The controller that writes it.
    pub owner: Arc<str>,
    /// Whether it is being torn down.
    pub phase: Phase,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// The content.
    pub spec: Spec,
}

impl Draft {
    /// Makes a draft without labels, annotations and finalizers, from a spec value.
    pub fn new(namespace: &str, kind: &str, id: &str, owner: &str, spec: Value) -> Self {
        Self {
            namespace: namespace.into(),
            kind: kind.into(),
            id: id.into(),
            owner: owner.into(),
            phase: Phase::Running,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            finalizers: Vec::new(),
            spec: Spec::from_value(spec),
        }
    }

    /// Makes a ready resource of it.
    pub fn into_resource(self, version: u64, created: Timestamp, updated: Timestamp) -> Resource {
        Resource {
            metadata: Metadata {
                namespace: self.namespace,
                kind: self.kind,
                id: self.id,
                version,
                owner: self.owner,
                phase: self.phase,
                created,
                updated,
                labels: self.labels,
                annotations: self.annotations,
                finalizers: self.finalizers,
            },
            spec: self.spec,
        }
    }

    pub(super) fn same_content(&self, stored: &Resource) -> bool {
        let metadata = &stored.metadata;
        self.owner == metadata.owner
            && self.phase == metadata.phase
            && self.labels == metadata.labels
            && self.annotations == metadata.annotations
            && self.finalizers == metadata.finalizers
            && self.spec == stored.spec
    }
}

impl From<&Resource> for Draft {
    fn from(stored: &Resource) -> Self {
        let metadata = stored.metadata.clone();
        Self {
            namespace: metadata.namespace,
            kind: metadata.kind,
            id: metadata.id,
            owner: metadata.owner,
            phase: metadata.phase,
            labels: metadata.labels,
            annotations: metadata.annotations,
            finalizers: metadata.finalizers,
            spec: stored.spec.clone(),
        }
    }
}
