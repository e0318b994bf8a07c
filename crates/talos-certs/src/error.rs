//! What keeps certificates from being checked at all.

use talos_pki::Name;

/// Tells why certificates could not be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// TLS cannot verify a certificate for such a name.
    #[error("TLS cannot verify a certificate for the name {name}")]
    Name {
        /// The name.
        name: Name,
    },
    /// No authority can be used to verify a certificate.
    #[error("none of the {count} given authorities can verify a certificate")]
    Authorities {
        /// How many authorities were given.
        count: usize,
    },
}
