//! Tests of hiding secrets.

use expect_test::expect;
use serde_json::json;

use super::*;

const CONFIG: &str = r#"version: v1alpha1
machine:
  type: controlplane
  token: aaaaaa.bbbbbbbbbbbbbbbb # rotated, was aaaaaa.bbbbbbbbbbbbbbbb
  ca: {crt: LS0tLS1DRVJUSUZJQ0FURQ==, key: c2VjcmV0LWtleQ==}
  env: {http_proxy: "http://user:hunter2hunter2@proxy:3128/x", GITHUB_TOKEN: ghp_x1}
  registries:
    config:
      r.example: {auth: {username: u, password: pa55, auth: dTpwYTU1, identityToken: idt}}
  network:
    interfaces:
      - wireguard: {privateKey: "wgkey", peers: [{publicKey: pub, presharedKey: psk}]}
  pods:
    - tolerations: [{key: node-role.kubernetes.io/control-plane}]
cluster:
  id: not-secret
  secret: clustersecretvalue
  token: cccccc.dddddddddddddddd
  aescbcEncryptionSecret: aes=
  secretboxEncryptionSecret: box=
  extraManifestHeaders: {Authorization: Bearer xyzxyzxyz}
  inlineManifests:
    - name: s
      contents: |
        apiVersion: v1
        kind: Secret
        metadata: {name: s}
        data:
          password: c3VwZXJzZWNyZXQ=
        stringData:
          other: supersecret
---
apiVersion: v1alpha1
kind: FutureConfig
url: https://h/?jointoken=joinme&x=1
encryption: {keys: [{static: {passphrase: correct horse}}]}
note: the old one was clustersecretvalue
"#;

#[test]
fn secrets_of_a_configuration_are_hidden_wherever_they_stand() {
    expect![[r#"
        version: v1alpha1
        machine:
          type: controlplane
          token: ****** # rotated, was ******
          ca: {crt: LS0tLS1DRVJUSUZJQ0FURQ==, key: ******}
          env: {http_proxy: "http://user:******@proxy:3128/x", GITHUB_TOKEN: ******}
          registries:
            config:
              r.example: {auth: {username: u, password: ******, auth: ******, identityToken: ******}}
          network:
            interfaces:
              - wireguard: {privateKey: "******", peers: [{publicKey: pub, presharedKey: ******}]}
          pods:
            - tolerations: [{key: node-role.kubernetes.io/control-plane}]
        cluster:
          id: not-secret
          secret: ******
          token: ******
          aescbcEncryptionSecret: ******
          secretboxEncryptionSecret: ******
          extraManifestHeaders: {Authorization: ******}
          inlineManifests:
            - name: s
              contents: |
                apiVersion: v1
                kind: Secret
                metadata: {name: s}
                data:
                  password: ******
                stringData:
                  other: ******
        ---
        apiVersion: v1alpha1
        kind: FutureConfig
        url: https://h/?jointoken=******&x=1
        encryption: {keys: [{static: {passphrase: ******}}]}
        note: the old one was ******
    "#]]
    .assert_eq(&text(CONFIG));
}

#[test]
fn a_secret_that_changes_is_seen_to_change() {
    let new = CONFIG
        .replace(
            "  token: aaaaaa.bbbbbbbbbbbbbbbb",
            "  token: eeeeee.ffffffffffffffff",
        )
        .replace("supersecret\n", "another\n");
    expect![[r#"
        --- active
        +++ patched
        @@ -1,7 +1,7 @@
         version: v1alpha1
         machine:
           type: controlplane
        -  token: ****** # rotated, was ******
        +  token: ****** # rotated, was ******
           ca: {crt: LS0tLS1DRVJUSUZJQ0FURQ==, key: ******}
           env: {http_proxy: "http://user:******@proxy:3128/x", GITHUB_TOKEN: ******}
           registries:
        @@ -28,7 +28,7 @@
                 data:
                   password: ******
                 stringData:
        -          other: ******
        +          other: ******
         ---
         apiVersion: v1alpha1
         kind: FutureConfig
    "#]]
    .assert_eq(&diff(CONFIG, &new, "active", "patched"));
}

#[test]
fn what_a_node_says_is_hidden_too() {
    let mut secrets = Secrets::new();
    secrets.collect(CONFIG);
    for (said, want) in [
        (
            "config changed:\n-    token: aaaaaa.bbbbbbbbbbbbbbbb\n+    token: new.value",
            "config changed:\n-    token: ******\n+    token: ******",
        ),
        (
            "unknown keys: {password: pa55}",
            "unknown keys: {password: ******}",
        ),
        (
            "could not use clustersecretvalue at r.example",
            "could not use ****** at r.example",
        ),
        ("box= is a pa55port", "****** is a pa55port"),
    ] {
        assert_eq!(secrets.mask(said), want);
    }
    assert!(secrets.values().any(|value| value == "supersecret"));
}

#[test]
fn raw_private_keys_are_hidden_line_by_line() {
    let pem = "kind: KubeAPIServerCAConfig\nissuingCA:\n    cert: x\n    key: |\n        -----BEGIN EC PRIVATE KEY-----\n        MHcCAQEEIPmMbCJXjDDzOAhIxmT2nl\n        -----END EC PRIVATE KEY-----\nother: MHcCAQEEIPmMbCJXjDDzOAhIxmT2nl\n";
    expect![[r#"
        kind: KubeAPIServerCAConfig
        issuingCA:
            cert: x
            key: ******
        other: ******
    "#]]
    .assert_eq(&text(pem));
}

#[test]
fn values_are_hidden_like_texts() {
    let masked =
        value(&json!({"token": "aaaaaa.bbbb", "note": "uses aaaaaa.bbbb", "n": 1, "password": 5}));
    assert_eq!(
        masked,
        json!({"token": MASK, "note": "uses ******", "n": 1, "password": MASK})
    );
}

#[test]
fn a_text_that_is_no_yaml_is_hidden_by_its_lines() {
    assert_eq!(
        text("a: [\n  token: abcdefgh\nabcdefgh"),
        "a: [\n  token: ******\n******"
    );
    assert_eq!(text("token:\nkey: node-role\n"), "token:\nkey: node-role\n");
}

#[test]
fn a_masked_text_stays_as_it_is() {
    let masked = "token: '******'\nkey: ******\n";
    assert_eq!(Secrets::new().mask(masked), masked);
}

#[test]
fn a_secret_of_several_words_is_hidden_to_its_end() {
    for (line, hidden) in [
        ("password: correct horse battery", "password: ******"),
        ("  token: a b c # old", "  token: ****** # old"),
        (r#"password: "a\"b c" # x"#, "password: ****** # x"),
        ("{token: abc, name: d}", "{token: ******, name: d}"),
        (
            "+ registryPasswordX: abc def",
            "+ registryPasswordX: ******",
        ),
    ] {
        assert_eq!(Secrets::new().mask(line), hidden);
    }
}

#[test]
fn nothing_is_hidden_where_a_secret_is_empty() {
    for line in [
        r#"    "aescbcEncryptionSecret": "","#,
        r#"    "token": null,"#,
        "secret: ''",
    ] {
        assert_eq!(Secrets::new().mask(line), line);
    }
}

#[test]
fn a_key_of_bytes_is_hidden_as_a_whole_and_its_bytes_elsewhere_are_not() {
    let spec = json!({"serviceEncryptionKey": [62, 97, 169], "port": 62, "ports": [97]});
    assert_eq!(
        value(&spec),
        json!({"serviceEncryptionKey": MASK, "port": 62, "ports": [97]})
    );
}

#[test]
fn variables_of_an_environment_list_are_hidden_by_their_names() {
    let spec = json!({"environment": ["TS_AUTHKEY=tskey-123456", "MODE=fast"]});
    assert_eq!(
        value(&spec),
        json!({"environment": [format!("TS_AUTHKEY={MASK}"), "MODE=fast"]})
    );
}
