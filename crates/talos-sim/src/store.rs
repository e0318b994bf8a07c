//! The resources of one simulated node, kept as Talos keeps them: versions, owners, history, watches.
//!
//! Whoever simulates a part of a node writes its resources with [`Store::put`] and reads others'
//! with [`Store::get`], [`Store::list`] and [`Store::changes`]; `cosi` gives them to clients.

mod changes;
mod collection;
mod resource;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use jiff::Timestamp;
use tokio::sync::watch;

pub(crate) use changes::{BadBookmark, Start};
pub use changes::{Change, ChangeKind, Changes, Lost};
pub use resource::{Draft, Metadata, Phase, Resource, Spec};

use collection::Collection;

/// The resources of one node; clones share the same content.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    state: RwLock<State>,
    /// Wakes every open watch; the value itself carries nothing.
    woken: watch::Sender<()>,
}

struct State {
    collections: BTreeMap<Place, Collection>,
    /// Random per boot, the first half of every bookmark.
    boot: [u8; 8],
    /// Watches opened under another number have ended; see [`Store::drop_watches`].
    connected: u64,
    /// Watches opened under another number have lost events; see [`Store::overrun_watches`].
    kept_up: u64,
}

/// Namespace and type.
type Place = (Arc<str>, Arc<str>);

impl Store {
    /// Creates an empty store with a bookmark prefix of its own.
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                state: RwLock::new(State {
                    collections: BTreeMap::new(),
                    boot: rand::random(),
                    connected: 0,
                    kept_up: 0,
                }),
                woken: watch::Sender::new(()),
            }),
        }
    }

    /// Returns one resource.
    pub fn get(&self, namespace: &str, kind: &str, id: &str) -> Option<Arc<Resource>> {
        self.read()
            .collection(namespace, kind)?
            .get(id)
            .map(Arc::clone)
    }

    /// Returns all resources of a type in a namespace, sorted by id.
    pub fn list(&self, namespace: &str, kind: &str) -> Vec<Arc<Resource>> {
        self.read()
            .collection(namespace, kind)
            .map(Collection::all)
            .unwrap_or_default()
    }

    /// Creates a resource at version 1, or updates it: the version goes up by one if its content
    /// changed, and nothing happens otherwise.
    pub fn put(&self, draft: Draft, now: Timestamp) -> Arc<Resource> {
        self.store(draft, now, false)
    }

    /// Like [`Store::put`], but raises the version of unchanged content too, as applying a machine
    /// configuration does (facts/real-upgrade.md §3, 3.3).
    pub fn put_forced(&self, draft: Draft, now: Timestamp) -> Arc<Resource> {
        self.store(draft, now, true)
    }

    /// Changes an existing resource through `change` and stores the result like [`Store::put`];
    /// returns nothing if there is no such resource.
    pub fn modify(
        &self,
        namespace: &str,
        kind: &str,
        id: &str,
        now: Timestamp,
        change: impl FnOnce(&mut Draft),
    ) -> Option<Arc<Resource>> {
        let mut state = self.write();
        let mut draft = Draft::from(&**state.collection(namespace, kind)?.get(id)?);
        change(&mut draft);
        let stored = state.collection_for(&draft).put(draft, now, false);
        drop(state);
        self.wake();
        Some(stored)
    }

    /// Removes a resource and returns its last content, which is also what watches see.
    pub fn destroy(&self, namespace: &str, kind: &str, id: &str) -> Option<Arc<Resource>> {
        let mut state = self.write();
        let last = state
            .collections
            .get_mut(&place(namespace, kind))?
            .destroy(id)?;
        drop(state);
        self.wake();
        Some(last)
    }

    /// Stores ready-made resources, versions and times included, without an event for each: the
    /// start of a node. Nodes may share them.
    pub fn seed(&self, resources: impl IntoIterator<Item = Arc<Resource>>) {
        let mut state = self.write();
        for resource in resources {
            let metadata = &resource.metadata;
            let place = (Arc::clone(&metadata.namespace), Arc::clone(&metadata.kind));
            state.collections.entry(place).or_default().seed(resource);
        }
    }

    /// Stores all resources of one type and namespace, as [`Store::seed`] does; nodes share them
    /// until one changes.
    pub(crate) fn seed_all(&self, items: Arc<BTreeMap<Arc<str>, Arc<Resource>>>) {
        let Some(first) = items.values().next() else {
            return;
        };
        let place = (
            Arc::clone(&first.metadata.namespace),
            Arc::clone(&first.metadata.kind),
        );
        let collection = Collection::of(items);
        self.write().collections.insert(place, collection);
    }

    /// Removes everything, ends all watches and makes old bookmarks invalid, as a reboot does.
    pub fn reboot(&self) {
        let mut state = self.write();
        state.collections.clear();
        state.boot = rand::random();
        state.connected += 1;
        drop(state);
        self.wake();
    }

    /// Breaks all open watches as a lost connection does; their bookmarks stay valid.
    pub fn drop_watches(&self) {
        self.write().connected += 1;
        self.wake();
    }

    /// Makes all open watches report that they were too slow; nothing more comes from them.
    pub fn overrun_watches(&self) {
        self.write().kept_up += 1;
        self.wake();
    }

    fn store(&self, draft: Draft, now: Timestamp, forced: bool) -> Arc<Resource> {
        let mut state = self.write();
        let stored = state.collection_for(&draft).put(draft, now, forced);
        drop(state);
        self.wake();
        stored
    }

    fn wake(&self) {
        self.shared.woken.send_replace(());
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        let state = self.shared.state.read();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        let state = self.shared.state.write();
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Store {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types = self.read().collections.len();
        f.debug_struct("Store")
            .field("types", &types)
            .finish_non_exhaustive()
    }
}

impl State {
    fn collection(&self, namespace: &str, kind: &str) -> Option<&Collection> {
        self.collections.get(&place(namespace, kind))
    }

    fn collection_for(&mut self, draft: &Draft) -> &mut Collection {
        let place = (Arc::clone(&draft.namespace), Arc::clone(&draft.kind));
        self.collections.entry(place).or_default()
    }
}

fn place(namespace: &str, kind: &str) -> Place {
    (Arc::from(namespace), Arc::from(kind))
}

#[cfg(test)]
mod tests;
