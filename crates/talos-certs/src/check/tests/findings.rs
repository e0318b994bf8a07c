//! Findings beyond those of a certificate alone.

use super::*;
use crate::evidence::{ClockSeen, TrustSeen, WantedNames};

fn messages(report: &Report) -> Vec<&str> {
    let servers = report.servers.iter().flat_map(|server| &server.findings);
    let clients = report.clients.iter().flat_map(|client| &client.findings);
    servers
        .chain(clients)
        .map(|found| found.message.as_str())
        .collect()
}

fn checked(evidence: &Evidence) -> Report {
    check(evidence, &CheckOptions::default(), noon())
}

#[test]
fn kube_apiserver_is_judged_by_the_names_of_its_service_of_kubeprism_and_of_shared_addresses() {
    let mut evidence = lab();
    let facts = &mut evidence.nodes[0];
    facts.service_addresses = names(&["10.96.0.1"]);
    facts.dns_domain = Some("cluster.local".to_owned());
    facts.virtual_addresses = names(&["10.5.0.50"]);
    let report = checked(&evidence);
    // The certificate is of a cluster without a shared address; all the rest is in it.
    assert_eq!(findings(&report), ["kube-apiserver name-missing 10.5.0.50"]);
    let covered = |name: &str| {
        let mut names = report.servers[1].names.iter();
        names
            .find(|verdict| verdict.name == name)
            .unwrap()
            .covered_by
            .clone()
    };
    for name in [
        "10.96.0.1",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "localhost",
        "127.0.0.1",
    ] {
        assert_eq!(covered(name).as_deref(), Some(name));
    }
    facts_of(&mut evidence).dns_domain = Some("lab.example".to_owned());
    assert_eq!(
        findings(&checked(&evidence)),
        [
            "kube-apiserver name-missing 10.5.0.50",
            "kube-apiserver name-missing kubernetes.default.svc.lab.example",
        ]
    );
}

fn facts_of(evidence: &mut Evidence) -> &mut NodeFacts {
    &mut evidence.nodes[0]
}

#[test]
fn servers_without_a_setting_say_so() {
    let mut evidence = lab();
    evidence.etcd_authorities = chain("talos-etcd-ca");
    evidence.servers = vec![
        seen("10.5.0.2", ServerKind::Kubelet, "talos-apid-controlplane"),
        seen("10.5.0.2", ServerKind::Etcd, "talos-etcd-server"),
        seen("10.5.0.2", ServerKind::EtcdPeer, "talos-etcd-peer"),
    ];
    let report = checked(&evidence);
    assert!(!report.has_findings() && !report.incomplete, "{report:#?}");
    let kinds = [ServerKind::Kubelet, ServerKind::Etcd, ServerKind::EtcdPeer];
    let expected = kinds.map(|kind| ExpectedName {
        kind: Some(kind),
        ..expecting(&["node.example"]).expected[0].clone()
    });
    let options = CheckOptions {
        expected: expected.into(),
        ..CheckOptions::default()
    };
    let report = check(&evidence, &options, noon());
    assert_eq!(
        findings(&report),
        [
            "kubelet name-missing node.example",
            "etcd name-missing node.example",
            "etcd-peer name-missing node.example",
        ]
    );
    for (server, words) in report
        .servers
        .iter()
        .zip(["the kubelet's", "etcd's", "etcd's"])
    {
        let advice = server.findings[0].advice.as_deref().unwrap();
        assert!(advice.starts_with(&format!("no certSANs setting changes {words} certificate")));
        assert_eq!((&server.fix, &server.findings[0].fix), (&None, &None));
    }
}

#[test]
fn a_wrong_authority_is_named() {
    let mut evidence = lab();
    evidence.servers[0].chain = chain("talos-kube-apiserver");
    let report = checked(&evidence);
    let found = messages(&report).join("\n");
    assert!(
        found.contains("Kubernetes CA") && found.contains("Talos CA"),
        "{found}"
    );
}

#[test]
fn a_name_that_the_node_wants_and_does_not_serve_is_told_with_since_when() {
    let mut evidence = lab();
    let since = "2026-11-30T15:58:00.25Z".parse().unwrap();
    facts_of(&mut evidence).wanted_names = vec![WantedNames {
        kind: ServerKind::KubeApiserver,
        names: names(&["172.30.0.11", "10.5.0.2"]),
        since: Some(since),
    }];
    let report = check(&evidence, &expecting(&["172.30.0.11"]), noon());
    assert_eq!(
        findings(&report),
        [
            "apid name-missing 172.30.0.11",
            "kube-apiserver name-missing 172.30.0.11",
            "kube-apiserver not-served-yet 172.30.0.11",
        ]
    );
    let server = &report.servers[1];
    assert_eq!(
        server.findings[1].message,
        "CertSANs of the node has 172.30.0.11 since 2026-11-30T15:58:00Z, and the certificate that is served, \
         which begins at 2026-11-30T15:55:11Z, does not"
    );
    // Another patch would change nothing.
    assert_eq!((&server.fix, &server.findings[0].fix), (&None, &None));
}

#[test]
fn a_name_of_the_configuration_alone_is_told_with_its_setting() {
    let mut evidence = lab();
    facts_of(&mut evidence).configured_names = vec![WantedNames {
        kind: ServerKind::Apid,
        names: names(&["lb.example"]),
        since: None,
    }];
    let report = checked(&evidence);
    assert_eq!(findings(&report), ["apid not-served-yet lb.example"]);
    assert!(messages(&report)[0].starts_with("machine.certSANs of the node has lb.example, and"));
}

#[test]
fn names_that_nobody_expects_are_found_when_asked_for() {
    let mut evidence = lab();
    evidence.servers.truncate(1);
    let options = CheckOptions {
        unexpected: true,
        ..CheckOptions::default()
    };
    // The provisioner of the lab gave every node the addresses of all.
    let report = check(&evidence, &options, noon());
    assert_eq!(findings(&report), ["apid unexpected-name 10.5.0.3"]);
    evidence.nodes[0].addresses.clear();
    "lab-cp-1".clone_into(&mut evidence.nodes[0].node);
    "lab-cp-1".clone_into(&mut evidence.servers[0].node);
    assert!(!checked(&evidence).has_findings());
    let report = check(&evidence, &options, noon());
    assert_eq!(
        findings(&report),
        [
            "apid unexpected-name 10.5.0.2",
            "apid unexpected-name 10.5.0.3"
        ]
    );
}

#[test]
fn one_name_with_certificates_of_two_kinds_is_found() {
    let mut evidence = lab();
    // Another node, whose certificate is of a cluster with another authority and other names.
    evidence.nodes.push(NodeFacts {
        node: "10.5.0.3".to_owned(),
        ..NodeFacts::default()
    });
    evidence.servers.push(seen(
        "10.5.0.3",
        ServerKind::KubeApiserver,
        "talos-etcd-server",
    ));
    let report = checked(&evidence);
    let of = |node: &str| -> Vec<String> {
        let server = report
            .servers
            .iter()
            .find(|server| server.node == node && server.kind == ServerKind::KubeApiserver);
        let found = server.unwrap().findings.iter();
        found
            .filter(|found| found.code == "served-differently")
            .map(|found| found.name.clone().unwrap())
            .collect()
    };
    assert_eq!(of("10.5.0.2")[..2], ["10.5.0.2", "127.0.0.1"]);
    assert!(of("10.5.0.3").contains(&"kubernetes".to_owned()));
    // Of one authority and with the name in both, there is nothing to say.
    evidence.servers[2].chain = chain("talos-kube-apiserver");
    assert!(!checked(&evidence).has_findings());
}

#[test]
fn clocks_that_differ_are_told_once_a_node() {
    let now = noon();
    let clock = |there: SignedDuration| {
        Some(ClockSeen {
            there: now + there,
            asked: now,
            answered: now + SignedDuration::from_secs(1),
        })
    };
    let mut evidence = lab();
    for (offset, expected) in [
        (SignedDuration::from_millis(500), None),
        (SignedDuration::from_secs(5), None),
        (
            SignedDuration::from_secs(91),
            Some("ahead of this machine's by 1m 30s"),
        ),
        (
            SignedDuration::from_secs(-3600),
            Some("behind this machine's by 1h"),
        ),
    ] {
        facts_of(&mut evidence).clock = clock(offset);
        let report = checked(&evidence);
        let found = messages(&report);
        assert_eq!(found.len(), usize::from(expected.is_some()), "{found:?}");
        if let Some(expected) = expected {
            assert!(found[0].ends_with(expected), "{found:?}");
        }
    }
    // Without an answer, a certificate from the future tells as much; nodes issue them for that very moment.
    facts_of(&mut evidence).clock = None;
    let early = "2026-11-30T15:45:11Z".parse().unwrap();
    let report = check(&evidence, &CheckOptions::default(), early);
    assert!(
        messages(&report).contains(&"the node's clock is ahead of this machine's by at least 10m")
    );
}

#[test]
fn files_that_trust_what_nodes_do_not_accept_are_told() {
    let trusting = |place: &str, kind, file: &str| TrustSeen {
        place: place.to_owned(),
        kind,
        certificate: chain(file).swap_remove(0),
    };
    let mut evidence = Evidence {
        talos_accepted: chain("talos-ca"),
        kubernetes_accepted: chain("talos-kubernetes-ca"),
        trusted: vec![
            trusting("talosconfig", ServerKind::Apid, "talos-ca"),
            trusting(
                "kubeconfig",
                ServerKind::KubeApiserver,
                "talos-kubernetes-ca",
            ),
        ],
        ..Evidence::default()
    };
    assert!(!checked(&evidence).has_findings());
    evidence.trusted = vec![
        trusting("talosconfig", ServerKind::Apid, "talos-kubernetes-ca"),
        trusting("kubeconfig", ServerKind::KubeApiserver, "talos-etcd-ca"),
    ];
    assert_eq!(
        messages(&checked(&evidence)),
        [
            "it trusts the Kubernetes CA (O=kubernetes) where the Talos CA belongs",
            "it trusts an authority (O=etcd) that the nodes do not accept as Kubernetes CA",
        ]
    );
    // Nodes that do not tell are not a reason to doubt the file.
    evidence.talos_accepted.clear();
    evidence.kubernetes_accepted.clear();
    assert!(!checked(&evidence).has_findings());
}

#[test]
fn a_client_of_an_authority_that_is_not_accepted_any_more_is_told() {
    let evidence = Evidence {
        talos_accepted: chain("talos-ca"),
        kubernetes_accepted: chain("talos-kubernetes-ca"),
        clients: vec![ClientSeen {
            place: "talosconfig".to_owned(),
            certificate: chain("talos-apiserver-kubelet-client").swap_remove(0),
            role: Role::TalosClient,
        }],
        ..Evidence::default()
    };
    let report = checked(&evidence);
    let codes: Vec<&str> = report.clients[0]
        .findings
        .iter()
        .map(|found| found.code.as_str())
        .collect();
    assert_eq!(codes, ["wrong-authority", "role-insufficient"]);
    assert_eq!(
        report.clients[0].findings[1].message,
        "none of its organizations is a role of the Talos API: system:masters"
    );
}

#[test]
fn names_of_one_node_are_expected_of_that_node_and_missed_where_it_was_not_seen() {
    let mut options = expecting(&["lb.example"]);
    options.expected[0].node = Some("10.5.0.2".to_owned());
    options.expected[0].kind = Some(ServerKind::Apid);
    let report = check(&lab(), &options, noon());
    assert_eq!(findings(&report), ["apid name-missing lb.example"]);
    options.expected[0].node = Some("10.5.0.9".to_owned());
    let report = check(&lab(), &options, noon());
    assert!(!report.has_findings() && report.incomplete);
    assert_eq!(report.not_checked[0].node, "10.5.0.9");
}
