//! Gauge: every call that reached a node, as tests want to assert on it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// One call that a node handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Name of the node that handled the call.
    pub node: String,
    /// Name of the node whose apid was dialled.
    pub via: String,
    /// Full method path, such as `/machine.MachineService/Version`.
    pub method: String,
    /// Request metadata as the endpoint received it, names in lower case.
    pub metadata: Vec<(String, String)>,
    /// Roles that the call ran with.
    pub roles: Vec<String>,
    /// Whether the call changes the machine; a dry run or a read does not.
    pub mutating: bool,
}

impl Call {
    /// Returns the values of one metadata key.
    pub fn values(&self, key: &str) -> Vec<&str> {
        let matching = self.metadata.iter().filter(|(name, _)| name == key);
        matching.map(|(_, value)| value.as_str()).collect()
    }
}

/// All that arrived at a cluster of one sort, in order.
#[derive(Debug)]
pub(crate) struct Record<T>(Mutex<Vec<T>>);

impl<T> Default for Record<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Record<T> {
    pub(crate) fn record(&self, arrival: T) {
        self.kept().push(arrival);
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.kept().clone()
    }

    pub(crate) fn clear(&self) {
        self.kept().clear();
    }

    fn kept(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
