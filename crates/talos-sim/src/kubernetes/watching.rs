//! Watches: the changes of selected objects as a stream of JSON lines.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use hyper::body::{Bytes, Frame};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::kinds::Kind;
use super::objects::{Change, Objects};
use super::selectors::Selection;

/// What a watch wants to see.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    /// Kind of the objects.
    pub(crate) kind: Arc<Kind>,
    /// Namespace, all if absent.
    pub(crate) namespace: Option<String>,
    /// Labels and fields.
    pub(crate) selection: Selection,
    /// Where to begin; absent begins with what exists.
    pub(crate) from: Option<u64>,
    /// Marks the end of what exists with a bookmark.
    pub(crate) initial_events: bool,
    /// Whether bookmarks may be sent.
    pub(crate) bookmarks: bool,
    /// How long the watch lasts.
    pub(crate) timeout: Duration,
}

/// How often an idle watch tells the present version.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(10);

struct State {
    objects: Arc<Objects>,
    watch: Watch,
    /// The last revision that was looked at.
    position: u64,
    pending: VecDeque<Value>,
    revisions: watch::Receiver<u64>,
    drops: watch::Receiver<u64>,
    deadline: Instant,
    next_bookmark: Instant,
    ended: bool,
}

/// Returns the body of a watch; it ends when `drops` changes.
pub(crate) fn stream(
    objects: Arc<Objects>,
    watch: Watch,
    mut drops: watch::Receiver<u64>,
) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
    drops.mark_unchanged();
    let revisions = objects.revisions();
    let now = Instant::now();
    let mut state = State {
        position: watch.from.unwrap_or_default(),
        pending: VecDeque::new(),
        deadline: now + watch.timeout,
        next_bookmark: now + BOOKMARK_INTERVAL,
        revisions,
        drops,
        objects,
        watch,
        ended: false,
    };
    if state.watch.from.is_none() || state.watch.initial_events {
        state.begin();
    }
    futures::stream::unfold(state, |mut state| async move {
        let event = state.next().await?;
        let mut line = event.to_string();
        line.push('\n');
        Some((Ok(Frame::data(Bytes::from(line))), state))
    })
}

impl State {
    /// Queues everything that exists.
    fn begin(&mut self) {
        let (objects, revision) = self
            .objects
            .list(&self.watch.kind, self.watch.namespace.as_deref());
        self.position = revision;
        for object in objects {
            if self.watch.selection.matches(&object) {
                self.pending.push_back(event("ADDED", &object));
            }
        }
        if self.watch.initial_events && self.watch.bookmarks {
            self.pending.push_back(self.bookmark(true));
        }
    }

    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            self.revisions.borrow_and_update();
            match self.objects.since(self.position) {
                Err(refusal) => {
                    self.ended = true;
                    return Some(json!({ "type": "ERROR", "object": refusal.to_status() }));
                }
                Ok(changes) => {
                    for change in changes {
                        self.position = change.revision;
                        self.pending.extend(self.seen(&change));
                    }
                }
            }
            if !self.pending.is_empty() {
                continue;
            }
            tokio::select! {
                changed = self.revisions.changed() => changed.ok()?,
                _ = self.drops.changed() => return None,
                () = sleep_until(self.deadline) => {
                    self.ended = true;
                    if self.watch.bookmarks {
                        self.pending.push_back(self.bookmark(false));
                    }
                }
                () = sleep_until(self.next_bookmark) => {
                    self.next_bookmark = Instant::now() + BOOKMARK_INTERVAL;
                    if self.watch.bookmarks {
                        self.pending.push_back(self.bookmark(false));
                    }
                }
            }
        }
    }

    /// Returns the event for a change, if the change concerns selected objects.
    fn seen(&self, change: &Change) -> Option<Value> {
        let watch = &self.watch;
        let elsewhere = change.key.kind != watch.kind
            || watch
                .namespace
                .as_ref()
                .is_some_and(|wanted| *wanted != change.key.namespace);
        if elsewhere {
            return None;
        }
        let selected = |object: &Option<Arc<Value>>| {
            object
                .clone()
                .filter(|object| watch.selection.matches(object))
        };
        match (selected(&change.before), selected(&change.after)) {
            (None, None) => None,
            (None, Some(after)) => Some(event("ADDED", &after)),
            (Some(_), Some(after)) => Some(event("MODIFIED", &after)),
            (Some(before), None) => {
                let mut last = before.as_ref().clone();
                last["metadata"]["resourceVersion"] = json!(change.revision.to_string());
                Some(event("DELETED", &last))
            }
        }
    }

    fn bookmark(&self, ends_initial: bool) -> Value {
        let mut metadata = json!({ "resourceVersion": self.position.to_string() });
        if ends_initial {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let kind = &self.watch.kind;
        let object = json!({
            "kind": kind.kind,
            "apiVersion": kind.api_version(),
            "metadata": metadata,
        });
        event("BOOKMARK", &object)
    }
}

fn event(kind: &str, object: &Value) -> Value {
    json!({ "type": kind, "object": object })
}
