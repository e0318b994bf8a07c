//! Telling what happens while it happens.

use std::sync::Arc;

use talos_kube::{Progress, Watcher};
use talos_upgrade::{Event, ObjectChange, Observer, Stop};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::EventLine;
use crate::error::{Code, Error};
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

    /// Does some work that may be dropped at any point and prints what happens meanwhile.
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

    /// Does work that must not be torn, prints what happens meanwhile, and hands the user's wish to stop on to it.
    ///
    /// When printing fails, the work is asked to stop and goes on to its next safe point without a word.
    pub(super) async fn telling_until<T>(
        &mut self,
        output: &mut Output,
        mut interrupt: Interrupt,
        stop: Stop,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let note = self.sender.clone();
        let asked = stop.clone();
        let watched = async {
            tokio::pin!(work);
            tokio::select! {
                result = &mut work => return result,
                () = interrupt.wait() => asked.request(),
            }
            let _ = note.send(Event::Stopping);
            work.await
        };
        let mut watched = std::pin::pin!(watched);
        let mut unheard = None;
        let result = loop {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => hear(output, &event, &stop, &mut unheard),
                result = &mut watched => break result,
            }
        };
        while let Ok(event) = self.events.try_recv() {
            hear(output, &event, &stop, &mut unheard);
        }
        match (result, unheard) {
            (Ok(value), None) => Ok(value),
            // The work is done; that nobody listens any more is no failure.
            (Ok(value), Some(error)) if error.code() == Code::ClosedPipe => Ok(value),
            (Ok(_), Some(error)) => Err(error),
            (Err(error), None) => Err(error),
            (Err(error), Some(cause)) => Err(error.cause(cause.to_string())),
        }
    }
}

/// Prints an event, and asks for a stop at the first that cannot be printed.
fn hear(output: &mut Output, event: &Event, stop: &Stop, unheard: &mut Option<Error>) {
    if unheard.is_some() {
        return;
    }
    if let Err(error) = tell(output, event) {
        stop.request();
        output.note("upgrade-k8s: stopping after this step, since its output cannot be written");
        *unheard = Some(error);
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

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind, Write};

    use super::*;
    use crate::env::Env;
    use crate::io::Io;
    use crate::runtime::Runtime;

    /// A reader that is gone, or a disk that is full.
    struct Broken(ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    fn output(kind: ErrorKind) -> Output {
        let io = Io {
            stdin: Box::new(io::empty()),
            stdout: Box::new(Broken(kind)),
            stderr: Box::new(io::sink()),
            stdin_is_terminal: false,
            stdout_is_terminal: false,
            stderr_is_terminal: false,
        };
        let mut output = Output::new(io, &Env::default());
        output.set_format(Format::Ndjson);
        output
    }

    /// Runs work that ends in `end` once it was asked to stop, and gives the code of the outcome.
    fn check(kind: ErrorKind, end: Result<(), Error>, expected: Result<(), Code>) {
        let mut output = output(kind);
        let mut teller = Teller::new();
        let stop = Stop::default();
        let tell = teller.observer();
        let asked = stop.clone();
        let work = async {
            tell(Event::Stopping);
            while !asked.is_requested() {
                tokio::task::yield_now().await;
            }
            tell(Event::Stopping);
            tokio::task::yield_now().await;
            end
        };
        let runtime = Runtime::start().unwrap();
        let result =
            runtime.run_steps(|interrupt| teller.telling_until(&mut output, interrupt, stop, work));
        assert_eq!(result.map_err(|error| error.code()), expected);
    }

    #[test]
    fn a_closed_output_ends_an_upgrade_at_its_next_safe_point_and_is_no_success() {
        let stopped = || {
            Err(Error::new(
                Code::Interrupted,
                "interrupted before kubelet on n",
            ))
        };
        check(ErrorKind::BrokenPipe, stopped(), Err(Code::Interrupted));
        check(ErrorKind::StorageFull, stopped(), Err(Code::Interrupted));
        // It was at its last step, and that is done.
        check(ErrorKind::BrokenPipe, Ok(()), Ok(()));
        check(ErrorKind::StorageFull, Ok(()), Err(Code::Failed));
    }
}
