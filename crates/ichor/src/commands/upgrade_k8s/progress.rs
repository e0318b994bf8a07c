//! Telling what happens while it happens.

use std::sync::Arc;

use talos_kube::{Progress, Watcher};
use talos_upgrade::{Event, ObjectChange, Observer, Stop};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::EventLine;
use crate::error::Error;
use crate::output::{Format, Output};
use crate::runtime::Interrupt;

/// While the Kubernetes API is away, every so many vain attempts are told.
const EVERY: u32 = 5;

/// Collects events from wherever they happen and prints them from one place.
pub(super) struct Teller {
    sender: UnboundedSender<Event>,
    events: UnboundedReceiver<Event>,
}

impl Teller {
    pub(super) fn new() -> Self {
        let (sender, events) = unbounded_channel();
        Self { sender, events }
    }

    /// Takes what the Kubernetes API does.
    pub(super) fn watcher(&self) -> Watcher {
        let sender = self.sender.clone();
        Arc::new(move |progress| {
            // Nobody listens any more when the run has ended.
            let _ = sender.send(Event::Api { progress });
        })
    }

    /// Takes what the upgrade does.
    pub(super) fn observer(&self) -> Observer {
        let sender = self.sender.clone();
        Arc::new(move |event| {
            let _ = sender.send(event);
        })
    }

    /// Does some work and prints what happens meanwhile.
    pub(super) async fn telling<T>(
        &mut self,
        output: &mut Output,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut work = std::pin::pin!(work);
        let result = loop {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => tell(output, &event)?,
                result = &mut work => break result,
            }
        };
        while let Ok(event) = self.events.try_recv() {
            tell(output, &event)?;
        }
        result
    }

    /// The same, and hands the user's wish to stop on to the work.
    pub(super) async fn telling_until<T>(
        &mut self,
        output: &mut Output,
        mut interrupt: Interrupt,
        stop: Stop,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let note = self.sender.clone();
        let watched = async {
            tokio::pin!(work);
            tokio::select! {
                result = &mut work => return result,
                () = interrupt.wait() => stop.request(),
            }
            let _ = note.send(Event::Stopping);
            work.await
        };
        self.telling(output, watched).await
    }
}

fn tell(output: &mut Output, event: &Event) -> Result<(), Error> {
    if *output.format() == Format::Ndjson {
        output.json_line(&EventLine { event })?;
        return output.flush();
    }
    let quiet = match event {
        Event::Api {
            progress: Progress::Away { attempts, .. },
        } => attempts % EVERY != 1,
        Event::Manifest { change, .. } => *change == ObjectChange::Unchanged,
        // The report says it.
        Event::Finished { .. } => true,
        _ => false,
    };
    if !quiet {
        output.note(&event.to_string());
    }
    Ok(())
}
