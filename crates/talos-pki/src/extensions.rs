//! The extensions of a certificate that matter to TLS.

use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;

use serde::{Serialize, Serializer};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};

use crate::Name;
use crate::constraints::NameConstraints;

/// Extensions under 2.5.29 that TLS libraries take into account, so that they may be critical.
const KNOWN_CRITICAL: [&str; 9] = [
    "2.5.29.14",
    "2.5.29.15",
    "2.5.29.17",
    "2.5.29.19",
    "2.5.29.30",
    "2.5.29.31",
    "2.5.29.32",
    "2.5.29.35",
    "2.5.29.37",
];

/// What a key may be used for, from the keyUsage extension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyUsage {
    /// Signing, as TLS 1.3 needs of servers and clients.
    pub digital_signature: bool,
    /// Encrypting keys, as RSA key exchange of old TLS versions needs.
    pub key_encipherment: bool,
    /// Signing certificates.
    pub key_cert_sign: bool,
    /// Signing revocation lists.
    pub crl_sign: bool,
}

/// One entry of the extendedKeyUsage extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// TLS server.
    ServerAuth,
    /// TLS client.
    ClientAuth,
    /// Any purpose at all.
    Any,
    /// Another purpose, as dotted object identifier.
    Other(String),
}

impl fmt::Display for Purpose {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::ServerAuth => "serverAuth",
            Self::ClientAuth => "clientAuth",
            Self::Any => "any",
            Self::Other(identifier) => identifier,
        })
    }
}

impl Serialize for Purpose {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What this library knows of a certificate's extensions.
#[derive(Clone, Default)]
pub(crate) struct Extensions {
    pub(crate) names: Vec<Name>,
    pub(crate) is_ca: bool,
    pub(crate) has_basic_constraints: bool,
    pub(crate) key_usage: Option<KeyUsage>,
    pub(crate) purposes: Option<Vec<Purpose>>,
    pub(crate) subject_key_id: Option<Vec<u8>>,
    pub(crate) authority_key_id: Option<Vec<u8>>,
    pub(crate) path_length: Option<u32>,
    pub(crate) name_constraints: Option<NameConstraints>,
    pub(crate) unreadable: Vec<String>,
    pub(crate) duplicate: Vec<String>,
    pub(crate) unknown_critical: Vec<String>,
}

impl Extensions {
    /// Reads each extension once: of several of the same kind only the first counts.
    pub(crate) fn read(parsed: &X509Certificate<'_>) -> Self {
        let mut read = Self::default();
        let mut seen = HashSet::new();
        let mut twice = HashSet::new();
        for extension in parsed.extensions() {
            let identifier = extension.oid.to_id_string();
            if extension.critical && !KNOWN_CRITICAL.contains(&identifier.as_str()) {
                read.unknown_critical.push(identifier.clone());
            }
            if !seen.insert(identifier.clone()) {
                if twice.insert(identifier.clone()) {
                    read.duplicate.push(identifier);
                }
                continue;
            }
            if !read.take(extension.parsed_extension()) {
                read.unreadable.push(identifier);
            }
        }
        read
    }

    /// Takes what it knows of one extension; false when its content is malformed.
    fn take(&mut self, extension: &ParsedExtension<'_>) -> bool {
        match extension {
            ParsedExtension::ParseError { .. } => return false,
            ParsedExtension::SubjectAlternativeName(names) => {
                self.names = names.general_names.iter().filter_map(name).collect();
                return !names.general_names.iter().any(is_damaged);
            }
            ParsedExtension::BasicConstraints(constraints) => {
                self.has_basic_constraints = true;
                self.is_ca = constraints.ca;
                self.path_length = constraints.path_len_constraint;
            }
            ParsedExtension::KeyUsage(usage) => {
                self.key_usage = Some(KeyUsage {
                    digital_signature: usage.digital_signature(),
                    key_encipherment: usage.key_encipherment(),
                    key_cert_sign: usage.key_cert_sign(),
                    crl_sign: usage.crl_sign(),
                });
            }
            ParsedExtension::ExtendedKeyUsage(usage) => {
                let known = [
                    (usage.server_auth, Purpose::ServerAuth),
                    (usage.client_auth, Purpose::ClientAuth),
                    (usage.any, Purpose::Any),
                    (
                        usage.code_signing,
                        Purpose::Other("1.3.6.1.5.5.7.3.3".to_owned()),
                    ),
                    (
                        usage.email_protection,
                        Purpose::Other("1.3.6.1.5.5.7.3.4".to_owned()),
                    ),
                    (
                        usage.time_stamping,
                        Purpose::Other("1.3.6.1.5.5.7.3.8".to_owned()),
                    ),
                    (
                        usage.ocsp_signing,
                        Purpose::Other("1.3.6.1.5.5.7.3.9".to_owned()),
                    ),
                ];
                let known = known
                    .into_iter()
                    .filter(|(set, _)| *set)
                    .map(|(_, purpose)| purpose);
                let other = usage
                    .other
                    .iter()
                    .map(|oid| Purpose::Other(oid.to_id_string()));
                self.purposes = Some(known.chain(other).collect());
            }
            ParsedExtension::NameConstraints(constraints) => {
                self.name_constraints = Some(NameConstraints::read(constraints));
            }
            ParsedExtension::SubjectKeyIdentifier(id) => self.subject_key_id = Some(id.0.to_vec()),
            ParsedExtension::AuthorityKeyIdentifier(id) => {
                self.authority_key_id = id.key_identifier.as_ref().map(|id| id.0.to_vec());
            }
            _ => {}
        }
        true
    }
}

/// Tells whether an entry of subjectAltName is none that RFC 5280 allows.
fn is_damaged(entry: &GeneralName<'_>) -> bool {
    match entry {
        GeneralName::Invalid(..) => true,
        GeneralName::DNSName(name) => !name.is_ascii(),
        GeneralName::IPAddress(bytes) => !matches!(bytes.len(), 4 | 16),
        _ => false,
    }
}

/// Returns the DNS name or address of one entry of subjectAltName.
pub(crate) fn name(entry: &GeneralName<'_>) -> Option<Name> {
    match entry {
        GeneralName::DNSName(name) => Some(Name::Dns((*name).to_owned())),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes)
                .ok()
                .map(|octets| Name::Ip(IpAddr::from(octets))),
            16 => <[u8; 16]>::try_from(*bytes)
                .ok()
                .map(|octets| Name::Ip(IpAddr::from(octets))),
            _ => None,
        },
        _ => None,
    }
}
