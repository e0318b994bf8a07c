//! Certificate signing requests, what a worker sends to trustd.

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::FromDer;

use crate::certificate::{common_name, organizations, x509_error};
use crate::der::{self, tag};
use crate::extensions::name;
use crate::issue::{self, Extension};
use crate::{Error, Name, PrivateKey, pem, verify};

/// The attribute of a request that holds wanted extensions.
const EXTENSION_REQUEST: [u32; 7] = [1, 2, 840, 113_549, 1, 9, 14];

/// A certificate signing request (PKCS #10) whose own signature has been verified.
#[derive(Clone, Debug)]
pub struct SigningRequest {
    common_name: Option<String>,
    organizations: Vec<String>,
    names: Vec<Name>,
    public_key_info: Vec<u8>,
}

impl SigningRequest {
    /// Writes a request for a key's public half and signs it with the key, as PEM.
    ///
    /// # Errors
    /// [`Error::Crypto`] when the key does not sign.
    pub fn write_pem(
        key: &PrivateKey,
        organizations: &[String],
        names: &[Name],
    ) -> Result<String, Error> {
        let subject = issue::subject(None, organizations);
        let mut attributes = Vec::new();
        if !names.is_empty() {
            let names = Extension::names(names, organizations.is_empty()).der();
            attributes = der::sequence(&[
                &der::object_identifier(&EXTENSION_REQUEST),
                &der::set_of(vec![der::sequence(&[&names])]),
            ]);
        }
        let info = der::sequence(&[
            &der::integer(&[0]),
            &subject,
            key.public_key_info(),
            &der::value(tag::context_constructed(0), &attributes),
        ]);
        let request = der::sequence(&[
            &info,
            &issue::signature_algorithm(key.algorithm()),
            &der::bit_string(&key.sign(&info)?),
        ]);
        Ok(pem::encode("CERTIFICATE REQUEST", &request))
    }

    /// Reads the first request of a PEM text and verifies that its sender holds the private key.
    ///
    /// # Errors
    /// [`Error::NoRequest`], [`Error::Request`], [`Error::RequestSignature`], or what is wrong with the PEM text.
    pub fn from_pem(text: impl AsRef<[u8]>) -> Result<Self, Error> {
        let blocks = pem::blocks(text.as_ref())?;
        let block = blocks
            .iter()
            .find(|block| block.label.ends_with("CERTIFICATE REQUEST"))
            .ok_or(Error::NoRequest)?;
        Self::from_der(&block.der)
    }

    /// Reads a request from DER and verifies that its sender holds the private key.
    ///
    /// # Errors
    /// [`Error::Request`] or [`Error::RequestSignature`].
    pub fn from_der(der: &[u8]) -> Result<Self, Error> {
        let (_, parsed) =
            X509CertificationRequest::from_der(der).map_err(|error| Error::Request {
                source: x509_error(error),
            })?;
        let info = &parsed.certification_request_info;
        let signed = verify::verify_parts(
            &info.subject_pki,
            &parsed.signature_algorithm,
            info.raw,
            &parsed.signature_value.data,
        );
        if !signed {
            return Err(Error::RequestSignature);
        }
        let extensions = parsed.requested_extensions().into_iter().flatten();
        let names = extensions
            .filter_map(|extension| match extension {
                ParsedExtension::SubjectAlternativeName(names) => Some(&names.general_names),
                _ => None,
            })
            .flatten()
            .filter_map(name)
            .collect();
        Ok(Self {
            common_name: common_name(&info.subject),
            organizations: organizations(&info.subject),
            names,
            public_key_info: info.subject_pki.raw.to_vec(),
        })
    }

    /// Returns the requested common name.
    pub fn common_name(&self) -> Option<&str> {
        self.common_name.as_deref()
    }

    /// Returns the requested organizations.
    pub fn organizations(&self) -> &[String] {
        &self.organizations
    }

    /// Returns the requested names and addresses.
    pub fn names(&self) -> &[Name] {
        &self.names
    }

    /// Returns the public key as SubjectPublicKeyInfo DER.
    pub fn public_key_info(&self) -> &[u8] {
        &self.public_key_info
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bad_input_is_named() {
        let check = |text: &str, expected: &str| {
            let error = SigningRequest::from_pem(text).unwrap_err();
            assert_eq!(error.to_string(), expected, "{text}");
        };
        check(
            "",
            "no certificate signing request found (no PEM block labeled CERTIFICATE REQUEST)",
        );
        check(
            "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----",
            "the certificate signing request cannot be read",
        );
    }

    #[test]
    fn what_is_written_is_read_again() {
        let key = PrivateKey::generate(crate::Algorithm::Ed25519).unwrap();
        let roles = ["os:reader".to_owned(), "os:admin".to_owned()];
        let names = ["10.5.0.2".parse().unwrap(), "cp-1".parse().unwrap()];
        let text = SigningRequest::write_pem(&key, &roles, &names).unwrap();
        let read = SigningRequest::from_pem(text).unwrap();
        assert_eq!(read.names(), names);
        assert_eq!(read.public_key_info(), key.public_key_info());
        let mut organizations = read.organizations().to_vec();
        organizations.sort();
        assert_eq!(organizations, ["os:admin", "os:reader"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_without_a_panic(bytes: Vec<u8>) {
            let _ = SigningRequest::from_der(&bytes);
            let _ = SigningRequest::from_pem(&bytes);
        }
    }
}
