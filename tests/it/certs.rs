//! Certificates: probing and judging what is served.

mod cluster;
mod command;
pub(crate) mod corpus;
mod fix;
mod inspect;
mod list;
mod metrics;
mod page;
mod probe;
mod renew;
mod rotate;
mod users;
