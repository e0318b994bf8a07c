//! The API server: what it encrypts, who may ask it, and how.

use expect_test::expect;

use super::{becomes, node, refuses};

#[test]
fn secrets_in_etcd_are_encrypted_as_before() {
    becomes(
        "    secretboxEncryptionSecret: c2VjcmV0\n    aescbcEncryptionSecret: b2xk\n",
        expect![[r#"
            --- KubeEtcdEncryptionConfig
            config:
                resources:
                    - providers:
                          - secretbox:
                                keys:
                                    - name: key2
                                      secret: c2VjcmV0
                          - aescbc:
                                keys:
                                    - name: key1
                                      secret: b2xk
                          - identity: {}
                      resources:
                          - secrets
        "#]],
    );
}

#[test]
fn the_api_server_asks_and_authorizes_as_before() {
    becomes(
        r#"    apiServer:
        image: registry.k8s.io/kube-apiserver:v1.34.0
        extraArgs: {anonymous-auth: "true", feature-gates: A=true, authorization-mode: "Node,RBAC"}
        env: {A: b}
        certSANs: [a.example]
        disablePodSecurityPolicy: true
        resources: {requests: {cpu: 1}}
        auditPolicy: {apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: None}]}
        admissionControl:
            - name: PodSecurity
              configuration: {defaults: {enforce: baseline}}
"#,
        expect![[r#"
            --- KubeAdmissionControlConfig/PodSecurity
            configuration:
                defaults:
                    enforce: baseline
            --- KubeAuditPolicyConfig
            configuration:
                apiVersion: audit.k8s.io/v1
                kind: Policy
                rules:
                    - level: None
            --- KubeAuthenticationConfig
            configuration:
                anonymous:
                    enabled: true
            --- KubeAuthorizerConfig/node
            type: Node
            --- KubeAuthorizerConfig/rbac
            type: RBAC
            --- KubeAPIServerConfig
            image: registry.k8s.io/kube-apiserver:v1.34.0
            extraArgs:
                feature-gates: A=true
            env:
                A: b
            resources:
                requests:
                    cpu: 1
            certExtraSANs:
                - a.example
            startupProbes: false
        "#]],
    );
    becomes(
        "    apiServer:\n        authorizationConfig:\n            - {type: Webhook, name: hook, webhook: {timeout: 3s}}\n",
        expect![[r#"
            --- KubeAuthorizerConfig/node
            type: Node
            --- KubeAuthorizerConfig/rbac
            type: RBAC
            --- KubeAuthorizerConfig/hook
            type: Webhook
            webhook:
                timeout: 3s
        "#]],
    );
    refuses(
        &node(
            r#"    apiServer:
        extraArgs: {oidc-issuer-url: https://a.example, oidc-ca-file: /x, authorization-mode: AlwaysAllow, authentication-config: /x}
        extraVolumes: [{hostPath: /a, mountPath: /b}]
        authorizationConfig: [{type: RBAC, name: r}]
        admissionControl: [{configuration: {}}]
"#,
        ),
        expect![[r#"
            line 8: cluster.apiServer.extraArgs.authorization-mode: names modes that belong into KubeAuthorizerConfig documents
            line 8: cluster.apiServer.extraArgs.authentication-config: belongs into a KubeAuthenticationConfig, whose content is in a file here
            line 8: cluster.apiServer.extraArgs.oidc-ca-file: names a file, and a KubeAuthenticationConfig has the certificates themselves
            line 9: cluster.apiServer.extraVolumes: a KubeAPIServerConfig mounts no folders of the host
            line 10: cluster.apiServer.authorizationConfig: leaves Node out, which Talos adds in the midst of it; name it here first
            line 11: cluster.apiServer.admissionControl[0]: has no `name`
        "#]],
    );
}

#[test]
fn arguments_for_open_id_connect_become_an_authenticator() {
    becomes(
        r#"    apiServer:
        image: registry.k8s.io/kube-apiserver:v1.34.0
        extraArgs:
            oidc-issuer-url: https://id.example
            oidc-client-id: kubernetes
            oidc-groups-claim: groups
            oidc-groups-prefix: "g:"
            oidc-required-claim: [hd=example.com]
"#,
        expect![[r#"
            --- KubeAuthenticationConfig
            configuration:
                anonymous:
                    enabled: false
                jwt:
                    - issuer:
                          url: https://id.example
                          audiences:
                              - kubernetes
                      claimMappings:
                          username:
                              claim: sub
                              prefix: https://id.example#
                          groups:
                              claim: groups
                              prefix: 'g:'
                      claimValidationRules:
                          - claim: hd
                            requiredValue: example.com
            --- KubeAuthorizerConfig/node
            type: Node
            --- KubeAuthorizerConfig/rbac
            type: RBAC
            --- KubeAPIServerConfig
            image: registry.k8s.io/kube-apiserver:v1.34.0
            startupProbes: false
            (with a KubeAuthenticationConfig the API server takes tokens signed with any algorithm for OpenID Connect, not with RS256 only)
        "#]],
    );
    becomes(
        r#"    apiServer:
        image: registry.k8s.io/kube-apiserver:v1.34.0
        extraArgs: {oidc-issuer-url: https://id.example, oidc-client-id: k, oidc-username-claim: email, v: 2}
"#,
        expect![[r#"
            --- KubeAuthenticationConfig
            configuration:
                anonymous:
                    enabled: false
                jwt:
                    - issuer:
                          url: https://id.example
                          audiences:
                              - k
                      claimMappings:
                          username:
                              claim: email
                              prefix: ""
            --- KubeAuthorizerConfig/node
            type: Node
            --- KubeAuthorizerConfig/rbac
            type: RBAC
            --- KubeAPIServerConfig
            image: registry.k8s.io/kube-apiserver:v1.34.0
            extraArgs:
                v: 2
            startupProbes: false
            (with a KubeAuthenticationConfig the API server takes tokens signed with any algorithm for OpenID Connect, not with RS256 only)
        "#]],
    );
    refuses(
        &node("    apiServer: {extraArgs: {oidc-client-id: k, oidc-signing-algs: RS256}}\n"),
        expect![[r#"
            line 7: cluster.apiServer.extraArgs.oidc-signing-algs: a KubeAuthenticationConfig has no such setting
        "#]],
    );
}
