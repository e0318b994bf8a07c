//! The machine: names, resolvers, time and registries.

use expect_test::expect;

use super::{TO, Target, check, migrate, refuses, short};

#[test]
fn names_and_resolvers() {
    check(
        r#"machine:
    type: worker
    network:
        hostname: n1.example.com
        nameservers: [1.1.1.1, "2606:4700:4700::1111"]
        searchDomains: []
        disableSearchDomain: yes
        extraHostEntries:
            - ip: 10.0.0.9
              aliases: [a]
            - ip: 10.0.0.9
              aliases: [b, c.example]
    features:
        stableHostname: true
        hostDNS: {enabled: true, resolveMemberNames: false}
"#,
        expect![[r#"
            machine:
                type: worker
            --- HostnameConfig
            hostname: n1.example.com
            --- ResolverConfig
            nameservers:
                - address: 1.1.1.1
                - address: "2606:4700:4700::1111"
            searchDomains:
                domains: []
                disableDefault: true
            hostDNS:
                enabled: true
                resolveMemberNames: false
            --- StaticHostConfig/10.0.0.9
            hostnames:
                - a
                - b
                - c.example
        "#]],
    );
    check(
        "machine:\n    type: worker\n    features:\n        stableHostname: true\n",
        expect![[r#"
            machine:
                type: worker
            --- HostnameConfig
            auto: stable
        "#]],
    );
    refuses(
        r#"machine:
    network:
        nameservers: [dns.example]
        extraHostEntries:
            - ip: host
              aliases: [a]
            - ip: 10.0.0.1
              aliases: []
"#,
        expect![[r#"
            line 3: machine.network.nameservers[0]: is no address, so Talos has not used it so far
            line 5: machine.network.extraHostEntries[0]: has no address in `ip`, which the document is named by
            line 7: machine.network.extraHostEntries[1]: has no name in `aliases`, of which a StaticHostConfig needs one
        "#]],
    );
}

#[test]
fn time_and_kubespan() {
    check(
        r#"machine:
    type: worker
    time:
        disabled: true
        servers: [time.example]
        bootTimeout: 2m0s
    network:
        kubespan:
            advertiseKubernetesNetworks: true
            mtu: 0
            filters:
                endpoints: [0.0.0.0/0, "!192.168.0.0/16"]
cluster:
    discovery: {enabled: false}
"#,
        expect![[r#"
            machine:
                type: worker
            cluster: {}
            --- TimeSyncConfig
            enabled: false
            bootTimeout: 2m0s
            ntp:
                servers:
                    - time.example
            --- KubeSpanConfig
            advertiseKubernetesNetworks: true
            filters:
                endpoints:
                    - 0.0.0.0/0
                    - '!192.168.0.0/16'
        "#]],
    );
}

#[test]
fn registries_have_pem_and_urls_of_their_own() {
    check(
        r#"machine:
    type: worker
    registries:
        mirrors:
            docker.io:
                endpoints: [https://a.example, http://b.example/v2]
                overridePath: true
            "*":
                endpoints: [https://c.example]
                skipFallback: true
        config:
            a.example:5000:
                auth: {username: u, password: 007}
                tls:
                    insecureSkipVerify: true
"#,
        expect![[r#"
            machine:
                type: worker
            --- RegistryMirrorConfig/docker.io
            endpoints:
                - url: https://a.example
                  overridePath: true
                - url: http://b.example/v2
                  overridePath: true
            --- RegistryMirrorConfig/'*'
            endpoints:
                - url: https://c.example
            skipFallback: true
            --- RegistryTLSConfig/a.example:5000
            insecureSkipVerify: true
            --- RegistryAuthConfig/a.example:5000
            username: u
            password: "007"
        "#]],
    );
    refuses(
        r#"machine:
    registries:
        mirrors:
            docker.io: {endpoints: [ftp://a.example]}
        config:
            a.example:
                auth: {username: u, identityToken: t}
                tls: {ca: bm8gUEVN, clientIdentity: {crt: '!', key: '******'}}
"#,
        expect![[r#"
            line 4: machine.registries.mirrors["docker.io"].endpoints[0]: is no http or https URL, which a RegistryMirrorConfig needs
            line 7: machine.registries.config["a.example"].auth: has username and identityToken; a RegistryAuthConfig takes one way only
            line 8: machine.registries.config["a.example"].tls.clientIdentity.crt: is not the base64 of PEM text
            line 8: machine.registries.config["a.example"].tls.clientIdentity.key: was redacted; migrate the configuration that has it
            line 8: machine.registries.config["a.example"].tls.ca: is not the base64 of PEM text
        "#]],
    );
}

#[test]
fn many_host_entries_of_one_address_become_one_document() {
    let entries: String = (0..3000)
        .map(|at| format!("            - {{ip: 10.0.0.9, aliases: [h{at}]}}\n"))
        .collect();
    let config =
        format!("machine:\n    type: worker\n    network:\n        extraHostEntries:\n{entries}");
    let names: String = (0..3000).map(|at| format!("    - h{at}\n")).collect();
    let target = Target::parse(TO).unwrap();
    assert_eq!(
        short(&migrate(&config, target).unwrap().text),
        format!("machine:\n    type: worker\n--- StaticHostConfig/10.0.0.9\nhostnames:\n{names}")
    );
}
