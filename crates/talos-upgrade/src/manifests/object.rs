//! The identity of a Kubernetes object.

use std::fmt;

use serde_json::Value;

/// Which object it is, without the version it is written in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectId {
    /// The API group; empty for the core group.
    pub(crate) group: String,
    /// The kind.
    pub(crate) kind: String,
    /// The namespace; empty for objects that are in none.
    pub(crate) namespace: String,
    /// The name.
    pub(crate) name: String,
}

impl ObjectId {
    /// Reads the identity of an object; `None` when it has no kind or name.
    pub(crate) fn of(object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let version = text("/apiVersion")?;
        Some(Self {
            group: version
                .split_once('/')
                .map_or("", |(group, _)| group)
                .to_owned(),
            kind: text("/kind")?.to_owned(),
            namespace: text("/metadata/namespace").unwrap_or_default().to_owned(),
            name: text("/metadata/name")?.to_owned(),
        })
    }

    /// Tells whether an entry of the inventory means this object; an entry without a namespace fits any.
    pub(crate) fn fits(&self, entry: &Self) -> bool {
        let namespace = entry.namespace.is_empty() || entry.namespace == self.namespace;
        namespace
            && (&entry.group, &entry.kind, &entry.name) == (&self.group, &self.kind, &self.name)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(out, "{}/{}", self.kind, self.name)
        } else {
            write!(out, "{}/{}/{}", self.kind, self.namespace, self.name)
        }
    }
}
