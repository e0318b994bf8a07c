//! Who issued a certificate: by name, key identifier and signature.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA1_ASN1, ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA384_ASN1, ECDSA_P256_SHA512_ASN1,
    ECDSA_P384_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ECDSA_P384_SHA512_ASN1, ECDSA_P521_SHA256_ASN1,
    ECDSA_P521_SHA384_ASN1, ECDSA_P521_SHA512_ASN1, ED25519,
    RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
    RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY, RSA_PKCS1_2048_8192_SHA384,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    UnparsedPublicKey, VerificationAlgorithm,
};
use x509_parser::x509::{AlgorithmIdentifier, SubjectPublicKeyInfo};

use crate::{Algorithm, Certificate};

/// Tells whether `issuer` signed `certificate`: the names, the key identifiers where both are given, and the
/// signature agree. Whether the issuer is an authority, and the dates, are not looked at.
pub fn is_issued_by(certificate: &Certificate, issuer: &Certificate) -> bool {
    let ids = certificate.authority_key_id().zip(issuer.subject_key_id());
    certificate.raw_issuer() == issuer.raw_subject()
        && ids.is_none_or(|(wanted, given)| wanted == given)
        && is_signed_by(certificate, issuer)
}

/// Finds the authority among the candidates that issued a certificate.
pub fn issuer_of<'candidate>(
    certificate: &Certificate,
    candidates: &'candidate [Certificate],
) -> Option<&'candidate Certificate> {
    issuers_of(certificate, candidates).next()
}

/// Finds every authority among the candidates that issued a certificate: one key may have several certificates, as
/// when it is cross-signed or renewed.
pub fn issuers_of<'candidate>(
    certificate: &Certificate,
    candidates: impl IntoIterator<Item = &'candidate Certificate>,
) -> impl Iterator<Item = &'candidate Certificate> {
    candidates
        .into_iter()
        .filter(move |candidate| candidate.is_ca() && is_issued_by(certificate, candidate))
}

fn is_signed_by(certificate: &Certificate, issuer: &Certificate) -> bool {
    let (algorithm, parameters) = certificate.signature_algorithm();
    let signature = certificate.signature();
    let key = issuer.public_key();
    verify_with(
        issuer.algorithm(),
        key,
        (algorithm, parameters),
        certificate.signed(),
        signature,
    )
}

/// Verifies what a key in SubjectPublicKeyInfo form signed.
pub(crate) fn verify_parts(
    key: &SubjectPublicKeyInfo<'_>,
    signature_algorithm: &AlgorithmIdentifier<'_>,
    message: &[u8],
    signature: &[u8],
) -> bool {
    let algorithm = crate::certificate::algorithm(key);
    let bits = &key.subject_public_key.data;
    let identifier = signature_algorithm.algorithm.to_id_string();
    let parameters = signature_algorithm.parameters.as_ref();
    let parameters = parameters.map_or(&[][..], |parameters| parameters.data);
    let signed_with = (identifier.as_str(), parameters);
    verify_with(algorithm, bits, signed_with, message, signature)
}

/// Verifies a signature of a way given by its object identifier and parameters. Ways that are weak are followed too:
/// who issued a certificate is one question, whether it is strong enough another.
fn verify_with(
    key: Algorithm,
    public_key: &[u8],
    (identifier, parameters): (&str, &[u8]),
    message: &[u8],
    signature: &[u8],
) -> bool {
    let verification: &'static dyn VerificationAlgorithm = match (key, identifier) {
        (Algorithm::Ed25519, "1.3.101.112") => &ED25519,
        (Algorithm::EcdsaP256, "1.2.840.10045.4.1") => &ECDSA_P256_SHA1_ASN1,
        (Algorithm::EcdsaP256, "1.2.840.10045.4.3.2") => &ECDSA_P256_SHA256_ASN1,
        (Algorithm::EcdsaP256, "1.2.840.10045.4.3.3") => &ECDSA_P256_SHA384_ASN1,
        (Algorithm::EcdsaP256, "1.2.840.10045.4.3.4") => &ECDSA_P256_SHA512_ASN1,
        (Algorithm::EcdsaP384, "1.2.840.10045.4.3.2") => &ECDSA_P384_SHA256_ASN1,
        (Algorithm::EcdsaP384, "1.2.840.10045.4.3.3") => &ECDSA_P384_SHA384_ASN1,
        (Algorithm::EcdsaP384, "1.2.840.10045.4.3.4") => &ECDSA_P384_SHA512_ASN1,
        (Algorithm::EcdsaP521, "1.2.840.10045.4.3.2") => &ECDSA_P521_SHA256_ASN1,
        (Algorithm::EcdsaP521, "1.2.840.10045.4.3.3") => &ECDSA_P521_SHA384_ASN1,
        (Algorithm::EcdsaP521, "1.2.840.10045.4.3.4") => &ECDSA_P521_SHA512_ASN1,
        (Algorithm::Rsa(_), "1.2.840.113549.1.1.5") => {
            &RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY
        }
        (Algorithm::Rsa(_), "1.2.840.113549.1.1.11") => {
            &RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY
        }
        (Algorithm::Rsa(_), "1.2.840.113549.1.1.12") => &RSA_PKCS1_2048_8192_SHA384,
        (Algorithm::Rsa(_), "1.2.840.113549.1.1.13") => {
            &RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY
        }
        (Algorithm::Rsa(_), "1.2.840.113549.1.1.10") => match pss_hash(parameters) {
            Some(256) => &RSA_PSS_2048_8192_SHA256,
            Some(384) => &RSA_PSS_2048_8192_SHA384,
            Some(512) => &RSA_PSS_2048_8192_SHA512,
            _ => return false,
        },
        _ => return false,
    };
    UnparsedPublicKey::new(verification, public_key)
        .verify(message, signature)
        .is_ok()
}

/// Finds the hash of RSASSA-PSS in its parameters: the object identifiers differ in their last byte only.
fn pss_hash(parameters: &[u8]) -> Option<u16> {
    const SHA2: [u8; 10] = [0x06, 9, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];
    let at = parameters
        .windows(SHA2.len())
        .position(|window| window == SHA2)?;
    match parameters.get(at + SHA2.len())? {
        1 => Some(256),
        2 => Some(384),
        3 => Some(512),
        _ => None,
    }
}
