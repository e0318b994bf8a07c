//! The node of Kubernetes and its kubelet.

use expect_test::expect;

use super::{check, refuses};

#[test]
fn a_node_has_the_labels_and_taints_that_talos_added() {
    check(
        r#"machine:
    type: controlplane
    nodeLabels: {rack: 1.10}
    kubelet:
        nodeIP: {validSubnets: [10.0.0.0/8]}
"#,
        expect![[r#"
            machine:
                type: controlplane
            --- KubeNodeConfig
            labels:
                rack: "1.10"
                node-role.kubernetes.io/control-plane: ""
            taints:
                node-role.kubernetes.io/control-plane: NoSchedule
            nodeIP:
                validSubnets:
                    - 10.0.0.0/8
        "#]],
    );
    check(
        "machine:\n    type: controlplane\ncluster:\n    allowSchedulingOnControlPlanes: true\n",
        expect![[r#"
            machine:
                type: controlplane
            cluster: {}
            --- KubeNodeConfig
            labels:
                node-role.kubernetes.io/control-plane: ""
        "#]],
    );
    check(
        r#"machine:
    type: worker
    nodeTaints: {a: b:NoSchedule}
    nodeAnnotations: {c: d}
    kubelet: {registerWithFQDN: true}
cluster:
    allowSchedulingOnMasters: true
"#,
        expect![[r#"
            machine:
                type: worker
            cluster: {}
            --- KubeNodeConfig
            taints:
                a: b:NoSchedule
            registerWithFQDN: true
            annotations:
                c: d
        "#]],
    );
    refuses(
        "machine:\n    nodeLabels: {a: b}\n",
        expect![[r#"
        line 2: machine.nodeLabels: `machine.type` does not say whether this is a control plane node, which decides labels and taints
    "#]],
    );
}

#[test]
fn kubelet() {
    check(
        r#"machine:
    type: worker
    kubelet:
        extraArgs: {v: 2, feature-gates: [A=true, B=false], x: 0x10}
        clusterDNS: [10.96.0.10]
        extraConfig: {maxPods: 0o310, serverTLSBootstrap: true}
        defaultRuntimeSeccompProfileEnabled: true
        disableManifestsDirectory: true
        credentialProviderConfig: {providers: []}
    pods:
        - metadata: {name: nginx}
          spec: {}
"#,
        expect![[r#"
            machine:
                type: worker
            --- KubeletConfig
            image: ghcr.io/siderolabs/kubelet:v1.37.0
            config:
                maxPods: 200
                serverTLSBootstrap: true
            extraArgs:
                v: 2
                feature-gates:
                    - A=true
                    - B=false
                x: "0x10"
            clusterDNS:
                - 10.96.0.10
            defaultRuntimeSeccompProfileEnabled: true
            --- KubeCredentialProviderConfig
            configuration:
                providers: []
            --- KubeStaticPodConfig/default-nginx
            pod:
                metadata:
                    name: nginx
                spec: {}
            (machine.kubelet names no image, so the one of Talos 1.14 is written out: Kubernetes 1.37.0)
        "#]],
    );
    refuses(
        r#"machine:
    type: worker
    kubelet:
        image: ghcr.io/siderolabs/kubelet:v1.34.0
        extraMounts: [{destination: /a, source: /b, type: bind}]
        frobnicate: 1
    pods: [{metadata: {name: A_b}}]
"#,
        expect![[r#"
            line 3: machine.kubelet: reads static pods of a directory, which a KubeletConfig does not; set disableManifestsDirectory to true first
            line 5: machine.kubelet.extraMounts: a KubeletConfig mounts nothing; volumes under /var/mnt are mounted into the kubelet
            line 6: machine.kubelet.frobnicate: Talos 1.14 has no such field
            line 7: machine.pods[0]: has a name that a KubeStaticPodConfig cannot have
        "#]],
    );
}
