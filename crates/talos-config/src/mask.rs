//! Hiding secrets.
