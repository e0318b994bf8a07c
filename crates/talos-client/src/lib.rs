//! A native client for the Talos API.
