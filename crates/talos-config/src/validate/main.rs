//! What Talos checks in the main document.

use super::at::Document;
use super::sink::Sink;
use super::target::Context;

/// Checks the main document.
pub(super) fn check(_document: &Document<'_>, _context: &Context<'_>, _sink: &mut Sink<'_>) {}
