//! Deprecated fields moved to their documents.
