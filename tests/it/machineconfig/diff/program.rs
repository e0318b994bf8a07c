//! `ichor machineconfig diff`: files, standard input and nodes.

use expect_test::expect;
use talos_sim::Options;

use crate::cli::program::{Home, Lab};

const A: &str = "version: v1alpha1
machine:
    type: controlplane
    token: aaaaaa.bbbbbbbbbbbbbbbb # secret
    certSANs: [a.example.com]
    network:
        interfaces:
            - interface: eth0
              mtu: 1500
            - interface: eth1
              dhcp: true
---
apiVersion: v1alpha1
kind: HostnameConfig
auto: stable
";

const B: &str = "# The same cluster.
apiVersion: v1alpha1
kind: KubeSpanConfig
enabled: true
---
machine:
  certSANs:
  - a.example.com
  - b.example.com
  type: \"controlplane\"
  token: cccccc.dddddddddddddddd
  network:
    interfaces:
    - {interface: eth1, dhcp: true}
    - {interface: eth0, mtu: 9000}
version: v1alpha1
";

fn files() -> (Home, String, String) {
    let home = Home::new();
    let (a, b) = (home.file("a.yaml", A), home.file("b.yaml", B));
    (home, a, b)
}

#[test]
fn differences_are_one_line_each() {
    let (home, a, b) = files();
    let ran = home.run(&["machineconfig", "diff", &a, &b]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stderr, "");
    expect![[r#"
        DOCUMENT         PATH                                             LINE   CHANGE
        main             machine.token                                    4:11   ****** -> ******
        main             machine.certSANs[1]                              5:9    + b.example.com
        main             machine.network.interfaces[interface=eth0].mtu   9:15   1500 -> 9000
        HostnameConfig                                                    13:-   - {"apiVersion":"v1alpha1","kind":"HostnameConfig","auto":"sta...
        KubeSpanConfig                                                    -:2    + {"apiVersion":"v1alpha1","kind":"KubeSpanConfig","enabled":t...
    "#]]
    .assert_eq(&ran.stdout);
    let shown = home.run(&["mc", "diff", &a, &b, "--show-secrets", "--exit-code"]);
    assert_eq!(shown.code, Some(3), "{shown:?}");
    let secrets = "aaaaaa.bbbbbbbbbbbbbbbb -> cccccc.dddddddddddddddd";
    assert!(shown.stdout.contains(secrets), "{shown:?}");
}

#[test]
fn what_means_the_same_does_not_differ() {
    let (home, a, _) = files();
    let other = home.file("other.yaml", "machine:\n  token: 'aaaaaa.bbbbbbbbbbbbbbbb'\n  network: {interfaces: [{dhcp: yes, interface: eth1}, {interface: eth0, mtu: 0x5dc}]}\n  certSANs:\n  - a.example.com\n  type: controlplane\n  kubelet: null\nversion: v1alpha1\n---\nkind: HostnameConfig\nauto: stable\napiVersion: v1alpha1\n");
    let ran = home.run(&["mc", "diff", &a, &other, "--exit-code"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.stderr.contains("mean the same"), "{ran:?}");
    let patch = home.run(&["mc", "diff", &a, &other, "--as-patch"]);
    assert_eq!(
        (patch.code, patch.stdout.as_str()),
        (Some(0), ""),
        "{patch:?}"
    );
}

#[test]
fn json_tells_places_and_masks_secrets() {
    let (home, a, b) = files();
    let ran = home.run(&["mc", "diff", &a, &b, "-o", "json", "--exit-code"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let json = ran.json();
    assert_eq!(json["different"], true);
    let token = &json["changes"][0];
    assert_eq!(token["path"], "machine.token");
    assert_eq!(token["change"], "changed");
    assert_eq!(
        (token["oldLine"].as_u64(), token["newLine"].as_u64()),
        (Some(4), Some(11))
    );
    assert_eq!(
        (&token["old"], &token["new"]),
        (&"******".into(), &"******".into())
    );
    assert_eq!(json["changes"][2]["new"], 9000);
    assert_eq!(json["changes"][3]["document"], "HostnameConfig");
    assert!(!ran.stdout.contains("bbbbbbbb") && !ran.stdout.contains("dddddddd"));
}

#[test]
fn a_patch_given_on_makes_the_second_file() {
    let (home, a, b) = files();
    let ran = home.run(&["mc", "diff", &a, &b, "--as-patch"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        ran.stdout,
        "machine:\n    token: cccccc.dddddddddddddddd\n    certSANs:\n        - b.example.com\n    network:\n        interfaces:\n            - interface: eth0\n              mtu: 9000\n---\napiVersion: v1alpha1\nkind: HostnameConfig\n$patch: delete\n---\napiVersion: v1alpha1\nkind: KubeSpanConfig\nenabled: true\n"
    );
    let patch = home.file("patch.yaml", &ran.stdout);
    let made = home.run(&["mc", "patch", &a, "-p", &format!("@{patch}")]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let made = home.file("made.yaml", &made.stdout);
    let again = home.run(&["mc", "diff", &made, &b, "--exit-code"]);
    assert_eq!(again.code, Some(0), "{again:?}");
}

#[test]
fn a_json_patch_is_of_one_document() {
    let (home, a, b) = files();
    let ran = home.run(&["mc", "diff", &a, &b, "--json-patch"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    for word in [
        "can neither add nor remove",
        "HostnameConfig",
        "KubeSpanConfig",
        "--as-patch",
    ] {
        assert!(ran.stderr.contains(word), "{word}: {ran:?}");
    }
    let c = home.file("c.yaml", &A.replace("mtu: 1500", "mtu: 9000"));
    let ran = home.run(&["mc", "diff", &a, &c, "--json-patch"]);
    assert_eq!(
        ran.json(),
        serde_json::json!([{"op": "replace", "path": "/machine/network/interfaces/0/mtu", "value": 9000}])
    );
    let d = home.file(
        "d.yaml",
        &A.replace("mtu: 1500", "mtu: 9000")
            .replace("auto: stable", "auto: off"),
    );
    let ran = home.run(&["mc", "diff", &a, &d, "--json-patch"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    for word in [
        "a JSON Patch changes one document, and 2 differ: the main document, HostnameConfig",
        "-o json prints a JSON Patch for each",
        "--document KIND[/NAME]",
        "--as-patch",
    ] {
        assert!(ran.stderr.contains(word), "{word}: {ran:?}");
    }
    let ran = home.run(&["mc", "diff", &a, &d, "--json-patch", "-o", "json"]);
    assert_eq!(ran.json()["patches"][1]["document"], "HostnameConfig");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_compared_with_files_and_each_other() {
    let lab = Lab::start(Options::default()).await;
    let text = lab.cluster.nodes()[0].machine_config().unwrap();
    let changed = text.replace("clusterName: cluster-1", "clusterName: other");
    assert_ne!(text, changed);
    let file = lab.home.file("changed.yaml", &changed);
    let node = format!("node:{}", lab.nodes[0]);
    let json = lab.json(&["mc", "diff", &node, &file]);
    let paths: Vec<_> = json["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| &change["path"])
        .collect();
    assert_eq!(paths, ["cluster.clusterName"]);
    assert_eq!(json["first"], format!("node {}", lab.nodes[0]));
    let ran = lab.run(&["mc", "diff", &lab.nodes[0], &node, "--exit-code"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let missing = lab.run(&["mc", "diff", "no-such-node", &file]);
    assert_ne!(missing.code, Some(0));
    assert!(
        missing.stderr.contains("there is no file no-such-node"),
        "{missing:?}"
    );
    assert_eq!(lab.changes(), [""; 0]);
}

#[test]
fn bad_input_is_named_with_its_line() {
    let (home, a, _) = files();
    let refused = |args: &[&str], words: &[&str]| {
        let ran = home.run(args);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert_eq!(ran.stdout, "");
        for word in words {
            assert!(ran.stderr.contains(word), "{word}: {ran:?}");
        }
    };
    refused(&["mc", "diff", "-", "-"], &["not both"]);
    refused(&["mc", "diff", &a, "missing.yaml"], &["missing.yaml"]);
    let broken = home.file("broken.yaml", "machine:\n  type: [a\n");
    refused(
        &["mc", "diff", &a, &broken],
        &["broken.yaml cannot be compared", "line "],
    );
    let twice = home.file("twice.yaml", "debug: true\nmachine: {}\ndebug: false\n");
    refused(
        &["mc", "diff", &twice, &a],
        &["twice.yaml", "line 3", "debug"],
    );
    let double = home.file("double.yaml", "debug: true\n---\nmachine: {}\n");
    refused(
        &["mc", "diff", &a, &double, "--as-patch"],
        &[
            "double.yaml",
            "the main document stands twice",
            "lines 1 and 3",
        ],
    );
    let none = home.file("none.yaml", "apiVersion: v1alpha1\nkind: ZswapConfig\n");
    refused(
        &["mc", "diff", &a, &none, "--as-patch"],
        &["no strategic merge patch turns", "cannot take it away"],
    );
}

#[test]
fn standard_input_is_one_side() {
    let (home, a, _) = files();
    let ran = home.run_with_input(&["mc", "diff", "-", &a, "--exit-code"], B);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stdout.contains("9000 -> 1500"), "{ran:?}");
}

#[test]
fn a_secret_that_is_a_key_is_masked_too() {
    const TOKEN: &str = "aaaaaa.bbbbbbbbbbbbbbbb";
    let (home, a, _) = files();
    let labels =
        format!("    nodeLabels: {{k: x-{TOKEN}-y, {TOKEN}: v, n-{TOKEN}: [{{{TOKEN}: 1}}]}}\n");
    let b = A.replace("    network:\n", &format!("{labels}    network:\n"));
    let b = home.file("labels.yaml", &b);
    for format in ["table", "json", "yaml", "ndjson"] {
        let ran = home.run(&["mc", "diff", &a, &b, "-o", format]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.stdout.contains(TOKEN), "{ran:?}");
    }
    let data = home.run(&["mc", "diff", &a, &b, "-o", "json"]).json();
    assert_eq!(
        data["changes"][0]["new"],
        serde_json::json!({"k": "x-******-y", "******": "v", "n-******": [{"******": 1}]})
    );
    let shown = home.run(&["mc", "diff", &a, &b, "-o", "json", "--show-secrets"]);
    assert_eq!(shown.json()["changes"][0]["new"][TOKEN], "v");
}

/// A configuration of one version, with a list that loses an element and fields that another version has not.
fn of_version(installer: &str, sans: &str, rest: &str) -> String {
    let install = match installer {
        "" => String::new(),
        version => format!("    install: {{image: 'ghcr.io/siderolabs/installer:{version}'}}\n"),
    };
    format!("machine:\n    type: worker\n    certSANs: [{sans}]\n{install}{rest}")
}

#[test]
fn a_patch_between_versions_is_one_text_that_patch_takes_as_it_is() {
    let home = Home::new();
    let sets = [
        of_version("v1.11.5", "a, b, c", "    env: {A: b}\n"),
        of_version("v1.11.0", "a, c", "    nodeLabels: {a: ''}\n"),
        of_version(
            "v1.13.9",
            "c",
            "---\napiVersion: v1alpha1\nkind: KubeSpanConfig\nenabled: true\n",
        ),
        of_version(
            "v1.14.1",
            "c, a",
            "---\napiVersion: v1alpha1\nkind: KubeletConfig\nimage: a\n",
        ),
        of_version(
            "",
            "b",
            "---\napiVersion: v1alpha1\nkind: KubeNodeConfig\nlabels: {a: b}\n",
        ),
    ];
    let files: Vec<String> = sets
        .iter()
        .enumerate()
        .map(|(at, text)| home.file(&format!("{at}.yaml"), text))
        .collect();
    for a in &files {
        for b in &files {
            let ran = home.run(&["mc", "diff", a, b, "--as-patch"]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            let json = home
                .run(&["mc", "diff", a, b, "--as-patch", "-o", "json"])
                .json();
            let each = json["patches"].as_array().unwrap().iter();
            let each: Vec<&str> = each.map(|patch| patch["patch"].as_str().unwrap()).collect();
            assert_eq!(each.join("---\n"), ran.stdout);
            let patch = home.file("patch.yaml", &ran.stdout);
            let mut args = vec!["mc", "patch", a, "-p", &patch];
            // Said where the first configuration does not tell it.
            if ran.stderr.contains("--talos-version v1.14.1") {
                args.extend(["--talos-version", "v1.14.1"]);
            }
            let made = home.run(&args);
            assert_eq!(made.code, Some(0), "{made:?}");
            let made = home.file("made.yaml", &made.stdout);
            let again = home.run(&["mc", "diff", &made, b, "--exit-code"]);
            assert_eq!(
                (again.code, again.stdout.as_str()),
                (Some(0), ""),
                "{again:?}"
            );
        }
    }
}

#[test]
fn what_is_no_configuration_is_not_compared() {
    let (home, a, _) = files();
    for (text, word) in [
        (
            "just text\n",
            "line 1: a document of a machine configuration is a mapping",
        ),
        (
            "machine: {}\n---\n- 1\n",
            "line 3: a document of a machine configuration is a mapping",
        ),
        (
            "context: a\ncontexts: {}\n",
            "line 1: no document of a machine configuration",
        ),
        (
            "machine: {}\n---\nmachine: {}\n",
            "the main document stands twice in the configuration, on lines 1 and 3",
        ),
    ] {
        let other = home.file("other.yaml", text);
        for mode in [&[][..], &["--as-patch"], &["--json-patch"], &["-o", "json"]] {
            for sides in [[&a, &other], [&other, &a]] {
                let args = [&["mc", "diff", sides[0], sides[1]], mode].concat();
                let ran = home.run(&args);
                assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
                for word in [word, "other.yaml cannot be compared"] {
                    assert!(ran.stderr.contains(word), "{word}: {ran:?}");
                }
            }
        }
    }
}
