//! Events of a node.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::stream::{Stream, StreamExt as _};
use prost::Message as _;
use talos_api::machine::{
    self, AddressEvent, ConfigLoadErrorEvent, ConfigValidationErrorEvent, MachineStatusEvent,
    PhaseEvent, RestartEvent, SequenceEvent, ServiceStateEvent, TaskEvent,
};

use super::machine;
use crate::error::from_metadata;
use crate::{Node, Result};

/// Which events to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Which past events come first.
    pub tail: Tail,
    /// Only events that this actor caused.
    pub actor: Option<String>,
}

/// Which past events come first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tail {
    /// None.
    #[default]
    None,
    /// All that the node remembers.
    All,
    /// The last ones, so many.
    Count(u32),
    /// Those after the event of this id.
    AfterId(String),
    /// Those of the last seconds, so many.
    Seconds(u32),
}

/// Something that happened on a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The event's id; ids sort by time.
    pub id: String,
    /// Who caused it: what a call such as reboot returned; empty otherwise.
    pub actor: String,
    /// What happened.
    pub payload: Payload,
}

/// What happened on a node.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Payload {
    /// A sequence, such as a reboot, started, ended or failed.
    Sequence(SequenceEvent),
    /// A phase of a sequence started or ended.
    Phase(PhaseEvent),
    /// A task of a phase started or ended.
    Task(TaskEvent),
    /// A service changed its state.
    ServiceState(ServiceStateEvent),
    /// The machine restarts.
    Restart(RestartEvent),
    /// The configuration could not be loaded.
    ConfigLoadError(ConfigLoadErrorEvent),
    /// The configuration is not valid.
    ConfigValidationError(ConfigValidationErrorEvent),
    /// The machine's addresses, from time to time and when they change.
    Address(AddressEvent),
    /// The machine's stage and readiness changed.
    MachineStatus(MachineStatusEvent),
    /// Something that this client does not know, or cannot read.
    Unknown {
        /// The type as the node named it.
        type_url: String,
        /// The content.
        value: Vec<u8>,
    },
}

/// Events as they come; it ends when the node shuts down. Dropping it cancels the request.
pub struct EventStream {
    inner: Pin<Box<dyn Stream<Item = Result<Event>> + Send>>,
}

impl Stream for EventStream {
    type Item = Result<Event>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.inner.poll_next_unpin(cx)
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventStream")
    }
}

impl Node {
    /// Subscribes to events. When this returns, the subscription stands: nothing that happens later is missed.
    ///
    /// # Errors
    /// The node refused, or the call gave no answer.
    pub async fn events(&self, events: Events) -> Result<EventStream> {
        let mut request = machine::EventsRequest {
            with_actor_id: events.actor.unwrap_or_default(),
            ..Default::default()
        };
        let whole = |number| i32::try_from(number).unwrap_or(i32::MAX);
        match events.tail {
            Tail::None => {}
            Tail::All => request.tail_events = -1,
            Tail::Count(count) => request.tail_events = whole(count),
            Tail::AfterId(id) => request.tail_id = id,
            Tail::Seconds(seconds) => request.tail_seconds = whole(seconds),
        }
        let patience = Some(self.request_timeout());
        let mut messages = self
            .stream(None, patience, async |wire| {
                machine(wire).events(request).await
            })
            .await?;
        let hello = messages.next().await?;
        let hello = hello.ok_or_else(|| messages.context.answer("ended before it began"))?;
        if let Some(error) = from_metadata(hello.metadata.as_ref(), &messages.context) {
            return Err(error);
        }
        messages.patience = None;
        let later = messages.into_stream(|event, context| {
            match from_metadata(event.metadata.as_ref(), context) {
                Some(error) => Err(error),
                None => Ok(Event::from(event)),
            }
        });
        // A server that does not say hello starts with a real event.
        let first = futures::stream::iter((!is_hello(&hello)).then(|| Ok(Event::from(hello))));
        Ok(EventStream {
            inner: Box::pin(first.chain(later)),
        })
    }
}

fn is_hello(event: &machine::Event) -> bool {
    event
        .data
        .as_ref()
        .is_none_or(|data| data.type_url.is_empty() && data.value.is_empty())
}

impl From<machine::Event> for Event {
    fn from(event: machine::Event) -> Self {
        let data = event.data.unwrap_or_default();
        Self {
            id: event.id,
            actor: event.actor_id,
            payload: read_payload(&data.type_url, &data.value).unwrap_or(Payload::Unknown {
                type_url: data.type_url,
                value: data.value,
            }),
        }
    }
}

fn read_payload(type_url: &str, value: &[u8]) -> Option<Payload> {
    let name = type_url.rsplit('/').next()?.strip_prefix("machine.")?;
    Some(match name {
        "SequenceEvent" => Payload::Sequence(SequenceEvent::decode(value).ok()?),
        "PhaseEvent" => Payload::Phase(PhaseEvent::decode(value).ok()?),
        "TaskEvent" => Payload::Task(TaskEvent::decode(value).ok()?),
        "ServiceStateEvent" => Payload::ServiceState(ServiceStateEvent::decode(value).ok()?),
        "RestartEvent" => Payload::Restart(RestartEvent::decode(value).ok()?),
        "ConfigLoadErrorEvent" => {
            Payload::ConfigLoadError(ConfigLoadErrorEvent::decode(value).ok()?)
        }
        "ConfigValidationErrorEvent" => {
            Payload::ConfigValidationError(ConfigValidationErrorEvent::decode(value).ok()?)
        }
        "AddressEvent" => Payload::Address(AddressEvent::decode(value).ok()?),
        "MachineStatusEvent" => Payload::MachineStatus(MachineStatusEvent::decode(value).ok()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_payload_is_read_by_its_type() {
        let task = TaskEvent {
            task: "stopAllServices".to_string(),
            action: 1,
        };
        let read = read_payload("talos/runtime/machine.TaskEvent", &task.encode_to_vec());
        assert_eq!(read, Some(Payload::Task(task)));
    }

    #[test]
    fn what_is_not_known_is_kept() {
        for type_url in [
            "",
            "talos/runtime/machine.NewEvent",
            "talos/runtime/other.TaskEvent",
        ] {
            let event = Event::from(machine::Event {
                data: Some(prost_types::Any {
                    type_url: type_url.to_string(),
                    value: vec![1, 2],
                }),
                ..Default::default()
            });
            let expected = Payload::Unknown {
                type_url: type_url.to_string(),
                value: vec![1, 2],
            };
            assert_eq!(event.payload, expected);
        }
    }

    proptest! {
        #[test]
        fn no_content_makes_the_reader_panic(value in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = read_payload("talos/runtime/machine.MachineStatusEvent", &value);
            let _ = read_payload("talos/runtime/machine.SequenceEvent", &value);
        }
    }
}
