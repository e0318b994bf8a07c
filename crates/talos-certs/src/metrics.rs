//! A snapshot as metrics in the text format of Prometheus.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::{Snapshot, Spot};

/// When each place could last not be looked at.
pub type LastErrors = BTreeMap<Spot, Timestamp>;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Place {
    node: String,
    place: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Kept {
    node: String,
    place: String,
    subject: String,
    issuer: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Found {
    node: String,
    place: String,
    code: String,
}

/// A number of seconds since 1970, or a count.
type Number = Gauge<f64, AtomicU64>;

/// Writes metrics; `at` is when the snapshot was made, and times are absolute, so that they stay true until the next one.
///
/// The text is also valid OpenMetrics.
pub fn metrics(snapshot: &Snapshot, last_errors: &LastErrors, at: Timestamp) -> String {
    let mut registry = Registry::default();
    let not_after: Family<Kept, Number> = Family::default();
    let not_before: Family<Kept, Number> = Family::default();
    for (spot, certificate) in &snapshot.certificates {
        let labels = Kept {
            node: spot.node.clone(),
            place: spot.place.clone(),
            subject: certificate.subject.clone(),
            issuer: certificate.issuer.clone(),
        };
        for (family, time) in [
            (&not_after, &certificate.not_after),
            (&not_before, &certificate.not_before),
        ] {
            if let Ok(time) = time.parse() {
                family.get_or_create(&labels).set(seconds(time));
            }
        }
    }
    let findings: Family<Found, Number> = Family::default();
    for (spot, code, _) in snapshot.findings.keys() {
        let labels = Found {
            node: spot.node.clone(),
            place: spot.place.clone(),
            code: code.clone(),
        };
        findings.get_or_create(&labels).inc();
    }
    let failing: Family<Place, Number> = Family::default();
    for spot in snapshot.certificates.keys() {
        failing.get_or_create(&place(spot)).set(0.0);
    }
    for spot in snapshot.failures.keys() {
        failing.get_or_create(&place(spot)).set(1.0);
    }
    let last_error: Family<Place, Number> = Family::default();
    for (spot, time) in last_errors {
        last_error.get_or_create(&place(spot)).set(seconds(*time));
    }
    let checked = Number::default();
    checked.set(seconds(at));

    registry.register(
        "talos_certificate_not_after_timestamp_seconds",
        "Last moment of a certificate's validity",
        not_after,
    );
    registry.register(
        "talos_certificate_not_before_timestamp_seconds",
        "First moment of a certificate's validity",
        not_before,
    );
    registry.register(
        "talos_certificate_findings",
        "Problems of a certificate, by kind",
        findings,
    );
    registry.register(
        "talos_certificate_source_failing",
        "Whether a place could not be looked at, 1 or 0",
        failing,
    );
    registry.register(
        "talos_certificate_source_last_error_timestamp_seconds",
        "When a place could last not be looked at",
        last_error,
    );
    registry.register(
        "talos_certificate_checked_timestamp_seconds",
        "When the certificates were looked at",
        checked,
    );
    let mut text = String::new();
    // Writing to a String does not fail.
    let _written = encode(&mut text, &registry);
    text
}

fn place(spot: &Spot) -> Place {
    Place {
        node: spot.node.clone(),
        place: spot.place.clone(),
    }
}

fn seconds(time: Timestamp) -> f64 {
    time.as_duration().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::CertificateSummary;

    #[test]
    fn times_are_absolute_and_odd_names_are_escaped() {
        let spot = Spot {
            node: "10.5.0.2".to_owned(),
            place: "apid".to_owned(),
        };
        let certificate = CertificateSummary {
            subject: "CN=\"a\"\\\n".to_owned(),
            issuer: "O=talos".to_owned(),
            not_before: "2026-11-30T00:00:00Z".to_owned(),
            not_after: "2026-12-01T00:00:00Z".to_owned(),
            ..CertificateSummary::default()
        };
        let finding = |name: &str| {
            (
                spot.clone(),
                "name-missing".to_owned(),
                Some(name.to_owned()),
            )
        };
        let silent = Spot {
            place: "trustd".to_owned(),
            ..spot.clone()
        };
        let snapshot = Snapshot {
            certificates: [(spot.clone(), certificate)].into(),
            findings: [
                (finding("one"), String::new()),
                (finding("two"), String::new()),
            ]
            .into(),
            failures: [(silent.clone(), "no answer".to_owned())].into(),
        };
        let at: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let text = metrics(&snapshot, &[(silent, at)].into(), at);
        let has = |line: &str| assert!(text.lines().any(|have| have == line), "{line}\n{text}");
        has(
            r#"talos_certificate_not_after_timestamp_seconds{node="10.5.0.2",place="apid",subject="CN=\"a\"\\\n",issuer="O=talos"} 1796083200.0"#,
        );
        has(
            r#"talos_certificate_not_before_timestamp_seconds{node="10.5.0.2",place="apid",subject="CN=\"a\"\\\n",issuer="O=talos"} 1795996800.0"#,
        );
        has(r#"talos_certificate_findings{node="10.5.0.2",place="apid",code="name-missing"} 2.0"#);
        has(r#"talos_certificate_source_failing{node="10.5.0.2",place="apid"} 0.0"#);
        has(r#"talos_certificate_source_failing{node="10.5.0.2",place="trustd"} 1.0"#);
        has(
            r#"talos_certificate_source_last_error_timestamp_seconds{node="10.5.0.2",place="trustd"} 1796040000.0"#,
        );
        has("talos_certificate_checked_timestamp_seconds 1796040000.0");
        has("# TYPE talos_certificate_findings gauge");
    }
}
