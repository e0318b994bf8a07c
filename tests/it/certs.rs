//! Certificates: probing and judging what is served.

mod cluster;
mod command;
mod page;
mod probe;
