//! The certificates of a whole cluster: what servers present, and whether it fits how they are reached.
//!
//! [`probe`] fetches the chain a TLS server presents, trusting nobody; [`verified_handshake`] tells whether it verifies.
//!
//! Architecture invariant: the only place of the workspace that looks at an unverified chain is [`probe`].

mod connection;
mod error;
mod handshake;
mod probe;

pub use error::Error;
pub use handshake::{Handshake, verified_handshake};
pub use probe::{Alert, Failure, Outcome, Probe, ProbeOptions, TlsVersion, probe};
