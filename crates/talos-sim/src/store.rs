//! The resources of one node: contents, versions and history.

use serde_json::Value;

/// One resource with its metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Namespace, such as `config`.
    pub namespace: String,
    /// Type, such as `MachineConfigs.config.talos.dev`.
    pub kind: String,
    /// Id within namespace and type.
    pub id: String,
    /// Version, which counts from 1.
    pub version: u64,
    /// The controller that owns it; empty for none.
    pub owner: String,
    /// The spec as its YAML form shows it; a machine configuration is its text.
    pub spec: Value,
}

/// When a write that changes nothing counts as a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bump {
    /// The version moves only when the content differs.
    OnChange,
    /// The version always moves, as with `MachineConfigs`.
    Always,
}

/// The resources of one node.
#[derive(Debug, Default)]
pub struct Store {}

impl Store {
    /// Returns a resource, if it exists.
    pub fn get(&self, _namespace: &str, _kind: &str, _id: &str) -> Option<Resource> {
        None
    }

    /// Returns all resources of a type in a namespace, sorted by id.
    pub fn list(&self, _namespace: &str, _kind: &str) -> Vec<Resource> {
        Vec::new()
    }

    /// Creates or updates a resource and returns its version.
    pub fn put(&self, _namespace: &str, _kind: &str, _id: &str, _owner: &str, _spec: Value, _bump: Bump) -> u64 {
        1
    }

    /// Removes a resource; watchers see its last content.
    pub fn destroy(&self, _namespace: &str, _kind: &str, _id: &str) -> bool {
        false
    }
}
