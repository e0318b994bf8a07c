//! Certificates: probing and judging what is served.

mod cluster;
mod command;
pub(crate) mod corpus;
mod page;
mod probe;
