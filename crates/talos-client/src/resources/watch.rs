//! Watching resources, across dropped connections.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::time::Duration;

use talos_api::cosi::resource as wire;
use tokio::time::Instant;

use super::{Resource, read, state};
use crate::nodes::Messages;
use crate::{Error, Node, NodeMessage, Result};

/// How to watch.
#[derive(Clone, Copy, Debug)]
pub struct WatchOptions {
    /// Whether the watch of a type starts with what exists already; that of one resource always does.
    pub contents_first: bool,
    /// How to go on after a dropped connection.
    pub backoff: Backoff,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            contents_first: true,
            backoff: Backoff::default(),
        }
    }
}

/// How long to wait before each new try: twice as long each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first wait.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// After how many tries in vain to give up; none never does.
    pub tries: Option<u32>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(250),
            longest: Duration::from_secs(10),
            tries: None,
        }
    }
}

impl Backoff {
    fn wait(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(16);
        self.first.saturating_mul(1 << doublings).min(self.longest)
    }
}

/// What a watch sees.
#[derive(Debug)]
#[non_exhaustive]
pub enum WatchEvent {
    /// A resource is there, or came into being.
    Created(Resource),
    /// A resource changed.
    Updated {
        /// What it was, if the node says so.
        old: Option<Box<Resource>>,
        /// What it is.
        new: Resource,
    },
    /// A resource is gone, or was never there ([`Resource::is_tombstone`]).
    Destroyed(Resource),
    /// All that existed at the start has been seen.
    Bootstrapped,
    /// The connection broke; the watch goes on trying.
    Interrupted {
        /// What happened.
        cause: Box<Error>,
        /// How long it waits before the next try.
        wait: Duration,
    },
    /// The watch goes on where it was; nothing was missed.
    Resumed,
}

/// A watch of one type or one resource; dropping it ends the watch at the node.
#[derive(Debug)]
pub struct Watch {
    node: Node,
    target: Target,
    options: WatchOptions,
    messages: Option<Messages<wire::WatchResponse>>,
    events: VecDeque<WatchEvent>,
    bookmark: Option<Vec<u8>>,
    /// What was seen before the first bookmark, to tell news from repetition when starting over.
    seen: BTreeMap<String, Resource>,
    repeated: Option<BTreeMap<String, Resource>>,
    failures: u32,
    /// When the next try begins; kept here, so that a caller who stops waiting does not put it off.
    next_try: Option<Instant>,
    opening: Option<Opening>,
    /// What ended the watch, until it is told.
    broken: Option<Error>,
    ended: bool,
}

type Opened = (Messages<wire::WatchResponse>, wire::WatchResponse);

/// A try that is under way.
struct Opening(Pin<Box<dyn Future<Output = Result<Opened>> + Send>>);

impl std::fmt::Debug for Opening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Opening")
    }
}

#[derive(Debug)]
struct Target {
    namespace: String,
    resource_type: String,
    id: Option<String>,
}

impl Node {
    /// Watches the resources of a type, or one of them. When this returns, the watch stands.
    ///
    /// # Errors
    /// The type or namespace does not exist, the node refused, or the call gave no answer.
    pub async fn watch(
        &self,
        namespace: &str,
        resource_type: &str,
        id: Option<&str>,
        options: WatchOptions,
    ) -> Result<Watch> {
        let mut watch = Watch {
            node: self.clone(),
            target: Target {
                namespace: namespace.to_string(),
                resource_type: resource_type.to_string(),
                id: id.map(str::to_string),
            },
            options,
            messages: None,
            events: VecDeque::new(),
            bookmark: None,
            seen: BTreeMap::new(),
            repeated: None,
            failures: 0,
            next_try: None,
            opening: None,
            broken: None,
            ended: false,
        };
        let opened = watch.open().0.await?;
        watch.stand(opened)?;
        Ok(watch)
    }
}

impl Watch {
    /// Waits for the next event. After an error the watch has ended, and there is nothing more.
    ///
    /// Dropping the future loses no event, and no progress of a try to go on.
    ///
    /// # Errors
    /// The node ended the watch, such as after a reboot, when the place to go on from is forgotten
    /// ([`Error::Precondition`]); or a dropped connection cannot be made up for.
    pub async fn next(&mut self) -> Result<Option<WatchEvent>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            if let Some(error) = self.broken.take() {
                return Err(error);
            }
            if self.ended {
                return Ok(None);
            }
            if let Err(error) = self.advance().await {
                self.failed(error);
            }
        }
    }

    /// Takes in a failure. What was seen before it comes first.
    fn failed(&mut self, error: Error) {
        if self.can_resume(&error) {
            self.interrupted(error);
        } else {
            self.ended = true;
            self.broken = Some(error);
        }
    }

    async fn advance(&mut self) -> Result<()> {
        let Some(messages) = &mut self.messages else {
            if let Some(next_try) = self.next_try {
                tokio::time::sleep_until(next_try).await;
            }
            let opening = match self.opening.take() {
                Some(opening) => opening,
                None => self.open(),
            };
            let opened = self.opening.insert(opening).0.as_mut().await;
            self.opening = None;
            let opened = opened?;
            self.events.push_back(WatchEvent::Resumed);
            self.stand(opened)?;
            self.failures = 0;
            return Ok(());
        };
        match messages.next().await? {
            Some(message) => self.take(message),
            None => Err(Error::ConnectionLost {
                call: messages.context.call(),
                source: NodeMessage("the node ended the watch".to_string()),
            }),
        }
    }

    /// Begins to open the watch; the first message is empty and says that it stands.
    fn open(&self) -> Opening {
        let (node, request) = (self.node.clone(), self.request());
        Opening(Box::pin(async move {
            let patience = Some(node.request_timeout());
            let kind = request.r#type.clone();
            let mut messages = node
                .stream(Some(&kind), patience, async |wire| {
                    state(wire).watch(request).await
                })
                .await?;
            let first = messages.next().await?;
            let first = first.ok_or_else(|| messages.context.answer("ended before it began"))?;
            messages.patience = None;
            Ok((messages, first))
        }))
    }

    /// Goes on with a watch that was opened.
    fn stand(&mut self, (messages, first): Opened) -> Result<()> {
        let starts_over = self.bookmark.is_none() && !self.seen.is_empty();
        self.repeated = starts_over.then(|| self.seen.clone());
        self.messages = Some(messages);
        self.take(first)
    }

    fn request(&self) -> wire::WatchRequest {
        let kind = self.target.id.is_none();
        let contents = kind && self.options.contents_first && self.bookmark.is_none();
        let options = wire::WatchOptions {
            bootstrap_contents: contents,
            aggregated: kind,
            start_from_bookmark: self.bookmark.clone(),
            bootstrap_bookmark: kind && !contents && self.bookmark.is_none(),
            ..Default::default()
        };
        wire::WatchRequest {
            namespace: self.target.namespace.clone(),
            r#type: self.target.resource_type.clone(),
            id: self.target.id.clone(),
            options: Some(options),
            // Without it the end of the contents and overruns stay unsaid.
            api_version: 1,
        }
    }

    fn take(&mut self, message: wire::WatchResponse) -> Result<()> {
        for event in message.event {
            self.take_event(event)?;
        }
        Ok(())
    }

    fn take_event(&mut self, event: wire::Event) -> Result<()> {
        use wire::EventType;
        let kind = EventType::try_from(event.event_type);
        if kind == Ok(EventType::Errored) {
            let call = self.call();
            return Err(Error::WatchBroken {
                call,
                source: NodeMessage(event.error.unwrap_or_default()),
            });
        }
        if event.bookmark.is_some() {
            self.bookmark = event.bookmark;
        }
        match kind {
            Ok(EventType::Created) => {
                let resource = self.read(event.resource)?;
                self.created(resource);
            }
            Ok(EventType::Updated) => {
                let new = self.read(event.resource)?;
                let old = match event.old {
                    Some(old) => Some(Box::new(self.read(Some(old))?)),
                    None => None,
                };
                self.remember(&new);
                self.events.push_back(WatchEvent::Updated { old, new });
            }
            Ok(EventType::Destroyed) => {
                let resource = self.read(event.resource)?;
                self.destroyed(resource);
            }
            Ok(EventType::Bootstrapped) => self.bootstrapped(),
            // A type that this client does not know tells it nothing.
            Ok(EventType::Noop | EventType::Errored) | Err(_) => {}
        }
        if self.bookmark.is_some() && self.target.id.is_none() && self.repeated.is_none() {
            self.seen.clear();
        }
        Ok(())
    }

    /// Passes a resource on, unless it is only seen again because the watch had to start over.
    fn created(&mut self, resource: Resource) {
        let id = resource.metadata.id.clone();
        let before = self
            .repeated
            .as_mut()
            .and_then(|repeated| repeated.remove(&id));
        self.remember(&resource);
        match before {
            Some(before) if before.metadata == resource.metadata => {}
            Some(before) => self.events.push_back(WatchEvent::Updated {
                old: Some(Box::new(before)),
                new: resource,
            }),
            None => self.events.push_back(WatchEvent::Created(resource)),
        }
        if self.target.id.is_some() {
            self.repeated = None;
        }
    }

    fn destroyed(&mut self, resource: Resource) {
        let before = self.seen.remove(&resource.metadata.id);
        if self
            .repeated
            .take_if(|_| self.target.id.is_some())
            .is_some()
        {
            // Starting over on one resource found it gone: what it was is what we saw last.
            self.events.extend(before.map(WatchEvent::Destroyed));
            return;
        }
        self.events.push_back(WatchEvent::Destroyed(resource));
    }

    fn bootstrapped(&mut self) {
        match self.repeated.take() {
            None => self.events.push_back(WatchEvent::Bootstrapped),
            Some(gone) => {
                for (id, resource) in gone {
                    self.seen.remove(&id);
                    self.events.push_back(WatchEvent::Destroyed(resource));
                }
                self.events.push_back(WatchEvent::Bootstrapped);
            }
        }
    }

    fn remember(&mut self, resource: &Resource) {
        if self.bookmark.is_none() || self.target.id.is_some() {
            self.seen
                .insert(resource.metadata.id.clone(), resource.clone());
        }
    }

    fn read(&self, resource: Option<wire::Resource>) -> Result<Resource> {
        match &self.messages {
            Some(messages) => read(resource, &messages.context),
            None => Err(Error::Answer {
                call: self.call(),
                problem: "came without a watch",
            }),
        }
    }

    fn call(&self) -> Box<crate::Call> {
        match &self.messages {
            Some(messages) => messages.context.call(),
            None => Box::new(crate::Call {
                node: self.node.name().map(str::to_string),
                endpoint: String::new(),
                method: "cosi.resource.State/Watch".to_string(),
            }),
        }
    }

    fn can_resume(&self, error: &Error) -> bool {
        let passes = error.is_transient() || matches!(error, Error::WatchBroken { .. });
        let knows_where =
            self.bookmark.is_some() || self.target.id.is_some() || self.options.contents_first;
        let may_try = self
            .options
            .backoff
            .tries
            .is_none_or(|tries| self.failures < tries);
        passes && knows_where && may_try
    }

    fn interrupted(&mut self, error: Error) {
        self.messages = None;
        self.failures += 1;
        let wait = self.options.backoff.wait(self.failures);
        self.next_try = Some(Instant::now() + wait);
        self.events.push_back(WatchEvent::Interrupted {
            cause: Box::new(error),
            wait,
        });
    }
}

#[cfg(test)]
mod tests;
