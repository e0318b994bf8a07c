//! What differs between two forms of an object, without telling secrets.

use serde_json::{Map, Value};

const HIDDEN: &str = "(hidden)";

/// The fields that differ between a live object and what it would become, as `path: old -> new`.
///
/// Of the metadata only labels and annotations count, the status does not; values of Secrets are hidden.
pub(crate) fn changes(live: &Value, next: &Value) -> Vec<String> {
    let mut changes = Vec::new();
    let secret = is_secret(live) || is_secret(next);
    compare("", &relevant(live), &relevant(next), secret, &mut changes);
    changes
}

/// The fields that a manifest asks for and a live object does not have, as `path: live -> wanted`.
///
/// This predicts, without asking the API server, what applying the manifest would find: fields that the manifest
/// does not name are the server's business.
pub(crate) fn missing(live: &Value, manifest: &Value) -> Vec<String> {
    let wanted = relevant(&with_encoded_strings(manifest));
    let live = relevant(live);
    let mut changes = Vec::new();
    compare(
        "",
        &live,
        &overlay(&live, &wanted),
        is_secret(manifest),
        &mut changes,
    );
    changes
}

fn is_secret(object: &Value) -> bool {
    object["kind"] == "Secret"
}

/// An object without status and without the parts of its metadata that the server manages.
fn relevant(object: &Value) -> Value {
    let Value::Object(fields) = object else {
        return object.clone();
    };
    let mut kept = Map::new();
    for (key, value) in fields {
        match key.as_str() {
            "status" => {}
            "metadata" => {
                let part = |name: &str| match value.get(name) {
                    Some(Value::Object(map)) if !map.is_empty() => Some(map.clone()),
                    _ => None,
                };
                let mut metadata = Map::new();
                for name in ["labels", "annotations"] {
                    if let Some(map) = part(name) {
                        metadata.insert(name.to_owned(), Value::Object(map));
                    }
                }
                if !metadata.is_empty() {
                    kept.insert(key.clone(), Value::Object(metadata));
                }
            }
            _ => {
                kept.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(kept)
}

fn compare(path: &str, old: &Value, new: &Value, secret: bool, out: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|key| !old.contains_key(*key));
            for key in old.keys().chain(added) {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                let side = |map: &Map<String, Value>| map.get(key).cloned().unwrap_or(Value::Null);
                compare(&path, &side(old), &side(new), secret, out);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                compare(&format!("{path}[{index}]"), old, new, secret, out);
            }
        }
        _ if old == new => {}
        _ => {
            let hide = secret && (path.starts_with("data") || path.starts_with("stringData"));
            let show = |value: &Value| match value {
                Value::Null => "(none)".to_owned(),
                _ if hide => HIDDEN.to_owned(),
                value => value.to_string(),
            };
            out.push(format!("{path}: {} -> {}", show(old), show(new)));
        }
    }
}

/// The live object with everything the manifest names put over it.
fn overlay(live: &Value, wanted: &Value) -> Value {
    match (live, wanted) {
        (live, Value::Null) => live.clone(),
        (Value::Object(live), Value::Object(wanted)) => {
            let mut result = live.clone();
            for (key, wanted) in wanted {
                let value = overlay(live.get(key).unwrap_or(&Value::Null), wanted);
                if !value.is_null() {
                    result.insert(key.clone(), value);
                }
            }
            Value::Object(result)
        }
        (Value::Array(live), Value::Array(wanted)) if live.len() == wanted.len() => live
            .iter()
            .zip(wanted)
            .map(|(live, wanted)| overlay(live, wanted))
            .collect(),
        // Servers drop what is empty.
        (Value::Null, Value::Object(wanted)) if wanted.values().all(is_empty) => Value::Null,
        (Value::Null, Value::Array(wanted)) if wanted.is_empty() => Value::Null,
        (_, wanted) => wanted.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// A Secret's `stringData` moves into `data`, as the server does it.
fn with_encoded_strings(manifest: &Value) -> Value {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let mut manifest = manifest.clone();
    if !is_secret(&manifest) {
        return manifest;
    }
    let Some(fields) = manifest.as_object_mut() else {
        return manifest;
    };
    if let Some(Value::Object(strings)) = fields.remove("stringData") {
        let data = fields
            .entry("data")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(data) = data {
            for (key, value) in strings {
                let text = value.as_str().unwrap_or_default();
                data.insert(key, Value::String(STANDARD.encode(text)));
            }
        }
    }
    manifest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_names_the_field_and_both_values() {
        let set = |image: &str, generation: i64| {
            json!({
                "kind": "DaemonSet",
                "metadata": {"name": "kube-proxy", "generation": generation, "uid": "u"},
                "spec": {"template": {"spec": {"containers": [{"image": image}]}}},
                "status": {"numberReady": generation},
            })
        };
        assert_eq!(
            changes(&set("p:v1.33.4", 1), &set("p:v1.34.0", 2)),
            ["spec.template.spec.containers[0].image: \"p:v1.33.4\" -> \"p:v1.34.0\""]
        );
        assert!(changes(&set("p:v1.34.0", 1), &set("p:v1.34.0", 2)).is_empty());
    }

    #[test]
    fn annotations_and_labels_count() {
        let with = |annotations: Value| json!({"kind": "ConfigMap", "metadata": {"annotations": annotations}});
        assert_eq!(
            changes(&with(json!({})), &with(json!({"a": "b"}))),
            ["metadata: (none) -> {\"annotations\":{\"a\":\"b\"}}"]
        );
    }

    #[test]
    fn values_of_secrets_are_hidden() {
        let secret = |value: &str| json!({"kind": "Secret", "data": {"token": value}, "type": "x"});
        assert_eq!(
            changes(&secret("b2xk"), &secret("bmV3")),
            ["data.token: (hidden) -> (hidden)"]
        );
    }

    #[test]
    fn a_manifest_that_names_less_misses_nothing() {
        let live = json!({
            "kind": "Secret",
            "metadata": {"name": "s", "labels": {"a": "b"}},
            "data": {"k": "dg=="},
            "type": "Opaque",
        });
        let check =
            |manifest: Value, expected: &[&str]| assert_eq!(missing(&live, &manifest), expected);
        check(json!({"kind": "Secret", "stringData": {"k": "v"}}), &[]);
        check(
            json!({"kind": "Secret", "stringData": {"k": "w"}}),
            &["data.k: (hidden) -> (hidden)"],
        );
        check(
            json!({"kind": "Secret", "resources": {}, "metadata": {}}),
            &[],
        );
        check(
            json!({"kind": "Secret", "metadata": {"labels": {"c": "d"}}}),
            &["metadata.labels.c: (none) -> \"d\""],
        );
    }
}
