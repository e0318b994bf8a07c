//! Validation as the official library does it.
