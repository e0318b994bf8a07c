//! How long to wait for what, and how to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use talos_kube::Kubernetes;

/// Pauses and budgets of an upgrade. Times in which the Kubernetes API is away do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Longest pause between two looks; the first ones are shorter.
    pub poll: Duration,
    /// For a node to derive a component's configuration from its machine configuration.
    pub config: Duration,
    /// For a static pod to run and be ready.
    pub pod: Duration,
    /// For a static pod to stay as it is, before it counts as settled.
    pub settle: Duration,
    /// For the kubelet service to restart and be healthy.
    pub kubelet: Duration,
    /// For a node to report its new kubelet and be ready.
    pub node: Duration,
    /// For a node to render its manifests again.
    pub manifests: Duration,
    /// For one image to be pulled on one node, with all tries.
    pub pull: Duration,
    /// Longest pause between two pulls of the same image that fail in passing.
    pub pull_retry: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(2),
            config: Duration::from_secs(60),
            pod: Duration::from_secs(300),
            settle: Duration::from_secs(1),
            kubelet: Duration::from_secs(300),
            node: Duration::from_secs(180),
            manifests: Duration::from_secs(60),
            pull: Duration::from_secs(900),
            pull_retry: Duration::from_secs(5),
        }
    }
}

/// The first pause between two looks is this part of the longest.
const FIRST_PAUSE: u32 = 32;

/// The time one thing may take, and the pace at which it is looked at.
pub(crate) struct Budget<'a> {
    kubernetes: &'a Kubernetes,
    start: Instant,
    away: Duration,
    limit: Duration,
    pause: Duration,
    longest: Duration,
}

impl<'a> Budget<'a> {
    pub(crate) fn new(kubernetes: &'a Kubernetes, timing: &Timing, limit: Duration) -> Self {
        Self {
            pause: timing.poll / FIRST_PAUSE,
            longest: timing.poll,
            kubernetes,
            start: Instant::now(),
            away: kubernetes.away(),
            limit,
        }
    }

    /// The time used so far, without that in which the Kubernetes API was away.
    pub(crate) fn used(&self) -> Duration {
        let away = self.kubernetes.away().saturating_sub(self.away);
        self.start.elapsed().saturating_sub(away)
    }

    /// Pauses before the next look, each time a little longer.
    pub(crate) async fn pause(&mut self) {
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 3 / 2).min(self.longest);
    }

    /// The longest pause between two looks.
    pub(crate) fn poll(&self) -> Duration {
        self.longest
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.used() >= self.limit
    }
}

/// A request to stop at the next safe point: between two steps, never in the middle of one.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks to stop.
    pub fn request(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Waits until somebody asks to stop, looking at this pace.
    pub(crate) async fn requested(&self, pace: Duration) {
        while !self.is_requested() {
            tokio::time::sleep(pace).await;
        }
    }

    /// Tells whether somebody asked to stop.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
