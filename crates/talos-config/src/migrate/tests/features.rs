//! Kernel, files and features.

use expect_test::expect;

use super::{check, drops, refuses};

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
            --- EnvironmentConfig
            variables:
                http_proxy: http://p:1
                "N": "010"
            --- SysctlConfig
            params:
                kernel.x: "0644"
                net.core.somaxconn: 65535
                vm.y: "1"
            --- SysfsConfig
            params:
                devices.system.cpu: performance
            --- UdevRulesConfig
            rules:
                - SUBSYSTEM=="drm"
            --- KernelModuleConfig/br_netfilter
            parameters:
                - a=1
            --- KernelModuleConfig/btrfs
            --- CRICustomizationConfig/20-customization
            content: |
                [plugins]
                # metrics
            --- CRIBaseRuntimeSpecConfig
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
            --- ImageCacheConfig
            local:
                enabled: true
            --- KubePrismConfig
            port: 7445
            --- KubeTalosAPIAccessConfig
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
