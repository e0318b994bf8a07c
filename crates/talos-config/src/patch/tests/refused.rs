//! Patches that are refused, and how they are told.

use super::*;

#[test]
fn several_problems_come_together() {
    let patch = "machine:\n  bogus: 1\n  kubelet:\n    clusterDNS: a\n    image: [b]\n---\napiVersion: v1alpha1\nkind: NoConfig\n---\nkind: HostnameConfig\n";
    refused(
        CONFIG,
        patch,
        "1.13",
        "5 problems
  line 2: machine.bogus: no such field in Talos 1.13.9
  line 4: machine.kubelet.clusterDNS: expected a list, found a string
  line 5: machine.kubelet.image: expected a string, found a list
  line 7: document NoConfig: no such kind in Talos 1.13.9
  line 10: document HostnameConfig: `apiVersion` is missing",
    );
    let patch = "- op: add\n  path: /a\n- op: drop\n  path: /b\n";
    assert_eq!(
        Patch::parse(patch).unwrap_err().to_string(),
        "2 problems
  line 1: operation 1 of the JSON Patch: `add` of `/a` lacks its `value`
  line 3: operation 2 of the JSON Patch: unknown `op` `drop` for `/b`"
    );
}

#[test]
fn every_deletion_that_finds_nothing_is_named() {
    refused(
        CONFIG,
        "machine:\n  sysctls:\n    a:\n      $patch: delete\n    b: {$patch: delete}\n  network:\n    interfaces:\n      - interface: eth0\n        $patch: delete\n      - interface: eth9\n        $patch: delete\n",
        "1.13",
        "3 problems
  line 3: machine.sysctls.a: nothing to delete
  line 5: machine.sysctls.b: nothing to delete
  line 10: machine.network.interfaces[interface=eth9]: nothing to delete",
    );
}

#[test]
fn values_that_talos_does_not_decode_are_refused_before_they_are_merged() {
    for (patch, want) in [
        (
            "cluster: {adminKubeconfig: {certLifetime: soon}}",
            "line 1: cluster.adminKubeconfig.certLifetime: is not a duration such as `1h30m` or `10s`",
        ),
        (
            "cluster: {controlPlane: {localAPIServerPort: a}}",
            "line 1: cluster.controlPlane.localAPIServerPort: is not a whole number",
        ),
        (
            "machine: {ca: {crt: '*'}}",
            "line 1: machine.ca.crt: is not base64",
        ),
        (
            "machine: {kubelet: {extraArgs: {v: {a: 1}}}}",
            "line 1: machine.kubelet.extraArgs.v: expected a string or a list of strings, found a mapping",
        ),
    ] {
        refused(CONFIG, patch, "1.13", want);
    }
}

#[test]
fn a_configuration_with_a_document_twice_is_refused() {
    for (config, want) in [
        (
            "machine: {}\n---\ncluster: {}\n",
            "the main document stands twice in the configuration, on lines 1 and 3",
        ),
        (
            "kind: A\napiVersion: v1\nname: n\n---\nkind: A\napiVersion: v1\nname: m\n---\nkind: A\napiVersion: v1\nname: n\n",
            "A/n stands twice in the configuration, on lines 1 and 9",
        ),
    ] {
        let error = patched(config, &["machine: {type: worker}"], "1.13").unwrap_err();
        assert_eq!(error.to_string(), want);
    }
}

#[test]
fn a_document_that_cannot_stand_beside_another_is_refused() {
    let config = "apiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\n";
    refused(
        config,
        "apiVersion: v1alpha1\nkind: VLANConfig\nname: eth0\nvlanID: 1\nparent: eth1\n",
        "1.13",
        "line 1: document VLANConfig/eth0 conflicts with LinkConfig/eth0",
    );
    let other = "apiVersion: v1alpha1\nkind: VLANConfig\nname: eth0.1\nvlanID: 1\nparent: eth0\n";
    patched(config, &[other], "1.13").unwrap();
}

#[test]
fn the_document_of_a_json_patch_is_chosen_by_kind_and_name() {
    let config = "machine: {}\n---\napiVersion: v1alpha1\nkind: LinkConfig\nname: a\n---\napiVersion: v1alpha1\nkind: LinkConfig\nname: b\nmtu: 1\n";
    let patch = [Patch::parse(r#"[{"op":"replace","path":"/mtu","value":2}]"#).unwrap()];
    let chosen = |document: &str| {
        let options = Options {
            document: Some(document.to_owned()),
            ..Options::from(Schema::for_talos("1.13"))
        };
        apply_with(config, &patch, &options)
    };
    let text = chosen("LinkConfig/b").unwrap().text;
    assert_eq!(text, config.replace("mtu: 1", "mtu: 2"));
    for document in ["LinkConfig", "LinkConfig/c", "HostnameConfig"] {
        let error = chosen(document).unwrap_err();
        assert_eq!(
            error.source().unwrap().to_string(),
            format!(
                "no document `{document}` to patch; there are the main document, LinkConfig/a, LinkConfig/b"
            )
        );
    }
}

#[test]
fn a_text_field_gets_a_scalar_as_it_is_written() {
    for (value, want) in [
        ("0644", "\"0644\""),
        ("1_000", "\"1_000\""),
        ("1.10", "\"1.10\""),
        ("yes", "\"yes\""),
        ("true", "\"true\""),
        ("0x1F", "\"0x1F\""),
    ] {
        let config = "machine:\n    token: a\n    sysctls: {}\n";
        let patch = format!("machine: {{token: {value}}}");
        let text = patched(config, &[&patch], "1.13").unwrap().text;
        assert_eq!(text, config.replace("token: a", &format!("token: {want}")));
    }
    let config = "cluster:\n    etcd:\n        extraArgs: {}\n";
    let text = patched(
        config,
        &["cluster: {etcd: {extraArgs: {a: 0644, b: [1_0]}}}"],
        "1.13",
    );
    let text = text.unwrap().text;
    assert!(
        text.contains("a: \"0644\"") && text.contains("- \"1_0\""),
        "{text}"
    );
}

#[test]
fn the_fields_are_those_of_the_version_that_is_installed() {
    let config = |image: &str| format!("machine:\n    install:\n        image: {image}\n");
    let patch =
        [Patch::parse("apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n").unwrap()];
    let with = |image: &str| apply_with(&config(image), &patch, &Options::default());
    for old in [
        "ghcr.io/siderolabs/installer:v1.11.5",
        "x:5000/a/b:v1.10.0@sha256:ab",
    ] {
        let result = with(old);
        assert_eq!(result.is_err(), old.contains("1.11"), "{old}");
    }
    for new in [
        "ghcr.io/siderolabs/installer:v1.13.9",
        "x/installer",
        "x:5000/y:latest",
    ] {
        with(new).unwrap();
    }
}

#[test]
fn operations_after_a_failed_one_are_tried_unless_they_touch_what_it_was_to_change() {
    let patch = r#"
- {op: replace, path: /machine/no/a, value: 1}
- {op: test, path: /machine/type, value: worker}
- {op: add, path: /machine/no/a/b, value: 1}
- {op: remove, path: /machine/network/interfaces/7}
- {op: replace, path: /machine/network/interfaces/0/mtu, value: 1}
- {op: copy, from: /machine/no, path: /machine/sysctls}
- {op: add, path: /machine/sysctls/a, value: b}
- {op: move, from: /cluster/no, path: /machine/env}
- {op: add, path: /machine/type, value: worker}
"#;
    refused(
        CONFIG,
        patch,
        "1.13",
        "5 problems
  line 2: operation 1 of the JSON Patch: `replace` finds nothing at `/machine/no/a` of the main document
  line 3: operation 2 of the JSON Patch: `test` finds another value at `/machine/type` of the main document
  line 5: operation 4 of the JSON Patch: `remove` finds nothing at `/machine/network/interfaces/7` of the main document
  line 9: operation 8 of the JSON Patch: `move` finds nothing at `/cluster/no` of the main document
  not judged, since they touch what a failed one was to change: operations 3, 5, 6, 7",
    );
}

#[test]
fn a_main_document_that_lost_its_only_key_is_still_the_one_that_patches_mean() {
    let add = "machine: {type: worker}\n";
    for (config, delete) in [
        (
            "machine: {type: controlplane}\n",
            r#"[{"op":"remove","path":"/machine"}]"#,
        ),
        ("debug: true\n", r#"[{"op":"remove","path":"/debug"}]"#),
        (
            "machine:\n  type: controlplane\n",
            "machine:\n  $patch: delete\n",
        ),
        ("version: v1alpha1\n", "version:\n  $patch: delete\n"),
    ] {
        let result = patched(config, &[delete, add], "v1.13.9").unwrap();
        assert_eq!(read(&result.text).unwrap(), read(add).unwrap(), "{config}");
        // The text in between may be kept in a file.
        let between = patched(config, &[delete], "v1.13.9").unwrap();
        let result = patched(&between.text, &[add], "v1.13.9").unwrap();
        assert_eq!(read(&result.text).unwrap(), read(add).unwrap(), "{config}");
    }
}

#[test]
fn of_very_many_problems_the_first_thousand_are_told_and_the_rest_counted() {
    let unknown: String = (0..2500).map(|at| format!("  k{at}: 1\n")).collect();
    let patch = format!("machine:\n{unknown}");
    let error = patched("machine: {type: worker}\n", &[&patch], "v1.13.9").unwrap_err();
    let text = error.source().unwrap().to_string();
    assert!(text.starts_with("2500 problems\n"));
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(lines.len(), 1001);
    assert!(lines[999].contains("machine.k999"), "{}", lines[999]);
    assert_eq!(lines[1000], "  and 1500 more");
}

#[test]
fn what_the_talos_version_does_not_have_is_refused() {
    for (patch, version, want) in [
        (
            "machine: {bogus: 1}",
            "1.13.9",
            "line 1: machine.bogus: no such field in Talos 1.13.9",
        ),
        (
            "machine: {network: {interfaces: [{interface: a, speed: 1}]}}",
            "1.13.9",
            "line 1: machine.network.interfaces[0].speed: no such field in Talos 1.13.9",
        ),
        (
            "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a",
            "1.11.5",
            "line 1: document HostnameConfig: no such kind in Talos 1.11.5, Talos 1.13.9 has it",
        ),
        (
            "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\nmount: {secure: true}",
            "1.11.5",
            "line 4: UserVolumeConfig/data: mount: no such field in Talos 1.11.5, Talos 1.13.9 has it",
        ),
        (
            "bogus: 1",
            "1.13.9",
            "line 1: bogus: no field of the main document, and no `kind` says which document is meant",
        ),
        (
            "kind: HostnameConfig\nhostname: a",
            "1.13.9",
            "line 1: document HostnameConfig: `apiVersion` is missing",
        ),
        (
            "machine: [a]",
            "1.13.9",
            "line 1: machine: expected a mapping, found a list",
        ),
        (
            "machine: {kubelet: {extraConfig: {a: 1}}, certSANs: a}",
            "1.13.9",
            "line 1: machine.certSANs: expected a list, found a string",
        ),
        (
            "cluster: {apiServer: {admissionControl: [{name: PodSecurity, configuration: {defaults: [a]}}]}}",
            "1.13.9",
            "line 1: cluster.apiServer.admissionControl[0].configuration.defaults: expected a mapping, found a list",
        ),
    ] {
        refused(CONFIG, patch, version, want);
    }
}

#[test]
fn a_newer_talos_judges_itself() {
    let patch = "machine: {warp: {factor: 9}}\n---\napiVersion: v1alpha1\nkind: NewConfig\na: 1\n---\napiVersion: v1alpha2\nkind: WarpDriveConfig\nfactor: 10\n";
    let patched = patched(CONFIG, &[patch], "v1.99.0").unwrap();
    assert!(
        patched.text.contains("factor: 10") && patched.text.contains("kind: NewConfig"),
        "{}",
        patched.text
    );
    assert_eq!(
        patched.warnings,
        [
            "line 1: machine.warp: no such field in Talos 1.14.1",
            "line 3: document NewConfig: no such kind in Talos 1.14.1",
            "line 7: document WarpDriveConfig: no such kind in Talos 1.14.1",
        ]
    );
}

#[test]
fn a_place_that_is_not_there_is_named() {
    for (patch, want) in [
        (
            r#"[{"op":"remove","path":"/machine/nope"}]"#,
            "line 1: operation 1 of the JSON Patch: `remove` finds nothing at `/machine/nope` of the main document",
        ),
        (
            r#"[{"op":"add","path":"/nope/x","value":1}]"#,
            "line 1: operation 1 of the JSON Patch: `add` finds nothing at `/nope/x` of the main document",
        ),
        (
            r#"[{"op":"replace","path":"/machine/certSANs/5","value":1}]"#,
            "line 1: operation 1 of the JSON Patch: `replace` finds nothing at `/machine/certSANs/5` of the main document",
        ),
        (
            r#"[{"op":"test","path":"/machine/type","value":"worker"}]"#,
            "line 1: operation 1 of the JSON Patch: `test` finds another value at `/machine/type` of the main document",
        ),
    ] {
        refused(CONFIG, patch, "1.13", want);
    }
    let error = patched(
        CONFIG,
        &["machine: {type: worker}", "machine: {x: 1}"],
        "1.13",
    )
    .unwrap_err();
    assert_eq!(error.to_string(), "patch 2");
}
