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
    /// How many events the history may hold now.
    capacity: usize,
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
        let index = usize::try_from(position - self.oldest()).ok()?;
        self.history.get(index)
    }

    /// Finds the position from which the last `count` events follow, counting those of one id only
    /// if it is given.
    pub(super) fn tail(&self, count: i32, id: Option<&str>) -> i64 {
        let counts = |change: &&Change| id.is_none_or(|id| *change.resource.metadata.id == *id);
        let wanted = usize::try_from(count).unwrap_or_default();
        let readable = self
            .history
            .iter()
            .filter(|c| c.position >= self.readable());
        readable
            .rev()
            .filter(counts)
            .take(wanted)
            .last()
            .map_or(self.next, |change| change.position)
    }

    /// Finds the position after a bookmark, which consists of the boot's prefix and a position.
    pub(super) fn after(&self, bookmark: &[u8], boot: [u8; 8]) -> Result<i64, BadBookmark> {
        let (prefix, position) = bookmark.split_at_checked(8).ok_or(BadBookmark)?;
        let position = i64::from_be_bytes(position.try_into().map_err(|_| BadBookmark)?);
        let next = position.checked_add(1).ok_or(BadBookmark)?;
        if prefix != boot || next < self.readable() || next > self.next {
            return Err(BadBookmark);
        }
        Ok(next)
    }

    fn record(&mut self, kind: ChangeKind, resource: Arc<Resource>, old: Option<Arc<Resource>>) {
        self.capacity = self.capacity.max(SMALLEST_HISTORY);
        if self.history.len() == self.capacity {
            if self.capacity < LARGEST_HISTORY {
                self.capacity *= 2;
            } else {
                self.history.pop_front();
            }
        }
        self.history.push_back(Change {
            kind,
            resource,
            old,
            position: self.next,
        });
        self.next += 1;
    }

    fn oldest(&self) -> i64 {
        self.next - i64::try_from(self.history.len()).unwrap_or(i64::MAX)
    }

    /// The first position that is given out: a full history keeps a gap, so that a reader who
    /// starts there is not overtaken at once.
    fn readable(&self) -> i64 {
        let full = self.history.len() == LARGEST_HISTORY;
        self.oldest() + if full { GAP } else { 0 }
    }
}

const SMALLEST_HISTORY: usize = 8;
const LARGEST_HISTORY: usize = 1024;
const GAP: i64 = 4;
