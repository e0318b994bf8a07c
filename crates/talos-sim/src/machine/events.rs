//! The events of one machine: a bounded history, and streams that follow it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::{Stream, stream};
use jiff::Timestamp;
use prost::Message;
use talos_api::machine::{Event, EventsRequest};
use tokio::sync::watch;
use tonic::Status;

use crate::apid::Context;

/// Events that a machine keeps.
const KEPT: usize = 1000;
/// Events that a late stream may still ask for.
const REPLAYABLE: usize = 990;
/// Letters of an event id.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// The stream that `Events` answers with.
pub(crate) type EventStream = Pin<Box<dyn Stream<Item = Result<Event, Status>> + Send>>;

/// The events of one machine.
#[derive(Debug)]
pub(crate) struct Events {
    history: Mutex<History>,
    /// Wakes streams; holds the number of events so far.
    published: watch::Sender<u64>,
}

#[derive(Debug)]
struct History {
    events: VecDeque<Event>,
    /// Number of events that are no longer kept.
    dropped: u64,
    /// Counts boots: a stream of an earlier boot ends.
    boot: u64,
    machine: [u8; 5],
    counter: u32,
}

impl Default for Events {
    fn default() -> Self {
        let history = History {
            events: VecDeque::new(),
            dropped: 0,
            boot: 0,
            machine: rand::random(),
            counter: rand::random_range(0..1 << 16),
        };
        Self {
            history: Mutex::new(history),
            published: watch::Sender::new(0),
        }
    }
}

impl Events {
    /// Publishes a payload of `machine.<name>`.
    pub(crate) fn publish(&self, name: &str, payload: &impl Message, actor: &str, now: Timestamp) {
        let mut history = self.lock();
        let data = prost_types::Any {
            type_url: format!("talos/runtime/machine.{name}"),
            value: payload.encode_to_vec(),
        };
        let id = history.next_id(now);
        let event = Event {
            metadata: None,
            data: Some(data),
            id,
            actor_id: actor.to_owned(),
        };
        history.events.push_back(event);
        if history.events.len() > KEPT {
            history.events.pop_front();
            history.dropped += 1;
        }
        let total = history.total();
        drop(history);
        self.published.send_replace(total);
    }

    /// Forgets everything and ends all streams, as a reboot does.
    pub(crate) fn reboot(&self) {
        let mut history = self.lock();
        history.events.clear();
        history.dropped = 0;
        history.boot += 1;
        history.machine = rand::random();
        drop(history);
        self.published.send_replace(0);
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl History {
    fn total(&self) -> u64 {
        self.dropped + self.events.len() as u64
    }

    fn next_id(&mut self, now: Timestamp) -> String {
        self.counter = (self.counter + 1) & 0xff_ffff;
        let seconds = u32::try_from(now.as_second()).unwrap_or(u32::MAX);
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&seconds.to_be_bytes());
        bytes[4..9].copy_from_slice(&self.machine);
        bytes[9..].copy_from_slice(&self.counter.to_be_bytes()[1..]);
        xid(bytes)
    }

    /// Position of the first event that a request wants.
    fn start(&self, wanted: &EventsRequest, now: Timestamp) -> Result<u64, Status> {
        let options = [
            wanted.tail_events != 0,
            !wanted.tail_id.is_empty(),
            wanted.tail_seconds != 0,
        ];
        if options.iter().filter(|&&given| given).count() > 1 {
            return Err(Status::unknown(
                "only one of tail_events, tail_id, tail_seconds can be set",
            ));
        }
        let oldest = self
            .total()
            .saturating_sub(REPLAYABLE as u64)
            .max(self.dropped);
        let first_of = |matches: &dyn Fn(&Event) -> bool| {
            let index = self
                .events
                .iter()
                .position(matches)
                .unwrap_or(self.events.len());
            (self.dropped + index as u64).max(oldest)
        };
        if wanted.tail_events < 0 {
            return Ok(oldest);
        }
        if wanted.tail_events > 0 {
            let count = u64::from(wanted.tail_events.unsigned_abs());
            return Ok(self.total().saturating_sub(count).max(oldest));
        }
        if !wanted.tail_id.is_empty() {
            if !is_xid(&wanted.tail_id) {
                return Err(Status::unknown("invalid tail_id: xid: invalid ID"));
            }
            return Ok(first_of(&|event| event.id > wanted.tail_id));
        }
        if wanted.tail_seconds > 0 {
            let since = now.as_second() - i64::from(wanted.tail_seconds);
            let since = u32::try_from(since).unwrap_or_default();
            let mut bytes = [0; 12];
            bytes[..4].copy_from_slice(&since.to_be_bytes());
            let since = xid(bytes);
            return Ok(first_of(&|event| event.id >= since));
        }
        Ok(self.total())
    }
}

/// `Events`: a hello without payload, then what the request wants, until the client leaves.
pub(crate) async fn events(context: Context, wanted: EventsRequest) -> Result<EventStream, Status> {
    let now = context.node.now(&context.shared);
    let node = context.node;
    let published = node.machine.events.published.subscribe();
    let mut history = node.machine.events.lock();
    let position = history.start(&wanted, now)?;
    let hello = Event {
        metadata: None,
        data: Some(prost_types::Any::default()),
        id: history.next_id(now),
        actor_id: wanted.with_actor_id.clone(),
    };
    let boot = history.boot;
    drop(history);

    let actor = wanted.with_actor_id;
    let following = stream::unfold((position, published), move |(position, mut published)| {
        let (node, actor) = (node.clone(), actor.clone());
        async move {
            let mut position = position;
            loop {
                match node.machine.events.next(&mut position, boot, &actor) {
                    Next::Event(event) => return Some((Ok(*event), (position, published))),
                    Next::Nothing => published.changed().await.ok()?,
                    Next::Ended => return None,
                }
            }
        }
    });
    Ok(Box::pin(futures::StreamExt::chain(
        stream::iter([Ok(hello)]),
        following,
    )))
}

/// What a stream does next.
enum Next {
    Event(Box<Event>),
    Nothing,
    Ended,
}

impl Events {
    fn next(&self, position: &mut u64, boot: u64, actor: &str) -> Next {
        let history = self.lock();
        // A reader that fell a whole buffer behind gets the end of the stream.
        if history.boot != boot || *position < history.dropped {
            return Next::Ended;
        }
        while *position < history.total() {
            let index = usize::try_from(*position - history.dropped).unwrap_or(usize::MAX);
            *position += 1;
            match history.events.get(index) {
                Some(event) if actor.is_empty() || event.actor_id == actor => {
                    return Next::Event(Box::new(event.clone()));
                }
                _ => {}
            }
        }
        Next::Nothing
    }
}

/// Twelve bytes as twenty letters that sort like the bytes.
fn xid(bytes: [u8; 12]) -> String {
    let mut bits: u128 = bytes
        .iter()
        .fold(0, |bits, &byte| bits << 8 | u128::from(byte));
    bits <<= 4;
    let letter = |index: u32| ALPHABET[(bits >> (95 - 5 * index)) as usize & 31];
    (0..20).map(|index| char::from(letter(index))).collect()
}

fn is_xid(text: &str) -> bool {
    text.len() == 20 && text.bytes().all(|byte| ALPHABET.contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_sortable_base32() {
        assert_eq!(xid([0; 12]), "00000000000000000000");
        assert_eq!(xid([0xff; 12]), "vvvvvvvvvvvvvvvvvvvg");
        let bytes = |first: u8| [first, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
        assert!(xid(bytes(1)) < xid(bytes(2)));
        // A recorded id begins with the seconds of 2026-11-30T17:17:42Z.
        assert!(xid([0x6b, 0x0d, 0xaf, 0xb6, 0, 0, 0, 0, 0, 0, 0, 0]).starts_with("dc6qvd"));
    }
}
