//! All tests that open a socket or run the real binary, one module per area.

mod certs;
mod cli;
mod client;
mod config;
mod cosi;
mod kubernetes;
mod patch;
mod peers;
mod sim;
mod upgrade;
mod wire;
