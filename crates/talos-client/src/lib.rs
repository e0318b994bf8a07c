//! A native client for the Talos API.
//!
//! [`Client`] holds endpoints and credentials, and dials when the first call needs it. [`Client::node`] gives a handle
//! for one node, whose methods are the calls; every request names one node and is answered by a value or a typed
//! [`Error`]. [`Client::each`] does the same thing on many nodes at once.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use talos_client::{Client, Options};
//! use talos_config::talosconfig::TalosConfig;
//!
//! let text = std::fs::read_to_string("talosconfig")?;
//! let config = TalosConfig::parse("talosconfig", &text)?;
//! let options = Options::from_context(&config, None, jiff::Timestamp::now())?;
//! let client = Client::new(options)?;
//! println!("{}", client.node("10.5.0.2").version().await?.tag);
//! # Ok(())
//! # }
//! ```
//!
//! Deliberately absent: finding files, reading the environment, printing, retrying what a node refused, and the
//! deprecated `nodes` metadata, which hides failures. Dropping a future or stream cancels its request.
//!
//! Architecture invariant: what went wrong in TLS is read from a record of the connection, never from message text.

mod access;
mod client;
mod dial;
mod endpoint;
mod error;
pub mod jsonpath;
mod machine;
mod nodes;
mod options;
mod pool;
mod proxy;
mod resources;
mod tls;
mod wire;

pub use talos_api as api;

pub use client::Client;
pub use dial::{Attempt, DialError, open};
pub use endpoint::{DEFAULT_PORT, Endpoint, EndpointError, Written, split};
pub use error::{Call, Error, Kind, NodeMessage};
pub use machine::{
    Applied, ApplyMode, ApplyRequest, ByteStream, ClientConfiguration, Event, EventStream, Events,
    Health, Image, ImageScope, LayerStatus, LogRequest, LogSource, NodeVersion, Payload, Platform,
    PullProgress, RebootMode, Service, ServiceAction, ServiceRecord, Tail,
};
pub use nodes::Node;
pub use options::{BasicAuth, Fingerprint, Options, Security, SystemRoots};
pub use proxy::{NoProxy, ProxyError, ProxyFailure, ProxyRules, ProxyUrl};
pub use resources::{
    Backoff, Column, Definition, MACHINE_CONFIG_TYPE, MachineConfig, Metadata, Resource, Watch,
    WatchEvent, WatchOptions, columns, near_names, resolve,
};
pub use tls::{Alert, Presented, ServerVerifier, TlsRefusal, VerifierError, server_name};

/// What calls return.
pub type Result<T, E = Error> = std::result::Result<T, E>;
