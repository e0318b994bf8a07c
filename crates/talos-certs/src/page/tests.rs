use super::*;
use crate::report::{CertificateSummary, Fix, NameSource, NameVerdict, Problem, Server};
use crate::{InventorySource, Listed, ListedPlace, Renewal, ServerKind, Source, Validity};

fn report() -> Report {
    let verdict = |name: &str, covered: bool| NameVerdict {
        name: name.to_owned(),
        sources: vec![NameSource::NodeAddress],
        covered_by: covered.then(|| name.to_owned()),
    };
    let server = |node: &str, names, findings| Server {
        node: node.to_owned(),
        kind: ServerKind::Apid,
        source: Source::Served,
        address: None,
        connection: None,
        certificate: CertificateSummary {
            subject: "CN=<script>alert(1)</script>".to_owned(),
            not_before: "2026-11-30T00:00:00Z".to_owned(),
            not_after: "2026-12-01T00:00:00Z".to_owned(),
            ..CertificateSummary::default()
        },
        names,
        findings,
        fix: Some(Fix {
            setting: "machine.certSANs".to_owned(),
            node: Some(node.to_owned()),
            patch: r#"{"machine":{"certSANs":["lb.example"]}}"#.to_owned(),
            cost: "nothing restarts".to_owned(),
        }),
    };
    let problem = Problem {
        code: "name-missing".to_owned(),
        name: Some("lb.example".to_owned()),
        message: "lb.example is not in subjectAltName".to_owned(),
        fix: None,
        advice: None,
    };
    let one = vec![verdict("10.5.0.2", true), verdict("lb.example", false)];
    let two = vec![verdict("10.5.0.3", true), verdict("lb.example", true)];
    Report {
        endpoint: None,
        servers: vec![
            server("10.5.0.2", one, vec![problem]),
            server("10.5.0.3", two, vec![]),
        ],
        clients: Vec::new(),
        not_checked: Vec::new(),
        incomplete: false,
    }
}

/// One certificate that ends in twelve hours.
fn inventory() -> Inventory {
    let place = |node: &str| ListedPlace {
        node: Some(node.to_owned()),
        source: InventorySource::Servers,
        purpose: "apid".to_owned(),
        place: "10.5.0.2:50000".to_owned(),
        connection: None,
    };
    Inventory {
        time: String::new(),
        certificates: vec![Listed {
            purpose: "apid".to_owned(),
            certificate: report().servers[0].certificate.clone(),
            authority: false,
            places: vec![place("10.5.0.2"), place("10.5.0.3")],
            issued_by: None,
            validity: Validity::Valid,
            seconds_left: 43_200,
            renewal: Renewal {
                by: "Talos".to_owned(),
                at: None,
                note: None,
            },
        }],
        requests: Vec::new(),
        not_checked: Vec::new(),
        incomplete: false,
    }
}

fn written() -> String {
    let now = "2026-11-30T12:00:00Z".parse().unwrap();
    page(&report(), &inventory(), now)
}

#[test]
fn what_certificates_say_is_text_and_never_markup() {
    let page = written();
    assert!(page.contains("CN=&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!page.contains("<script"));
}

#[test]
fn nothing_is_fetched_from_anywhere() {
    let page = written();
    for fetching in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(fetching), "{fetching}");
    }
}

#[test]
fn a_finding_stands_with_the_command_that_repairs_it() {
    let page = written();
    assert!(page.contains("lb.example is not in subjectAltName"));
    let command = r#"ichor patch mc -n 10.5.0.2 --patch '{"machine":{"certSANs":["lb.example"]}}'"#;
    assert!(page.contains(&command.replace('"', "&quot;")));
    assert_eq!(
        page.matches("<details").count(),
        1,
        "the other server has no finding"
    );
}

#[test]
fn shared_names_are_columns_and_own_names_stand_with_their_server() {
    let page = written();
    assert_eq!(
        page.matches(r#"<th scope="col">lb.example</th>"#).count(),
        1
    );
    assert_eq!(page.matches(r#"<th scope="col">10.5.0.2</th>"#).count(), 0);
    assert!(page.contains("\u{2713} 10.5.0.2"));
    assert!(page.contains("\u{2717} missing"));
}

#[test]
fn the_time_that_is_left_stands_beside_who_renews_it() {
    let page = written();
    assert!(page.contains("<td>12 h</td><td>Talos</td>"), "{page}");
    assert!(
        page.contains("10.5.0.2 10.5.0.2:50000 and 1 more"),
        "{page}"
    );
}
