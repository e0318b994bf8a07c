//! What the write verbs of the Kubernetes API do to one object.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::apply::{apply, merge, track};
use super::defaults::complete;
use super::kinds::Kind;
use super::managers::{Manager, Operation};
use super::objects::{Key, Next, Objects, seconds};
use super::refusal::Refusal;

/// Circumstances of a write.
#[derive(Debug, Clone)]
pub(crate) struct Write<'a> {
    /// The objects that are written to.
    pub(crate) objects: &'a Objects,
    /// The cluster's time.
    pub(crate) now: Timestamp,
    /// Computes the result and stores nothing.
    pub(crate) dry_run: bool,
    /// The name that `managedFields` gets.
    pub(crate) manager: &'a str,
    /// Writes to the status instead of the rest.
    pub(crate) status: bool,
}

/// How a patch body is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Kubernetes' merge with list keys.
    Strategic,
    /// Server-side apply; whether fields of other managers are taken over.
    Apply {
        /// Takes fields of other managers over.
        force: bool,
    },
}

impl Write<'_> {
    /// Creates an object; a `generateName` gets a random ending.
    ///
    /// # Errors
    ///
    /// Refusals for an object that exists, lacks a name or is not valid.
    pub(crate) fn create(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        body: Value,
    ) -> Result<Arc<Value>, Refusal> {
        let mut body = without_nulls(body);
        let prefix = body["metadata"]["generateName"].as_str().map(str::to_owned);
        if let (None, Some(prefix)) = (body["metadata"]["name"].as_str(), prefix) {
            body["metadata"]["name"] = json!(format!("{prefix}{}", super::objects::suffix(5)));
        }
        let Some(name) = body["metadata"]["name"].as_str().map(str::to_owned) else {
            return Err(Refusal::invalid(
                kind,
                "",
                "metadata.name",
                "Required value: name or generateName is required",
            ));
        };
        let key = key(kind, namespace, &name);
        if self.objects.get(&key).is_some() {
            return Err(Refusal::already_exists(kind, &name));
        }
        self.put(&key, |live| match live {
            Some(_) => Err(Refusal::already_exists(kind, &name)),
            None => Ok(body.clone()),
        })
    }

    /// Replaces an object.
    ///
    /// # Errors
    ///
    /// Refusals for an object that is missing, has changed meanwhile or is not valid.
    pub(crate) fn update(&self, key: &Key, body: Value) -> Result<Arc<Value>, Refusal> {
        let body = without_nulls(body);
        self.put(key, |live| {
            let live = live.ok_or_else(|| Refusal::not_found(&key.kind, &key.name))?;
            check_version(key, live, &body)?;
            Ok(body.clone())
        })
    }

    /// Patches an object; apply also creates it.
    ///
    /// # Errors
    ///
    /// Refusals for a patch that does not fit, conflicts, and for a result that is not valid.
    pub(crate) fn patch(
        &self,
        key: &Key,
        kind: PatchKind,
        body: &Value,
    ) -> Result<Arc<Value>, Refusal> {
        if let PatchKind::Apply { force } = kind {
            return self.apply(key, body, force);
        }
        self.put(key, |live| {
            let live = live.ok_or_else(|| Refusal::not_found(&key.kind, &key.name))?;
            check_version(key, live, body)?;
            let mut new = live.clone();
            match kind {
                PatchKind::Json => {
                    let patch: json_patch::Patch =
                        serde_json::from_value(body.clone()).map_err(|error| {
                            Refusal::bad_request(format!("error decoding patch: {error}"))
                        })?;
                    json_patch::patch(&mut new, &patch).map_err(|error| {
                        Refusal::invalid(&key.kind, &key.name, "patch", &error.to_string())
                    })?;
                }
                PatchKind::Merge => json_patch::merge(&mut new, body),
                PatchKind::Strategic | PatchKind::Apply { .. } => {
                    new = merge(Some(live), body, &mut Vec::new());
                    delete_nulls(&mut new, body);
                }
            }
            Ok(new)
        })
    }

    /// Deletes an object; one with finalizers is only marked.
    ///
    /// # Errors
    ///
    /// Refusals for an object that is missing or whose preconditions do not hold.
    pub(crate) fn delete(&self, key: &Key, options: &Value) -> Result<Arc<Value>, Refusal> {
        let missing = || Refusal::not_found(&key.kind, &key.name);
        let deleted = self.objects.write(key, self.now, self.dry_run, |live| {
            let live = live.ok_or_else(missing)?;
            let metadata = &live["metadata"];
            let wanted = &options["preconditions"];
            if wanted["uid"]
                .as_str()
                .is_some_and(|uid| metadata["uid"] != uid)
            {
                return Err(Refusal::conflict(&key.kind, &key.name));
            }
            let guarded = metadata["finalizers"]
                .as_array()
                .is_some_and(|list| !list.is_empty());
            if !guarded {
                return Ok(Next::Delete);
            }
            let mut marked = live.clone();
            marked["metadata"]["deletionTimestamp"] = json!(seconds(self.now));
            Ok(Next::Put(marked))
        })?;
        deleted.ok_or_else(missing)
    }

    fn apply(&self, key: &Key, body: &Value, force: bool) -> Result<Arc<Value>, Refusal> {
        let mut body = without_nulls(body.clone());
        if body["metadata"]["managedFields"].is_array() {
            return Err(Refusal::bad_request("metadata.managedFields must be nil"));
        }
        for (field, expected) in [
            ("apiVersion", key.kind.api_version()),
            ("kind", key.kind.kind.clone()),
        ] {
            if body[field] != expected.as_str() {
                let message = format!("invalid object type: {field} must be {expected:?}");
                return Err(Refusal::bad_request(message));
            }
        }
        if body["metadata"]["name"]
            .as_str()
            .is_some_and(|name| name != key.name)
        {
            return Err(Refusal::bad_request(
                "the name of the object does not match the name on the URL",
            ));
        }
        body["metadata"]["name"] = json!(key.name);
        if !self.status
            && key.kind.has_status()
            && let Some(fields) = body.as_object_mut()
        {
            fields.shift_remove("status");
        }
        let result = self.objects.write(key, self.now, self.dry_run, |live| {
            let mut new = apply(live, &body, self.manager, force, self.now)?;
            complete(&mut new);
            check(key, live, &new)?;
            Ok(Next::Put(new))
        })?;
        result.ok_or_else(|| Refusal::not_found(&key.kind, &key.name))
    }

    /// Stores what `change` makes of the live object, with everything that any update brings along.
    fn put(
        &self,
        key: &Key,
        change: impl FnOnce(Option<&Value>) -> Result<Value, Refusal>,
    ) -> Result<Arc<Value>, Refusal> {
        let result = self.objects.write(key, self.now, self.dry_run, |live| {
            let mut new = change(live)?;
            if let (Some(live), true) = (live, key.kind.has_status()) {
                new = keep_other_part(live, new, self.status);
            }
            complete(&mut new);
            new["apiVersion"] = json!(key.kind.api_version());
            check(key, live, &new)?;
            let manager = Manager {
                name: self.manager.to_owned(),
                operation: Operation::Update,
                subresource: if self.status {
                    "status".to_owned()
                } else {
                    String::new()
                },
            };
            track(live, &mut new, &manager, self.now);
            let finished = new["metadata"]["deletionTimestamp"].is_string()
                && new["metadata"]["finalizers"]
                    .as_array()
                    .is_none_or(Vec::is_empty);
            Ok(if finished {
                Next::Delete
            } else {
                Next::Put(new)
            })
        })?;
        result.ok_or_else(|| Refusal::not_found(&key.kind, &key.name))
    }
}

/// Returns where an object of a kind lives; the namespace of cluster-scoped kinds is ignored.
pub(crate) fn key(kind: &Arc<Kind>, namespace: &str, name: &str) -> Key {
    Key {
        kind: Arc::clone(kind),
        namespace: if kind.namespaced {
            namespace.to_owned()
        } else {
            String::new()
        },
        name: name.to_owned(),
    }
}

/// A write to the object leaves its status alone, a write to the status everything else.
fn keep_other_part(live: &Value, new: Value, status: bool) -> Value {
    let (mut kept, taken) = if status {
        (live.clone(), &new)
    } else {
        (new.clone(), live)
    };
    match (taken.get("status"), kept.as_object_mut()) {
        (Some(part), _) => kept["status"] = part.clone(),
        (None, Some(fields)) => {
            fields.shift_remove("status");
        }
        (None, None) => {}
    }
    kept
}

/// Refuses a body that was made from an older version of the object.
fn check_version(key: &Key, live: &Value, body: &Value) -> Result<(), Refusal> {
    let version = body["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default();
    if version.is_empty() || live["metadata"]["resourceVersion"] == version {
        Ok(())
    } else {
        Err(Refusal::conflict(&key.kind, &key.name))
    }
}

/// Refuses what the real API does not store.
fn check(key: &Key, live: Option<&Value>, new: &Value) -> Result<(), Refusal> {
    let invalid =
        |field: &str, problem: &str| Err(Refusal::invalid(&key.kind, &key.name, field, problem));
    for (kind, pointer) in IMMUTABLE {
        if let (true, Some(live)) = (key.kind.kind == *kind, live) {
            let (old, wanted) = (live.pointer(pointer), new.pointer(pointer));
            if old.is_some() && old != wanted {
                return invalid(
                    &pointer[1..].replace('/', "."),
                    "Invalid value: field is immutable",
                );
            }
        }
    }
    if live.is_some_and(|live| live["immutable"] == true && live["data"] != new["data"]) {
        return invalid(
            "data",
            "Forbidden: field is immutable when `immutable` is set",
        );
    }
    let workload = matches!(
        key.kind.kind.as_str(),
        "DaemonSet" | "Deployment" | "ReplicaSet"
    );
    if workload {
        let containers = new.pointer("/spec/template/spec/containers");
        if containers
            .and_then(Value::as_array)
            .is_none_or(Vec::is_empty)
        {
            return invalid("spec.template.spec.containers", "Required value");
        }
        let labels = new
            .pointer("/spec/selector/matchLabels")
            .and_then(Value::as_object);
        let Some(labels) = labels else {
            return invalid("spec.selector", "Required value");
        };
        let template = new
            .pointer("/spec/template/metadata/labels")
            .unwrap_or(&Value::Null);
        if labels
            .iter()
            .any(|(name, value)| template.get(name) != Some(value))
        {
            return invalid(
                "spec.template.metadata.labels",
                "Invalid value: `selector` does not match template `labels`",
            );
        }
    }
    Ok(())
}

/// Fields that never change once they are set.
const IMMUTABLE: &[(&str, &str)] = &[
    ("ClusterRoleBinding", "/roleRef"),
    ("DaemonSet", "/spec/selector"),
    ("Deployment", "/spec/selector"),
    ("ReplicaSet", "/spec/selector"),
    ("RoleBinding", "/roleRef"),
    ("Secret", "/type"),
    ("Service", "/spec/clusterIP"),
    ("StatefulSet", "/spec/selector"),
];

/// Removes nulls, which mean the same as absence in a whole object.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .filter(|(_, field)| !field.is_null())
                .map(|(name, field)| (name, without_nulls(field)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// Removes the fields that a strategic patch sets to null.
fn delete_nulls(object: &mut Value, patch: &Value) {
    let (Some(fields), Some(wanted)) = (object.as_object_mut(), patch.as_object()) else {
        return;
    };
    for (name, value) in wanted {
        if value.is_null() {
            fields.shift_remove(name);
        } else if let Some(inner) = fields.get_mut(name) {
            delete_nulls(inner, value);
        }
    }
}
