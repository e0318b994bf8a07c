//! What a TLS server presents, fetched without trusting it.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustls::AlertDescription;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use talos_pki::{Certificate, Name};

use crate::connection::{self, Trust};

/// How to probe a server.
#[derive(Clone, Debug)]
pub struct ProbeOptions {
    /// Name to ask for; DNS names are sent as server name indication, addresses never are.
    pub server_name: Option<Name>,
    /// Offers HTTP/2, which apid insists on.
    pub http2: bool,
    /// Time for everything: connecting, the handshake, and hearing whether the server refuses us.
    pub timeout: Duration,
}

impl Default for ProbeOptions {
    fn default() -> Self {
        Self {
            server_name: None,
            http2: true,
            timeout: Duration::from_secs(10),
        }
    }
}

/// What a server presented.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// Address that was dialled.
    pub address: SocketAddr,
    /// The certificates the server sent, leaf first; they prove nothing.
    #[serde(skip)]
    pub chain: Vec<Certificate>,
    /// Everything it sent in their place, also what is no certificate.
    #[serde(skip)]
    pub presented: Vec<Vec<u8>>,
    /// How the connection went.
    pub outcome: Outcome,
}

/// How a connection to a TLS server went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    tag = "kind"
)]
pub enum Outcome {
    /// The handshake completed, and the server said nothing against us.
    Completed {
        /// Version of TLS.
        version: TlsVersion,
        /// Whether HTTP/2 was agreed on.
        http2: bool,
        /// Whether the server asked for a client certificate.
        asks_for_client_certificate: bool,
    },
    /// The server presented its certificate and then refused us, as apid does without a client certificate.
    Refused {
        /// What the server said; absent when it only closed the connection.
        alert: Option<Alert>,
    },
    /// There was no usable TLS handshake.
    Failed(Failure),
}

/// Why there was no usable TLS handshake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "camelCase", tag = "reason")]
#[non_exhaustive]
pub enum Failure {
    /// Nothing listens on the port.
    #[error("connection refused")]
    ConnectionRefused,
    /// The address cannot be reached.
    #[error("not reachable: {message}")]
    Unreachable {
        /// What the operating system says.
        message: String,
    },
    /// The connection was not made in time.
    #[error("no connection within the timeout")]
    ConnectTimedOut,
    /// The server accepted the connection and did not finish the handshake in time.
    #[error("connected, but no TLS handshake within the timeout")]
    HandshakeTimedOut,
    /// The server reset or closed the connection during the handshake.
    #[error("the server closed the connection during the TLS handshake")]
    Closed,
    /// The server speaks plain HTTP.
    #[error("the server speaks plain HTTP")]
    PlainHttp,
    /// The server speaks something else than TLS.
    #[error("the server does not speak TLS")]
    NotTls,
    /// The server ended the handshake with an alert before it presented a certificate.
    #[error("the server refused the TLS handshake: {alert}")]
    Alert {
        /// What the server said.
        alert: Alert,
    },
    /// The server offers no TLS version from 1.2 on, or no common algorithm.
    #[error("no common TLS version or algorithm")]
    Incompatible,
    /// A certificate that the server sent cannot be read.
    #[error("the server sent a certificate that cannot be read: {message}")]
    UnreadableCertificate {
        /// What is wrong with it.
        message: String,
    },
    /// The server broke the TLS protocol, for example with a chain of more than 64 KiB.
    #[error("the server broke the TLS protocol: {message}")]
    Protocol {
        /// What the TLS library says.
        message: String,
    },
}

/// Version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[serde(rename = "1.2")]
    V1_2,
    /// TLS 1.3, the only version that Talos itself speaks.
    #[serde(rename = "1.3")]
    V1_3,
}

/// A TLS alert that the server sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub struct Alert(#[schemars(with = "String")] AlertDescription);

impl Alert {
    pub(crate) fn new(alert: AlertDescription) -> Self {
        Self(alert)
    }

    /// Returns the alert's number in the TLS standard.
    pub fn code(self) -> u8 {
        self.0.into()
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_str() {
            Some(name) => out.write_str(name),
            None => write!(out, "alert {}", self.code()),
        }
    }
}

impl Serialize for Alert {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Fetches the chain that a TLS server presents, also where the server then refuses us; this is the one place that looks
/// at certificates without verifying them.
pub async fn probe(address: SocketAddr, options: &ProbeOptions) -> Probe {
    connection::open(address, options, Trust::Nobody).await.0
}

/// Probes one address after the other until one presents a certificate, within one timeout for all; else the first
/// failure is returned, and nothing when there is no address.
pub async fn probe_any(addresses: &[SocketAddr], options: &ProbeOptions) -> Option<Probe> {
    let started = Instant::now();
    let mut first = None;
    for (address, left) in addresses.iter().zip((1..=addresses.len()).rev()) {
        // An address that swallows everything must leave time for the others.
        let remaining = options.timeout.saturating_sub(started.elapsed());
        let share = ProbeOptions {
            timeout: remaining / u32::try_from(left).unwrap_or(u32::MAX),
            ..options.clone()
        };
        let seen = probe(*address, &share).await;
        if !seen.chain.is_empty() {
            return Some(seen);
        }
        first.get_or_insert(seen);
    }
    first
}
