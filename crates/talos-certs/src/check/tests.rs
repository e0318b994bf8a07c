mod findings;

use talos_pki::{Certificate, Role};

use super::*;
use crate::evidence::{ClientSeen, NodeFacts};
use crate::report::NameVerdict;
use crate::{ClusterEndpoint, EndpointSource, NameSource, Source};

/// Reads one file of vendor-certs.
fn chain(file: &str) -> Vec<Certificate> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vendor-certs");
    let text = std::fs::read(format!("{folder}/{file}.pem")).unwrap();
    Certificate::many_from_pem(text).unwrap()
}

/// A moment at which every certificate of vendor-certs is valid.
fn noon() -> Timestamp {
    "2026-11-30T16:00:00Z".parse().unwrap()
}

fn names(texts: &[&str]) -> Vec<Name> {
    texts
        .iter()
        .map(|text| Name::parse(text).unwrap())
        .collect()
}

fn seen(node: &str, kind: ServerKind, file: &str) -> Seen {
    Seen {
        node: node.to_owned(),
        kind,
        source: Source::Served,
        address: None,
        connection: None,
        chain: chain(file),
        reached_as: Vec::new(),
    }
}

/// The cluster that vendor-certs come from, as an administrator sees it.
fn lab() -> Evidence {
    Evidence {
        nodes: vec![NodeFacts {
            node: "10.5.0.2".to_owned(),
            hostnames: names(&["lab-cp-1"]),
            addresses: names(&["10.5.0.2"]),
            control_plane: Some(true),
            has_apiserver_document: false,
            ..NodeFacts::default()
        }],
        servers: vec![
            seen("10.5.0.2", ServerKind::Apid, "talos-apid-controlplane"),
            seen(
                "10.5.0.2",
                ServerKind::KubeApiserver,
                "talos-kube-apiserver",
            ),
        ],
        endpoint: Some(ClusterEndpoint {
            url: "https://10.5.0.2:6443".to_owned(),
            source: EndpointSource::MachineConfig,
        }),
        kubeconfig_host: Some(Name::parse("127.0.0.1").unwrap()),
        talos_authorities: chain("talos-ca"),
        kubernetes_authorities: chain("talos-kubernetes-ca"),
        ..Evidence::default()
    }
}

fn expecting(texts: &[&str]) -> CheckOptions {
    let expected = names(texts).into_iter();
    CheckOptions {
        expected: expected
            .map(|name| ExpectedName {
                kind: None,
                node: None,
                name,
            })
            .collect(),
        ..CheckOptions::default()
    }
}

/// Lists `kind code name` of every finding.
fn findings(report: &Report) -> Vec<String> {
    let of = |server: &Server| -> Vec<String> {
        let line = |problem: &Problem| {
            let name = problem.name.as_deref().unwrap_or_default();
            format!("{} {} {name}", server.kind.as_str(), problem.code)
        };
        server.findings.iter().map(line).collect()
    };
    report.servers.iter().flat_map(of).collect()
}

#[test]
fn a_cluster_in_order_has_no_findings() {
    let report = check(&lab(), &CheckOptions::default(), noon());
    assert!(!report.has_findings(), "{report:?}");
    assert!(!report.incomplete);
    let names = &report.servers[1].names;
    assert_eq!(
        names[0],
        NameVerdict {
            name: "10.5.0.2".to_owned(),
            sources: vec![NameSource::NodeAddress, NameSource::ClusterEndpoint],
            covered_by: Some("10.5.0.2".to_owned()),
        }
    );
    assert_eq!(
        names[2].sources,
        [NameSource::Kubeconfig, NameSource::KubePrism]
    );
}

#[test]
fn a_missing_name_says_the_setting_of_each_server_and_the_patch() {
    let report = check(&lab(), &expecting(&["172.30.0.11", "127.0.0.1"]), noon());
    assert_eq!(
        findings(&report),
        [
            "apid name-missing 172.30.0.11",
            "kube-apiserver name-missing 172.30.0.11"
        ]
    );
    let fix = report.servers[1].findings[0].fix.as_ref().unwrap();
    assert_eq!(fix.setting, "cluster.apiServer.certSANs");
    assert_eq!(fix.node.as_deref(), Some("10.5.0.2"));
    assert_eq!(
        fix.patch,
        "{\"cluster\":{\"apiServer\":{\"certSANs\":[\"172.30.0.11\"]}}}"
    );
    assert_eq!(report.servers[1].fix.as_ref(), Some(fix));
    let fix = report.servers[0].fix.as_ref().unwrap();
    assert_eq!(fix.setting, "machine.certSANs");
}

#[test]
fn several_missing_names_are_one_patch() {
    let report = check(&lab(), &expecting(&["lb.example", "172.30.0.11"]), noon());
    let fix = report.servers[0].fix.as_ref().unwrap();
    assert_eq!(
        fix.patch,
        "{\"machine\":{\"certSANs\":[\"lb.example\",\"172.30.0.11\"]}}"
    );
}

#[test]
fn a_name_can_be_expected_of_one_kind_of_server() {
    let mut options = expecting(&["172.30.0.11"]);
    options.expected[0].kind = Some(ServerKind::KubeApiserver);
    let report = check(&lab(), &options, noon());
    assert_eq!(
        findings(&report),
        ["kube-apiserver name-missing 172.30.0.11"]
    );
}

#[test]
fn a_configuration_of_documents_is_patched_in_its_document() {
    let mut evidence = lab();
    evidence.nodes[0].has_apiserver_document = true;
    let report = check(&evidence, &expecting(&["lb.example"]), noon());
    let fix = report.servers[1].fix.as_ref().unwrap();
    assert_eq!(fix.setting, "KubeAPIServerConfig: certExtraSANs");
}

#[test]
fn the_cluster_endpoint_is_expected_of_kube_apiserver_only() {
    let mut evidence = lab();
    if let Some(endpoint) = &mut evidence.endpoint {
        endpoint.url = "https://kube.example:6443".to_owned();
    }
    let report = check(&evidence, &CheckOptions::default(), noon());
    assert_eq!(
        findings(&report),
        ["kube-apiserver name-missing kube.example"]
    );
}

#[test]
fn mixed_up_authorities_and_dates_are_found() {
    let mut evidence = lab();
    std::mem::swap(
        &mut evidence.talos_authorities,
        &mut evidence.kubernetes_authorities,
    );
    let options = CheckOptions {
        warn_within: SignedDuration::from_hours(48),
        ..CheckOptions::default()
    };
    let report = check(&evidence, &options, noon());
    assert_eq!(
        findings(&report),
        [
            "apid expiring ",
            "apid wrong-authority ",
            "kube-apiserver wrong-authority "
        ]
    );
    let problems = report.servers.iter().flat_map(|server| &server.findings);
    assert!(problems.clone().all(|problem| problem.advice.is_some()));
}

#[test]
fn a_client_certificate_is_judged() {
    let client = |file: &str| ClientSeen {
        place: file.to_owned(),
        certificate: chain(file).swap_remove(0),
        role: Role::TalosClient,
    };
    let evidence = Evidence {
        clients: vec![
            client("talos-apid-client-impersonator"),
            client("talos-etcd-peer"),
        ],
        ..Evidence::default()
    };
    let tomorrow = noon() + SignedDuration::from_hours(24);
    let report = check(&evidence, &CheckOptions::default(), tomorrow);
    let codes: Vec<&str> = report
        .clients
        .iter()
        .flat_map(|client| client.findings.iter().map(|finding| finding.code.as_str()))
        .collect();
    assert_eq!(
        codes,
        [
            "expired",
            "role-insufficient",
            "extended-key-usage",
            "role-insufficient"
        ]
    );
    assert!(report.has_findings());
}

#[test]
fn what_was_not_seen_makes_the_report_incomplete() {
    let mut evidence = lab();
    evidence.not_checked.push(NotChecked {
        node: "10.5.0.3".to_owned(),
        kind: Some(ServerKind::Apid),
        why: "connection refused".to_owned(),
    });
    let report = check(&evidence, &CheckOptions::default(), noon());
    let value = serde_json::to_value(&report).unwrap();
    assert_eq!(value["incomplete"], true);
    assert_eq!(value["notChecked"][0]["kind"], "apid");
    assert_eq!(value["endpoint"]["source"], "MachineConfig");
    assert_eq!(value["servers"][1]["kind"], "kube-apiserver");
    assert_eq!(value["servers"][1]["names"][0]["coveredBy"], "10.5.0.2");
}

#[test]
fn a_server_whose_authority_is_not_known_makes_the_report_incomplete() {
    let mut evidence = lab();
    evidence.kubernetes_authorities.clear();
    let report = check(&evidence, &CheckOptions::default(), noon());
    assert!(report.incomplete && !report.has_findings(), "{report:?}");
    assert_eq!(
        report.not_checked,
        [NotChecked {
            node: "10.5.0.2".to_owned(),
            kind: Some(ServerKind::KubeApiserver),
            why: "issuer not checked: no authority known".to_owned(),
        }]
    );
}

#[test]
fn hosts_are_taken_out_of_urls() {
    let check = |url: &str, expected: Option<&str>| {
        let host = host_of(url).map(|name| name.to_string());
        assert_eq!(host.as_deref(), expected, "{url}");
    };
    check("https://10.5.0.2:6443", Some("10.5.0.2"));
    check("https://10.5.0.2", Some("10.5.0.2"));
    check("https://[fd00::1]:6443/path", Some("fd00::1"));
    check("https://[fd00::1]", Some("fd00::1"));
    check("https://user@cp.example:6443?x", Some("cp.example"));
    check("cp.example:6443", Some("cp.example"));
    check("fd00::1", Some("fd00::1"));
    check("https://", None);
    check("", None);
}

#[test]
fn kubeprism_is_reached_at_loopback_addresses_only_and_names_of_people_are_not_asked_of_inner_servers()
 {
    let mut lab = lab();
    lab.nodes[0].control_plane = Some(false);
    lab.servers = vec![
        seen("10.5.0.2", ServerKind::KubePrism, "talos-kube-apiserver"),
        seen("10.5.0.2", ServerKind::Etcd, "talos-etcd-server"),
    ];
    lab.etcd_authorities = chain("talos-etcd-ca");
    let report = check(&lab, &expecting(&["lb.example"]), noon());
    assert_eq!(findings(&report), Vec::<String>::new());
    let names: Vec<&str> = report.servers[0]
        .names
        .iter()
        .map(|name| name.name.as_str())
        .collect();
    assert_eq!(names, ["127.0.0.1", "localhost"]);
    let asked = ExpectedName {
        kind: Some(ServerKind::Etcd),
        ..expecting(&["lb.example"]).expected[0].clone()
    };
    let options = CheckOptions {
        expected: vec![asked],
        ..CheckOptions::default()
    };
    assert_eq!(
        findings(&check(&lab, &options, noon())),
        ["etcd name-missing lb.example"]
    );
}
