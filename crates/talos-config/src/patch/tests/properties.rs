//! Properties of both forms of patches, over generated documents and styles of text.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn documents() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9i32..9).prop_map(Value::from),
        "[a-c~/ ]{0,3}".prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[ab~/]{1,2}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    tree.prop_map(|value| json!({"machine": value}))
}

fn operations() -> impl Strategy<Value = Vec<Value>> {
    let part = prop_oneof![
        Just("a"),
        Just("b"),
        Just("a~0"),
        Just("~1"),
        Just("0"),
        Just("1"),
        Just("-"),
        Just("ab")
    ];
    let path = prop::collection::vec(part, 0..4).prop_map(|parts| {
        parts
            .into_iter()
            .fold("/machine".to_owned(), |path, part| format!("{path}/{part}"))
    });
    let value = prop_oneof![
        Just(json!(1)),
        Just(json!("x")),
        Just(json!({"a": [1]})),
        Just(json!([])),
        Just(json!(null))
    ];
    let operation =
        (0usize..6, path.clone(), path, value).prop_map(|(op, path, from, value)| match op {
            0 => json!({"op": "add", "path": path, "value": value}),
            1 => json!({"op": "remove", "path": path}),
            2 => json!({"op": "replace", "path": path, "value": value}),
            3 => json!({"op": "move", "path": path, "from": from}),
            4 => json!({"op": "copy", "path": path, "from": from}),
            _ => json!({"op": "test", "path": path, "value": value}),
        });
    prop::collection::vec(operation, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Where the two rules of our own do not matter, the result is that of the `json-patch` crate.
    #[test]
    fn json_patches_do_what_rfc_6902_says(document in documents(), operations in operations()) {
        let mut oracle = document.clone();
        let patch: json_patch::Patch = serde_json::from_value(Value::from(operations.clone())).unwrap();
        let expected = json_patch::patch_unsafe(&mut oracle, &patch);
        let ours = patched(&write(&document), &[&Value::from(operations).to_string()], "1.13");
        match (expected, ours) {
            (Ok(()), Ok(ours)) => prop_assert_eq!(read(&ours.text).unwrap(), oracle),
            (Err(_), Err(_)) => {}
            (Ok(()), Err(error)) => prop_assert!(false, "{:?}", error),
            // Replacing a missing key adds it, a missing value is null, and moving a value onto itself is nothing.
            (Err(_), Ok(_)) => {}
        }
    }

    #[test]
    fn any_text_is_a_patch_or_refused(text in "[a-c:#\\-\\[\\]{}&*|>\"' \n,?!~0-9$]{0,40}") {
        if let Ok(patch) = Patch::parse(&text) {
            let patched = apply(CONFIG, &[patch], Schema::for_talos("1.13"));
            prop_assert!(!matches!(patched, Err(Error::NotReadable)));
        }
    }

    /// Whatever a configuration looks like, patches give a text that reads as what they made.
    #[test]
    fn patches_of_any_style_of_text_read_back(
        chosen in prop::collection::vec(0usize..PATCHES.len(), 1..5),
        steps in 2usize..5,
        comments in any::<bool>(),
    ) {
        let config = restyled(CONFIG, steps, comments);
        let mut text = config.clone();
        for index in chosen {
            match patched(&text, &[PATCHES[index]], "1.13") {
                Ok(patched) => text = patched.text,
                Err(error) => {
                    let source = error.source().map(ToString::to_string).unwrap_or_default();
                    let missing = source.contains("nothing to delete") || source.contains("finds nothing");
                    prop_assert!(missing, "{error} {source}\n{text}");
                }
            }
        }
        if comments {
            prop_assert!(text.contains("# Nobody knows this kind yet."), "{text}");
        }
    }
}

/// Patches of both forms that fit [`CONFIG`].
const PATCHES: [&str; 9] = [
    r#"[{"op":"replace","path":"/cluster/apiServer/certSANs","value":["a","10.5.10.2","b"]}]"#,
    r#"[{"op":"remove","path":"/machine/network/interfaces/0"},{"op":"add","path":"/machine/x","value":{"a":[{"b":"1e3"}]}}]"#,
    r#"[{"op":"move","from":"/machine/sysctls","path":"/machine/moved"}]"#,
    "machine: {network: {interfaces: [{interface: eth0, addresses: [1.1.1.1/8], vlans: [{vlanId: 5}]}]}}",
    "machine: {sysctls: {$patch: delete}, certSANs: [x, 'y: z']}",
    "cluster: {inlineManifests: [{name: a, contents: \"k: v\\n# c\\nl: w\\n\"}]}",
    "cluster: {apiServer: {admissionControl: [{name: PodSecurity, configuration: {exemptions: {namespaces: [q]}}}]}}",
    "{apiVersion: v1alpha1, kind: HostnameConfig, $patch: delete}",
    "machine: {network: {interfaces: [{interface: eth0, $patch: delete}]}}",
];

/// Returns a text with another indentation, with or without its comments.
fn restyled(text: &str, step: usize, comments: bool) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let body = line.trim_start();
        let line = match body.find(" #").filter(|_| !comments) {
            Some(at) => &body[..at],
            None => body,
        };
        if body.starts_with('#') && !comments {
            continue;
        }
        out.push_str(&" ".repeat(indent_of(text, body) * step));
        let line = line.strip_prefix("- ").map_or(line.to_owned(), |rest| {
            format!("-{}{rest}", " ".repeat(step - 1))
        });
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// Returns how many levels deep a line of [`CONFIG`] stands, in half steps of two columns.
fn indent_of(text: &str, body: &str) -> usize {
    let line = text
        .lines()
        .find(|line| line.trim_start() == body)
        .unwrap_or(body);
    (line.len() - body.len()) / 2
}
