//! Whether a server's certificate verifies, by a real handshake.

use std::net::SocketAddr;

use jiff::Timestamp;
use talos_pki::{Certificate, Name};

use crate::connection::{self, Trust};
use crate::{Error, Probe, ProbeOptions};

/// A handshake in which the server's certificate was verified.
#[derive(Clone, Debug)]
pub struct Handshake {
    /// What the server presented and how the connection went.
    pub probe: Probe,
    /// Why the certificate does not verify; absent when it does, even if the server refused us afterwards.
    pub rejection: Option<rustls::Error>,
}

impl Handshake {
    /// Tells whether the server presented a certificate that verifies.
    pub fn is_verified(&self) -> bool {
        self.rejection.is_none() && !self.probe.chain.is_empty()
    }
}

/// Connects to an address and verifies the certificate for `name`, against these authorities and at this time.
///
/// # Errors
/// [`Error::Name`] when TLS cannot verify for such a name, [`Error::Authorities`] when none of the authorities is usable.
pub async fn verified_handshake(
    address: SocketAddr,
    name: &Name,
    authorities: &[Certificate],
    now: Timestamp,
    options: &ProbeOptions,
) -> Result<Handshake, Error> {
    let trust = Trust::authorities(name, authorities, now)?;
    let options = ProbeOptions {
        server_name: Some(name.clone()),
        ..options.clone()
    };
    let (probe, rejection) = connection::open(address, &options, trust).await;
    Ok(Handshake { probe, rejection })
}
