//! `$patch: delete`.

use super::*;

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
fn what_stands_beside_a_deletion_is_told_to_count_for_nothing() {
    let config = "machine: {network: {hostname: a, interfaces: [{interface: eth0}, {interface: eth1}]}, kubelet: {extraConfig: {a: {b: 1}}}}\n---\napiVersion: v1alpha1\nkind: VLANConfig\nname: a\nvlanID: 5\n";
    let patch = "machine:
  network:
    interfaces:
      - mtu: 5
        interface: eth9
      - interface: eth0
        mtu: 5
        dhcp: true
        $patch: delete
  kubelet:
    extraConfig:
      a:
        $patch: delete
        c: 1
  nodeLabels:
    $patch: delete
    a: b
---
apiVersion: v1alpha1
kind: VLANConfig
name: a
vlanID: 6
$patch: delete
";
    for compat in [false, true] {
        let options = Options {
            compat,
            ..Options::from(Schema::for_talos("1.13"))
        };
        let made = apply_with(config, &[Patch::parse(patch).unwrap()], &options).unwrap();
        assert_eq!(
            made.warnings,
            [
                "line 6: machine.network.interfaces[1]: `mtu`, `dhcp` is passed over: only the first key beside `$patch: delete` names the element to delete",
                "line 12: machine.kubelet.extraConfig.a: `c` is passed over: `$patch: delete` deletes all of it, and a patch after this one can set it anew",
                "line 15: machine.nodeLabels: `a` is passed over: `$patch: delete` deletes all of it, and a patch after this one can set it anew",
                "line 19: VLANConfig/a: `vlanID` is passed over: `$patch: delete` deletes the whole document",
                "line 15: machine.nodeLabels: nothing to delete",
            ]
        );
        assert_eq!(
            read(&made.text).unwrap(),
            read("machine: {network: {hostname: a, interfaces: [{interface: eth1}, {interface: eth9, mtu: 5}]}, kubelet: {extraConfig: {}}}\n").unwrap()
        );
    }
}

#[test]
fn many_deletions_take_what_they_would_take_one_by_one() {
    let list = format!(
        "machine:\n  certSANs: [a]\n  files:\n{}",
        (0..60)
            .map(|at| format!("    - {{path: /f{}, content: c{at}}} # {at}\n", at % 30))
            .collect::<String>()
    );
    let patch: String = (0..40)
        .map(|at| format!("    - {{path: /f{}, $patch: delete}}\n", at % 20))
        .collect();
    let made = patched(&list, &[&format!("machine:\n  files:\n{patch}")], "1.13").unwrap();
    let want: String = (0..60)
        .filter(|at| at % 30 >= 20)
        .map(|at| format!("    - {{path: /f{}, content: c{at}}} # {at}\n", at % 30))
        .collect();
    assert_eq!(
        made.text,
        format!("machine:\n  certSANs: [a]\n  files:\n{want}")
    );
    // By two keys: what one took is not there for the other.
    let patch = "machine:\n  files:\n    - {content: c0, $patch: delete}\n    - {path: /f0, $patch: delete}\n    - {path: /f0, $patch: delete}\n";
    let error = patched(&list, &[patch], "1.13").unwrap_err();
    assert_eq!(
        error.source().unwrap().to_string(),
        "line 5: machine.files[path=/f0]: nothing to delete"
    );
}
