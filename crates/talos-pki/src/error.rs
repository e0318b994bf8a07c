//! What can be wrong with certificates, keys and requests.

use x509_parser::error::X509Error;

/// Tells why certificate material could not be read or made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A PEM block has a first line and no last one.
    #[error("line {line}: PEM block {label:?} has no matching end line")]
    PemUnclosed {
        /// Line of the block's begin marker, from 1.
        line: usize,
        /// Label of the block.
        label: String,
    },
    /// A PEM block goes on where its first line should end.
    #[error(
        "line {line}: PEM block {label:?} does not have its begin line to itself; its line breaks are lost"
    )]
    PemOneLine {
        /// Line of the block's begin marker, from 1.
        line: usize,
        /// Label of the block.
        label: String,
    },
    /// The content of a PEM block is not base64.
    #[error("line {line}: PEM block {label:?} is not valid base64")]
    PemEncoding {
        /// Line of the block's begin marker, from 1.
        line: usize,
        /// Label of the block.
        label: String,
        /// What the decoder met.
        source: base64::DecodeError,
    },
    /// The text holds no certificate.
    #[error("no certificate found (no PEM block labeled CERTIFICATE)")]
    NoCertificate,
    /// A certificate is not what X.509 allows.
    #[error("certificate {number} cannot be read")]
    Certificate {
        /// Position among the certificates of the input, from 1.
        number: usize,
        /// What the parser met.
        source: X509Error,
    },
    /// Bytes follow the end of a certificate or request.
    #[error("{count} bytes follow the end of certificate {number}")]
    TrailingBytes {
        /// Position among the certificates of the input, from 1.
        number: usize,
        /// How many bytes follow.
        count: usize,
    },
    /// The text holds no private key.
    #[error(
        "no private key found (no PEM block labeled PRIVATE KEY, ED25519, EC or RSA PRIVATE KEY)"
    )]
    NoKey,
    /// The private key is protected by a password.
    #[error("the private key is encrypted, which is not supported")]
    EncryptedKey,
    /// The private key is damaged, or of a kind that is not supported.
    #[error("the private key labeled {label:?} is damaged or of an unsupported kind")]
    Key {
        /// PEM label under which the key was found.
        label: String,
    },
    /// The private key belongs to another certificate.
    #[error("the private key does not belong to the certificate {subject:?}")]
    KeyMismatch {
        /// Subject of the certificate.
        subject: String,
    },
    /// The certificate that should sign is not an authority.
    #[error("the certificate {subject:?} is not a certificate authority")]
    NotAnAuthority {
        /// Subject of the certificate.
        subject: String,
    },
    /// The text holds no certificate signing request.
    #[error("no certificate signing request found (no PEM block labeled CERTIFICATE REQUEST)")]
    NoRequest,
    /// A certificate signing request is not what PKCS #10 allows.
    #[error("the certificate signing request cannot be read")]
    Request {
        /// What the parser met.
        source: X509Error,
    },
    /// A certificate signing request does not prove possession of its key.
    #[error("the signature of the certificate signing request is wrong")]
    RequestSignature,
    /// The text is neither a DNS name nor an IP address.
    #[error("{text:?} is neither a DNS name nor an IP address")]
    Name {
        /// The text as given.
        text: String,
    },
    /// A validity period leaves the years that a certificate can hold.
    #[error("the validity period is outside of the years 1950 to 9999")]
    Validity,
    /// The cryptographic library refused to make a key or a signature.
    #[error("the cryptographic library failed to {what}")]
    Crypto {
        /// What was tried.
        what: &'static str,
    },
}
