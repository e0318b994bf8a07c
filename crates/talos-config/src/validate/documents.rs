//! What Talos checks in documents other than the main one.

use super::at::Document;
use super::sink::Sink;
use super::target::Context;

/// Checks one document by the rules of its kind.
pub(super) fn check(_document: &Document<'_>, _context: &Context<'_>, _sink: &mut Sink<'_>) {}

/// Checks documents against each other and against the main one.
pub(super) fn conflicts(_documents: &[Document<'_>], _context: &Context<'_>, _sink: &mut Sink<'_>) {
}
