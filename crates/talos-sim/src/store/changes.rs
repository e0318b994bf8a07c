//! Following what happens in one type of one namespace, from now or from a bookmark.

use std::sync::Arc;

use tokio::sync::watch;

use super::collection::Collection;
use super::{Place, Resource, Store, place};

/// One thing that happened to a resource.
#[derive(Clone, Debug)]
pub struct Change {
    /// What happened.
    pub kind: ChangeKind,
    /// The content after it; for a destroyed resource its last content.
    pub resource: Arc<Resource>,
    /// The content before an update.
    pub old: Option<Arc<Resource>>,
    /// Where it stands in the history of its type; the second half of its bookmark.
    pub position: i64,
}

/// What happened to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Created,
    /// Its content or metadata changed.
    Updated,
    /// It is gone.
    Destroyed,
}

/// Where to begin following.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start<'a> {
    /// With the next change.
    Now,
    /// This many changes back, or as many as are still known; only those of one id if it is given.
    Tail(i32, Option<&'a str>),
    /// With the first change after a bookmark.
    Bookmark(&'a [u8]),
}

/// A bookmark is of another boot, out of the history, or no bookmark at all.
#[derive(Debug, thiserror::Error)]
#[error("invalid watch bookmark")]
pub(crate) struct BadBookmark;

/// Why changes stopped coming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The node went away or the stream was cut.
    Dropped,
    /// More happened than the history holds before it was read.
    Overrun,
}

/// The changes of one type in one namespace, in order.
pub struct Changes {
    store: Store,
    place: Place,
    /// The next position to read.
    next: i64,
    boot: [u8; 8],
    connected: u64,
    kept_up: u64,
    woken: watch::Receiver<()>,
}

impl Store {
    /// Follows a type from `start` on; also returns what existed at that very moment, sorted by id.
    ///
    /// # Errors
    /// When a bookmark cannot be used (any more).
    pub(crate) fn follow(
        &self,
        namespace: &str,
        kind: &str,
        start: Start<'_>,
    ) -> Result<(Vec<Arc<Resource>>, Changes), BadBookmark> {
        let state = self.read();
        let empty = Collection::default();
        let collection = state.collection(namespace, kind).unwrap_or(&empty);
        let next = match start {
            Start::Now => collection.next(),
            Start::Tail(count, id) => collection.tail(count, id),
            Start::Bookmark(bytes) => collection.after(bytes, state.boot)?,
        };
        let changes = Changes {
            store: self.clone(),
            place: place(namespace, kind),
            next,
            boot: state.boot,
            connected: state.connected,
            kept_up: state.kept_up,
            woken: self.shared.woken.subscribe(),
        };
        Ok((collection.all(), changes))
    }

    /// Follows a type from now on.
    pub fn changes(&self, namespace: &str, kind: &str) -> Changes {
        match self.follow(namespace, kind, Start::Now) {
            Ok((_, changes)) => changes,
            Err(BadBookmark) => unreachable!("no bookmark was given"),
        }
    }
}

impl Changes {
    /// Waits for the next change.
    ///
    /// # Errors
    /// When no change will come any more, and why.
    pub async fn next(&mut self) -> Result<Change, Lost> {
        loop {
            self.woken.borrow_and_update();
            if let Some(change) = self.try_next()? {
                return Ok(change);
            }
            if self.woken.changed().await.is_err() {
                return Err(Lost::Dropped);
            }
        }
    }

    /// Returns the next change if it already happened.
    ///
    /// # Errors
    /// When no change will come any more, and why.
    pub fn try_next(&mut self) -> Result<Option<Change>, Lost> {
        let state = self.store.read();
        if state.connected != self.connected {
            return Err(Lost::Dropped);
        }
        if state.kept_up != self.kept_up {
            return Err(Lost::Overrun);
        }
        let Some(collection) = state.collections.get(&self.place) else {
            return Ok(None);
        };
        if self.next >= collection.next() {
            return Ok(None);
        }
        let change = collection.at(self.next).ok_or(Lost::Overrun)?.clone();
        self.next += 1;
        Ok(Some(change))
    }

    /// Tells where the next change will be written, where this reader is, and how far behind it may be.
    pub(crate) fn standing(&self) -> (i64, i64, i64) {
        let state = self.store.read();
        let collection = state.collections.get(&self.place);
        let (next, capacity) = collection.map_or((0, 0), |c| (c.next(), c.capacity()));
        (next, self.next, capacity)
    }

    /// Returns the bookmark of the last change before the ones still to come.
    pub(crate) fn bookmark(&self) -> Vec<u8> {
        self.bookmark_of(self.next - 1)
    }

    /// Returns the bookmark of a change at `position`.
    pub(crate) fn bookmark_of(&self, position: i64) -> Vec<u8> {
        let mut bytes = self.boot.to_vec();
        bytes.extend_from_slice(&position.to_be_bytes());
        bytes
    }
}
