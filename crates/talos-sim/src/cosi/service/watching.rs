//! The Watch call: what is sent first, and how changes become events.

use std::sync::Arc;

use futures::Stream;
use futures::stream;
use jiff::Timestamp;
use talos_api::cosi::resource as api;
use talos_api::cosi::resource::EventType;
use tonic::Status;

use super::query::Query;
use super::{encode, timestamp};
use crate::store::{BadBookmark, Change, ChangeKind, Changes, Lost, Resource, Start, Store};

/// Checks a request and begins to follow.
pub(super) fn start(
    store: &Store,
    request: api::WatchRequest,
) -> Result<impl Stream<Item = Result<api::WatchResponse, Status>> + Send + use<>, Status> {
    let options = request.options.unwrap_or_default();
    let query = Query::new(options.label_query, options.id_query)?;
    let single = request.id;
    let bookmark = options.start_from_bookmark;
    let tail = options.tail_events;
    if single.is_some() && options.bootstrap_contents {
        return Err(not_for_one("bootstrap contents"));
    }
    if single.is_some() && query.has_labels() {
        return Err(not_for_one("label query"));
    }
    if options.bootstrap_contents && (tail != 0 || bookmark.is_some()) {
        return Err(Status::unknown(
            "cannot use BootstrapContents with TailEvents and StartFromBookmark options",
        ));
    }
    let begin = match &bookmark {
        Some(_) if tail != 0 => {
            return Err(Status::unknown(
                "cannot use both TailEvents and StartFromBookmark options",
            ));
        }
        Some(bytes) => Start::Bookmark(bytes),
        None if tail != 0 => Start::Tail(tail, single.as_deref()),
        None => Start::Now,
    };
    let (existing, changes) = store
        .follow(&request.namespace, &request.r#type, begin)
        .map_err(|error: BadBookmark| Status::failed_precondition(error.to_string()))?;

    let mut watch = Watch {
        namespace: request.namespace,
        kind: request.r#type,
        single,
        query,
        aggregated: options.aggregated,
        quiet: request.api_version == 0,
        changes,
        pending: Vec::new(),
        state: Stage::Opening,
    };
    let resumed = bookmark.is_some() || tail != 0;
    watch.prepare(
        &existing,
        resumed,
        options.bootstrap_contents,
        options.bootstrap_bookmark,
    );
    Ok(stream::unfold(watch, |mut watch| async move {
        let message = watch.message().await?;
        Some((message, watch))
    }))
}

struct Watch {
    namespace: String,
    kind: String,
    single: Option<String>,
    query: Query,
    aggregated: bool,
    /// The client speaks version 0 of the API, which has no markers and no errors.
    quiet: bool,
    changes: Changes,
    /// Events that are ready to go, the next one last.
    pending: Vec<api::Event>,
    state: Stage,
}

#[derive(PartialEq)]
enum Stage {
    Opening,
    Following,
    /// Nothing more comes, but the stream stays open, as a real one does after an overrun.
    Silent,
    Ended,
}

impl Watch {
    /// Lines up what is sent before the first change.
    fn prepare(
        &mut self,
        existing: &[Arc<Resource>],
        resumed: bool,
        contents: bool,
        bookmark: bool,
    ) {
        let mut events = Vec::new();
        match &self.single {
            Some(id) if !resumed => {
                let found = existing.iter().find(|r| *r.metadata.id == **id);
                events.push(match found {
                    Some(resource) => plain(EventType::Created, encode(resource)),
                    None => plain(EventType::Destroyed, self.tombstone(id)),
                });
            }
            Some(_) => {}
            None => {
                let matching = existing.iter().filter(|r| self.query.matches(r));
                if contents {
                    events.extend(matching.map(|r| plain(EventType::Created, encode(r))));
                    events.push(self.marker(EventType::Bootstrapped));
                }
                if bookmark {
                    events.push(self.marker(EventType::Noop));
                }
            }
        }
        if self.quiet {
            events.retain(|event| event.event_type() != EventType::Bootstrapped);
        }
        events.reverse();
        self.pending = events;
    }

    /// Waits for the next message to send.
    async fn message(&mut self) -> Option<Result<api::WatchResponse, Status>> {
        match self.state {
            Stage::Opening => {
                self.state = Stage::Following;
                return Some(Ok(api::WatchResponse::default()));
            }
            Stage::Following => {}
            Stage::Silent => std::future::pending().await,
            Stage::Ended => return None,
        }
        while self.pending.is_empty() {
            match self.changes.next().await {
                Ok(change) => self.pending.extend(self.event(&change)),
                Err(lost) => return self.stop(lost).await,
            }
        }
        let mut event = Vec::new();
        if self.aggregated && self.single.is_none() {
            event = std::mem::take(&mut self.pending);
            event.reverse();
            while let Ok(Some(change)) = self.changes.try_next() {
                event.extend(self.event(&change));
            }
        } else {
            event.extend(self.pending.pop());
        }
        Some(Ok(api::WatchResponse { event }))
    }

    async fn stop(&mut self, lost: Lost) -> Option<Result<api::WatchResponse, Status>> {
        match lost {
            Lost::Dropped => {
                self.state = Stage::Ended;
                Some(Err(Status::unavailable("the connection is closing")))
            }
            Lost::Overrun if self.quiet => std::future::pending().await,
            Lost::Overrun => {
                self.state = Stage::Silent;
                let (write, read, capacity) = self.changes.standing();
                let event = api::Event {
                    event_type: EventType::Errored.into(),
                    error: Some(format!(
                        "buffer overrun: namespace {:?} type {:?}, write pos {write}, pos {read}, \
                         capacity {capacity}",
                        self.namespace, self.kind
                    )),
                    ..api::Event::default()
                };
                Some(Ok(api::WatchResponse { event: vec![event] }))
            }
        }
    }

    /// Turns a change into what this watch shows of it.
    fn event(&self, change: &Change) -> Option<api::Event> {
        let shown = |resource: &Resource| match &self.single {
            Some(id) => *resource.metadata.id == **id,
            None => self.query.matches(resource),
        };
        let now = shown(&change.resource);
        let before = change.old.as_deref().map(shown);
        let (kind, old) = match (change.kind, before, now) {
            (ChangeKind::Created, _, true) => (EventType::Created, None),
            (ChangeKind::Destroyed, _, true) => (EventType::Destroyed, None),
            (ChangeKind::Updated, Some(true), true) => (EventType::Updated, change.old.as_ref()),
            (ChangeKind::Updated, _, true) => (EventType::Created, None),
            (ChangeKind::Updated, Some(true), false) => (EventType::Destroyed, None),
            _ => return None,
        };
        Some(api::Event {
            resource: Some(encode(&change.resource)),
            old: old.map(|old| encode(old)),
            error: None,
            event_type: kind.into(),
            bookmark: Some(self.changes.bookmark_of(change.position)),
        })
    }

    fn marker(&self, kind: EventType) -> api::Event {
        api::Event {
            bookmark: Some(self.changes.bookmark()),
            ..plain(kind, self.tombstone(""))
        }
    }

    /// A resource that is not there: metadata without a version, and an empty spec.
    fn tombstone(&self, id: &str) -> api::Resource {
        let now = timestamp(Timestamp::now());
        api::Resource {
            metadata: Some(api::Metadata {
                namespace: self.namespace.clone(),
                r#type: self.kind.clone(),
                id: id.to_owned(),
                version: "undefined".to_owned(),
                phase: "running".to_owned(),
                created: Some(now),
                updated: Some(now),
                ..api::Metadata::default()
            }),
            spec: Some(api::Spec::default()),
        }
    }
}

fn not_for_one(what: &str) -> Status {
    Status::unimplemented(format!("{what} is not implemented for resource watch"))
}

fn plain(kind: EventType, resource: api::Resource) -> api::Event {
    api::Event {
        resource: Some(resource),
        event_type: kind.into(),
        ..api::Event::default()
    }
}
