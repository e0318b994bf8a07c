use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::corpus;
use crate::issue::{self, EMPTY_SUBJECT, Extension, Template};
use crate::{Algorithm, PrivateKey};

/// What `openssl x509 -text` says of this certificate.
#[test]
fn a_certificate_of_talos_is_read_as_openssl_reads_it() {
    let read = Inspection::of(corpus::certificate("talos-apid-controlplane").der());
    let hex_of = |text: &str| text.replace(':', "").to_lowercase();
    assert_eq!(read.malformed, None);
    assert!(read.unreadable.is_empty(), "{:?}", read.unreadable);
    assert_eq!(read.version, Some(3));
    assert_eq!(
        read.serial.as_deref(),
        Some("aeb35e075cba8fa95322b209599f193b")
    );
    assert_eq!(read.signature_algorithm.as_deref(), Some("Ed25519"));
    assert_eq!(read.issuer.unwrap().text, "O=talos");
    let subject = read.subject.unwrap();
    assert_eq!(subject.text, "CN=lab-cp-1");
    assert_eq!(subject.parts[0][0].kind, "CN");
    assert_eq!(subject.parts[0][0].value, "lab-cp-1");
    let time = |text: &str| Some(text.parse().unwrap());
    assert_eq!(read.not_before, time("2026-11-30T15:55:11Z"));
    assert_eq!(read.not_after, time("2026-12-01T15:55:11Z"));
    let key = read.key.unwrap();
    assert_eq!((key.kind.as_str(), key.bits), ("Ed25519", Some(256)));
    assert_eq!(
        key.sha256,
        "eeb933ce5dce4594471e5010832ad2b2b03770d2ddb8155e8ca19ba83f761a77"
    );
    let names: Vec<String> = read
        .names
        .iter()
        .map(|name| format!("{}:{}", name.kind, name.value))
        .collect();
    assert_eq!(
        names.join(", "),
        "DNS:lab-cp-1, DNS:localhost, IP:10.5.0.2, IP:10.5.0.3, IP:127.0.0.1"
    );
    assert_eq!(
        read.authority_key_id,
        Some(hex_of(
            "14:7D:11:03:14:88:E6:69:92:C5:E9:86:94:9E:93:3A:7E:44:EA:74"
        ))
    );
    assert_eq!(read.subject_key_id, None);
    let extensions: Vec<_> = read
        .extensions
        .iter()
        .map(|extension| {
            let name = extension.name.as_deref().unwrap();
            (name, extension.critical, extension.value.join(" "))
        })
        .collect();
    assert_eq!(
        extensions[0],
        ("keyUsage", true, "digitalSignature".to_owned())
    );
    assert_eq!(
        extensions[1],
        ("extendedKeyUsage", false, "serverAuth".to_owned())
    );
    assert_eq!(extensions[2].0, "authorityKeyIdentifier");
    assert_eq!(extensions[3].0, "subjectAltName");
    assert_eq!(
        read.fingerprint_sha1,
        hex_of("CA:EF:27:AE:E1:6C:3B:9C:F8:1A:CF:7A:91:E4:F7:C1:F2:D6:47:EA")
    );
    assert_eq!(
        read.fingerprint_sha256,
        "da31c36fb30152ff3dbc2bd60c97c39e9c31ee9c73875eb2847e8fe7cd263fa4"
    );
}

#[test]
fn authorities_and_empty_subjects_are_read() {
    let read = Inspection::of(corpus::certificate("talos-aggregator-ca").der());
    assert_eq!(read.subject.unwrap(), DistinguishedName::default());
    assert_eq!(read.key.unwrap().kind, "ECDSA P-256");
    let constraints = read
        .extensions
        .iter()
        .find(|extension| extension.id == "2.5.29.19");
    assert_eq!(constraints.unwrap().value, ["CA:TRUE"]);
}

/// A certificate with extensions that somebody else wrote.
fn with_extensions(extensions: &[Extension]) -> Vec<u8> {
    let key = PrivateKey::generate(Algorithm::Ed25519).unwrap();
    let template = Template {
        subject: &EMPTY_SUBJECT,
        issuer: &EMPTY_SUBJECT,
        public_key_info: key.public_key_info(),
        not_before: corpus::noon(),
        lifetime: jiff::SignedDuration::from_hours(1),
        extensions,
    };
    issue::sign(&template, &key).unwrap().der().to_vec()
}

#[test]
fn all_kinds_of_names_are_read() {
    let entries: [(u8, &[u8], &str); 7] = [
        (0x81, b"a@example.com", "email:a@example.com"),
        (0x82, b"b\xc3\xbccher.example", "DNS:b\u{fc}cher.example"),
        (0x86, b"spiffe://lab/cp-1", "URI:spiffe://lab/cp-1"),
        (0x87, &[10, 5, 0, 2], "IP:10.5.0.2"),
        (0x87, &[1, 2, 3], "IP:#010203"),
        (0x88, &[0x2a, 0x03], "registeredID:1.2.3"),
        // 1.2.3 with the UTF8String "user".
        (
            0xa0,
            b"\x06\x02\x2a\x03\xa0\x06\x0c\x04user",
            "otherName:1.2.3: user",
        ),
    ];
    let content: Vec<u8> = entries
        .iter()
        .flat_map(|(tag, content, _)| crate::der::value(*tag, content))
        .collect();
    let content = crate::der::value(0x30, &content);
    let read = Inspection::of(&with_extensions(&[Extension::raw(17, false, content)]));
    let expected: Vec<&str> = entries.iter().map(|(_, _, text)| *text).collect();
    let names = &read.extensions[0].value;
    assert_eq!(*names, expected);
    assert_eq!(read.unreadable.len(), 2, "{:?}", read.unreadable);
    assert!(read.unreadable[0].ends_with("a DNS name is not ASCII; IDNs must be A-labels (xn--)"));
    assert!(read.unreadable[1].ends_with("an address has 3 bytes"));
}

#[test]
fn what_stands_before_the_damage_is_read() {
    let whole = corpus::certificate("talos-apid-controlplane")
        .der()
        .to_vec();
    let read = Inspection::of(&whole[..whole.len() - 80]);
    assert_eq!(
        read.malformed.as_deref().map(|why| &why[..28]),
        Some("certificate 1 cannot be read")
    );
    assert_eq!(read.subject.unwrap().text, "CN=lab-cp-1");
    assert_eq!(read.extensions.len(), 4);
    assert!(read.signature.is_none());
    assert!(
        read.unreadable
            .iter()
            .any(|note| note.contains("bytes, and")),
        "{:?}",
        read.unreadable
    );
    let text = Inspection::many(b"hello").unwrap_err();
    assert!(matches!(text, Error::NoCertificate));
}

#[test]
fn a_thousand_extensions_and_ten_thousand_names_are_read_quickly() {
    let names: Vec<crate::Name> = (0..10_000)
        .map(|number| crate::Name::Dns(format!("n{number}.example")))
        .collect();
    let mut extensions = vec![Extension::names(&names, false)];
    extensions.extend((0..1_000).map(|_| Extension::raw(99, false, vec![5, 0])));
    let der = with_extensions(&extensions);
    let start = Instant::now();
    let read = Inspection::of(&der);
    assert!(start.elapsed() < Duration::from_secs(2));
    assert_eq!(read.names.len(), 10_000);
    assert_eq!(read.extensions.len(), 1_001);
    assert_eq!(read.unreadable.last().unwrap(), "and 949 problems more");
}

proptest! {
    #[test]
    fn damage_is_survived(file in 0usize..3, changes in proptest::collection::vec((0usize..1_000, any::<u8>()), 1..6), cut in 0usize..1_000) {
        let files = ["talos-apid-controlplane", "talos-kube-apiserver", "talos-ca"];
        let mut der = corpus::certificate(files[file]).der().to_vec();
        let length = der.len();
        for (at, byte) in changes {
            der[at % length] = byte;
        }
        der.truncate(length - cut % 40);
        let read = Inspection::of(&der);
        prop_assert_eq!(read.length, der.len());
        // What verifiers accept is read without a gap.
        if let Ok(certificate) = Certificate::from_der(&der) {
            prop_assert_eq!(read.malformed, None);
            prop_assert_eq!(read.fingerprint_sha256, certificate.fingerprint());
        } else {
            prop_assert!(read.malformed.is_some());
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>) {
        Inspection::of(&bytes);
        let _ = Inspection::many(&bytes);
    }
}
