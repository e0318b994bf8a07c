//! All tests that open a socket or run the real binary, one module per area.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod certs;
mod cli;
mod client;
mod config;
mod cosi;
mod kubernetes;
mod machineconfig;
mod patch;
mod peers;
mod sim;
mod upgrade;
mod wire;
