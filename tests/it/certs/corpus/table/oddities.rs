//! What is damaged, or unusual, as DER and as PEM.

use std::fmt::Write as _;

use rcgen::CustomExtension;

use super::{case, one};
use crate::certs::corpus::Case;
use crate::certs::corpus::make::{
    ROOT, authority, by_hand, leaf, names_extension, pem, raw_names, tlv, with,
};

pub(super) fn oddities() -> Vec<Case> {
    let cp = "cp.example.com";
    let dns_entry = |name: &str| tlv(0x82, name.as_bytes());
    let server = ROOT.issue(&leaf(&[cp]));
    let extension = |id: &[u64], critical: bool| {
        let mut extension = CustomExtension::from_oid_content(id, tlv(5, &[]));
        extension.set_criticality(critical);
        extension
    };
    let twice = with(leaf(&[cp]), |leaf| {
        leaf.custom_extensions
            .push(names_extension(&dns_entry("a.example")))
    });
    let usage_twice = with(leaf(&[cp]), |leaf| {
        let client = tlv(0x30, &tlv(6, &[0x2b, 6, 1, 5, 5, 7, 3, 2]));
        leaf.custom_extensions
            .push(CustomExtension::from_oid_content(&[2, 5, 29, 37], client));
    });
    let names_by_hand = tlv(
        0x30,
        &[tlv(6, &[0x55, 29, 17]), tlv(4, &tlv(0x30, &dns_entry(cp)))].concat(),
    );
    let mut indefinite = server.clone();
    indefinite[1] = 0x80;
    let mut set = server.clone();
    set[0] = 0x31;
    vec![
        one(
            "names-twice",
            twice,
            &[cp, "a.example"],
            &["duplicate-extension", "name-missing a.example"],
        ),
        one(
            "purposes-twice",
            usage_twice,
            &[cp],
            &["duplicate-extension"],
        ),
        one(
            "unknown-extension",
            with(leaf(&[cp]), |leaf| {
                leaf.custom_extensions.push(extension(&[1, 2, 3, 4], false))
            }),
            &[cp],
            &[],
        ),
        one(
            "unknown-critical-extension",
            with(leaf(&[cp]), |leaf| {
                leaf.custom_extensions.push(extension(&[1, 2, 3, 4], true))
            }),
            &[cp],
            &["critical-extension"],
        ),
        one(
            "names-malformed",
            with(leaf(&[]), |leaf| {
                leaf.custom_extensions
                    .push(CustomExtension::from_oid_content(
                        &[2, 5, 29, 17],
                        vec![0x30, 9, 1],
                    ))
            }),
            &[cp],
            &["unreadable-extension", "name-missing cp.example.com"],
        ),
        one(
            "names-empty",
            raw_names(&[]),
            &[cp],
            &["name-missing cp.example.com"],
        ),
        case(
            "by-hand",
            vec![by_hand(Some(2), &[1], &names_by_hand)],
            &[cp],
            &[],
        ),
        case(
            "version-1",
            vec![by_hand(None, &[1], &[])],
            &[cp],
            &["name-missing cp.example.com"],
        ),
        case(
            "serial-negative",
            vec![by_hand(Some(2), &[0x80], &names_by_hand)],
            &[cp],
            &[],
        ),
        case(
            "serial-zero",
            vec![by_hand(Some(2), &[0], &names_by_hand)],
            &[cp],
            &[],
        ),
        case(
            "serial-of-thirty-bytes",
            vec![by_hand(Some(2), &[7; 30], &names_by_hand)],
            &[cp],
            &[],
        ),
        case(
            "der-cut",
            vec![server[..server.len() - 10].to_vec()],
            &[cp],
            &["malformed"],
        ),
        case(
            "der-and-more",
            vec![[server.as_slice(), &[0, 0]].concat()],
            &[cp],
            &["malformed"],
        ),
        case("der-empty", vec![Vec::new()], &[cp], &["malformed"]),
        case(
            "der-indefinite-length",
            vec![indefinite],
            &[cp],
            &["malformed"],
        ),
        case("der-other-tag", vec![set], &[cp], &["malformed"]),
        case(
            "der-text",
            vec![b"HTTP/1.1 400 Bad Request".to_vec()],
            &[cp],
            &["malformed"],
        ),
    ]
}

pub(super) fn texts() -> Vec<Case> {
    let cp = "cp.example.com";
    let first = ROOT.below(authority("first"));
    let chain = [first.issue(&leaf(&[cp])), first.der.clone()];
    let plain: String = chain.iter().map(|der| pem("CERTIFICATE", der)).collect();
    let key = pem("PRIVATE KEY", &[0; 48]);
    let text = |id, text: String, findings: &[&'static str]| Case {
        text: Some(text),
        ..case(id, chain.to_vec(), &[cp], findings)
    };
    let mut beside = String::new();
    write!(
        beside,
        "Certificate:\n    Data:\n{key}{plain}{}",
        pem("DH PARAMETERS", &[1; 9])
    )
    .unwrap();
    vec![
        text("pem", plain.clone(), &[]),
        text("pem-crlf", plain.replace('\n', "\r\n"), &[]),
        text("pem-other-blocks", beside, &[]),
        text(
            "pem-indented",
            plain.lines().map(|line| format!("    {line}\n")).collect(),
            &[],
        ),
        text(
            "pem-old-label",
            plain.replace("CERTIFICATE", "X509 CERTIFICATE"),
            &[],
        ),
        text(
            "pem-without-end",
            plain[..plain.len() - 30].to_owned(),
            &["malformed"],
        ),
        text(
            "pem-not-base64",
            plain.replace("MII", "M!I"),
            &["malformed"],
        ),
        text("pem-key-only", key, &["malformed"]),
        text("pem-on-one-line", plain.replace('\n', ""), &["malformed"]),
        text("pem-empty", String::new(), &["malformed"]),
    ]
}
