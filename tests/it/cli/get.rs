//! `get` in each of its formats.

use talos_sim::{Options, TalosVersion};

use super::program::Lab;

fn one_control_plane() -> Options {
    Options {
        workers: 0,
        ..Options::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_has_the_columns_of_the_type() {
    let lab = Lab::start(Options::default()).await;
    let ran = lab.run(&["get", "nodename"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let width = lab.nodes[0].len();
    let expected = format!(
        "{:<width$}   NAMESPACE   TYPE       ID         VERSION   NODENAME\n\
         {}   k8s         Nodename   nodename   1         cluster-1-controlplane-1\n\
         {}   k8s         Nodename   nodename   1         cluster-1-worker-1\n",
        "NODE", lab.nodes[0], lab.nodes[1],
    );
    assert_eq!(ran.stdout, expected);
    assert_eq!(ran.stderr, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn json_is_one_document_for_any_number_of_nodes() {
    let lab = Lab::start(Options::default()).await;
    let document = lab.json(&["get", "nodename"]);
    let nodes = document["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 2);
    for (entry, name) in nodes.iter().zip(&lab.nodes) {
        assert_eq!(entry["node"], **name);
        assert_eq!(entry["ok"], true);
        let resource = &entry["data"][0];
        assert_eq!(
            resource["metadata"]["type"],
            "Nodenames.kubernetes.talos.dev"
        );
        assert_eq!(resource["metadata"]["version"], 1);
        assert_eq!(resource["spec"]["skipNodeRegistration"], false);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn yaml_is_a_document_per_resource_as_users_know_it() {
    let lab = Lab::start(Options::default()).await;
    let ran = lab.run(&["get", "nodename", "-o", "yaml"]);
    let documents: Vec<&str> = ran.stdout.split("---\n").collect();
    assert_eq!(documents.len(), 2, "{ran:?}");
    let times = |line: &&str| !line.contains("created: ") && !line.contains("updated: ");
    let lines: Vec<&str> = documents[0].lines().filter(times).collect();
    let node = format!("node: {}", lab.nodes[0]);
    let expected = [
        node.as_str(),
        "metadata:",
        "    namespace: k8s",
        "    type: Nodenames.kubernetes.talos.dev",
        "    id: nodename",
        "    version: 1",
        "    owner: k8s.NodenameController",
        "    phase: running",
        "spec:",
        "    nodename: cluster-1-controlplane-1",
        "    hostnameVersion: \"1\"",
        "    skipNodeRegistration: false",
    ];
    assert_eq!(lines, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_formats_print_a_resource_at_a_time() {
    let lab = Lab::start(one_control_plane()).await;
    let check = |format: &str, expected: &str| {
        let ran = lab.run(&["get", "nodename", "-o", format]);
        assert_eq!(ran.stdout, expected, "{ran:?}");
    };
    check("name", "nodename\n");
    check("jsonpath={.spec.nodename}", "cluster-1-controlplane-1\n");
    check(
        "jsonpath={.metadata.id} is {.spec.hostnameVersion}{\"\\n\"}",
        "nodename is 1\n",
    );
    let composite = "{\n    \"nodename\": \"cluster-1-controlplane-1\",\n    \"hostnameVersion\": \"1\",\n    \
                     \"skipNodeRegistration\": false\n}\n";
    check("jsonpath={.spec}", composite);
    let line = lab.run(&["get", "nodename", "-o", "ndjson"]);
    let object: serde_json::Value = serde_json::from_str(line.stdout.trim_end()).unwrap();
    assert_eq!(object["node"], lab.nodes[0]);
    assert_eq!(object["spec"]["nodename"], "cluster-1-controlplane-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_type_is_found_by_any_of_its_names() {
    let lab = Lab::start(one_control_plane()).await;
    for name in [
        "mc",
        "MachineConfig",
        "machineconfigs",
        "machineconfigs.config.talos.dev",
    ] {
        let ran = lab.run(&["get", name, "v1alpha1", "-o", "name"]);
        assert_eq!(ran.stdout, "v1alpha1\n", "{name}: {ran:?}");
    }
    let unknown = lab.run(&["get", "membres"]);
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("members"), "{unknown:?}");
    let ambiguous = lab.run(&["get", "ns"]);
    assert_eq!(ambiguous.code, Some(2));
    assert!(
        ambiguous.stderr.contains("namespaces.meta.cosi.dev"),
        "{ambiguous:?}"
    );
    let missing = lab.run(&["get", "nodename", "nope", "-o", "json"]);
    assert_eq!(missing.code, Some(1));
    assert_eq!(missing.json()["nodes"][0]["error"]["code"], "not-found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_config_is_masked_unless_asked_otherwise() {
    for talos_version in TalosVersion::ALL {
        let lab = Lab::start(Options {
            talos_version,
            ..one_control_plane()
        })
        .await;
        let config = lab.cluster.nodes()[0].machine_config().unwrap();
        let token = config
            .lines()
            .find_map(|line| line.trim().strip_prefix("token: "))
            .unwrap();
        for format in ["json", "yaml", "ndjson", "jsonpath={.spec}"] {
            let args = ["get", "mc", "v1alpha1", "-o", format];
            let masked = lab.run(&args);
            assert_eq!(masked.code, Some(0), "{masked:?}");
            assert!(
                masked.stdout.contains("type: controlplane"),
                "{format} {masked:?}"
            );
            assert!(
                !masked.stdout.contains(token),
                "{format} on {talos_version:?}"
            );
            let shown = lab.run(&[&args[..], &["--show-secrets"]].concat());
            assert!(
                shown.stdout.contains(token),
                "{format} on {talos_version:?}"
            );
        }
        let exact = lab.run(&[
            "get",
            "mc",
            "v1alpha1",
            "-o",
            "jsonpath={.spec}",
            "--show-secrets",
        ]);
        assert_eq!(exact.stdout.trim_end(), config.trim_end());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_resources_are_masked_and_stay_yaml() {
    let lab = Lab::start(one_control_plane()).await;
    let ran = lab.run(&["get", "osrootsecrets", "-o", "yaml"]);
    let document = talos_config::yaml::read(&ran.stdout).unwrap();
    assert_eq!(document["spec"]["issuingCA"]["key"], "******");
    assert_eq!(document["spec"]["token"], "******");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_may_not_see_secrets_and_is_told_which_role_may() {
    let lab = Lab::with_roles(one_control_plane(), &["os:reader"]).await;
    assert_eq!(lab.run(&["get", "nodename"]).code, Some(0));
    let ran = lab.run(&["get", "mc"]);
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert!(ran.stderr.contains("os:admin"), "{ran:?}");
}
