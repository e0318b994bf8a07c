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

/// Joins an error and its causes.
pub(crate) fn sentence(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
