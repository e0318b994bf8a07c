//! Running asynchronous work, and Ctrl-C: the first asks a run to stop at its next safe point, the second stops it at once.

use std::rc::Rc;

use tokio::sync::watch;

use crate::error::{Code, Error};

/// The asynchronous runtime of a run, started when the first verb needs it: a run without it starts faster.
#[derive(Clone)]
pub(crate) struct Runtime(Rc<tokio::runtime::Runtime>);

impl Runtime {
    /// Starts the runtime.
    pub(crate) fn start() -> Result<Self, Error> {
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map(|runtime| Self(Rc::new(runtime)))
            .map_err(|error| {
                Error::new(Code::Failed, "failed to start the asynchronous runtime")
                    .caused_by(&error)
            })
    }

    /// Ends the runtime without waiting for what still runs: whoever asked for that has gone.
    ///
    /// Dropping it would wait for blocking work, such as the look-up of a name.
    pub(crate) fn end(self) {
        if let Some(runtime) = Rc::into_inner(self.0) {
            runtime.shutdown_background();
        }
    }

    /// Runs work that may be dropped at any point: the first Ctrl-C ends it.
    pub(crate) fn run<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.0.block_on(async {
            let mut signals = Signals::listen()?;
            tokio::select! {
                result = work => result,
                () = signals.next() => Err(interrupted()),
            }
        })
    }

    /// Runs work with steps that must not be torn: the first Ctrl-C trips the handle the work looks at between steps, the
    /// second ends it at once. Work that stops early returns [`interrupted`] with a hint on how to go on.
    pub(crate) fn run_steps<T, F>(&self, work: impl FnOnce(Interrupt) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.0.block_on(async {
            let mut signals = Signals::listen()?;
            let (sender, receiver) = watch::channel(false);
            let twice = async {
                signals.next().await;
                // Nobody listens any more when the work has just ended.
                let _ = sender.send(true);
                signals.next().await;
            };
            tokio::select! {
                result = work(Interrupt(receiver)) => result,
                () = twice => Err(interrupted().hint(TORN)),
            }
        })
    }
}

/// How to go on after work was ended in the middle of a step.
const TORN: &str =
    "what was under way may be done or not: look, then run the same command again to go on";

/// Makes the error of a run that the user stopped.
pub(crate) fn interrupted() -> Error {
    Error::new(Code::Interrupted, "interrupted")
}

/// A handle that tells whether the user asked to stop.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Tells whether the user asked to stop.
    pub(crate) fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the user asks to stop.
    pub(crate) async fn wait(&mut self) {
        if self.0.wait_for(|asked| *asked).await.is_err() {
            std::future::pending().await
        }
    }
}

/// The signals that ask the program to stop: interrupt and terminate.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// The signal that asks the program to stop.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_does_not_wait_for_blocking_work() {
        let runtime = Runtime::start().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        runtime.0.spawn_blocking(move || receiver.recv());
        runtime.end();
        // The work could only end now.
        drop(sender);
    }
}
