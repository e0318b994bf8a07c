//! Tests of patches.

use std::error::Error as _;

use expect_test::{Expect, expect};

use super::*;
use crate::diff::unified;
use crate::yaml::{read, write};

mod compat;
mod json;
mod properties;
mod refused;

fn patched(config: &str, patches: &[&str], version: &str) -> Result<Patched, Error> {
    let patches = patches
        .iter()
        .map(|text| Patch::parse(text))
        .collect::<Result<Vec<_>, _>>()?;
    apply(config, &patches, Schema::for_talos(version))
}

/// Compares the changed lines.
fn check(config: &str, patch: &str, want: &Expect) {
    let patched = patched(config, &[patch], "v1.13.9").unwrap();
    let diff = unified(config, &patched.text, "", "");
    let lines: Vec<&str> = diff
        .lines()
        .skip(2)
        .filter(|line| line.starts_with(['+', '-']))
        .collect();
    let mut text = lines.join("\n");
    for warning in patched.warnings {
        text.push_str(&format!("\nwarning: {warning}"));
    }
    want.assert_eq(&text);
}

/// Compares the message of a refused patch.
fn refused(config: &str, patch: &str, version: &str, want: &str) {
    let error = patched(config, &[patch], version).unwrap_err();
    let message = error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string);
    assert_eq!(message, want);
}

const CONFIG: &str = r#"# The first control plane.
version: v1alpha1
machine:
    type: controlplane # not a worker
    certSANs:
        - 10.5.10.2 # NAT
    kubelet:
        image: ghcr.io/siderolabs/kubelet:v1.33.4 # follows the cluster
        futureKnob: {a: 1}
    network:
        interfaces:
            - interface: eth0
              addresses: [192.168.2.0/24]
              vlans:
                  - vlanId: 100
                    mtu: 1400
            # the second
            - deviceSelector: {driver: virtio_net}
              dhcp: true
    sysctls:
        net.core.somaxconn: "65535"
        vm.swappiness: "10"
cluster:
    clusterName: cluster-1
    apiServer:
        image: "registry.k8s.io/kube-apiserver:v1.33.4"
        certSANs: [10.5.10.2, 127.0.0.1]
        admissionControl:
            - name: PodSecurity
              configuration:
                  defaults: {enforce: baseline}
                  exemptions:
                      namespaces: [kube-system]
    # Images are pinned.
    controllerManager:
        image: 'registry.k8s.io/kube-controller-manager:v1.33.4'
    scheduler: {image: registry.k8s.io/kube-scheduler:v1.33.4, extraArgs: {v: "2"}}
---
# Nobody knows this kind yet.
apiVersion: v1alpha2
kind: WarpDriveConfig
factor: 9
---
apiVersion: v1alpha1
kind: HostnameConfig # how it is called
auto: stable
---
apiVersion: v1alpha1
kind: UserVolumeConfig
name: data
provisioning:
    diskSelector:
        match: "!system_disk"
    minSize: 10GiB
    maxSize: 20GiB
"#;

#[test]
fn four_image_tags_change_exactly_four_lines() {
    let patch = r#"
machine: {kubelet: {image: "ghcr.io/siderolabs/kubelet:v1.34.0"}}
cluster:
    apiServer: {image: "registry.k8s.io/kube-apiserver:v1.34.0"}
    controllerManager: {image: "registry.k8s.io/kube-controller-manager:v1.34.0"}
    scheduler: {image: "registry.k8s.io/kube-scheduler:v1.34.0"}
"#;
    let text = patched(CONFIG, &[patch], "v1.13.9").unwrap().text;
    assert_eq!(text, CONFIG.replace(":v1.33.4", ":v1.34.0"));
}

#[test]
fn a_json_patch_changes_the_main_document_of_several() {
    let patch = r#"[{"op":"replace","path":"/cluster/clusterName","value":"c2"}]"#;
    let text = patched(CONFIG, &[patch], "v1.13.9").unwrap().text;
    assert_eq!(
        text,
        CONFIG.replace("clusterName: cluster-1", "clusterName: c2")
    );
    check(
        CONFIG,
        r#"[{"op":"replace","path":"/cluster/apiServer/certSANs","value":["172.30.0.11","10.5.10.2","127.0.0.1"]},
            {"op":"add","path":"/machine/certSANs/-","value":"172.30.0.11"},
            {"op":"add","path":"/machine/bogus","value":{"deep":[1,"1"]}},
            {"op":"remove","path":"/machine/network/interfaces/-2/vlans/0/mtu"},
            {"op":"add","path":"/machine/nodeLabels","value":{"a.b~/c":"yes"}},
            {"op":"test","path":"/machine/nodeLabels/a.b~0~1c","value":"yes"}]"#,
        &expect![[r#"
            +        - 172.30.0.11
            -                    mtu: 1400
            +    bogus:
            +        deep:
            +            - 1
            +            - "1"
            +    nodeLabels:
            +        a.b~/c: "yes"
            -        certSANs: [10.5.10.2, 127.0.0.1]
            +        certSANs: [172.30.0.11, 10.5.10.2, 127.0.0.1]
            warning: machine.bogus: no such field in Talos 1.13.9; Talos refuses it"#]],
    );
}

#[test]
fn strategic_patches_merge_as_talos_does() {
    check(
        CONFIG,
        "cluster: {apiServer: {certSANs: [172.30.0.11], extraArgs: {v: [a, b]}}, scheduler: {extraArgs: {v: \"\"}}}",
        &expect![[r#"
            -        certSANs: [10.5.10.2, 127.0.0.1]
            +        certSANs: [10.5.10.2, 127.0.0.1, 172.30.0.11]
            +        extraArgs:
            +            v:
            +                - a
            +                - b
            -    scheduler: {image: registry.k8s.io/kube-scheduler:v1.33.4, extraArgs: {v: "2"}}
            +    scheduler: {image: registry.k8s.io/kube-scheduler:v1.33.4, extraArgs: {v: ""}}"#]],
    );
    check(
        CONFIG,
        r#"
machine:
    network:
        interfaces:
            - interface: eth0
              vlans: [{vlanId: 100, mtu: 9000}, {vlanId: 200}]
            - deviceSelector: {driver: virtio_net}
              dhcp: false
            - deviceSelector: {driver: e1000}
              mtu: 1
"#,
        &expect![[r#"
            -                    mtu: 1400
            +                    mtu: 9000
            +                  - vlanId: 200
            -              dhcp: true
            +              dhcp: false
            +            - deviceSelector:
            +                  driver: e1000
            +              mtu: 1"#]],
    );
    check(
        CONFIG,
        r#"
cluster:
    apiServer:
        admissionControl:
            - name: PodSecurity
              configuration: {defaults: {enforce: restricted}, exemptions: {namespaces: [x]}}
            - name: Other
"#,
        &expect![[r#"
            -                  defaults: {enforce: baseline}
            +                  defaults: {enforce: restricted}
            -                      namespaces: [kube-system]
            +                      namespaces: [kube-system, x]
            +            - name: Other"#]],
    );
    check(
        CONFIG,
        "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\nprovisioning: {maxSize: 50GiB}\n",
        &expect![[r#"
            -    maxSize: 20GiB
            +    maxSize: 50GiB"#]],
    );
}

#[test]
fn lists_with_a_rule_of_their_own_follow_it() {
    let config = r#"cluster:
    network:
        podSubnets: [10.244.0.0/16]
        serviceSubnets: [10.96.0.0/12]
---
apiVersion: v1alpha1
kind: ExtensionServiceConfig
name: e
configFiles:
    - content: old
      mountPath: /a
environment: [A=1]
---
apiVersion: v1alpha1
kind: NetworkRuleConfig
name: n
portSelector:
    ports: [1, 2]
    protocol: tcp
ingress:
    - subnet: 10.0.0.0/8
---
apiVersion: v1alpha1
kind: ImageVerificationConfig
rules:
    - image: a/*
      skip: true
---
apiVersion: v1alpha1
kind: KmsgLogConfig
name: k
url: tcp://10.0.0.1:1/p
"#;
    check(
        config,
        r#"cluster: {network: {podSubnets: [], serviceSubnets: [10.97.0.0/12]}}
---
{apiVersion: v1alpha1, kind: ExtensionServiceConfig, name: e, environment: [A=1], configFiles: [{content: new, mountPath: /a}, {content: b, mountPath: /b}]}
---
{apiVersion: v1alpha1, kind: NetworkRuleConfig, name: n, portSelector: {ports: [3]}, ingress: [{subnet: 11.0.0.0/8}]}
---
{apiVersion: v1alpha1, kind: ImageVerificationConfig, rules: [{image: a/*, deny: true}, {image: b/*, skip: true}]}
---
{apiVersion: v1alpha1, kind: KmsgLogConfig, name: k, url: "udp://10.0.0.2:2"}
"#,
        &expect![[r#"
            -        podSubnets: [10.244.0.0/16]
            -        serviceSubnets: [10.96.0.0/12]
            +        podSubnets: []
            +        serviceSubnets: [10.97.0.0/12]
            -    - content: old
            +    - content: new
            -environment: [A=1]
            +    - content: b
            +      mountPath: /b
            +environment: [A=1, A=1]
            -    ports: [1, 2]
            +    ports: [3]
            -    - subnet: 10.0.0.0/8
            +    - subnet: 11.0.0.0/8
            +      deny: true
            +    - image: b/*
            -url: tcp://10.0.0.1:1/p
            +url: udp://10.0.0.2:2"#]],
    );
}

#[test]
fn zero_values_overwrite_optional_fields_since_talos_1_12() {
    let config = "version: v1alpha1\nmachine:\n    network:\n        interfaces:\n            - interface: e\n              mtu: 9\n    kubelet: {registerWithFQDN: true}\ncluster: {clusterName: a, adminKubeconfig: {certLifetime: 1h}}\n";
    let patch = "machine: {kubelet: {registerWithFQDN: false}}\ncluster: {clusterName: \"\"}\n";
    for version in ["v1.11.5", "v1.13.9"] {
        let text = patched(config, &[patch], version).unwrap().text;
        assert_eq!(text, config.replace("true", "false"), "{version}");
    }
    let config =
        "apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning: {grow: true}\n";
    let patch =
        "apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning: {grow: false}\n";
    assert_eq!(
        patched(config, &[patch], "v1.11.5").unwrap().text,
        config.replace("true", "false")
    );
}

#[test]
fn inline_manifests_and_disk_selectors_are_known() {
    check(
        CONFIG,
        "cluster: {inlineManifests: [{name: n, contents: \"a\\nb\\n\"}]}\nmachine: {install: {diskSelector: {size: '>= 4GB'}}}",
        &expect![[r#"
            +    install:
            +        diskSelector:
            +            size: '>= 4GB'
            +    inlineManifests:
            +        - name: "n"
            +          contents: |
            +              a
            +              b"#]],
    );
}

#[test]
fn deletions_take_what_they_name() {
    check(
        CONFIG,
        r#"
machine:
    sysctls: {vm.swappiness: {$patch: delete}}
    network:
        interfaces:
            - interface: eth0
              $patch: delete
    kernel: {$patch: delete}
cluster:
    controllerManager: {$patch: delete}
---
apiVersion: v1alpha1
kind: HostnameConfig
$patch: delete
"#,
        &expect![[r#"
            -            - interface: eth0
            -              addresses: [192.168.2.0/24]
            -              vlans:
            -                  - vlanId: 100
            -                    mtu: 1400
            -        vm.swappiness: "10"
            -    # Images are pinned.
            -    controllerManager:
            -        image: 'registry.k8s.io/kube-controller-manager:v1.33.4'
            ----
            -apiVersion: v1alpha1
            -kind: HostnameConfig # how it is called
            -auto: stable
            warning: line 8: machine.kernel: nothing to delete"#]],
    );
    for (patch, want) in [
        (
            "machine: {sysctls: {a: {$patch: delete}}}",
            "line 1: machine.sysctls.a: nothing to delete",
        ),
        (
            "machine: {time: {servers: {$patch: delete}}}",
            "line 1: machine.time.servers: nothing to delete",
        ),
        (
            "machine: {network: {interfaces: [{interface: eth9, $patch: delete}]}}",
            "line 1: machine.network.interfaces[interface=eth9]: nothing to delete",
        ),
        (
            "machine: {network: {interfaces: [{interface: eth0, vlans: [{vlanId: 100, $patch: delete}]}]}}",
            "line 1: machine.network.interfaces[0]: nothing can be deleted inside an element of a list",
        ),
        (
            "machine: {type: {$patch: drop}}",
            "line 1: machine.type: the only `$patch` is `delete`",
        ),
        (
            "$patch: delete\nmachine: {}",
            "line 1: the main document: the main document cannot be deleted",
        ),
        (
            "$patch: delete",
            "line 1: the main document: the main document cannot be deleted",
        ),
        (
            "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: nope\n$patch: delete",
            "line 1: document UserVolumeConfig/nope: nothing to delete, the configuration has no such document",
        ),
    ] {
        refused(CONFIG, patch, "v1.13.9", want);
    }
}

#[test]
fn documents_are_added_and_the_main_one_goes_first() {
    check(
        CONFIG,
        "apiVersion: v1alpha1\nkind: WatchdogTimerConfig\ndevice: /dev/watchdog0\ntimeout: 3m0s\n",
        &expect![[r#"
            +---
            +apiVersion: v1alpha1
            +kind: WatchdogTimerConfig
            +device: /dev/watchdog0
            +timeout: 3m0s"#]],
    );
    let text = patched(
        "apiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n",
        &["machine: {type: worker}"],
        "1.13",
    )
    .unwrap()
    .text;
    assert_eq!(
        text,
        "machine:\n    type: worker\n---\napiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n"
    );
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
fn a_patch_of_neither_form_gets_one_clear_error() {
    for (text, want) in [
        (
            "hello world",
            "neither a strategic merge patch nor a JSON Patch: a single value",
        ),
        (
            "patch.yaml",
            "neither a strategic merge patch nor a JSON Patch: a single word; a file is named by `@FILE`",
        ),
        (
            "5",
            "neither a strategic merge patch nor a JSON Patch: a single value",
        ),
        (
            "[1]",
            "line 1: operation 1 of the JSON Patch: expected a mapping with `op` and `path`",
        ),
        (
            "[{\"op\": \"add\"}]",
            "line 1: operation 1 of the JSON Patch: `path` is missing",
        ),
        (
            "- op: add\n  path: /a\n",
            "line 1: operation 1 of the JSON Patch: `add` of `/a` lacks its `value`",
        ),
        (
            "[{\"op\": \"remove\", \"path\": \"a.b\"}]",
            "line 1: operation 1 of the JSON Patch: `path` is no JSON pointer: `a.b` does not start with `/`",
        ),
    ] {
        assert_eq!(Patch::parse(text).unwrap_err().to_string(), want);
    }
    refused(
        CONFIG,
        r#"{"op": "remove", "path": "/machine"}"#,
        "1.13",
        "neither a strategic merge patch nor a JSON Patch: one operation alone; a JSON Patch is a list of operations",
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

#[test]
fn an_alias_in_the_configuration_survives_a_patch_beside_it() {
    let config = "version: v1alpha1\nmachine:\n  certSANs: &sans [a, b] # shared\ncluster:\n  apiServer:\n    certSANs: *sans\n";
    check(
        config,
        "cluster: {clusterName: c}",
        &expect!["+  clusterName: c"],
    );
    check(
        config,
        "machine: {certSANs: [c]}",
        &expect![[r#"
            -  certSANs: &sans [a, b] # shared
            +  certSANs: &sans [a, b, c] # shared
            -    certSANs: *sans
            +    certSANs:
            +      - a
            +      - b"#]],
    );
}

#[test]
fn a_patch_that_says_what_is_already_so_changes_nothing() {
    let patches = [
        r#"[{"op":"replace","path":"/machine/type","value":"controlplane"}]"#,
        "machine: {type: controlplane, sysctls: {vm.swappiness: \"10\"}}",
        "",
        "# nothing",
        "version: v1alpha1",
    ];
    assert_eq!(patched(CONFIG, &patches, "1.13").unwrap().text, CONFIG);
}

#[test]
fn a_patch_of_many_documents_finds_each_and_adds_and_deletes_others() {
    let link = |at: usize, rest: &str| {
        format!("---\napiVersion: v1alpha1\nkind: LinkConfig\nname: l{at}\n{rest}\n")
    };
    let config: String = (0..3000).map(|at| link(at, "mtu: 1400")).collect();
    let patch: String = (0..1000)
        .map(|at| link(at, "$patch: delete"))
        .chain((1000..4000).map(|at| link(at, "mtu: 1500")))
        .collect();
    let patch = format!("{patch}---\nmachine: {{type: worker}}\n");
    let patched = patched(&config, &[&patch], "v1.13.9").unwrap();
    let links: String = (1000..4000).map(|at| link(at, "mtu: 1500")).collect();
    let want = read_documents(&format!("machine: {{type: worker}}\n{links}")).unwrap();
    assert!(read_documents(&patched.text).unwrap() == want);
}

#[test]
fn long_lists_are_paired_by_name_as_short_ones_are() {
    let list = |names: std::ops::Range<usize>, mtu: usize| -> String {
        names
            .map(|at| format!("    - interface: eth{at}\n      mtu: {mtu}\n"))
            .collect()
    };
    let head = "machine:\n  network:\n    interfaces:\n";
    let config = format!("{head}{}", list(0..40, 1400));
    let twice = "    - interface: eth50\n      dhcp: true\n";
    let patch = format!("{head}{}{twice}", list(20..60, 1500));
    let patched = patched(&config, &[&patch], "v1.13.9").unwrap();
    let rest = list(20..60, 1500).replace(
        "eth50\n      mtu: 1500\n",
        "eth50\n      mtu: 1500\n      dhcp: true\n",
    );
    let want = format!("{head}{}{rest}", list(0..20, 1400));
    assert_eq!(read(&patched.text).unwrap(), read(&want).unwrap());
}

#[test]
fn a_text_that_is_no_configuration_is_not_patched() {
    for text in ["just text\n", "version: v1alpha1\n---\n- a\n"] {
        let patch = Patch::parse("machine: {type: worker}\n").unwrap();
        let error = apply(text, &[patch], Schema::newest()).unwrap_err();
        assert!(error.to_string().contains("is a mapping"), "{error}");
    }
}
