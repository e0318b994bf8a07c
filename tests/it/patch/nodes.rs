//! `ichor patch` on nodes.

use talos_sim::{Options, TalosVersion};

use super::{active, done, refused};
use crate::cli::program::Lab;

const ENDPOINT_PATCH: &str = r#"[{"op":"replace","path":"/cluster/apiServer/certSANs","value":["172.30.0.11","10.5.10.2","127.0.0.1"]}]"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_json_patch_changes_one_document_of_several_and_nothing_else() {
    let lab = Lab::start(Options::default()).await;
    let before = active(&lab, 0);
    assert!(
        before.contains("\n---\n"),
        "the configuration has several documents"
    );
    let patch = r#"[{"op":"replace","path":"/cluster/clusterName","value":"renamed"}]"#;
    let ran = lab.run(&["patch", "mc", "-n", &lab.nodes[0], "-p", patch]);
    done(&ran);
    assert_eq!(
        active(&lab, 0),
        before.replace("clusterName: cluster-1", "clusterName: renamed")
    );
    assert!(
        ran.stderr
            .contains(&format!("patch: touching {}", lab.nodes[0])),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("without a reboot"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn comments_and_order_of_a_nodes_configuration_survive() {
    let lab = Lab::start(Options {
        talos_version: TalosVersion::V1_11_5,
        ..Options::default()
    })
    .await;
    let plain = active(&lab, 0);
    let commented = format!(
        "# This machine stands in the cellar.\n{}",
        plain.replace("cluster:\n", "# Kubernetes\ncluster: # below\n")
    );
    let file = lab.home.file("commented.yaml", &commented);
    done(&lab.run(&["apply-config", "-n", &lab.nodes[0], "-f", &file]));
    assert_eq!(active(&lab, 0), commented);
    let patch = lab.home.file(
        "p.yaml",
        "cluster:\n    apiServer:\n        image: registry.k8s.io/kube-apiserver:v1.34.0\n",
    );
    done(&lab.run(&[
        "patch",
        "machineconfig",
        "-n",
        &lab.nodes[0],
        "--patch",
        &format!("@{patch}"),
        "--mode",
        "no-reboot",
    ]));
    let (old, new) = ("kube-apiserver:v1.33.4", "kube-apiserver:v1.34.0");
    assert_eq!(active(&lab, 0), commented.replace(old, new));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_patches_apply_in_order_on_several_nodes() {
    let lab = Lab::start(Options::default()).await;
    let file = lab
        .home
        .file("last.yaml", "machine: {nodeLabels: {order: third}}");
    let document = lab.json(&[
        "patch",
        "mc",
        "-n",
        &lab.nodes.join(","),
        "-p",
        "machine: {nodeLabels: {order: first, kept: \"1_000\"}}",
        "-p",
        r#"[{"op":"replace","path":"/machine/nodeLabels/order","value":"second"}]"#,
        "--patch-file",
        &file,
    ]);
    for index in 0..lab.nodes.len() {
        let entry = &document["nodes"][index];
        assert_eq!(
            (&entry["ok"], &entry["data"]["applied"]),
            (&true.into(), &true.into()),
            "{entry}"
        );
        assert_eq!(entry["data"]["mode"], "no-reboot");
        let text = active(&lab, index);
        assert!(
            text.contains("order: third") && text.contains("kept: \"1_000\""),
            "{text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_without_nodes_is_refused_before_anything_is_asked() {
    let lab = Lab::start(Options::default()).await;
    let ran = lab.run(&["patch", "mc", "-p", ENDPOINT_PATCH]);
    refused(&ran, 2, &["needs its nodes named", "-n"]);
    assert_eq!(lab.cluster.calls().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_shows_the_difference_and_changes_nothing() {
    let lab = Lab::start(Options::default()).await;
    let before = active(&lab, 0);
    let ran = lab.run(&[
        "patch",
        "mc",
        "-n",
        &lab.nodes[0],
        "-p",
        ENDPOINT_PATCH,
        "--dry-run",
    ]);
    done(&ran);
    assert!(ran.stdout.contains("+            - 172.30.0.11"), "{ran:?}");
    assert!(
        ran.stdout.contains("without a reboot (skipped in dry-run)"),
        "{ran:?}"
    );
    let document = lab.json(&[
        "patch",
        "mc",
        "-n",
        &lab.nodes[0],
        "-p",
        ENDPOINT_PATCH,
        "--dry-run",
    ]);
    let data = &document["nodes"][0]["data"];
    assert_eq!(
        (&data["changed"], &data["applied"]),
        (&true.into(), &false.into()),
        "{data}"
    );
    assert_eq!(data["mode"], "no-reboot");
    assert_eq!(active(&lab, 0), before);
    assert_eq!(lab.changes(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_does_not_end_a_trial() {
    let lab = Lab::start(Options::default()).await;
    let node = &lab.nodes[0];
    let before = active(&lab, 0);
    done(&lab.run(&[
        "patch",
        "mc",
        "-n",
        node,
        "-p",
        "machine: {nodeLabels: {tried: a}}",
        "--mode",
        "try",
        "--timeout",
        "1h",
    ]));
    let ran = lab.run(&["patch", "mc", "-n", node, "-p", ENDPOINT_PATCH, "--dry-run"]);
    done(&ran);
    assert!(
        ran.stdout.contains("the node was not asked")
            && ran.stdout.contains("+            - 172.30.0.11"),
        "{ran:?}"
    );
    assert!(active(&lab, 0).contains("tried: a"));
    assert!(
        lab.cluster.nodes()[0].expire_trial(),
        "the rollback is still pending"
    );
    assert_eq!(active(&lab, 0), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tried_configuration_is_kept_by_a_patch_that_changes_nothing() {
    let lab = Lab::start(Options::default()).await;
    let node = &lab.nodes[0];
    let patch = "machine: {nodeLabels: {tried: a}}";
    done(&lab.run(&[
        "patch",
        "mc",
        "-n",
        node,
        "-p",
        patch,
        "--mode",
        "try",
        "--timeout",
        "1h",
    ]));
    let ran = lab.run(&["patch", "mc", "-n", node, "-p", patch]);
    done(&ran);
    assert!(ran.stderr.contains("tried or staged"), "{ran:?}");
    assert!(
        !lab.cluster.nodes()[0].expire_trial(),
        "there is nothing to roll back any more"
    );
    let calls = lab.changes().len();
    let again = lab.run(&["patch", "mc", "-n", node, "-p", patch]);
    assert!(again.stdout.contains("nothing changes"), "{again:?}");
    assert_eq!(lab.changes().len(), calls);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_a_trial_is_warned_of_before_it_is_done() {
    let lab = Lab::start(Options::default()).await;
    let node = &lab.nodes[0];
    let tried = ["-p", "machine: {nodeLabels: {tried: a}}", "--mode", "try"];
    done(&lab.run(&[&["patch", "mc", "-n", node], &tried[..]].concat()));
    let apply = "/machine.MachineService/ApplyConfiguration";
    let faults = lab.cluster.nodes()[0].faults();
    faults.fail(apply, tonic::Code::Internal, "no");
    let ran = lab.run(&["patch", "mc", "-n", node, "-p", ENDPOINT_PATCH]);
    refused(
        &ran,
        1,
        &["warning:", "is being tried or staged, and is replaced"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_patch_gets_wrong_is_named_and_nothing_is_sent() {
    let lab = Lab::start(Options::default()).await;
    let cases: [(&str, &[&str]); 7] = [
        (
            "machine: {bogus: 1}",
            &["machine.bogus: no such field in Talos 1.13.9"],
        ),
        (
            r#"[{"op":"remove","path":"/machine/nope"}]"#,
            &["`remove` finds nothing at `/machine/nope`"],
        ),
        (
            r#"[{"op":"test","path":"/machine/type","value":"worker"}]"#,
            &["`test` finds another value at `/machine/type`"],
        ),
        (
            "machine: {sysctls: {a.b: {$patch: delete}}}",
            &["machine.sysctls", "nothing to delete"],
        ),
        (
            "just words",
            &["neither a strategic merge patch nor a JSON Patch"],
        ),
        ("@/nowhere/p.yaml", &["/nowhere/p.yaml"]),
        (
            "apiVersion: v1alpha1\nkind: KubeletConfig\nimage: k",
            &["document KubeletConfig", "Talos 1.14.1 has it"],
        ),
    ];
    for (patch, words) in cases {
        let ran = lab.run(&["patch", "mc", "-n", &lab.nodes[0], "-p", patch]);
        refused(&ran, 2, words);
    }
    let none = lab.run(&["patch", "mc", "-n", &lab.nodes[0]]);
    refused(&none, 2, &["no patch is given"]);
    let other = lab.run(&["patch", "members", "-n", &lab.nodes[0], "-p", "{}"]);
    refused(&other, 2, &["only machine configurations can be changed"]);
    assert_eq!(lab.changes(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_node_refuses_is_shown_line_by_line() {
    let lab = Lab::start(Options::default()).await;
    let before = active(&lab, 0);
    let patch = r#"[{"op":"replace","path":"/machine/type","value":"potato"},{"op":"replace","path":"/cluster/controlPlane/endpoint","value":"h"}]"#;
    let ran = lab.run(&["patch", "mc", "-n", &lab.nodes[0], "-p", patch]);
    refused(
        &ran,
        2,
        &[
            "unknown machine type",
            "invalid cluster controlplane endpoint",
        ],
    );
    let problems = ran
        .stderr
        .lines()
        .filter(|line| line.contains("caused by:"))
        .count();
    assert!(problems >= 2, "{ran:?}");
    let error = lab.run(&[
        "patch",
        "mc",
        "-n",
        &lab.nodes[0],
        "-p",
        patch,
        "-o",
        "json",
    ]);
    let document = error.json();
    assert_eq!(
        document["nodes"][0]["error"]["code"], "refused-by-node",
        "{document}"
    );
    assert_eq!(active(&lab, 0), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_node_takes_what_this_program_does_not_know_and_has_no_mode_reboot() {
    let lab = Lab::start(Options {
        talos_version: TalosVersion::V1_14,
        ..Options::default()
    })
    .await;
    let patch = "machine: {nodeLabels: {a: b}}";
    let ran = lab.run(&[
        "patch",
        "mc",
        "-n",
        &lab.nodes[0],
        "-p",
        patch,
        "--mode",
        "reboot",
    ]);
    refused(&ran, 2, &["has no mode reboot"]);
    assert_eq!(lab.changes(), Vec::<String>::new());
    done(&lab.run(&["patch", "mc", "-n", &lab.nodes[0], "-p", patch]));
    assert!(active(&lab, 0).contains("a: b"));
}
