use std::process::Command;

use proptest::prelude::*;

use super::*;
use crate::{Authority, AuthorityKind, corpus};

const ALL: [Algorithm; 5] = [
    Algorithm::Ed25519,
    Algorithm::EcdsaP256,
    Algorithm::EcdsaP384,
    Algorithm::EcdsaP521,
    Algorithm::Rsa(2048),
];

#[test]
fn keys_are_written_under_the_labels_of_talos_and_read_again() {
    let check = |algorithm: Algorithm, label: &str| {
        let key = PrivateKey::generate(algorithm).unwrap();
        assert_eq!(key.algorithm(), algorithm);
        let text = key.pem();
        assert_eq!(
            text.lines().next().unwrap(),
            format!("-----BEGIN {label}-----")
        );
        for text in [text, key.pkcs8_pem()] {
            let read = PrivateKey::from_pem(text.as_str()).unwrap();
            assert_eq!(read.pkcs8_der(), key.pkcs8_der(), "{algorithm}");
            assert_eq!(read.public_key_info(), key.public_key_info());
        }
    };
    check(Algorithm::Ed25519, "ED25519 PRIVATE KEY");
    check(Algorithm::EcdsaP256, "EC PRIVATE KEY");
    check(Algorithm::EcdsaP384, "EC PRIVATE KEY");
    check(Algorithm::EcdsaP521, "EC PRIVATE KEY");
    check(Algorithm::Rsa(2048), "RSA PRIVATE KEY");
}

#[test]
fn an_ed25519_key_is_48_bytes_of_pkcs8_version_1() {
    let key = PrivateKey::generate(Algorithm::Ed25519).unwrap();
    assert_eq!(key.pkcs8_der().len(), 48);
}

#[test]
fn an_ed25519_key_of_pkcs8_version_2_is_read_and_written_as_version_1() {
    let pair = Ed25519KeyPair::generate().unwrap();
    let long = pair.to_pkcs8().unwrap();
    assert_eq!(long.as_ref().len(), 83);
    let text = pem::encode("PRIVATE KEY", long.as_ref());
    let key = PrivateKey::from_pem(text).unwrap();
    assert_eq!(key.pkcs8_der().len(), 48);
}

#[test]
fn a_key_is_read_from_among_other_blocks() {
    let key = PrivateKey::generate(Algorithm::EcdsaP256).unwrap();
    let text = format!("{}{}", corpus::text("talos-ca"), *key.pem());
    let read = PrivateKey::from_pem(text.replace('\n', "\r\n")).unwrap();
    assert_eq!(read.pkcs8_der(), key.pkcs8_der());
}

#[test]
fn a_key_matches_its_own_certificate_only() {
    let now = corpus::noon();
    let one = Authority::generate(AuthorityKind::Talos, now).unwrap();
    let other = Authority::generate(AuthorityKind::Talos, now).unwrap();
    assert!(one.key().matches(one.certificate()));
    assert!(!one.key().matches(other.certificate()));
}

#[test]
fn debug_output_shows_no_secret() {
    let key = PrivateKey::generate(Algorithm::Ed25519).unwrap();
    assert_eq!(format!("{key:?}"), "PrivateKey(Ed25519)");
}

#[test]
fn bad_input_is_named() {
    let check = |text: &str, expected: &str| {
        let error = PrivateKey::from_pem(text).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    };
    check(
        &corpus::text("talos-ca"),
        "no private key found (no PEM block labeled PRIVATE KEY, ED25519, EC or RSA PRIVATE KEY)",
    );
    check(
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----",
        "the private key is encrypted, which is not supported",
    );
    check(
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----",
        "the private key is encrypted, which is not supported",
    );
    check(
        "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----",
        "the private key labeled \"EC PRIVATE KEY\" is damaged or of an unsupported kind",
    );
}

#[test]
#[ignore = "needs openssl"]
fn openssl_reads_what_is_written_and_the_other_way_round() {
    let folder = std::env::temp_dir().join(format!("talos-pki-keys-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("key.pem");
    let openssl = |arguments: &[&str]| {
        let output = Command::new("openssl")
            .args(arguments)
            .arg(&file)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        output.stdout
    };
    for algorithm in ALL {
        let key = PrivateKey::generate(algorithm).unwrap();
        // OpenSSL does not know the label that Talos uses for Ed25519.
        let text = key.pem().replace("ED25519 ", "");
        std::fs::write(&file, text).unwrap();
        let public = openssl(&["pkey", "-pubout", "-outform", "der", "-in"]);
        assert_eq!(public, key.public_key_info(), "{algorithm}");
    }
    for (command, algorithm) in [
        ("genpkey -algorithm ed25519 -out", Algorithm::Ed25519),
        (
            "genpkey -algorithm ec -pkeyopt ec_paramgen_curve:P-256 -out",
            Algorithm::EcdsaP256,
        ),
        ("ecparam -genkey -name secp384r1 -out", Algorithm::EcdsaP384),
        ("genrsa -traditional -out", Algorithm::Rsa(2048)),
        (
            "genpkey -algorithm rsa -pkeyopt rsa_keygen_bits:3072 -out",
            Algorithm::Rsa(3072),
        ),
    ] {
        openssl(&command.split(' ').collect::<Vec<_>>());
        let key = PrivateKey::from_pem(std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(key.algorithm(), algorithm, "{command}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

proptest! {
    #[test]
    fn any_bytes_are_refused_without_a_panic(bytes: Vec<u8>) {
        let _ = PrivateKey::from_der(&bytes);
        let _ = PrivateKey::from_pem(&bytes);
    }
}
