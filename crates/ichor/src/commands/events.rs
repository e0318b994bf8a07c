//! `ichor events`: what happens on nodes.

use futures::StreamExt;
use futures::stream;
use jiff::Timestamp;
use serde::Serialize;
use talos_client::api::machine;
use talos_client::{Event, Events, Payload, Tail};

use crate::connect::Target;
use crate::error::{Error, Outcome};
use crate::output::{Format, Output, OutputArgs};
use crate::report::{self, NodeResult};
use crate::session::Session;
use crate::values;

/// Stream events of nodes until stopped
///
/// With -o ndjson or -o json every event is an object on a line of its own.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show so many past events first; -1 shows all that the node remembers
    #[arg(long, value_name = "N", default_value = "0", conflicts_with_all = ["duration", "since"])]
    tail: i32,
    /// Show the events of so much time first, such as 10m
    #[arg(long, value_name = "DURATION", value_parser = values::duration, conflicts_with = "since")]
    duration: Option<std::time::Duration>,
    /// Show the events after the one with this id first
    #[arg(long, value_name = "ID")]
    since: Option<String>,
    /// Show only events that this actor caused, as a reboot names it
    #[arg(long, value_name = "ID")]
    actor_id: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// One event, as `-o ndjson` prints it.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventData<'a> {
    /// The node as the user named it.
    node: &'a str,
    /// The event's id; ids sort by time.
    id: &'a str,
    /// When it happened, to the second; it is part of the id.
    #[schemars(with = "Option<String>")]
    time: Option<Timestamp>,
    /// Who caused it; empty if nobody asked for it.
    actor_id: &'a str,
    /// What kind of event: `sequence`, `phase`, `task`, `serviceState`, `restart`, `configLoadError`,
    /// `configValidationError`, `address`, `machineStatus`, or the node's own word for one that is not known.
    r#type: &'a str,
    /// What it is about: a sequence, phase, task, service or host name.
    subject: String,
    /// What happened to it, such as `start`, `stop`, `running`.
    action: String,
    /// What the node says about it.
    message: String,
}

impl std::fmt::Display for EventData<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = [self.r#type, &self.subject, &self.action, &self.message];
        let said: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        f.write_str(&said.join(" "))
    }
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let tail = match (args.since, args.duration, args.tail) {
        (Some(id), _, _) => Tail::AfterId(id),
        (_, Some(duration), _) => {
            Tail::Seconds(u32::try_from(duration.as_secs()).unwrap_or(u32::MAX))
        }
        (_, _, 0) => Tail::None,
        (_, _, count) => u32::try_from(count).map_or(Tail::All, Tail::Count),
    };
    let events = Events {
        tail,
        actor: args.actor_id,
    };
    let target = session.reading()?;
    let runtime = session.runtime()?;
    let output = &mut session.output;
    runtime.run(async { follow(output, &target, &events).await })
}

async fn follow(output: &mut Output, target: &Target, events: &Events) -> Result<Outcome, Error> {
    let widest = target
        .nodes
        .iter()
        .map(String::len)
        .max()
        .unwrap_or_default();
    if *output.format() == Format::Table {
        output.line(&row(
            widest, "NODE", "ID", "EVENT", "SUBJECT", "ACTION", "MESSAGE",
        ))?;
        output.flush()?;
    }
    let opened = target
        .each(async |node| Ok(node.events(events.clone()).await?))
        .await;
    let mut results: Vec<NodeResult<()>> = Vec::new();
    let mut streams = Vec::new();
    for (name, result) in opened {
        match result {
            Ok(stream) => {
                let end = stream::once(async { None });
                streams.push(
                    stream
                        .map(Some)
                        .chain(end)
                        .map(move |item| (name.clone(), item))
                        .boxed(),
                );
            }
            Err(error) => {
                output.error(&error);
                results.push((name, Err(error)));
            }
        }
    }
    let mut streams = stream::select_all(streams);
    while let Some((node, item)) = streams.next().await {
        match item {
            Some(Ok(event)) => show(output, widest, &node, &event)?,
            Some(Err(error)) => {
                let error = Error::from(error).node(&node);
                output.error(&error);
                results.push((node, Err(error)));
            }
            None if results.iter().any(|(name, _)| *name == node) => {}
            None => {
                output.note(&format!("{node}: the node ended the stream"));
                results.push((node, Ok(())));
            }
        }
    }
    Ok(report::outcome(&results))
}

fn show(output: &mut Output, widest: usize, node: &str, event: &Event) -> Result<(), Error> {
    let data = describe(node, event);
    if *output.format() == Format::Table {
        let line = row(
            widest,
            node,
            data.id,
            data.r#type,
            &data.subject,
            &data.action,
            &data.message,
        );
        output.line(&line)?;
    } else {
        output.json_line(&data)?;
    }
    output.flush()
}

/// Aligns one line of a table that grows while it is printed.
fn row(
    widest: usize,
    node: &str,
    id: &str,
    event: &str,
    subject: &str,
    action: &str,
    message: &str,
) -> String {
    format!("{node:<widest$}   {id:<20}   {event:<13}   {subject:<20}   {action:<12}   {message}")
        .trim_end()
        .to_owned()
}

/// Puts an event into words.
pub(crate) fn describe<'a>(node: &'a str, event: &'a Event) -> EventData<'a> {
    let (r#type, subject, action, message) = words(&event.payload);
    EventData {
        node,
        id: &event.id,
        time: time_of(&event.id),
        actor_id: &event.actor,
        r#type,
        subject,
        action,
        message,
    }
}

fn words(payload: &Payload) -> (&str, String, String, String) {
    let none = String::new;
    match payload {
        Payload::Sequence(event) => {
            let message = event.error.as_ref().map(|error| error.message.clone());
            (
                "sequence",
                event.sequence.clone(),
                word(event.action().as_str_name()),
                message.unwrap_or_default(),
            )
        }
        Payload::Phase(event) => (
            "phase",
            event.phase.clone(),
            word(event.action().as_str_name()),
            none(),
        ),
        Payload::Task(event) => (
            "task",
            event.task.clone(),
            word(event.action().as_str_name()),
            none(),
        ),
        Payload::ServiceState(event) => (
            "serviceState",
            event.service.clone(),
            word(event.action().as_str_name()),
            event.message.clone(),
        ),
        Payload::Restart(event) => ("restart", none(), format!("cmd {}", event.cmd), none()),
        Payload::ConfigLoadError(event) => ("configLoadError", none(), none(), event.error.clone()),
        Payload::ConfigValidationError(event) => {
            ("configValidationError", none(), none(), event.error.clone())
        }
        Payload::Address(event) => (
            "address",
            event.hostname.clone(),
            none(),
            event.addresses.join(", "),
        ),
        Payload::MachineStatus(event) => (
            "machineStatus",
            none(),
            word(event.stage().as_str_name()),
            unmet(event),
        ),
        Payload::Unknown { type_url, .. } => (type_url.as_str(), none(), none(), none()),
        _ => ("unknown", none(), none(), none()),
    }
}

/// Lists what a machine still waits for.
fn unmet(event: &machine::MachineStatusEvent) -> String {
    let Some(status) = &event.status else {
        return String::new();
    };
    if status.ready {
        return "ready".to_owned();
    }
    let conditions: Vec<String> = status
        .unmet_conditions
        .iter()
        .map(|condition| format!("{}: {}", condition.name, condition.reason))
        .collect();
    format!("not ready {}", conditions.join("; "))
        .trim_end()
        .to_owned()
}

fn word(name: &str) -> String {
    name.to_lowercase()
}

/// Reads the time in an event's id: 12 bytes in base32hex, seconds first.
fn time_of(id: &str) -> Option<Timestamp> {
    let bits = id.get(..7)?.bytes().try_fold(0_i64, |bits, byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'v' => byte - b'a' + 10,
            _ => return None,
        };
        Some(bits << 5 | i64::from(digit))
    })?;
    // Seven digits are 35 bits, the first 32 of which are seconds.
    Timestamp::from_second(bits >> 3).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_event_id_holds_its_time() {
        // The example of the xid format: 2011-03-22T17:50:19Z.
        assert_eq!(
            time_of("9m4e2mr0ui3e8a215n4g").unwrap().as_second(),
            1_300_816_219
        );
        assert_eq!(time_of("short"), None);
        assert_eq!(time_of("ZZZZZZZZZZZZZZZZZZZZ"), None);
    }

    #[test]
    fn events_are_put_into_words() {
        let event = Event {
            id: String::new(),
            actor: "a".to_owned(),
            payload: Payload::Task(machine::TaskEvent {
                task: "stopAllServices".to_owned(),
                action: 1,
            }),
        };
        let data = describe("n", &event);
        assert_eq!(
            (data.r#type, &*data.subject, &*data.action),
            ("task", "stopAllServices", "stop")
        );
    }

    proptest! {
        #[test]
        fn any_id_has_a_time_or_none(id in "\\PC{0,24}") {
            let _ = time_of(&id);
        }
    }
}
