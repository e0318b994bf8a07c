use super::*;

fn certificate(fingerprint: &str) -> CertificateSummary {
    CertificateSummary {
        fingerprint: fingerprint.to_owned(),
        ..CertificateSummary::default()
    }
}

fn with(certificates: &[(&str, &str)], findings: &[(&str, &str)], failures: &[&str]) -> Snapshot {
    let node = |place: &str| spot("10.5.0.2", place);
    Snapshot {
        certificates: certificates
            .iter()
            .map(|(place, fingerprint)| (node(place), certificate(fingerprint)))
            .collect(),
        findings: findings
            .iter()
            .map(|(place, code)| {
                (
                    (node(place), (*code).to_owned(), None),
                    "it is so".to_owned(),
                )
            })
            .collect(),
        failures: failures
            .iter()
            .map(|place| (node(place), "no answer".to_owned()))
            .collect(),
    }
}

/// Compares the changes as `event place`.
fn check(before: &Snapshot, after: &Snapshot, expected: &[&str]) {
    let changes = after.changes_since(before);
    let said: Vec<String> = changes
        .iter()
        .map(|change| {
            let change = serde_json::to_value(change).unwrap();
            let text = |key: &str| change[key].as_str().unwrap_or_default().to_owned();
            assert_eq!(change["node"], "10.5.0.2");
            format!("{} {}", text("event"), text("place"))
        })
        .collect();
    assert_eq!(said, expected);
}

#[test]
fn a_renewed_certificate_replaces_the_other() {
    let before = with(&[("apid", "aa"), ("kubelet", "cc")], &[], &[]);
    let after = with(&[("apid", "bb"), ("trustd", "dd")], &[], &[]);
    check(
        &before,
        &after,
        &["replaced apid", "gone kubelet", "appeared trustd"],
    );
    check(&after, &after, &[]);
}

#[test]
fn findings_come_and_go() {
    let before = with(&[("apid", "aa")], &[("apid", "expiring")], &[]);
    let after = with(&[("apid", "aa")], &[("apid", "expired")], &[]);
    check(&before, &after, &["found apid", "resolved apid"]);
}

#[test]
fn what_cannot_be_looked_at_is_neither_gone_nor_resolved() {
    let known = with(&[("apid", "aa")], &[("apid", "expiring")], &[]);
    for failure in ["apid", "node"] {
        let mut silent = with(&[], &[], &[failure]);
        check(&known, &silent, &[&format!("failed {failure}")]);
        silent.remember(&known);
        check(&silent, &known, &[&format!("recovered {failure}")]);
        let renewed = with(&[("apid", "bb")], &[], &[]);
        let expected = [
            format!("recovered {failure}"),
            "replaced apid".to_owned(),
            "resolved apid".to_owned(),
        ];
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check(&silent, &renewed, &expected);
    }
}
