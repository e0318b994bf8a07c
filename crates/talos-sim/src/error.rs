//! What can keep a simulated cluster from starting.

use std::net::SocketAddr;

/// A failure to start or to extend a simulated cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No control plane was asked for.
    #[error("a cluster needs at least one control plane")]
    NoControlPlane,
    /// The Kubernetes version is not a version.
    #[error("kubernetes version {version:?} is not of the form MAJOR.MINOR.PATCH")]
    KubernetesVersion {
        /// The text that was given.
        version: String,
    },
    /// A machine configuration that was given cannot boot a machine.
    #[error("the machine configuration of {machines} cannot be used: {problem}")]
    Config {
        /// Whose configuration it is.
        machines: &'static str,
        /// What is wrong with it, in the machine's words.
        problem: String,
    },
    /// A socket could not be opened.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address that was tried.
        address: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// No free block of loopback addresses was found.
    #[error("no block of {nodes} loopback addresses has the ports of Talos and Kubernetes free")]
    NoAddresses {
        /// Number of addresses that were needed.
        nodes: usize,
    },
    /// A certificate could not be made.
    #[error("cannot make the certificate of {owner}")]
    Certificate {
        /// Whose certificate it is.
        owner: String,
        /// What the certificate code said.
        source: talos_pki::Error,
    },
    /// A worker found no control plane that signs a certificate for it.
    #[error("no control plane signs a certificate for {node}")]
    NoTrustd {
        /// The worker.
        node: String,
    },
    /// TLS could not be set up.
    #[error("cannot set up TLS for {owner}")]
    Tls {
        /// Whose server it is.
        owner: String,
        /// What the TLS library said.
        source: rustls::Error,
    },
}
