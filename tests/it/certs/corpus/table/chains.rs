//! Dates, and chains of authorities.

use rcgen::{
    BasicConstraints, CidrSubnet, DnType, GeneralSubtree, IsCa, KeyUsagePurpose, NameConstraints,
    PKCS_ECDSA_P256_SHA256, date_time_ymd,
};

use super::{case, one};
use crate::certs::corpus::Case;
use crate::certs::corpus::make::{Ca, ROOT, authority, key, leaf, subject, with};

pub(super) fn dates() -> Vec<Case> {
    let cp = "cp.example.com";
    let year = || {
        with(leaf(&[cp]), |leaf| {
            leaf.not_before = date_time_ymd(2027, 1, 1);
            leaf.not_after = date_time_ymd(2028, 1, 1);
        })
    };
    let old = Ca::root(with(authority("old root"), |old| {
        old.not_after = date_time_ymd(2026, 6, 1)
    }));
    let young = Ca::root(with(authority("young root"), |young| {
        young.not_before = date_time_ymd(2027, 6, 1)
    }));
    let old_middle = ROOT.below(with(authority("old middle"), |old| {
        old.not_after = date_time_ymd(2026, 6, 1)
    }));
    vec![
        one("future", year(), &[cp], &["not-yet-valid"]).at("2026-12-31T23:00:00Z"),
        one("first-second", year(), &[cp], &[]).at("2027-01-01T00:00:00Z"),
        one("last-second", year(), &[cp], &[]).at("2028-01-01T00:00:00Z"),
        one("second-after", year(), &[cp], &["expired"]).at("2028-01-01T00:00:01Z"),
        one("expired", year(), &[cp], &["expired"]).at("2030-01-01T00:00:00Z"),
        one(
            "expired-and-other-name",
            year(),
            &["a.example"],
            &["name-missing a.example", "expired"],
        )
        .at("2030-01-01T00:00:00Z"),
        one(
            "dates-reversed",
            with(leaf(&[cp]), |leaf| {
                leaf.not_before = date_time_ymd(2027, 1, 1);
                leaf.not_after = date_time_ymd(2026, 1, 1);
            }),
            &[cp],
            &["not-yet-valid"],
        ),
        one(
            "year-9999",
            with(leaf(&[cp]), |leaf| {
                leaf.not_after = date_time_ymd(9999, 12, 31)
            }),
            &[cp],
            &[],
        ),
        one(
            "year-2050",
            with(leaf(&[cp]), |leaf| {
                leaf.not_after = date_time_ymd(2050, 1, 1)
            }),
            &[cp],
            &[],
        ),
        case(
            "root-expired",
            vec![old.issue(&leaf(&[cp]))],
            &[cp],
            &["authority-expired"],
        )
        .trusting(&[&old.der]),
        case(
            "root-future",
            vec![young.issue(&leaf(&[cp]))],
            &[cp],
            &["authority-expired"],
        )
        .trusting(&[&young.der]),
        case(
            "middle-expired",
            vec![old_middle.issue(&leaf(&[cp])), old_middle.der.clone()],
            &[cp],
            &["authority-expired"],
        ),
    ]
}

pub(super) fn chains() -> Vec<Case> {
    let cp = "cp.example.com";
    let server = leaf(&[cp]);
    let first = ROOT.below(authority("first"));
    let second = first.below(authority("second"));
    let third = second.below(authority("third"));
    let below_first = first.issue(&server);
    let below_third = third.issue(&server);
    let rotated = Ca::root(authority("root"));
    let etcd = Ca::root(authority("etcd"));
    let renewed = Ca::root_with(
        with(authority("root"), |root| {
            root.not_before = date_time_ymd(2026, 6, 1)
        }),
        ROOT.same_key(),
    );
    // The key of the rotated root, signed by the old one.
    let cross = ROOT.cross_sign(
        with(authority("root"), |cross| {
            cross.use_authority_key_identifier_extension = true
        }),
        rotated.same_key(),
    );
    let cross_without_id = ROOT.cross_sign(authority("root"), rotated.same_key());
    let none_below = ROOT.below(with(authority("none below"), |ca| {
        ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0))
    }));
    let too_deep = none_below.below(authority("too deep"));
    let one_below = ROOT.below(with(authority("one below"), |ca| {
        ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(1))
    }));
    let deep_enough = one_below.below(authority("deep enough"));
    let no_authority = ROOT.below(with(leaf(&["a.example"]), |leaf| {
        leaf.distinguished_name = subject(DnType::OrganizationName, "a leaf that signs");
    }));
    let no_sign = ROOT.below(with(authority("may not sign"), |ca| {
        ca.key_usages = vec![KeyUsagePurpose::CrlSign]
    }));
    let domain = |permitted: &[&str], excluded: &[&str]| {
        let subtrees = |domains: &[&str]| {
            domains
                .iter()
                .map(|&domain| GeneralSubtree::DnsName(domain.to_owned()))
                .collect()
        };
        ROOT.below(with(authority("constrained"), |ca| {
            ca.name_constraints = Some(NameConstraints {
                permitted_subtrees: subtrees(permitted),
                excluded_subtrees: subtrees(excluded),
            });
        }))
    };
    let inside = domain(&["example.com"], &[]);
    let outside = domain(&["example.org"], &[]);
    let excluded = domain(&[], &["example.com"]);
    let network = ROOT.below(with(authority("network"), |ca| {
        ca.name_constraints = Some(NameConstraints {
            permitted_subtrees: vec![GeneralSubtree::IpAddress(CidrSubnet::from_v4_prefix(
                [10, 5, 0, 0],
                16,
            ))],
            excluded_subtrees: Vec::new(),
        });
    }));
    let own = key(&PKCS_ECDSA_P256_SHA256);
    let own_leaf = server.self_signed(&own).unwrap().der().to_vec();
    let own_authority = Ca::root(with(authority("serves itself"), |ca| {
        ca.subject_alt_names = leaf(&[cp]).subject_alt_names;
        ca.key_usages.push(KeyUsagePurpose::DigitalSignature);
    }));
    let nameless = Ca::root(authority(""));
    let nameless_too = Ca::root(authority(""));
    let mut forged = ROOT.issue(&server);
    *forged.last_mut().unwrap() ^= 1;
    let unknown = ["unknown-authority"];
    vec![
        case(
            "middle-one",
            vec![below_first.clone(), first.der.clone()],
            &[cp],
            &[],
        ),
        case(
            "middle-three",
            vec![
                below_third.clone(),
                third.der.clone(),
                second.der.clone(),
                first.der.clone(),
            ],
            &[cp],
            &[],
        ),
        case(
            "middle-shuffled",
            vec![
                below_third.clone(),
                first.der.clone(),
                third.der.clone(),
                second.der.clone(),
            ],
            &[cp],
            &[],
        ),
        case(
            "middle-and-stranger",
            vec![below_first.clone(), etcd.der.clone(), first.der.clone()],
            &[cp],
            &[],
        ),
        case(
            "middle-and-root",
            vec![below_first.clone(), first.der.clone(), ROOT.der.clone()],
            &[cp],
            &[],
        ),
        case("middle-missing", vec![below_first.clone()], &[cp], &unknown),
        case(
            "middle-missing-and-known",
            vec![below_first.clone()],
            &[cp],
            &["missing-intermediate"],
        )
        .knowing("first CA", &first.der),
        case(
            "middle-second-missing",
            vec![below_third, third.der.clone(), first.der.clone()],
            &[cp],
            &unknown,
        ),
        case(
            "middle-trusted-itself",
            vec![below_first.clone()],
            &[cp],
            &[],
        )
        .trusting(&[&first.der]),
        case(
            "root-of-the-chain-only",
            vec![rotated.issue(&server), rotated.der.clone()],
            &[cp],
            &unknown,
        ),
        case(
            "cross-signed",
            vec![rotated.issue(&server), cross.der.clone()],
            &[cp],
            &[],
        ),
        case(
            "cross-signed-without-key-id",
            vec![rotated.issue(&server), cross_without_id.der],
            &[cp],
            &[],
        ),
        case(
            "cross-signed-new-trust",
            vec![rotated.issue(&server), cross.der.clone()],
            &[cp],
            &[],
        )
        .trusting(&[&rotated.der]),
        case(
            "cross-signed-not-presented",
            vec![rotated.issue(&server)],
            &[cp],
            &unknown,
        ),
        case(
            "rotated-new-key-old-trust",
            vec![rotated.issue(&server)],
            &[cp],
            &unknown,
        ),
        case(
            "rotated-both-trusted",
            vec![rotated.issue(&server)],
            &[cp],
            &[],
        )
        .trusting(&[&ROOT.der, &rotated.der]),
        case(
            "rotated-old-leaf-new-trust",
            vec![ROOT.issue(&server)],
            &[cp],
            &unknown,
        )
        .trusting(&[&rotated.der]),
        case(
            "renewed-with-the-same-key",
            vec![ROOT.issue(&server)],
            &[cp],
            &[],
        )
        .trusting(&[&renewed.der]),
        case(
            "wrong-authority",
            vec![etcd.issue(&server)],
            &[cp],
            &["wrong-authority"],
        )
        .knowing("etcd CA", &etcd.der),
        case(
            "unknown-authority",
            vec![etcd.issue(&server)],
            &[cp],
            &unknown,
        ),
        case(
            "path-too-long",
            vec![
                too_deep.issue(&server),
                too_deep.der.clone(),
                none_below.der.clone(),
            ],
            &[cp],
            &["not-an-authority"],
        ),
        case(
            "path-just-short-enough",
            vec![
                deep_enough.issue(&server),
                deep_enough.der.clone(),
                one_below.der.clone(),
            ],
            &[cp],
            &[],
        ),
        case(
            "leaf-as-authority",
            vec![no_authority.issue(&server), no_authority.der.clone()],
            &[cp],
            &["not-an-authority"],
        ),
        case(
            "authority-may-not-sign",
            vec![no_sign.issue(&server), no_sign.der.clone()],
            &[cp],
            &["not-an-authority"],
        ),
        case(
            "constraint-kept",
            vec![inside.issue(&server), inside.der.clone()],
            &[cp],
            &[],
        ),
        case(
            "constraint-broken",
            vec![outside.issue(&server), outside.der.clone()],
            &[cp],
            &["name-constraint"],
        ),
        case(
            "constraint-excludes",
            vec![excluded.issue(&server), excluded.der.clone()],
            &[cp],
            &["name-constraint"],
        ),
        case(
            "constraint-network-kept",
            vec![network.issue(&leaf(&["10.5.9.9"])), network.der.clone()],
            &["10.5.9.9"],
            &[],
        ),
        case(
            "constraint-network-broken",
            vec![network.issue(&leaf(&["10.6.0.1"])), network.der.clone()],
            &["10.6.0.1"],
            &["name-constraint"],
        ),
        case(
            "self-signed-stranger",
            vec![own_leaf.clone()],
            &[cp],
            &["self-signed"],
        ),
        case("self-signed-trusted", vec![own_leaf.clone()], &[cp], &[]).trusting(&[&own_leaf]),
        case(
            "authority-serves",
            vec![own_authority.der.clone()],
            &[cp],
            &["authority-as-leaf"],
        )
        .trusting(&[&own_authority.der]),
        case("forged", vec![forged], &[cp], &unknown),
        case(
            "authority-without-subject",
            vec![nameless.issue(&server)],
            &[cp],
            &[],
        )
        .trusting(&[&nameless.der]),
        case(
            "other-authority-without-subject",
            vec![nameless.issue(&server)],
            &[cp],
            &unknown,
        )
        .trusting(&[&nameless_too.der]),
        case("nothing-presented", Vec::new(), &[], &["no-certificate"]),
    ]
}
