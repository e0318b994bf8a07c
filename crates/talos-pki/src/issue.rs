//! What a leaf certificate should say, and the writing of certificates.

use aws_lc_rs::rand;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::der::{self, tag};
use crate::{Algorithm, Certificate, Error, Name, PrivateKey};

/// What a leaf certificate should say.
#[derive(Clone, Debug, Default)]
pub struct LeafRequest {
    /// Common name of the subject.
    pub common_name: Option<String>,
    /// Organizations of the subject: for Talos clients, their roles.
    pub organizations: Vec<String>,
    /// Names and addresses for subjectAltName.
    pub names: Vec<Name>,
    /// What the key may be used for.
    pub usage: LeafUsage,
    /// Time from now until the certificate expires.
    pub lifetime: SignedDuration,
    /// Time by which the start of validity lies before now; Talos gives kubeconfig clients 10 s.
    pub backdate: SignedDuration,
}

/// What the key of a leaf may be used for, besides signing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeafUsage {
    /// Adds keyEncipherment to keyUsage, as Talos does for Kubernetes, etcd and trustd.
    pub key_encipherment: bool,
    /// Allows use as a TLS server.
    pub server: bool,
    /// Allows use as a TLS client.
    pub client: bool,
}

/// A certificate and the private key made for it.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The certificate.
    pub certificate: Certificate,
    /// Its private key.
    pub key: PrivateKey,
}

/// What stands in a certificate that is about to be signed; names are DER already.
pub(crate) struct Template<'request> {
    pub(crate) subject: &'request [u8],
    pub(crate) issuer: &'request [u8],
    pub(crate) public_key_info: &'request [u8],
    pub(crate) not_before: Timestamp,
    pub(crate) lifetime: SignedDuration,
    pub(crate) extensions: &'request [Extension],
}

/// One extension, ready to be written.
pub(crate) struct Extension {
    identifier: u32,
    critical: bool,
    content: Vec<u8>,
}

/// The DER of a subject without any attribute.
pub(crate) const EMPTY_SUBJECT: [u8; 2] = [tag::SEQUENCE, 0];

const COMMON_NAME: [u32; 4] = [2, 5, 4, 3];
const ORGANIZATION: [u32; 4] = [2, 5, 4, 10];
const SERVER_AUTH: [u32; 9] = [1, 3, 6, 1, 5, 5, 7, 3, 1];
const CLIENT_AUTH: [u32; 9] = [1, 3, 6, 1, 5, 5, 7, 3, 2];
/// Bits of keyUsage, the first being the highest.
const DIGITAL_SIGNATURE: u8 = 0x80;
const KEY_ENCIPHERMENT: u8 = 0x20;
const KEY_CERT_SIGN: u8 = 0x04;

impl Extension {
    pub(crate) fn key_usage_of_authority() -> Self {
        Self::new(15, true, der::named_bits(DIGITAL_SIGNATURE | KEY_CERT_SIGN))
    }

    pub(crate) fn key_usage_of_leaf(key_encipherment: bool) -> Self {
        let more = if key_encipherment {
            KEY_ENCIPHERMENT
        } else {
            0
        };
        Self::new(15, true, der::named_bits(DIGITAL_SIGNATURE | more))
    }

    pub(crate) fn extended_key_usage(server: bool, client: bool) -> Self {
        let purposes = [(server, SERVER_AUTH), (client, CLIENT_AUTH)];
        let content: Vec<u8> = purposes
            .iter()
            .filter(|(wanted, _)| *wanted)
            .flat_map(|(_, purpose)| der::object_identifier(purpose))
            .collect();
        Self::new(37, false, der::value(tag::SEQUENCE, &content))
    }

    /// CA:TRUE without a path length.
    pub(crate) fn basic_constraints_of_authority() -> Self {
        Self::new(
            19,
            true,
            der::sequence(&[&der::value(tag::BOOLEAN, &[0xff])]),
        )
    }

    pub(crate) fn subject_key_id(id: &[u8]) -> Self {
        Self::new(14, false, der::value(tag::OCTET_STRING, id))
    }

    pub(crate) fn authority_key_id(id: &[u8]) -> Self {
        Self::new(
            35,
            false,
            der::sequence(&[&der::value(tag::context(0), id)]),
        )
    }

    /// RFC 5280 wants the names critical when nothing else names the subject.
    pub(crate) fn names(names: &[Name], critical: bool) -> Self {
        let entries: Vec<u8> = names
            .iter()
            .flat_map(|name| match name {
                Name::Dns(name) => der::value(tag::context(2), name.as_bytes()),
                Name::Ip(std::net::IpAddr::V4(address)) => {
                    der::value(tag::context(7), &address.octets())
                }
                Name::Ip(std::net::IpAddr::V6(address)) => {
                    der::value(tag::context(7), &address.octets())
                }
            })
            .collect();
        Self::new(17, critical, der::value(tag::SEQUENCE, &entries))
    }

    #[cfg(test)]
    pub(crate) fn raw(identifier: u32, critical: bool, content: Vec<u8>) -> Self {
        Self::new(identifier, critical, content)
    }

    fn new(identifier: u32, critical: bool, content: Vec<u8>) -> Self {
        Self {
            identifier,
            critical,
            content,
        }
    }

    pub(crate) fn der(&self) -> Vec<u8> {
        let critical = if self.critical {
            der::value(tag::BOOLEAN, &[0xff])
        } else {
            Vec::new()
        };
        der::sequence(&[
            &der::object_identifier(&[2, 5, 29, self.identifier]),
            &critical,
            &der::value(tag::OCTET_STRING, &self.content),
        ])
    }
}

/// Writes a subject: all organizations in one set, as Go and so Talos does, then the common name.
pub(crate) fn subject<Text: AsRef<str>>(
    common_name: Option<&str>,
    organizations: &[Text],
) -> Vec<u8> {
    let mut sets = Vec::new();
    if !organizations.is_empty() {
        let members = organizations
            .iter()
            .map(|organization| attribute(&ORGANIZATION, organization.as_ref()));
        sets.extend(der::set_of(members.collect()));
    }
    if let Some(common_name) = common_name {
        sets.extend(der::set_of(vec![attribute(&COMMON_NAME, common_name)]));
    }
    der::value(tag::SEQUENCE, &sets)
}

/// Signs a certificate: version 3, a random 128-bit serial number.
pub(crate) fn sign(template: &Template<'_>, key: &PrivateKey) -> Result<Certificate, Error> {
    sign_numbered(template, &random::<16>()?, key)
}

/// Signs a certificate with a serial number that somebody else chose.
pub(crate) fn sign_numbered(
    template: &Template<'_>,
    serial: &[u8; 16],
    key: &PrivateKey,
) -> Result<Certificate, Error> {
    let to_be_signed = to_be_signed(template, serial, key.algorithm())?;
    let signature = key.sign(&to_be_signed)?;
    let algorithm = signature_algorithm(key.algorithm());
    let der = der::sequence(&[&to_be_signed, &algorithm, &der::bit_string(&signature)]);
    Certificate::from_der(&der)
}

/// Writes the part of a certificate that is signed.
pub(crate) fn to_be_signed(
    template: &Template<'_>,
    serial: &[u8; 16],
    signed_with: Algorithm,
) -> Result<Vec<u8>, Error> {
    let not_after = template
        .not_before
        .checked_add(template.lifetime)
        .map_err(|_| Error::Validity)?;
    let extensions: Vec<u8> = template
        .extensions
        .iter()
        .flat_map(Extension::der)
        .collect();
    Ok(der::sequence(&[
        &der::value(tag::context_constructed(0), &der::integer(&[2])),
        &der::integer(serial),
        &signature_algorithm(signed_with),
        template.issuer,
        &der::sequence(&[&time(template.not_before)?, &time(not_after)?]),
        template.subject,
        template.public_key_info,
        &der::value(
            tag::context_constructed(3),
            &der::value(tag::SEQUENCE, &extensions),
        ),
    ]))
}

/// Fills a buffer with random bytes of the cryptographic library.
///
/// # Errors
/// [`Error::Crypto`] when the system has none.
pub fn fill_random(bytes: &mut [u8]) -> Result<(), Error> {
    rand::fill(bytes).map_err(|_| Error::Crypto {
        what: "make random bytes",
    })
}

/// Returns random bytes; the first is never zero, so that a serial number has its full length.
pub(crate) fn random<const LENGTH: usize>() -> Result<[u8; LENGTH], Error> {
    let mut bytes = [0; LENGTH];
    while bytes[0] == 0 {
        fill_random(&mut bytes)?;
    }
    Ok(bytes)
}

fn attribute(identifier: &[u32], text: &str) -> Vec<u8> {
    let printable = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&byte));
    let kind = if printable {
        tag::PRINTABLE_STRING
    } else {
        tag::UTF8_STRING
    };
    der::sequence(&[
        &der::object_identifier(identifier),
        &der::value(kind, text.as_bytes()),
    ])
}

/// Names the signature of [`PrivateKey::sign`]; RSA alone has parameters, which are NULL.
pub(crate) fn signature_algorithm(algorithm: Algorithm) -> Vec<u8> {
    let identifier: &[u32] = match algorithm {
        Algorithm::EcdsaP256 => &[1, 2, 840, 10045, 4, 3, 2],
        Algorithm::EcdsaP384 => &[1, 2, 840, 10045, 4, 3, 3],
        Algorithm::EcdsaP521 => &[1, 2, 840, 10045, 4, 3, 4],
        Algorithm::Rsa(_) => {
            let identifier = der::object_identifier(&[1, 2, 840, 113_549, 1, 1, 13]);
            return der::sequence(&[&identifier, &der::value(tag::NULL, &[])]);
        }
        Algorithm::Ed25519 | Algorithm::Other => &[1, 3, 101, 112],
    };
    der::sequence(&[&der::object_identifier(identifier)])
}

/// Years up to 2049 are UTCTime, later ones GeneralizedTime, as RFC 5280 asks; parts of a second are dropped.
fn time(at: Timestamp) -> Result<Vec<u8>, Error> {
    let at = TimeZone::UTC.to_datetime(at);
    let rest = format!(
        "{:02}{:02}{:02}{:02}{:02}Z",
        at.month(),
        at.day(),
        at.hour(),
        at.minute(),
        at.second()
    );
    match at.year() {
        year @ 1950..=2049 => {
            let text = format!("{:02}{rest}", year % 100);
            Ok(der::value(tag::UTC_TIME, text.as_bytes()))
        }
        year @ 2050..=9999 => {
            let text = format!("{year:04}{rest}");
            Ok(der::value(tag::GENERALIZED_TIME, text.as_bytes()))
        }
        _ => Err(Error::Validity),
    }
}
