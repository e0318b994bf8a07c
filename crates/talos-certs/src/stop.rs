//! Asking work that has steps to stop between two of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to stop at the next safe point: between two steps, never in the middle of one.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks to stop.
    pub fn request(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Tells whether somebody asked to stop.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
