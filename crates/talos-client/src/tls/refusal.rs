//! Who refused what in TLS, read from the library's typed errors.

use std::fmt;
use std::io;

use jiff::Timestamp;
use rustls::{AlertDescription, CertificateError};
use talos_pki::Certificate;

use crate::Fingerprint;

/// Tells who refused what in TLS.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsRefusal {
    /// The server's certificate is past its end.
    #[error("the server's certificate expired{}", At(" at ", *not_after))]
    ServerExpired {
        /// End of its validity.
        not_after: Option<Timestamp>,
    },
    /// The server's certificate is not valid yet.
    #[error("the server's certificate is not valid yet{}", At("; it is from ", *not_before))]
    ServerNotYetValid {
        /// Start of its validity.
        not_before: Option<Timestamp>,
    },
    /// The server's certificate is not signed by an authority that is trusted here.
    #[error(
        "the server's certificate is signed by {issuer:?}, which is not among the trusted authorities"
    )]
    UnknownAuthority {
        /// Who signed it, as the certificate says.
        issuer: String,
    },
    /// The server's certificate does not cover the host that was dialled.
    #[error(
        "the server's certificate does not cover {wanted}; it covers {}",
        list(names)
    )]
    NameNotCovered {
        /// The host that was dialled.
        wanted: String,
        /// Names and addresses that the certificate covers.
        names: Vec<String>,
    },
    /// The server's key has none of the expected fingerprints.
    #[error("the server's key has the fingerprint {found}, which is not among the expected ones")]
    Fingerprint {
        /// The fingerprint it has.
        found: Fingerprint,
    },
    /// The server's certificate cannot be accepted for another reason.
    #[error("the server's certificate cannot be accepted")]
    ServerCertificate {
        /// The reason, as the TLS library says it.
        source: rustls::Error,
    },
    /// The server did not accept our certificate, or that we have none.
    #[error("the server refused the client certificate: {alert}")]
    ClientRefused {
        /// What the server said.
        alert: Alert,
    },
    /// The server broke the handshake off.
    #[error("the server broke the handshake off: {alert}")]
    ServerAlert {
        /// What the server said.
        alert: Alert,
    },
    /// What answers does not speak TLS.
    #[error("what answers does not speak TLS")]
    NotTls,
    /// The two sides cannot agree, or one made a mistake.
    #[error("the handshake failed")]
    Handshake {
        /// What the TLS library says.
        source: rustls::Error,
    },
}

/// A TLS alert that the other side sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Alert(AlertDescription);

impl Alert {
    pub(crate) fn new(description: AlertDescription) -> Self {
        Self(description)
    }

    /// Returns the number of the alert, as RFC 8446 lists them.
    pub fn code(self) -> u8 {
        self.0.into()
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            AlertDescription::CertificateRequired => "a certificate is required",
            AlertDescription::BadCertificate => "bad certificate",
            AlertDescription::UnsupportedCertificate => "unsupported certificate",
            AlertDescription::CertificateRevoked => "certificate revoked",
            AlertDescription::CertificateExpired => "certificate expired",
            AlertDescription::CertificateUnknown => "certificate unknown",
            AlertDescription::UnknownCA => "unknown certificate authority",
            AlertDescription::AccessDenied => "access denied",
            AlertDescription::HandshakeFailure => "handshake failure",
            AlertDescription::ProtocolVersion => "protocol version",
            AlertDescription::NoApplicationProtocol => "no application protocol",
            AlertDescription::DecryptError => "a signature does not fit",
            AlertDescription::InternalError => "internal error",
            other => return write!(f, "alert {}", u8::from(other)),
        })
    }
}

impl fmt::Debug for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Alert({}, {self})", self.code())
    }
}

impl TlsRefusal {
    /// Reads a failed handshake; `leaf` is the certificate that the server presented, if it came so far. What is no
    /// refusal is trouble with the connection below, and comes back.
    pub(super) fn from_handshake(error: io::Error, leaf: Option<&[u8]>) -> Result<Self, io::Error> {
        let Some(tls) = error.get_ref().and_then(|error| error.downcast_ref()) else {
            return Err(error);
        };
        let leaf = leaf.and_then(|der| Certificate::from_der(der).ok());
        Ok(match tls {
            rustls::Error::InvalidCertificate(reason) => Self::from_reason(reason, leaf.as_ref()),
            rustls::Error::AlertReceived(alert) => Self::ServerAlert {
                alert: Alert(*alert),
            },
            rustls::Error::InvalidMessage(_) => Self::NotTls,
            other => Self::Handshake {
                source: other.clone(),
            },
        })
    }

    fn from_reason(reason: &CertificateError, leaf: Option<&Certificate>) -> Self {
        match reason {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                Self::ServerExpired {
                    not_after: leaf.map(Certificate::not_after),
                }
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Self::ServerNotYetValid {
                    not_before: leaf.map(Certificate::not_before),
                }
            }
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                Self::UnknownAuthority {
                    issuer: leaf.map_or_else(String::new, |leaf| leaf.issuer().to_string()),
                }
            }
            CertificateError::NotValidForNameContext { expected, .. } => Self::NameNotCovered {
                wanted: expected.to_str().into_owned(),
                names: leaf.map_or_else(Vec::new, |leaf| {
                    leaf.names().iter().map(ToString::to_string).collect()
                }),
            },
            CertificateError::ApplicationVerificationFailure => match leaf {
                Some(leaf) => Self::Fingerprint {
                    found: Fingerprint::new(leaf.spki_sha256()),
                },
                None => Self::ServerCertificate {
                    source: reason.clone().into(),
                },
            },
            other => Self::ServerCertificate {
                source: other.clone().into(),
            },
        }
    }
}

struct At(&'static str, Option<Timestamp>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            None => Ok(()),
            Some(time) => write!(f, "{}{time}", self.0),
        }
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "no name at all".to_string();
    }
    names.join(", ")
}
