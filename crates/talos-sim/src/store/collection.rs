//! All resources of one type in one namespace, and the last things that happened to them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;

use super::{BadBookmark, Change, ChangeKind, Draft, Resource};

/// All resources of one type in one namespace.
#[derive(Default)]
pub(super) struct Collection {
    /// By id; equal ones are shared between nodes.
    items: Arc<BTreeMap<Arc<str>, Arc<Resource>>>,
    /// The position that the next event gets.
    next: i64,
    /// The last events, the newest last: positions `next - history.len()..next`.
    history: VecDeque<Change>,
}

impl Collection {
    /// Takes resources that existed long ago.
    pub(super) fn of(items: Arc<BTreeMap<Arc<str>, Arc<Resource>>>) -> Self {
        let next = i64::try_from(items.len()).unwrap_or(i64::MAX);
        Self {
            items,
            next,
            ..Self::default()
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<&Arc<Resource>> {
        self.items.get(id)
    }

    pub(super) fn all(&self) -> Vec<Arc<Resource>> {
        self.items.values().map(Arc::clone).collect()
    }

    /// The position that the next event gets.
    pub(super) fn next(&self) -> i64 {
        self.next
    }

    pub(super) fn put(&mut self, draft: Draft, now: Timestamp, forced: bool) -> Arc<Resource> {
        let old = self.items.get(&draft.id).map(Arc::clone);
        if let Some(old) = &old
            && !forced
            && draft.same_content(old)
        {
            return Arc::clone(old);
        }
        let (version, created, kind) = match &old {
            Some(old) => (
                old.metadata.version + 1,
                old.metadata.created,
                ChangeKind::Updated,
            ),
            None => (1, now, ChangeKind::Created),
        };
        let stored = Arc::new(draft.into_resource(version, created, now));
        let id = Arc::clone(&stored.metadata.id);
        Arc::make_mut(&mut self.items).insert(id, Arc::clone(&stored));
        self.record(kind, Arc::clone(&stored), old);
        stored
    }

    pub(super) fn destroy(&mut self, id: &str) -> Option<Arc<Resource>> {
        let last = Arc::make_mut(&mut self.items).remove(id)?;
        self.record(ChangeKind::Destroyed, Arc::clone(&last), None);
        Some(last)
    }

    /// Adds a resource as if it had been created long ago: it counts, but its event is forgotten.
    pub(super) fn seed(&mut self, resource: Arc<Resource>) {
        self.history.clear();
        self.next += 1;
        let id = Arc::clone(&resource.metadata.id);
        Arc::make_mut(&mut self.items).insert(id, resource);
    }

    /// Returns the event at a position, if it is still known.
    pub(super) fn at(&self, position: i64) -> Option<&Change> {
        let oldest = self.next - length(&self.history);
        let index = usize::try_from(position - oldest).ok()?;
        self.history.get(index)
    }

    /// Finds the position from which the last `count` events follow, counting those of one id only
    /// if it is given.
    pub(super) fn tail(&self, count: i32, id: Option<&str>) -> i64 {
        let wanted = usize::try_from(count).unwrap_or_default();
        let counts = |change: &&Change| id.is_none_or(|id| *change.resource.metadata.id == *id);
        let known = self.history.iter().rev().filter(counts);
        let first = known.take(wanted).last();
        first.map_or(self.next, |change| change.position)
    }

    /// Finds the position after a bookmark, which consists of the boot's prefix and a position.
    ///
    /// The oldest positions of a full history are refused, so that whoever starts there is not
    /// overtaken at once.
    pub(super) fn after(&self, bookmark: &[u8], boot: [u8; 8]) -> Result<i64, BadBookmark> {
        let (prefix, position) = bookmark.split_at_checked(8).ok_or(BadBookmark)?;
        let position = i64::from_be_bytes(position.try_into().map_err(|_| BadBookmark)?);
        let oldest = self.next - length(&self.history);
        let first = (self.next - self.capacity() + GAP).max(oldest - 1);
        if prefix != boot || position < first || position >= self.next {
            return Err(BadBookmark);
        }
        Ok(position + 1)
    }

    /// How many events the history may hold now: it doubles as events come.
    pub(super) fn capacity(&self) -> i64 {
        let mut capacity = SMALLEST_HISTORY;
        while capacity < self.next && capacity < LARGEST_HISTORY {
            capacity *= 2;
        }
        capacity
    }

    fn record(&mut self, kind: ChangeKind, resource: Arc<Resource>, old: Option<Arc<Resource>>) {
        self.history.push_back(Change {
            kind,
            resource,
            old,
            position: self.next,
        });
        self.next += 1;
        if length(&self.history) > self.capacity() {
            self.history.pop_front();
        }
    }
}

fn length(history: &VecDeque<Change>) -> i64 {
    i64::try_from(history.len()).unwrap_or(i64::MAX)
}

const SMALLEST_HISTORY: i64 = 8;
const LARGEST_HISTORY: i64 = 1024;
const GAP: i64 = 4;
