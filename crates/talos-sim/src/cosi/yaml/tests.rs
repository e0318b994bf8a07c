//! What is written looks as on a real machine and reads as what it was.

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::render;

#[test]
fn renders_like_the_recorded_machine() {
    expect![[r##"
        image: registry.k8s.io/kube-apiserver:v1.36.3
        cloudProvider: ""
        etcdServers:
            - https://127.0.0.1:2379
        extraArgs: {}
        extraVolumes: []
        advertisedAddress: $(POD_IP)
        listenAddress: :50000
        version: "1111"
        firmware: "2.3"
        hostIP: 10.5.0.2
        jsonPath: '{.nodename}'
        upstream: '#000 127.0.0.11'
        user: null
        since: "2026-11-30T16:12:18Z"
        features: on
        config:
            - name: PodSecurity
              configuration:
                apiVersion: v1alpha1
                defaults:
                    audit: restricted
            - - 1
        contents: |
            127.0.0.1 localhost

              ::1
        kept: |4+
             x

        tail: "a \nb"
    "##]]
    .assert_eq(&render(&json!({
        "image": "registry.k8s.io/kube-apiserver:v1.36.3",
        "cloudProvider": "",
        "etcdServers": ["https://127.0.0.1:2379"],
        "extraArgs": {},
        "extraVolumes": [],
        "advertisedAddress": "$(POD_IP)",
        "listenAddress": ":50000",
        "version": "1111",
        "firmware": "2.3",
        "hostIP": "10.5.0.2",
        "jsonPath": "{.nodename}",
        "upstream": "#000 127.0.0.11",
        "user": null,
        "since": "2026-11-30T16:12:18Z",
        "features": "on",
        "config": [
            {"name": "PodSecurity", "configuration": {
                "apiVersion": "v1alpha1", "defaults": {"audit": "restricted"}}},
            [1],
        ],
        "contents": "127.0.0.1 localhost\n\n  ::1\n",
        "kept": " x\n\n",
        "tail": "a \nb",
    })));
}

#[test]
fn renders_bare_scalars_and_lists() {
    assert_eq!(render(&json!("controlplane")), "controlplane\n");
    assert_eq!(render(&json!({})), "{}\n");
    assert_eq!(render(&json!([{"a": 1}])), "- a: 1\n");
}

proptest! {
    #[test]
    fn what_is_rendered_reads_back(value in json_values()) {
        let text = render(&value);
        let options = serde_saphyr::options! {
            strict_booleans: true,
            legacy_octal_numbers: true,
        };
        let read: Value = serde_saphyr::from_str_with_options(&text, options)
            .map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(read, value, "{}", text);
    }
}

/// Any content that a spec may have.
pub(in crate::cosi) fn json_values() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[ -~]{0,12}",
        "[-:#?a1 .\n\"'{}\\[\\]|>&*!%@`,~=]{0,8}",
        "(true|no|null|0x1f|0o17|1_000|1e3|-?[0-9]{1,4}|2026-11-30|12:30:45|\\.inf)",
        "\\PC{0,6}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let entries = prop::collection::vec((text.clone(), inner.clone()), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            entries.prop_map(|e| Value::Object(e.into_iter().collect::<Map<_, _>>())),
        ]
    })
}
