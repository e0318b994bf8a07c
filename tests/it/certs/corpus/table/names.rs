//! Names and addresses.

use rcgen::{DnType, SanType};

use super::one;
use crate::certs::corpus::Case;
use crate::certs::corpus::make::{common_name, dns, leaf, raw_names, subject, tlv, with};

pub(super) fn names() -> Vec<Case> {
    let cp = "cp.example.com";
    let many: Vec<String> = (0..10_000)
        .map(|number| format!("n{number}.example.com"))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let label = "a".repeat(63);
    let long = format!("{label}.example.com");
    vec![
        one(
            "name-exact",
            leaf(&[cp]),
            &[cp, "other.example.com"],
            &["name-missing other.example.com"],
        ),
        one("name-case-asked", leaf(&[cp]), &["CP.Example.COM"], &[]),
        one("name-case-served", leaf(&["CP.Example.COM"]), &[cp], &[]),
        one("name-dot-asked", leaf(&[cp]), &["cp.example.com."], &[]),
        one(
            "name-dot-served",
            dns(&["cp.example.com."]),
            &[cp],
            &["name-missing cp.example.com"],
        ),
        one(
            "name-parent",
            leaf(&[cp]),
            &["example.com"],
            &["name-missing example.com"],
        ),
        one(
            "name-child",
            leaf(&[cp]),
            &["a.cp.example.com"],
            &["name-missing a.cp.example.com"],
        ),
        one(
            "name-single-label",
            leaf(&["localhost"]),
            &["localhost"],
            &[],
        ),
        one(
            "name-underscore",
            leaf(&["a_b.example.com"]),
            &["a_b.example.com"],
            &[],
        ),
        one("name-longest-label", leaf(&[&long]), &[&long], &[]),
        one(
            "name-of-many",
            leaf(&["a.example", "b.example", cp]),
            &[cp, "b.example"],
            &[],
        ),
        one("wildcard", leaf(&["*.example.com"]), &[cp], &[]),
        one("wildcard-case", leaf(&["*.EXAMPLE.com"]), &[cp], &[]),
        one(
            "wildcard-two-labels",
            leaf(&["*.example.com"]),
            &["b.a.example.com"],
            &["name-missing b.a.example.com"],
        ),
        one(
            "wildcard-no-label",
            leaf(&["*.example.com"]),
            &["example.com"],
            &["name-missing example.com"],
        ),
        one(
            "wildcard-wide",
            dns(&["*.com"]),
            &["example.com"],
            &["name-missing example.com"],
        ),
        one(
            "wildcard-part-of-label",
            dns(&["c*.example.com"]),
            &[cp],
            &["name-missing cp.example.com"],
        ),
        one(
            "wildcard-inside",
            dns(&["cp.*.com"]),
            &[cp],
            &["name-missing cp.example.com"],
        ),
        one(
            "wildcard-alone",
            dns(&["*"]),
            &["localhost"],
            &["name-missing localhost"],
        ),
        one(
            "wildcard-twice",
            dns(&["*.*.com"]),
            &["a.b.com"],
            &["name-missing a.b.com"],
        ),
        one(
            "wildcard-asked",
            dns(&[cp]),
            &["*.example.com"],
            &["name-missing *.example.com"],
        ),
        one(
            "wildcard-for-idn",
            leaf(&["*.example.com"]),
            &["xn--mnchen-3ya.example.com"],
            &[],
        ),
        one(
            "wildcard-in-idn",
            dns(&["xn--*.example.com"]),
            &["xn--mnchen-3ya.example.com"],
            &["name-missing xn--mnchen-3ya.example.com"],
        ),
        one(
            "idn-a-label",
            leaf(&["xn--mnchen-3ya.example"]),
            &["xn--mnchen-3ya.example", "XN--MNCHEN-3YA.example"],
            &[],
        ),
        one(
            "idn-asked-as-u-label",
            leaf(&["xn--mnchen-3ya.example"]),
            &["m\u{fc}nchen.example"],
            &[],
        ),
        one(
            "idn-served-as-u-label",
            raw_names(&tlv(0x82, "m\u{fc}nchen.example".as_bytes())),
            &["xn--mnchen-3ya.example"],
            &[
                "unreadable-extension",
                "name-missing xn--mnchen-3ya.example",
            ],
        ),
        one(
            "common-name-only",
            common_name(cp, &[]),
            &[cp],
            &["name-missing cp.example.com"],
        ),
        one(
            "common-name-beside",
            common_name(cp, &["a.example"]),
            &[cp, "a.example"],
            &["name-missing cp.example.com"],
        ),
        one(
            "mail-only",
            with(leaf(&[]), |leaf| {
                leaf.subject_alt_names =
                    vec![SanType::Rfc822Name("a@cp.example.com".try_into().unwrap())]
            }),
            &[cp],
            &["name-missing cp.example.com"],
        ),
        one(
            "uri-only",
            with(leaf(&[]), |leaf| {
                leaf.subject_alt_names =
                    vec![SanType::URI("https://cp.example.com".try_into().unwrap())]
            }),
            &[cp],
            &["name-missing cp.example.com"],
        ),
        one(
            "subject-empty",
            with(leaf(&[cp]), |leaf| {
                leaf.distinguished_name = subject(DnType::CommonName, "")
            }),
            &[cp],
            &[],
        ),
        one(
            "mixed-names",
            leaf(&[
                cp,
                "*.wild.example.com",
                "*.other.example.com",
                "10.5.0.2",
                "192.0.2.7",
                "fd00::7",
            ]),
            &[cp, "x.wild.example.com", "10.5.0.2", "fd00:0::7"],
            &[],
        ),
        one(
            "ten-thousand-names",
            leaf(&many),
            &["n0.example.com", "n9999.example.com", "n10000.example.com"],
            &["name-missing n10000.example.com"],
        ),
    ]
}

pub(super) fn addresses() -> Vec<Case> {
    let mapped = [[0; 10].as_slice(), &[0xff, 0xff, 10, 5, 0, 2]].concat();
    vec![
        one(
            "address-4",
            leaf(&["10.5.0.2"]),
            &["10.5.0.2", "10.5.0.3"],
            &["name-missing 10.5.0.3"],
        ),
        one(
            "address-6",
            leaf(&["fd00::1"]),
            &["fd00::1", "FD00:0:0:0:0:0:0:1", "[fd00::1]", "fd00::2"],
            &["name-missing fd00::2"],
        ),
        one("address-6-loopback", leaf(&["::1"]), &["0:0::1"], &[]),
        one("address-6-zone", leaf(&["fe80::1"]), &["fe80::1%eth0"], &[]),
        one(
            "address-4-asked-mapped",
            leaf(&["10.5.0.2"]),
            &["::ffff:10.5.0.2"],
            &[],
        ),
        one(
            "address-4-served-mapped",
            raw_names(&tlv(0x87, &mapped)),
            &["10.5.0.2"],
            &["name-missing 10.5.0.2"],
        ),
        one(
            "address-as-dns-name",
            dns(&["10.5.0.2"]),
            &["10.5.0.2"],
            &["name-missing 10.5.0.2"],
        ),
        one(
            "address-as-common-name",
            common_name("10.5.0.2", &[]),
            &["10.5.0.2"],
            &["name-missing 10.5.0.2"],
        ),
        one(
            "address-of-five-bytes",
            raw_names(&tlv(0x87, &[10, 5, 0, 2, 0])),
            &["10.5.0.2"],
            &["unreadable-extension", "name-missing 10.5.0.2"],
        ),
        one(
            "address-with-mask",
            raw_names(&tlv(0x87, &[10, 5, 0, 2, 255, 255, 255, 255])),
            &["10.5.0.2"],
            &["unreadable-extension", "name-missing 10.5.0.2"],
        ),
        one(
            "address-wildcard",
            dns(&["*.5.0.2"]),
            &["10.5.0.2"],
            &["name-missing 10.5.0.2"],
        ),
    ]
}
