//! The machine: names, time, registries, disks, kernel, features, kubelet and node.

use expect_test::expect;

use super::{check, drops, refuses};

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
            ---
            apiVersion: v1alpha1
            kind: HostnameConfig
            hostname: n1.example.com
            ---
            apiVersion: v1alpha1
            kind: ResolverConfig
            nameservers:
                - address: 1.1.1.1
                - address: "2606:4700:4700::1111"
            searchDomains:
                domains: []
                disableDefault: true
            hostDNS:
                enabled: true
                resolveMemberNames: false
            ---
            apiVersion: v1alpha1
            kind: StaticHostConfig
            name: 10.0.0.9
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
            ---
            apiVersion: v1alpha1
            kind: HostnameConfig
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
            ---
            apiVersion: v1alpha1
            kind: TimeSyncConfig
            enabled: false
            bootTimeout: 2m0s
            ntp:
                servers:
                    - time.example
            ---
            apiVersion: v1alpha1
            kind: KubeSpanConfig
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
            ---
            apiVersion: v1alpha1
            kind: RegistryMirrorConfig
            name: docker.io
            endpoints:
                - url: https://a.example
                  overridePath: true
                - url: http://b.example/v2
                  overridePath: true
            ---
            apiVersion: v1alpha1
            kind: RegistryMirrorConfig
            name: '*'
            endpoints:
                - url: https://c.example
            skipFallback: true
            ---
            apiVersion: v1alpha1
            kind: RegistryTLSConfig
            name: a.example:5000
            insecureSkipVerify: true
            ---
            apiVersion: v1alpha1
            kind: RegistryAuthConfig
            name: a.example:5000
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
fn encrypted_volumes_and_disks() {
    check(
        r#"machine:
    type: worker
    systemDiskEncryption:
        state:
            keys: [{nodeID: {}, slot: 0}]
        ephemeral:
            provider: luks2
            keys:
                - static: {passphrase: 0123}
                  slot: 1
            cipher: aes-xts-plain64
            keySize: 512
            options: [no_read_workqueue]
"#,
        expect![[r#"
            machine:
                type: worker
            ---
            apiVersion: v1alpha1
            kind: VolumeConfig
            name: STATE
            encryption:
                keys:
                    - nodeID: {}
                      slot: 0
                provider: luks2
            ---
            apiVersion: v1alpha1
            kind: VolumeConfig
            name: EPHEMERAL
            encryption:
                provider: luks2
                keys:
                    - static:
                          passphrase: "0123"
                      slot: 1
                cipher: aes-xts-plain64
                keySize: 512
                options:
                    - no_read_workqueue
        "#]],
    );
    refuses(
        r#"machine:
    disks:
        - device: /dev/sdb
          partitions: [{mountpoint: /var/mnt/extra}]
    systemDiskEncryption:
        state: {provider: luks9, keys: [{nodeID: {}, slot: 0}]}
"#,
        expect![[r#"
            line 3: machine.disks[0]: no document takes over partitions that Talos made here; UserVolumeConfig makes new ones
            line 6: machine.systemDiskEncryption.state.provider: is not luks2, the only one there is
        "#]],
    );
}

#[test]
fn installation() {
    check(
        r#"machine:
    type: worker
    install:
        disk: /dev/sda
        image: ghcr.io/siderolabs/installer:v1.14.1
        bootloader: true
        extensions: []
        legacyBIOSSupport: false
"#,
        expect![[r#"
            machine:
                type: worker
            ---
            apiVersion: v1alpha1
            kind: UnattendedInstallConfig
            installer:
                image: ghcr.io/siderolabs/installer:v1.14.1
            provisioning:
                diskSelector:
                    match: disk.dev_path == "/dev/sda"
                wipe: false
            (with an UnattendedInstallConfig GRUB takes the kernel arguments of the image; machine.install without grubUseUKICmdline did not)
        "#]],
    );
    check(
        r#"machine:
    type: worker
    install:
        diskSelector: {size: ">= 1.5TB", model: WDC*, type: nvme, busPath: /pci*}
        wipe: true
        grubUseUKICmdline: true
"#,
        expect![[r#"
            machine:
                type: worker
            ---
            apiVersion: v1alpha1
            kind: UnattendedInstallConfig
            provisioning:
                diskSelector:
                    match: disk.size >= 1500000000000u && glob("WDC*", disk.model) && disk.transport != "" && disk.transport == "nvme" && glob("/pci*", disk.bus_path) && !disk.readonly && !disk.cdrom
                wipe: true
        "#]],
    );
    refuses(
        r#"machine:
    install:
        diskSelector: {name: sda, size: much}
        extraKernelArgs: [console=ttyS0]
        extensions: [{image: ghcr.io/siderolabs/gvisor:1}]
        legacyBIOSSupport: true
        grubUseUKICmdline: false
"#,
        expect![[r#"
            line 3: machine.install.diskSelector.name: Talos does not select by this
            line 3: machine.install.diskSelector.size: is no size
            line 4: machine.install.extraKernelArgs: kernel arguments come with the image; build one with them
            line 5: machine.install.extensions: extensions come with the image; build one with them
            line 6: machine.install.legacyBIOSSupport: no document marks the partition for an old BIOS
            line 7: machine.install.grubUseUKICmdline: GRUB always takes the kernel arguments of the image with an UnattendedInstallConfig
        "#]],
    );
    refuses(
        "machine:\n    install:\n        image: a:b\n",
        expect![[r#"
        line 2: machine.install: names no disk, which an UnattendedInstallConfig needs
    "#]],
    );
}

#[test]
fn kernel_and_files() {
    check(
        r#"machine:
    type: worker
    env: {http_proxy: http://p:1, N: 010}
    sysctls:
        kernel.x: 0644
        net.core.somaxconn: 65535
        vm.y: "1"
    sysfs: {devices.system.cpu: performance}
    udev: {rules: ['SUBSYSTEM=="drm"']}
    kernel:
        modules:
            - name: br_netfilter
              parameters: [a=1]
            - name: btrfs
    baseRuntimeSpecOverrides: {process: {noNewPrivileges: true}}
    files:
        - path: /etc/cri/conf.d/20-customization.part
          op: create
          permissions: 0o644
          content: |
            [plugins]
            # metrics
"#,
        expect![[r#"
            machine:
                type: worker
            ---
            apiVersion: v1alpha1
            kind: EnvironmentConfig
            variables:
                http_proxy: http://p:1
                "N": "010"
            ---
            apiVersion: v1alpha1
            kind: SysctlConfig
            params:
                kernel.x: "0644"
                net.core.somaxconn: 65535
                vm.y: "1"
            ---
            apiVersion: v1alpha1
            kind: SysfsConfig
            params:
                devices.system.cpu: performance
            ---
            apiVersion: v1alpha1
            kind: UdevRulesConfig
            rules:
                - SUBSYSTEM=="drm"
            ---
            apiVersion: v1alpha1
            kind: KernelModuleConfig
            name: br_netfilter
            parameters:
                - a=1
            ---
            apiVersion: v1alpha1
            kind: KernelModuleConfig
            name: btrfs
            ---
            apiVersion: v1alpha1
            kind: CRICustomizationConfig
            name: 20-customization
            content: |
                [plugins]
                # metrics
            ---
            apiVersion: v1alpha1
            kind: CRIBaseRuntimeSpecConfig
            overrides:
                process:
                    noNewPrivileges: true
        "#]],
    );
    refuses(
        r#"machine:
    env: {"a-b": 1}
    kernel: {modules: [{name: a}, {name: a}]}
    files:
        - {path: /var/lib/x, op: create, permissions: 0o600, content: y}
"#,
        expect![[r#"
            line 2: machine.env.a-b: is no name of a variable that an EnvironmentConfig takes
            line 3: machine.kernel.modules[1]: another entry is for the module a too
            line 5: machine.files[0]: no document writes the file "/var/lib/x"; EtcFileConfig writes below /etc, images and extensions bring others
        "#]],
    );
}

#[test]
fn features() {
    check(
        r#"machine:
    type: controlplane
    features:
        rbac: true
        kubePrism: {enabled: true}
        imageCache: {localEnabled: true}
        kubernetesTalosAPIAccess:
            enabled: true
            allowedRoles: [os:reader]
            allowedKubernetesNamespaces: [kube-system]
"#,
        expect![[r#"
            machine:
                type: controlplane
                features:
                    rbac: true
            ---
            apiVersion: v1alpha1
            kind: ImageCacheConfig
            local:
                enabled: true
            ---
            apiVersion: v1alpha1
            kind: KubePrismConfig
            port: 7445
            ---
            apiVersion: v1alpha1
            kind: KubeTalosAPIAccessConfig
            allowedRoles:
                - os:reader
            allowedKubernetesNamespaces:
                - kube-system
        "#]],
    );
    drops(
        r#"machine:
    type: controlplane
    features:
        stableHostname: false
        kubePrism: {enabled: false, port: 1}
        kubernetesTalosAPIAccess: {allowedRoles: [os:reader]}
"#,
        expect![[r#"
            4: machine.features.stableHostname: it is the default
            5: machine.features.kubePrism: it is switched off
            6: machine.features.kubernetesTalosAPIAccess: it is switched off
        "#]],
    );
}

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
            ---
            apiVersion: v1alpha1
            kind: KubeNodeConfig
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
            ---
            apiVersion: v1alpha1
            kind: KubeNodeConfig
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
            ---
            apiVersion: v1alpha1
            kind: KubeNodeConfig
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
            ---
            apiVersion: v1alpha1
            kind: KubeletConfig
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
            ---
            apiVersion: v1alpha1
            kind: KubeCredentialProviderConfig
            configuration:
                providers: []
            ---
            apiVersion: v1alpha1
            kind: KubeStaticPodConfig
            name: default-nginx
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
