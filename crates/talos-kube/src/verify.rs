//! What it means that a server's certificate was refused.

use rustls::CertificateError;

/// Tells whether a refusal passes by itself: the server has just been given a new certificate, and clocks differ.
pub(crate) fn may_pass(error: &rustls::Error) -> bool {
    matches!(
        error,
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. }
        )
    )
}

/// Tells whether a refusal is about the name alone, so that another name would do.
pub(crate) fn is_name_only(error: &rustls::Error) -> bool {
    matches!(
        error,
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
        )
    )
}

/// A refusal in words, without the list of names that rustls adds.
pub(crate) fn in_words(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(error) = error else {
        return error.to_string();
    };
    match error {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for other names".to_owned()
        }
        // Every cluster's authority has the same subject; then only the signature tells them apart.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "it is not signed by a certificate authority of the kubeconfig".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet".to_owned()
        }
        other => other.to_string(),
    }
}
