//! What a key is for, and kinds of keys.

use rcgen::{
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P384_SHA384, PKCS_ED25519,
    PKCS_RSA_SHA256, PKCS_RSA_SHA512, SignatureAlgorithm,
};
use talos_pki::Role;

use super::{case, one, vendor::vendor_case};
use crate::certs::corpus::Case;
use crate::certs::corpus::make::{Ca, ROOT, authority, key, leaf, with};

pub(super) fn uses() -> Vec<Case> {
    use ExtendedKeyUsagePurpose::{Any, ClientAuth, CodeSigning, ServerAuth};
    let cp = "cp.example.com";
    let purposes = |purposes: &[ExtendedKeyUsagePurpose]| {
        with(leaf(&[cp]), |leaf| {
            leaf.extended_key_usages = purposes.to_vec()
        })
    };
    let usages =
        |usages: &[KeyUsagePurpose]| with(leaf(&[cp]), |leaf| leaf.key_usages = usages.to_vec());
    let wrong = ["extended-key-usage"];
    vec![
        one(
            "use-client-as-server",
            purposes(&[ClientAuth]),
            &[cp],
            &wrong,
        ),
        one("use-server-as-client", purposes(&[ServerAuth]), &[], &wrong).for_role(Role::Client),
        one("use-client", purposes(&[ClientAuth]), &[], &[]).for_role(Role::Client),
        one(
            "use-both-as-client",
            purposes(&[ServerAuth, ClientAuth]),
            &[],
            &[],
        )
        .for_role(Role::Client),
        one(
            "use-both-as-server",
            purposes(&[ServerAuth, ClientAuth]),
            &[cp],
            &[],
        ),
        one("use-unrestricted", purposes(&[]), &[cp], &[]),
        one("use-any", purposes(&[Any]), &[cp], &[]),
        one("use-code-signing", purposes(&[CodeSigning]), &[cp], &wrong),
        one("key-usage-absent", usages(&[]), &[cp], &[]),
        one(
            "key-usage-encipherment-only",
            usages(&[KeyUsagePurpose::KeyEncipherment]),
            &[cp],
            &["key-usage"],
        ),
        one(
            "key-usage-both",
            usages(&[
                KeyUsagePurpose::DigitalSignature,
                KeyUsagePurpose::KeyEncipherment,
            ]),
            &[cp],
            &[],
        ),
        one(
            "key-usage-cert-sign-only",
            usages(&[KeyUsagePurpose::KeyCertSign]),
            &[cp],
            &["key-usage"],
        ),
        one(
            "leaf-says-no-authority",
            with(leaf(&[cp]), |leaf| leaf.is_ca = IsCa::ExplicitNoCa),
            &[cp],
            &[],
        ),
        one("talos-client", purposes(&[ClientAuth]), &[], &[]).for_role(Role::TalosClient),
        one(
            "talos-client-with-two-purposes",
            purposes(&[ServerAuth, ClientAuth]),
            &[],
            &wrong,
        )
        .for_role(Role::TalosClient),
        one("talos-client-without-purposes", purposes(&[]), &[], &wrong)
            .for_role(Role::TalosClient),
    ]
}

pub(super) fn keys() -> Vec<Case> {
    let cp = "cp.example.com";
    let of = |id, algorithm: &'static SignatureAlgorithm| {
        let root = Ca::root_with(authority("root"), key(algorithm));
        let chain = vec![root.issue_for(&leaf(&[cp]), &key(algorithm))];
        case(id, chain, &[cp], &[]).trusting(&[&root.der])
    };
    let rsa = |id, algorithm: &'static SignatureAlgorithm| {
        let key = || KeyPair::generate_rsa_for(algorithm, rcgen::RsaKeySize::_2048).unwrap();
        let root = Ca::root_with(authority("root"), key());
        let chain = vec![root.issue_for(&leaf(&[cp]), &key())];
        case(id, chain, &[cp], &[]).trusting(&[&root.der])
    };
    vec![
        of("key-ed25519", &PKCS_ED25519),
        of("key-p384", &PKCS_ECDSA_P384_SHA384),
        rsa("key-rsa-sha256", &PKCS_RSA_SHA256),
        rsa("key-rsa-sha512", &PKCS_RSA_SHA512),
        case(
            "key-ed25519-below-p256",
            vec![ROOT.issue_for(&leaf(&[cp]), &key(&PKCS_ED25519))],
            &[cp],
            &[],
        ),
        vendor_case(
            "vendor-openssl-pss",
            "openssl-pss",
            "openssl-root",
            &[cp, "10.5.0.2"],
            &[],
        ),
        vendor_case(
            "vendor-openssl-sha1",
            "openssl-sha1",
            "openssl-root",
            &[cp],
            &["weak-signature"],
        ),
        // Nobody verifies MD5 any more.
        vendor_case(
            "vendor-openssl-md5",
            "openssl-md5",
            "openssl-root",
            &[cp],
            &["weak-signature", "unknown-authority"],
        ),
        vendor_case(
            "vendor-openssl-rsa1024",
            "openssl-rsa1024",
            "openssl-root",
            &[cp],
            &["weak-key"],
        ),
        vendor_case(
            "vendor-openssl-p192",
            "openssl-p192",
            "openssl-root",
            &[cp],
            &["weak-key"],
        ),
        vendor_case(
            "vendor-openssl-p224",
            "openssl-p224",
            "openssl-root",
            &[cp],
            &["weak-key"],
        ),
        vendor_case(
            "vendor-openssl-below1024",
            "openssl-below1024",
            "openssl-root-rsa1024",
            &[cp],
            &["weak-key"],
        ),
    ]
    .into_iter()
    .map(|case| {
        if case.id.starts_with("vendor") {
            case.at("2027-01-01T00:00:00Z")
        } else {
            case
        }
    })
    .collect()
}
