//! Knobs: what goes wrong with Kubernetes on one node.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::faults::Reach;

/// What goes wrong with Kubernetes on one node; every change takes effect at once.
#[derive(Debug)]
pub struct KubeFaults {
    reach: watch::Sender<Reach>,
    drops: watch::Sender<u64>,
    failures: Mutex<Failures>,
    unready: Mutex<BTreeSet<String>>,
    refuses_streaming_lists: AtomicBool,
}

/// Requests that are refused instead of answered.
#[derive(Debug, Default)]
struct Failures {
    left: u32,
    code: u16,
}

impl Default for KubeFaults {
    fn default() -> Self {
        Self {
            reach: watch::Sender::new(Reach::Up),
            drops: watch::Sender::new(0),
            failures: Mutex::default(),
            unready: Mutex::default(),
            refuses_streaming_lists: AtomicBool::new(false),
        }
    }
}

impl KubeFaults {
    /// Sets whether the node's kube-apiserver can be dialled; open connections are cut when it cannot.
    pub fn set_reach(&self, reach: Reach) {
        self.reach.send_replace(reach);
    }

    /// Ends all open watches at the node's kube-apiserver, as servers do from time to time.
    pub fn drop_watches(&self) {
        self.drops.send_modify(|count| *count += 1);
    }

    /// Answers the next requests to the node's kube-apiserver with a failure of this HTTP status.
    pub fn fail_requests(&self, count: u32, code: u16) {
        *lock(&self.failures) = Failures { left: count, code };
    }

    /// Keeps a static pod such as `kube-scheduler` from becoming ready when it next starts.
    pub fn never_ready(&self, component: &str) {
        lock(&self.unready).insert(component.to_owned());
    }

    /// Lets a static pod become ready again when it next starts.
    pub fn let_ready(&self, component: &str) {
        lock(&self.unready).remove(component);
    }

    /// Sets whether watches that ask for initial events are refused, as Kubernetes before 1.34 does.
    pub fn refuse_streaming_lists(&self, refuse: bool) {
        self.refuses_streaming_lists
            .store(refuse, Ordering::Relaxed);
    }

    pub(crate) fn watch_reach(&self) -> watch::Receiver<Reach> {
        self.reach.subscribe()
    }

    pub(crate) fn watch_drops(&self) -> watch::Receiver<u64> {
        self.drops.subscribe()
    }

    pub(crate) fn stays_unready(&self, component: &str) -> bool {
        lock(&self.unready).contains(component)
    }

    pub(crate) fn streaming_lists_refused(&self) -> bool {
        self.refuses_streaming_lists.load(Ordering::Relaxed)
    }

    /// Takes one of the failures that are left.
    pub(crate) fn next_failure(&self) -> Option<u16> {
        let mut failures = lock(&self.failures);
        failures.left = failures.left.checked_sub(1)?;
        Some(failures.code)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
