use super::*;
use crate::report::{CertificateSummary, Problem, Server};
use crate::{Fix, Report, ServerKind, Source};

const CONFIG: &str = "# kept\nmachine:\n  type: controlplane\n  token: abcdef.secretsecretsecre\n  certSANs:\n    - old.example # why\ncluster:\n  apiServer: {}\n";

fn config(text: &str) -> FixConfig {
    FixConfig {
        node: "10.5.0.2".to_owned(),
        text: text.to_owned(),
        version: "4".to_owned(),
        talos: "v1.13.9".to_owned(),
        pending: false,
    }
}

fn server(kind: ServerKind, names: &[&str], fixable: bool) -> Server {
    let fix = fixable.then(|| Fix {
        setting: String::new(),
        node: Some("10.5.0.2".to_owned()),
        patch: String::new(),
        cost: String::new(),
    });
    let problems = names.iter().map(|name| Problem {
        code: "name-missing".to_owned(),
        name: Some((*name).to_owned()),
        message: format!("{name} is missing"),
        fix: fix.clone(),
        advice: None,
    });
    Server {
        node: "10.5.0.2".to_owned(),
        kind,
        source: Source::Served,
        address: None,
        connection: None,
        certificate: CertificateSummary::default(),
        names: Vec::new(),
        findings: problems.collect(),
        fix: None,
    }
}

fn report(servers: Vec<Server>) -> Report {
    Report {
        endpoint: None,
        servers,
        clients: Vec::new(),
        not_checked: Vec::new(),
        incomplete: false,
    }
}

#[test]
fn servers_of_one_setting_share_a_patch_and_nothing_else_changes() {
    let report = report(vec![
        server(ServerKind::Apid, &["lb.example", "172.30.0.11"], true),
        server(ServerKind::Trustd, &["lb.example"], true),
    ]);
    let plan = plan_fix(&report, &[config(CONFIG)]).unwrap();
    let [node] = plan.nodes.as_slice() else {
        panic!("{plan:?}");
    };
    let [change] = node.changes.as_slice() else {
        panic!("{node:?}");
    };
    assert_eq!(change.names, ["lb.example", "172.30.0.11"]);
    assert_eq!(change.servers, [ServerKind::Apid, ServerKind::Trustd]);
    assert!(!node.restarts);
    let expected = CONFIG.replace(
        "    - old.example # why\n",
        "    - old.example # why\n    - lb.example\n    - 172.30.0.11\n",
    );
    assert_eq!(node.text, expected);
    assert!(!node.diff.contains("secretsecret"), "{}", node.diff);
    assert!(plan.not_fixable.is_empty());
}

#[test]
fn a_change_of_kube_apiserver_restarts_and_takes_the_form_of_the_configuration() {
    let report = report(vec![server(
        ServerKind::KubeApiserver,
        &["lb.example"],
        true,
    )]);
    let plan = plan_fix(&report, &[config(CONFIG)]).unwrap();
    assert!(plan.nodes[0].restarts);
    assert_eq!(
        plan.nodes[0].changes[0].setting,
        "cluster.apiServer.certSANs"
    );
    let documents = format!(
        "{CONFIG}---\napiVersion: v1alpha1\nkind: KubeAPIServerConfig\ncertExtraSANs:\n- old.example\n"
    );
    let mut newer = config(&documents);
    "v1.14.1".clone_into(&mut newer.talos);
    let plan = plan_fix(&report, &[newer]).unwrap();
    assert_eq!(
        plan.nodes[0].changes[0].setting,
        "KubeAPIServerConfig: certExtraSANs"
    );
    assert_eq!(plan.nodes[0].text, format!("{documents}- lb.example\n"));
}

#[test]
fn what_no_setting_repairs_and_nodes_that_were_not_chosen_are_told() {
    let mut elsewhere = server(ServerKind::Apid, &["lb.example"], true);
    "10.5.0.9".clone_into(&mut elsewhere.node);
    let report = report(vec![
        server(ServerKind::Kubelet, &["node.example"], false),
        elsewhere,
    ]);
    let plan = plan_fix(&report, &[config(CONFIG)]).unwrap();
    assert!(plan.nodes.is_empty());
    let places: Vec<&str> = plan
        .not_fixable
        .iter()
        .map(|left| left.place.as_str())
        .collect();
    assert_eq!(places, ["10.5.0.2", "10.5.0.9"]);
    assert!(
        plan.not_fixable[1]
            .advice
            .as_deref()
            .unwrap()
            .contains("-n")
    );
}

#[test]
fn a_configuration_that_cannot_be_read_is_named() {
    let report = report(vec![server(ServerKind::Apid, &["lb.example"], true)]);
    let error = plan_fix(&report, &[config("machine: [")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the configuration of 10.5.0.2 cannot be patched"
    );
}
