//! Tests of patches.

use std::error::Error as _;

use expect_test::{Expect, expect};

use super::*;
use crate::diff::unified;
use crate::yaml::{read, write};

mod compat;
mod deletions;
mod form;
mod json;
mod long;
mod merging;
mod properties;
mod refused;
mod several;

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
            warning: line 3: machine.bogus: no such field in Talos 1.13.9; Talos refuses it"#]],
    );
}
