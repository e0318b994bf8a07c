//! Paths of fields inside objects, and the sets of them that managers own.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value, json};

/// One step from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// A field of an object.
    Field(String),
    /// An item of a list whose items have keys; field and JSON text of each key.
    Item(Vec<(String, String)>),
    /// A member of a list that is a set; its JSON text.
    Member(String),
}

/// A way from the root of an object to one of its values.
pub(crate) type Path = Vec<Step>;

/// The leaves that one manager owns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet(pub(crate) BTreeSet<Path>);

/// How lists merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// Replaced as a whole.
    Atomic,
    /// Merged by these fields of the items.
    Keyed(&'static [&'static str]),
    /// Merged as a set of scalars.
    Set,
}

impl FieldSet {
    /// Returns the leaves of a value, without those that identify the object or belong to the server.
    pub(crate) fn of(object: &Value) -> Self {
        let mut set = Self::default();
        collect(object, &mut Vec::new(), &mut set.0);
        set.0.retain(|path| !is_identity(path));
        set
    }

    /// Reads the `fieldsV1` of an entry of `managedFields`.
    pub(crate) fn from_v1(fields: &Value) -> Self {
        let mut set = Self::default();
        read_v1(fields, &mut Vec::new(), &mut set.0);
        set
    }

    /// Returns the set as `fieldsV1`.
    pub(crate) fn to_v1(&self) -> Value {
        let mut root = json!({});
        for path in &self.0 {
            let mut place = &mut root;
            for step in path {
                place = &mut place[step.to_string()];
                if place.is_null() {
                    *place = json!({});
                }
            }
            if matches!(path.last(), Some(Step::Item(_))) {
                place["."] = json!({});
            }
        }
        root
    }

    /// Tells whether nothing is owned.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells whether the set holds the path, something inside it, or a whole of which it is a part.
    pub(crate) fn touches(&self, path: &Path) -> bool {
        self.0.iter().any(|owned| {
            if is_marker(path) || is_marker(owned) {
                owned == path
            } else {
                owned.starts_with(path) || path.starts_with(owned)
            }
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(out, "f:{name}"),
            Self::Item(keys) => write!(out, "k:{}", keys_json(keys)),
            Self::Member(text) => write!(out, "v:{text}"),
        }
    }
}

/// Returns a path as conflicts show it, such as `.spec.template.spec.containers[name="x"].image`.
pub(crate) fn display(path: &Path) -> String {
    path.iter()
        .map(|step| match step {
            Step::Field(name) => format!(".{name}"),
            Step::Item(keys) => {
                let pairs: Vec<String> = keys
                    .iter()
                    .map(|(field, value)| format!("{field}={value}"))
                    .collect();
                format!("[{}]", pairs.join(","))
            }
            Step::Member(text) => format!("[={text}]"),
        })
        .collect()
}

/// Returns the value at a path.
pub(crate) fn get<'a>(value: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Field(name) => value.get(name),
        Step::Item(_) | Step::Member(_) => {
            value.as_array()?.iter().find(|item| is_item(item, step))
        }
    })
}

/// Removes the value at a path, if it exists, and objects that this leaves empty.
pub(crate) fn remove(value: &mut Value, path: &[Step]) {
    let Some((step, rest)) = path.split_first() else {
        return;
    };
    match (step, value) {
        (Step::Field(name), Value::Object(fields)) => {
            if rest.is_empty() {
                fields.shift_remove(name);
            } else if let Some(inner) = fields.get_mut(name) {
                remove(inner, rest);
                if inner.as_object().is_some_and(Map::is_empty)
                    || inner.as_array().is_some_and(Vec::is_empty)
                {
                    fields.shift_remove(name);
                }
            }
        }
        (Step::Item(_) | Step::Member(_), Value::Array(items)) => {
            if rest.is_empty() {
                items.retain(|item| !is_item(item, step));
            } else if let Some(item) = items.iter_mut().find(|item| is_item(item, step)) {
                remove(item, rest);
            }
        }
        _ => {}
    }
}

/// Tells how a list at a path merges; one whose items do not have keys of their own is atomic.
pub(crate) fn list_kind(path: &[Step], items: &[Value]) -> ListKind {
    match usual_kind(path) {
        ListKind::Keyed(keys) => {
            let has_keys = |item: &Value| {
                let present = |key: &&str| *key == "protocol" || item.get(*key).is_some();
                keys.iter().all(present)
            };
            let steps: BTreeSet<Step> = items.iter().map(|item| item_step(item, keys)).collect();
            if items.iter().all(has_keys) && steps.len() == items.len() {
                ListKind::Keyed(keys)
            } else {
                ListKind::Atomic
            }
        }
        other => other,
    }
}

/// Tells how lists of the name at a path merge.
fn usual_kind(path: &[Step]) -> ListKind {
    let inside = |name: &str| {
        path.iter()
            .any(|step| matches!(step, Step::Field(f) if f == name))
    };
    let Some(Step::Field(name)) = path.last() else {
        return ListKind::Atomic;
    };
    match name.as_str() {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "env"
        | "volumes"
        | "imagePullSecrets" => ListKind::Keyed(&["name"]),
        "volumeMounts" => ListKind::Keyed(&["mountPath"]),
        "ports" if inside("containers") => ListKind::Keyed(&["containerPort", "protocol"]),
        "ports" => ListKind::Keyed(&["port", "protocol"]),
        "conditions" | "addresses" => ListKind::Keyed(&["type"]),
        "ownerReferences" => ListKind::Keyed(&["uid"]),
        "hostAliases" | "hostIPs" | "podIPs" => ListKind::Keyed(&["ip"]),
        "finalizers" => ListKind::Set,
        _ => ListKind::Atomic,
    }
}

/// Tells whether the map at a path is replaced as a whole.
pub(crate) fn is_atomic_map(path: &[Step]) -> bool {
    let Some(Step::Field(name)) = path.last() else {
        return false;
    };
    matches!(
        name.as_str(),
        "selector"
            | "nodeSelector"
            | "labelSelector"
            | "roleRef"
            | "fieldRef"
            | "resourceFieldRef"
            | "secretKeyRef"
            | "configMapKeyRef"
    )
}

/// Returns the step to an item of a keyed list; ports without a protocol are TCP.
pub(crate) fn item_step(item: &Value, keys: &[&str]) -> Step {
    let values = keys.iter().map(|key| {
        let value = match item.get(*key) {
            None if *key == "protocol" => json!("TCP"),
            None => Value::Null,
            Some(value) => value.clone(),
        };
        ((*key).to_owned(), value.to_string())
    });
    Step::Item(values.collect())
}

/// Tells whether a step leads to this item of a list.
fn is_item(item: &Value, step: &Step) -> bool {
    match step {
        Step::Field(_) => false,
        Step::Member(text) => serde_json::from_str(text).is_ok_and(|member: Value| *item == member),
        Step::Item(keys) => {
            let names: Vec<&str> = keys.iter().map(|(name, _)| name.as_str()).collect();
            item_step(item, &names) == *step
        }
    }
}

/// A path that ends at an item stands for the item's existence only.
fn is_marker(path: &Path) -> bool {
    matches!(path.last(), Some(Step::Item(_)))
}

fn is_identity(path: &Path) -> bool {
    let names: Vec<&str> = path
        .iter()
        .map_while(|step| match step {
            Step::Field(name) => Some(name.as_str()),
            _ => None,
        })
        .take(2)
        .collect();
    matches!(
        names[..],
        ["apiVersion" | "kind"]
            | [
                "metadata",
                "name"
                    | "namespace"
                    | "uid"
                    | "resourceVersion"
                    | "generation"
                    | "creationTimestamp"
                    | "managedFields"
                    | "selfLink"
            ]
            | ["metadata"]
    )
}

fn collect(value: &Value, path: &mut Path, leaves: &mut BTreeSet<Path>) {
    match value {
        Value::Null => {}
        Value::Object(fields) if !fields.is_empty() && !is_atomic_map(path) => {
            for (name, field) in fields {
                path.push(Step::Field(name.clone()));
                collect(field, path, leaves);
                path.pop();
            }
        }
        Value::Array(items) if !items.is_empty() => match list_kind(path, items) {
            ListKind::Atomic => {
                leaves.insert(path.clone());
            }
            ListKind::Set => {
                for item in items {
                    path.push(Step::Member(item.to_string()));
                    leaves.insert(path.clone());
                    path.pop();
                }
            }
            ListKind::Keyed(keys) => {
                for item in items {
                    path.push(item_step(item, keys));
                    leaves.insert(path.clone());
                    collect(item, path, leaves);
                    path.pop();
                }
            }
        },
        _ => {
            leaves.insert(path.clone());
        }
    }
}

fn read_v1(fields: &Value, path: &mut Path, leaves: &mut BTreeSet<Path>) {
    let children = fields.as_object();
    if children.is_none_or(Map::is_empty) {
        if !path.is_empty() {
            leaves.insert(path.clone());
        }
        return;
    }
    for (name, inner) in children.into_iter().flatten() {
        let step = match name.split_once(':') {
            Some(("f", field)) => Step::Field(field.to_owned()),
            Some(("v", text)) => Step::Member(text.to_owned()),
            Some(("k", text)) => match keys_from_json(text) {
                Some(keys) => Step::Item(keys),
                None => continue,
            },
            // "." marks that the value itself is owned.
            _ => {
                leaves.insert(path.clone());
                continue;
            }
        };
        path.push(step);
        read_v1(inner, path, leaves);
        path.pop();
    }
}

fn keys_json(keys: &[(String, String)]) -> String {
    let pairs: Vec<String> = keys
        .iter()
        .map(|(field, value)| format!("{}:{value}", json!(field)))
        .collect();
    format!("{{{}}}", pairs.join(","))
}

fn keys_from_json(text: &str) -> Option<Vec<(String, String)>> {
    let keys: Map<String, Value> = serde_json::from_str(text).ok()?;
    Some(
        keys.into_iter()
            .map(|(field, value)| (field, value.to_string()))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_sets_survive_their_json_form() {
        let object = json!({
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": { "name": "x", "labels": { "a": "b" }, "finalizers": ["f"] },
            "spec": {
                "selector": { "matchLabels": { "a": "b" } },
                "template": { "spec": { "containers": [
                    { "name": "c", "image": "i:1", "ports": [{ "containerPort": 53 }] }
                ] } },
            },
        });
        let set = FieldSet::of(&object);
        let v1 = set.to_v1();
        assert_eq!(FieldSet::from_v1(&v1), set);
        assert_eq!(
            v1,
            json!({
                "f:metadata": { "f:finalizers": { "v:\"f\"": {} }, "f:labels": { "f:a": {} } },
                "f:spec": {
                    "f:selector": {},
                    "f:template": { "f:spec": { "f:containers": { "k:{\"name\":\"c\"}": {
                        ".": {},
                        "f:image": {},
                        "f:name": {},
                        "f:ports": { "k:{\"containerPort\":53,\"protocol\":\"TCP\"}": {
                            ".": {},
                            "f:containerPort": {},
                        } },
                    } } } },
                },
            })
        );
        for path in &set.0 {
            assert!(get(&object, path).is_some(), "{}", display(path));
        }
    }
}
