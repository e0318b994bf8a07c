//! Differences by meaning, and the patch that makes them.
