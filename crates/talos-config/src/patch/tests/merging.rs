//! What merges how, and what is added.

use super::*;

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
