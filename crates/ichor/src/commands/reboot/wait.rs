//! Following a node through its reboot.
//!
//! A node is back when it runs under another boot id and says that it is ready. Events tell what it does meanwhile and
//! whether the reboot failed; the connection breaks in the middle, which is as it should be.

use std::collections::HashSet;
use std::time::Duration;

use futures::StreamExt;
use talos_client::api::machine::machine_status_event::MachineStage;
use talos_client::api::machine::{MachineStatusEvent, SequenceEvent};
use talos_client::{Event, EventStream, Events, Kind, Node, Payload, RebootMode, Tail};
use tokio::sync::mpsc;

use crate::commands::events::describe;
use crate::error::{Code, Error};
use crate::output::Output;

/// Where Linux tells which boot this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// How long no event may come until it is asked whether the node is still there.
const QUIET: Duration = Duration::from_secs(10);

/// How often a node that is away is called.
const POLL: Duration = Duration::from_millis(250);

/// Reboots a node, waits until it is back and returns the actor of the reboot.
pub(super) async fn reboot(
    node: &Node,
    mode: RebootMode,
    progress: &Progress,
) -> Result<String, Error> {
    // Subscribed first, so that no event is missed.
    let mut events = node.events(Events::default()).await?;
    let before = boot_id(node).await?;
    let actor = node.reboot(mode).await?;
    progress.say(node, "rebooting");
    let mut was_away = false;
    let mut told = HashSet::new();
    loop {
        let Some(event) = next(node, &mut events).await? else {
            progress.say(node, "away; waiting for it to come back");
            events = reconnect(node).await?;
            was_away = true;
            continue;
        };
        // A new subscription begins with the past, which has been told already if it is the same boot.
        if told.insert(event.id.clone()) {
            progress.event(node, &event);
        }
        match &event.payload {
            Payload::Sequence(sequence) if event.actor == actor => failure(sequence)?,
            Payload::MachineStatus(status) if is_ready(status) => {
                let is_back = match (&before, boot_id(node).await) {
                    (Some(before), Ok(Some(now))) => *before != now,
                    (_, Ok(_)) => was_away,
                    (_, Err(error)) if is_away(error.code()) => false,
                    (_, Err(error)) => return Err(error),
                };
                if is_back {
                    return Ok(actor);
                }
            }
            _ => {}
        }
    }
}

/// Waits for the next event; none if the node is away.
async fn next(node: &Node, events: &mut EventStream) -> Result<Option<Event>, Error> {
    loop {
        match tokio::time::timeout(QUIET, events.next()).await {
            Ok(Some(Ok(event))) => return Ok(Some(event)),
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) if error.is_transient() || error.kind() == Kind::Failed => {
                return Ok(None);
            }
            Ok(Some(Err(error))) => return Err(error.into()),
            // A machine that lost power does not say goodbye.
            Err(_) => match boot_id(node).await {
                Err(error) if is_away(error.code()) => return Ok(None),
                _ => {}
            },
        }
    }
}

fn failure(sequence: &SequenceEvent) -> Result<(), Error> {
    match &sequence.error {
        Some(error) => Err(Error::new(
            Code::Failed,
            format!("the {} sequence failed", sequence.sequence),
        )
        .cause(error.message.clone())),
        None => Ok(()),
    }
}

fn is_ready(status: &MachineStatusEvent) -> bool {
    status.stage() == MachineStage::Running
        && status.status.as_ref().is_some_and(|status| status.ready)
}

/// Calls the node until it answers, and subscribes to all events since its start.
async fn reconnect(node: &Node) -> Result<EventStream, Error> {
    let events = Events {
        tail: Tail::All,
        actor: None,
    };
    loop {
        match node.events(events.clone()).await {
            Ok(events) => return Ok(events),
            Err(error) if error.is_transient() || error.kind() == Kind::Tls => {
                tokio::time::sleep(POLL).await
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads which boot this is; a caller who may not read files does without.
async fn boot_id(node: &Node) -> Result<Option<String>, Error> {
    match node.read(BOOT_ID).collect().await {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned())),
        Err(error) if matches!(error.kind(), Kind::NotAllowed | Kind::NotFound) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn is_away(code: Code) -> bool {
    matches!(code, Code::Unreachable | Code::TimedOut | Code::Untrusted)
}

/// What nodes do, as lines on stderr.
pub(super) struct Progress {
    sender: mpsc::UnboundedSender<String>,
    receiver: tokio::sync::Mutex<mpsc::UnboundedReceiver<String>>,
    shown: bool,
    every_event: bool,
}

impl Progress {
    pub(super) fn new(shown: bool, every_event: bool) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self {
            sender,
            receiver: tokio::sync::Mutex::new(receiver),
            shown,
            every_event,
        }
    }

    /// Prints progress while some work goes on, and returns what came of it.
    pub(super) async fn print_while<T>(
        &self,
        output: &mut Output,
        work: impl Future<Output = T>,
    ) -> T {
        let mut receiver = self.receiver.lock().await;
        let mut work = std::pin::pin!(work);
        let done = loop {
            tokio::select! {
                Some(line) = receiver.recv() => output.note(&line),
                done = &mut work => break done,
            }
        };
        while let Ok(line) = receiver.try_recv() {
            output.note(&line);
        }
        done
    }

    fn say(&self, node: &Node, what: &str) {
        if self.shown {
            // The receiver lives as long as this does.
            let _ = self
                .sender
                .send(format!("{}: {what}", node.name().unwrap_or_default()));
        }
    }

    fn event(&self, node: &Node, event: &Event) {
        let data = describe(node.name().unwrap_or_default(), event);
        if self.every_event
            || matches!(event.payload, Payload::Phase(_) | Payload::MachineStatus(_))
        {
            self.say(node, data.to_string().trim());
        }
    }
}
