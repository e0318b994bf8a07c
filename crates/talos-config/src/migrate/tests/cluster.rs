//! The cluster and its control plane.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use expect_test::expect;

use super::{becomes, check, drops, node, refuses};

#[test]
fn identity_and_endpoint() {
    check(
        r#"machine:
    type: controlplane
cluster:
    id: aWQ=
    secret: NPnGGh0EZ/EJNPEoPsSKAOdOw3ozxtLfozG1/XIsCgg=
    clusterName: c
    controlPlane:
        endpoint: https://10.0.0.1:6443 # the VIP
        localAPIServerPort: 7443
    token: a.b
"#,
        expect![[r#"
            machine:
                type: controlplane
            cluster:
                token: a.b
            --- DiscoveryIdentityConfig
            clusterID: aWQ=
            clusterSecret: NPnGGh0EZ/EJNPEoPsSKAOdOw3ozxtLfozG1/XIsCgg=
            --- KubeClusterConfig
            clusterName: c
            endpoint: https://10.0.0.1:6443 # the VIP
            --- KubeAuthenticationConfig
            configuration:
                anonymous:
                    enabled: false
            --- KubeAuthorizerConfig/node
            type: Node
            --- KubeAuthorizerConfig/rbac
            type: RBAC
            --- KubeAPIServerConfig
            image: registry.k8s.io/kube-apiserver:v1.37.0
            apiPort: 7443
            startupProbes: false
            (cluster.apiServer names no image, so the one of Talos 1.14 is written out: Kubernetes 1.37.0)
        "#]],
    );
    refuses(
        "machine:\n    type: worker\ncluster:\n    id: a\n    controlPlane: {endpoint: https://a:6443}\n",
        expect![[r#"
            line 4: cluster.id: stands without `cluster.secret`, and a DiscoveryIdentityConfig needs both
            line 5: cluster.controlPlane.endpoint: stands without `cluster.clusterName`, and a KubeClusterConfig needs both
        "#]],
    );
}

#[test]
fn networks() {
    becomes(
        "    network:\n        podSubnets: [10.1.0.0/16, fd01::/56]\n        serviceSubnets: [10.2.0.0/16, fd02::/112]\n        cni: {name: none}\n",
        expect![[r#"
            --- KubeNetworkConfig
            dnsDomain: cluster.local
            podSubnets:
                - 10.1.0.0/16
                - fd01::/56
            serviceSubnets:
                - 10.2.0.0/16
                - fd02::/112
        "#]],
    );
    becomes(
        "    # the usual\n    network: {cni: {flannel: {extraArgs: [--v=2], kubeNetworkPoliciesEnabled: yes}, name: flannel}}\n",
        expect![[r#"
            ---
            # the usual
            apiVersion: v1alpha1
            kind: KubeNetworkConfig
            dnsDomain: cluster.local
            podSubnets:
                - 10.244.0.0/16
            serviceSubnets:
                - 10.96.0.0/12
            --- KubeFlannelCNIConfig
            backendType: vxlan
            backendPort: 4789
            extraArgs:
                - --v=2
            kubeNetworkPoliciesEnabled: true
        "#]],
    );
    becomes(
        "    network:\n        dnsDomain: k8s.local\n        cni:\n            name: custom\n            urls: [https://x.example/a/Calico_3.yaml, https://x.example/b/calico-3.yml?v=1, https://x.example/]\n    extraManifests: [https://y.example/z.yaml]\n    extraManifestHeaders: {Token: 1}\n",
        expect![[r#"
            --- KubeNetworkConfig
            dnsDomain: k8s.local
            podSubnets:
                - 10.244.0.0/16
            serviceSubnets:
                - 10.96.0.0/12
            --- KubeExternalManifestConfig/z
            url: https://y.example/z.yaml
            headers:
                Token: "1"
            --- KubeExternalManifestConfig/calico-3
            url: https://x.example/a/Calico_3.yaml
            headers:
                Token: "1"
            --- KubeExternalManifestConfig/calico-3-2
            url: https://x.example/b/calico-3.yml?v=1
            headers:
                Token: "1"
            --- KubeExternalManifestConfig/manifest
            url: https://x.example/
            headers:
                Token: "1"
        "#]],
    );
    refuses(
        &node(
            "    network: {cni: {name: cilium}, podSubnets: [x, 10.1.0.0/16]}\n    extraManifests: [/tmp/x]\n",
        ),
        expect![[r#"
            line 7: cluster.network.podSubnets[0]: is no subnet
            line 7: cluster.network.cni: names none of flannel, custom and none
            line 8: cluster.extraManifests[0]: is no http or https URL, which a KubeExternalManifestConfig needs
        "#]],
    );
}

#[test]
fn authorities_are_pem() {
    let pem = |label: &str| {
        STANDARD.encode(format!(
            "-----BEGIN {label}-----\nAA==\n-----END {label}-----\n"
        ))
    };
    let (cert, key) = (pem("CERTIFICATE"), pem("EC PRIVATE KEY"));
    // A made-up certificate parses as PEM only, and is refused when the document is looked at.
    refuses(
        &node(&format!(
            "    ca:\n        crt: {cert}\n        key: {key}\n    aggregatorCA: {{crt: {cert}}}\n    serviceAccount: {{key: '******'}}\n"
        )),
        expect![[r#"
            line 7: cluster.ca: KubeAPIServerCAConfig: it is not said how etcd is encrypted
            line 7: cluster.ca: `issuingCA.cert` of KubeAPIServerCAConfig: the certificate cannot be read
            line 7: cluster.ca: `issuingCA.key` of KubeAPIServerCAConfig: a private key in PEM is expected
            line 10: cluster.aggregatorCA: has not both a certificate and a key, and a KubeAggregatorCAConfig needs both
            line 11: cluster.serviceAccount.key: was redacted; migrate the configuration that has it
        "#]],
    );
}

#[test]
fn other_parts_of_the_control_plane() {
    check(
        r#"machine:
    type: controlplane
    controlPlane:
        controllerManager: {disabled: false}
        scheduler: {disabled: true}
cluster:
    controllerManager:
        extraArgs: {bind-address: 0.0.0.0}
    scheduler:
        image: registry.k8s.io/kube-scheduler:v1.34.0
        config: {profiles: []}
    proxy:
        image: registry.k8s.io/kube-proxy:v1.34.0
        mode: ipvs
        extraArgs: {ipvs-strict-arp: true, metrics-bind-address: "0.0.0.0:10249", nodeport-addresses: "10.0.0.0/8,192.168.0.0/16"}
    coreDNS: {disabled: true}
    inlineManifests:
        - name: ns
          contents: |
            kind: Namespace
            metadata: {name: ns}
    adminKubeconfig: {certLifetime: 1h0m0s}
    externalCloudProvider: {enabled: true}
"#,
        expect![[r#"
            machine:
                type: controlplane
            cluster:
                adminKubeconfig: {certLifetime: 1h0m0s}
                externalCloudProvider: {enabled: true}
            --- KubeControllerManagerConfig
            image: registry.k8s.io/kube-controller-manager:v1.37.0
            extraArgs:
                bind-address: 0.0.0.0
            --- KubeSchedulerConfig
            enabled: false
            image: registry.k8s.io/kube-scheduler:v1.34.0
            config:
                profiles: []
            --- KubeProxyConfig
            image: registry.k8s.io/kube-proxy:v1.34.0
            config:
                ipvs:
                    strictARP: true
                metricsBindAddress: 0.0.0.0:10249
                nodePortAddresses:
                    - 10.0.0.0/8
                    - 192.168.0.0/16
            mode: ipvs
            --- KubeCoreDNSConfig
            enabled: false
            --- KubeInlineManifestConfig/ns
            manifest: |
                kind: Namespace
                metadata: {name: ns}
            (cluster.controllerManager names no image, so the one of Talos 1.14 is written out: Kubernetes 1.37.0)
        "#]],
    );
    refuses(
        &node(
            "    proxy: {extraArgs: {v: 2}}\n    scheduler: {extraVolumes: [{hostPath: /a, mountPath: /b}]}\n    inlineManifests: [{name: A, contents: x}, {name: b, contents: x}, {name: b, contents: y}]\n",
        ),
        expect![[r#"
            line 7: cluster.proxy.extraArgs.v: is an argument that kube-proxy ignores beside a file; write it into `config` of a KubeProxyConfig
            line 8: cluster.scheduler.extraVolumes: a KubeSchedulerConfig mounts no folders of the host
            line 9: cluster.inlineManifests[0]: has the name "A", which a KubeInlineManifestConfig cannot have
            line 9: cluster.inlineManifests[2]: another manifest is b too
        "#]],
    );
}

#[test]
fn discovery() {
    check(
        r#"machine:
    type: worker
cluster:
    discovery:
        enabled: true
        registries:
            kubernetes: {disabled: true}
            service: {endpoint: https://d.example/}
---
apiVersion: v1alpha1
kind: DiscoveryIdentityConfig
clusterID: aWQ=
clusterSecret: NPnGGh0EZ/EJNPEoPsSKAOdOw3ozxtLfozG1/XIsCgg=
"#,
        expect![[r#"
            machine:
                type: worker
            cluster: {}
            --- DiscoveryIdentityConfig
            clusterID: aWQ=
            clusterSecret: NPnGGh0EZ/EJNPEoPsSKAOdOw3ozxtLfozG1/XIsCgg=
            --- DiscoveryServiceConfig/default
            endpoint: https://d.example/
        "#]],
    );
    refuses(
        "machine: {type: worker}\ncluster:\n    discovery: {enabled: true}\n",
        expect![[r#"
            line 3: cluster.discovery: no document switches on discovery by Kubernetes; set registries.kubernetes.disabled to true first
        "#]],
    );
}

#[test]
fn what_only_control_plane_nodes_read_goes_from_workers() {
    drops(
        r#"machine:
    type: worker
cluster:
    apiServer: {image: "registry.k8s.io/kube-apiserver:v1.34.0", certSANs: [a]}
    proxy: {disabled: true}
    coreDNS: {image: x:1}
    network: {cni: {name: flannel}}
    secretboxEncryptionSecret: c2VjcmV0
"#,
        expect![[r#"
            4: cluster.apiServer.image: it has no effect on a worker
            4: cluster.apiServer.certSANs: it has no effect on a worker
            5: cluster.proxy.disabled: it has no effect on a worker
            6: cluster.coreDNS.image: it has no effect on a worker
            7: cluster.network.cni: it has no effect on a worker
            8: cluster.secretboxEncryptionSecret: it has no effect on a worker
        "#]],
    );
    refuses(
        "cluster:\n    proxy: {disabled: true}\n",
        expect![[r#"
        line 2: cluster.proxy.disabled: `machine.type` does not say whether this is a control plane node
    "#]],
    );
}
