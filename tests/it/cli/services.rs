//! `version`, `service`, `bootstrap`, `read` and `reboot` on a simulated cluster.

use talos_sim::{Options, Platform, TalosVersion};

use super::program::Lab;

#[tokio::test(flavor = "multi_thread")]
async fn versions_of_program_and_nodes_are_told_together() {
    let lab = Lab::start(Options {
        talos_version: TalosVersion::V1_11_5,
        ..Options::default()
    })
    .await;
    let document = lab.json(&["version"]);
    assert_eq!(document["client"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(document["nodes"][1]["data"]["tag"], "v1.11.5");
    let ran = lab.run(&["version", "--short", "-n", &lab.nodes[0]]);
    let node = &lab.nodes[0];
    let expected = format!(
        "Client v{}\nServer:\n\tNODE:        {node}\n\tTag:         v1.11.5\n",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(ran.stdout, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_in_maintenance_mode_are_asked_without_a_talosconfig() {
    let lab = Lab::start(Options {
        maintenance: 1,
        ..Options::default()
    })
    .await;
    std::fs::remove_file(lab.home.path().join(".talos/config")).unwrap();
    let waiting = lab.nodes.last().unwrap();
    let ran = lab.run(&["version", "--insecure", "-n", waiting, "-o", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.json()["nodes"][0]["data"]["tag"], "v1.13.9");
    let table = lab.run(&["get", "machinestatus", "-i", "-n", waiting]);
    assert_eq!(table.code, Some(0), "{table:?}");
    assert!(table.stdout.contains("MachineStatus"), "{table:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn services_are_listed_shown_and_driven() {
    let lab = Lab::start(Options::default()).await;
    let node = lab.nodes[0].as_str();
    let table = lab.run(&["services", "-n", node]);
    assert!(table.stdout.starts_with("NODE"), "{table:?}");
    assert!(table.stdout.contains("kubelet"), "{table:?}");
    let one = lab.run(&["service", "kubelet", "-n", node]);
    assert!(
        one.stdout.starts_with(&format!(
            "NODE     {node}\nID       kubelet\nSTATE    Running\n"
        )),
        "{one:?}"
    );
    let document = lab.json(&["service", "kubelet", "-n", node]);
    assert_eq!(document["nodes"][0]["data"][0]["id"], "kubelet");
    let unknown = lab.run(&["service", "nope", "-n", node]);
    assert_eq!(unknown.code, Some(1));
    assert!(
        unknown.stderr.contains("there is no service \"nope\""),
        "{unknown:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_that_has_data_is_not_bootstrapped() {
    let lab = Lab::start(Options::default()).await;
    let ran = lab.run(&["bootstrap", "-n", &lab.nodes[0], "-o", "json"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert_eq!(ran.json()["nodes"][0]["error"]["code"], "conflict");
    let several = lab.run(&["bootstrap", "--all-nodes"]);
    assert_eq!(several.code, Some(2), "{several:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_printed_as_it_is() {
    let lab = Lab::start(Options::default()).await;
    let ran = lab.run(&["read", "/proc/version", "-n", &lab.nodes[0]]);
    assert!(ran.stdout.starts_with("Linux version"), "{ran:?}");
    let missing = lab.run(&["read", "/nope", "-n", &lab.nodes[0]]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert_eq!(missing.stdout, "");
    assert_eq!(lab.run(&["read", "/proc/version"]).code, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reboot_is_waited_for() {
    let lab = Lab::start(Options::default()).await;
    let node = lab.nodes[0].as_str();
    let boot = |lab: &Lab| {
        lab.run(&["read", "/proc/sys/kernel/random/boot_id", "-n", node])
            .stdout
    };
    let before = boot(&lab);
    let ran = lab.run(&["reboot", "-n", node, "-o", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.json()["nodes"][0]["data"]["back"], true);
    assert!(ran.stderr.contains("phase stopServices start"), "{ran:?}");
    assert_ne!(boot(&lab), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_does_not_reboot() {
    let lab = Lab::start(Options {
        platform: Platform::Container,
        ..Options::default()
    })
    .await;
    let ran = lab.run(&["reboot", "--all-nodes"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let drained = lab.run(&["reboot", "--all-nodes", "--drain"]);
    assert_eq!(
        drained.code,
        Some(1),
        "a flag that is not built is not ignored: {drained:?}"
    );
}
