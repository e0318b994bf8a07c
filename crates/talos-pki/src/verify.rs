//! Who issued a certificate: by name, key identifier and signature.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA384_ASN1, ECDSA_P256_SHA512_ASN1, ECDSA_P384_SHA256_ASN1,
    ECDSA_P384_SHA384_ASN1, ECDSA_P384_SHA512_ASN1, ECDSA_P521_SHA256_ASN1, ECDSA_P521_SHA384_ASN1,
    ECDSA_P521_SHA512_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, UnparsedPublicKey, VerificationAlgorithm,
};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
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
    candidates
        .iter()
        .find(|candidate| candidate.is_ca() && is_issued_by(certificate, candidate))
}

fn is_signed_by(certificate: &Certificate, issuer: &Certificate) -> bool {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate.der()) else {
        return false;
    };
    verify_with(
        issuer.algorithm(),
        issuer.public_key(),
        &parsed.signature_algorithm,
        parsed.tbs_certificate.as_ref(),
        &parsed.signature_value.data,
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
    verify_with(algorithm, bits, signature_algorithm, message, signature)
}

fn verify_with(
    key: Algorithm,
    public_key: &[u8],
    signature_algorithm: &AlgorithmIdentifier<'_>,
    message: &[u8],
    signature: &[u8],
) -> bool {
    let identifier = signature_algorithm.algorithm.to_id_string();
    let verification: &'static dyn VerificationAlgorithm = match (key, identifier.as_str()) {
        (Algorithm::Ed25519, "1.3.101.112") => &ED25519,
        (Algorithm::EcdsaP256, "1.2.840.10045.4.3.2") => &ECDSA_P256_SHA256_ASN1,
        (Algorithm::EcdsaP256, "1.2.840.10045.4.3.3") => &ECDSA_P256_SHA384_ASN1,
        (Algorithm::EcdsaP256, "1.2.840.10045.4.3.4") => &ECDSA_P256_SHA512_ASN1,
        (Algorithm::EcdsaP384, "1.2.840.10045.4.3.2") => &ECDSA_P384_SHA256_ASN1,
        (Algorithm::EcdsaP384, "1.2.840.10045.4.3.3") => &ECDSA_P384_SHA384_ASN1,
        (Algorithm::EcdsaP384, "1.2.840.10045.4.3.4") => &ECDSA_P384_SHA512_ASN1,
        (Algorithm::EcdsaP521, "1.2.840.10045.4.3.2") => &ECDSA_P521_SHA256_ASN1,
        (Algorithm::EcdsaP521, "1.2.840.10045.4.3.3") => &ECDSA_P521_SHA384_ASN1,
        (Algorithm::EcdsaP521, "1.2.840.10045.4.3.4") => &ECDSA_P521_SHA512_ASN1,
        (Algorithm::Rsa(_), "1.2.840.113549.1.1.11") => &RSA_PKCS1_2048_8192_SHA256,
        (Algorithm::Rsa(_), "1.2.840.113549.1.1.12") => &RSA_PKCS1_2048_8192_SHA384,
        (Algorithm::Rsa(_), "1.2.840.113549.1.1.13") => &RSA_PKCS1_2048_8192_SHA512,
        _ => return false,
    };
    UnparsedPublicKey::new(verification, public_key)
        .verify(message, signature)
        .is_ok()
}
