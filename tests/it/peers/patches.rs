//! Patches as the official library applies them.
