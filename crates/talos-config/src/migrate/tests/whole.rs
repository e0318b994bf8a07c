//! What holds for whole configurations.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use expect_test::expect;
use serde_json::Value;

use super::{TO, check, refuses};
use crate::migrate::{Target, migrate, plan};
use crate::yaml::read_documents;

const GENERATED: &str =
    include_str!("../../../../../tests/data/genconfig/default/controlplane.yaml");
const WORKER: &str = include_str!("../../../../../tests/data/genconfig/default/worker.yaml");

#[test]
fn versions() {
    for text in ["1.12", "v1.13", "1.14.1", "v1.14.0"] {
        assert!(Target::parse(text).is_some(), "{text}");
    }
    for text in [
        "",
        "1",
        "1.11",
        "1.15",
        "2.14",
        "1.14.1.2",
        "1.14-rc.1",
        "vv1.14",
    ] {
        assert!(Target::parse(text).is_none(), "{text}");
    }
    assert_eq!(Target::parse("v1.14.1").unwrap().to_string(), "1.14");
}

#[test]
fn older_versions_have_fewer_documents() {
    let config = r#"machine:
    type: worker
    env: {A: b}
    sysctls: {a: b}
    network:
        hostname: n
        kubespan: {enabled: false}
"#;
    let kinds = |version: &str| {
        let plan = plan(config, Target::parse(version).unwrap()).unwrap();
        let to = plan
            .moves
            .iter()
            .map(|moved| moved.to.clone().unwrap().document);
        let stays = plan.stays.iter().map(|stay| format!("{} stays", stay.path));
        to.chain(stays).collect::<Vec<_>>().join(", ")
    };
    expect!["HostnameConfig, machine.type stays, machine.env stays, machine.sysctls stays, machine.network.kubespan stays"].assert_eq(&kinds("1.12"));
    expect!["EnvironmentConfig, HostnameConfig, KubeSpanConfig, machine.type stays, machine.sysctls stays"].assert_eq(&kinds("1.13"));
    expect!["EnvironmentConfig, SysctlConfig, HostnameConfig, KubeSpanConfig, machine.type stays"]
        .assert_eq(&kinds("1.14"));
}

#[test]
fn what_does_not_move_stays_byte_for_byte() {
    let config = r#"# Our first node.
version: v1alpha1 # always
machine:
  type:   "worker"
  # Talks to the others.
  token: 'aaaaaa.bbbbbbbbbbbbbbbb'   # secret

  sysctls: {a: b} # limits
  certSANs: [ a.example,
     b.example ]
  # Its name.
  network:
    # Short.
    hostname: n1 # by hand

# The cluster.
cluster:
  token: a.b
---
# Nobody knows this.
apiVersion: v9
kind:   Unknown
x: {y:   z}
"#;
    check(
        config,
        expect![[r##"
        # Our first node.
        version: v1alpha1 # always
        machine:
          type:   "worker"
          # Talks to the others.
          token: 'aaaaaa.bbbbbbbbbbbbbbbb'   # secret
          certSANs: [ a.example,
             b.example ]

        # The cluster.
        cluster:
          token: a.b
        ---
        # Nobody knows this.
        apiVersion: v9
        kind:   Unknown
        x: {y:   z}
        --- HostnameConfig
        # Short.
        hostname: n1 # by hand
        --- SysctlConfig
        params: # limits
            a: b
    "##]],
    );
}

#[test]
fn a_document_that_is_there_is_extended() {
    check(
        r#"machine:
    type: worker
    network: {nameservers: [1.1.1.1], hostname: n1}
    features: {hostDNS: {enabled: true, forwardKubeDNSToHost: true}}
---
# resolvers
apiVersion: v1alpha1
kind: ResolverConfig
hostDNS:
    enabled: true # on
"#,
        expect![[r#"
            machine:
                type: worker
            ---
            # resolvers
            apiVersion: v1alpha1
            kind: ResolverConfig
            hostDNS:
                enabled: true # on
                forwardKubeDNSToHost: true
            nameservers:
                - address: 1.1.1.1
            --- HostnameConfig
            hostname: n1
        "#]],
    );
}

#[test]
fn a_document_that_says_otherwise_is_named() {
    refuses(
        r#"machine:
    type: worker
    time: {servers: [a.example]}
    network:
        interfaces:
            - interface: eth0
              mtu: 9000
            - interface: eth1
              bridge: {interfaces: []}
cluster:
    network: {}
---
apiVersion: v1alpha1
kind: TimeSyncConfig
ntp:
    servers: [b.example]
---
apiVersion: v1alpha1
kind: LinkConfig
name: eth1
---
apiVersion: v1alpha1
kind: LinkConfig
name: eth0
mtu: 1500
---
apiVersion: v1alpha1
kind: KubeNetworkConfig
dnsDomain: other.local
"#,
        expect![[r#"
            line 3: machine.time.servers: `ntp.servers` of TimeSyncConfig at line 16 says otherwise
            line 7: machine.network.interfaces[0].mtu: `mtu` of LinkConfig/eth0 at line 25 says otherwise
            line 8: machine.network.interfaces[1]: LinkConfig/eth1 at line 18 says otherwise
            line 11: cluster.network: `dnsDomain` of KubeNetworkConfig at line 29 says otherwise
        "#]],
    );
    refuses(
        r#"machine: {type: controlplane}
cluster:
    apiServer: {image: "registry.k8s.io/kube-apiserver:v1.34.0"}
---
apiVersion: v1alpha1
kind: KubeAuthenticationConfig
configuration: {anonymous: {enabled: true}}
---
apiVersion: v1alpha1
kind: KubeAuthorizerConfig
name: hook
type: Webhook
webhook: {timeout: 3s}
"#,
        expect![[r#"
            line 3: cluster.apiServer.image: with a KubeAPIServerConfig the KubeAuthenticationConfig at line 5 would take effect, which it does not now
            line 3: cluster.apiServer.image: with a KubeAPIServerConfig Talos does not add Node and RBAC to the KubeAuthorizerConfig documents any more; add them first
        "#]],
    );
}

#[test]
fn a_text_without_deprecated_fields_is_left_alone() {
    for config in [
        "",
        "apiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n",
        "machine:   {type: worker}",
    ] {
        let target = Target::parse("1.14").unwrap();
        let migrated = migrate(config, target).unwrap();
        assert_eq!(migrated.text, config);
        assert!(migrated.plan.moves.is_empty());
    }
    assert!(migrate("a: [", Target::parse("1.14").unwrap()).is_err());
}

#[test]
fn a_document_that_is_there_stays_valid() {
    refuses(
        r#"machine:
    type: worker
    time: {servers: [a.example]}
---
apiVersion: v1alpha1
kind: TimeSyncConfig
ptp: {devices: [/dev/ptp0]}
"#,
        expect![[r#"
            line 3: machine.time: `ptp` of TimeSyncConfig: only one of `ntp` and `ptp` can be set
        "#]],
    );
}

#[test]
fn what_has_no_equal_and_what_would_not_be_valid_are_told_together() {
    refuses(
        r#"machine:
    type: worker
    disks: [{device: /dev/sdb}]
    time: {servers: [a.example]}
---
apiVersion: v1alpha1
kind: TimeSyncConfig
ptp: {devices: [/dev/ptp0]}
"#,
        expect![[r#"
            line 3: machine.disks[0]: no document takes over partitions that Talos made here; UserVolumeConfig makes new ones
            line 4: machine.time: `ptp` of TimeSyncConfig: only one of `ntp` and `ptp` can be set
        "#]],
    );
    // The document lacks what was refused, so that it is not valid says nothing new.
    refuses(
        r#"machine:
    type: worker
    network:
        interfaces:
            - interface: eth0
              vip: {ip: 10.0.0.1, hcloud: {}}
"#,
        expect![[r#"
            line 6: machine.network.interfaces[0].vip.hcloud: has no `apiToken`
        "#]],
    );
}

#[test]
fn lines_end_as_they_did() {
    let config = "machine:\r\n  type: worker\r\n  # why\r\n  sysctls: {a: b}\r\n  token: x";
    let migrated = migrate(config, Target::parse("1.14").unwrap()).unwrap();
    assert_eq!(
        migrated.text,
        "machine:\r\n  type: worker\r\n  token: x\r\n---\r\napiVersion: v1alpha1\r\nkind: SysctlConfig\r\n# why\r\nparams:\r\n    a: b\r\n"
    );
}

#[test]
fn anchors_and_merges_are_followed() {
    check(
        r#"x-none: &servers
machine: &machine
    type: worker
    sysctls: &s {a: b}
    sysfs: *s
cluster:
    token: t
"#,
        expect![[r#"
            x-none: &servers
            machine: &machine
                type: worker
            cluster:
                token: t
            --- SysctlConfig
            params:
                a: b
            --- SysfsConfig
            params:
                a: b
        "#]],
    );
}

/// The lines of the main document that are left are those that were there, in their order, and other documents are whole.
#[test]
fn a_generated_configuration_keeps_its_lines() {
    let migrated = migrate(GENERATED, Target::parse("1.14").unwrap()).unwrap();
    let (main, others) = GENERATED.split_once("\n---\n").unwrap();
    let (left, documents) = migrated.text.split_once("\n---\n").unwrap();
    let mut lines = main.lines();
    for line in left.lines() {
        assert!(lines.any(|known| known == line), "{line}");
    }
    assert!(documents.starts_with(others.trim_end()));
}

#[test]
fn authorities_of_generated_configurations_are_the_same_in_pem() {
    let documents = |text: &str| {
        let migrated = migrate(text, Target::parse("1.14").unwrap()).unwrap();
        read_documents(&migrated.text).unwrap()
    };
    let document = |documents: &[Value], kind: &str| {
        let of_kind = |document: &&Value| document["kind"] == kind;
        documents.iter().find(of_kind).unwrap().clone()
    };
    let pem = |value: &Value| {
        String::from_utf8(STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap()
    };
    let old = read_documents(GENERATED).unwrap().remove(0);
    let new = documents(GENERATED);
    for (kind, section) in [
        ("KubeAPIServerCAConfig", "ca"),
        ("KubeAggregatorCAConfig", "aggregatorCA"),
    ] {
        let issuing = &document(&new, kind)["issuingCA"];
        assert_eq!(issuing["cert"], pem(&old["cluster"][section]["crt"]));
        assert_eq!(issuing["key"], pem(&old["cluster"][section]["key"]));
    }
    let account = &document(&new, "KubeServiceAccountConfig")["issuer"];
    assert_eq!(
        account["privateKey"],
        pem(&old["cluster"]["serviceAccount"]["key"])
    );
    assert_eq!(
        account["issuerURL"],
        old["cluster"]["controlPlane"]["endpoint"]
    );
    let old = read_documents(WORKER).unwrap().remove(0);
    let accepted = &document(&documents(WORKER), "KubeAPIServerCAConfig")["acceptedCAs"];
    assert_eq!(accepted[0], pem(&old["cluster"]["ca"]["crt"]));
}

#[test]
fn time_does_not_grow_with_the_square_of_the_size() {
    use std::fmt::Write as _;

    let mut text = "machine:\n  type: worker\n  network:\n    nameservers:\n".to_owned();
    for number in 0..2_000 {
        writeln!(text, "      - 10.0.{}.{}", number / 250, number % 250).unwrap();
    }
    text.push_str("  sysctls:\n");
    for number in 0..20_000 {
        writeln!(text, "    net.a{number}: \"{number}\"").unwrap();
    }
    // Takes three seconds without optimization, and took more than a minute.
    let start = std::time::Instant::now();
    let migrated = migrate(&text, Target::parse(TO).unwrap()).unwrap();
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
    assert_eq!(migrated.text.lines().count(), 22_010);
}
