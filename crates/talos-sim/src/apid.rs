//! The API daemon of each node: transport, roles and routing.

mod call;
mod fanout;
mod listener;
pub(crate) mod roles;
mod router;
pub(crate) mod tls;

pub(crate) use call::{Context, MESSAGE_LIMIT};
pub(crate) use listener::serve;
#[cfg(test)]
pub(crate) use router::reach;
