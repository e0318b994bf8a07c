//! Server-side apply and the bookkeeping of who manages which field.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::fields::{
    FieldSet, ListKind, Path, Step, display, get, is_atomic_map, item_step, list_kind, remove,
};
use super::managers::{Manager, Operation, described, entries, set_entry, store_entries};
use super::refusal::Refusal;

/// Returns the live object with a manager's configuration applied to it.
///
/// Fields that the manager applied before and now leaves out disappear unless somebody else owns
/// them. With `force` fields of other managers are taken over.
///
/// # Errors
///
/// [`Refusal::apply_conflict`] without `force`, if others own fields with other values.
pub(crate) fn apply(
    live: Option<&Value>,
    applied: &Value,
    manager: &str,
    force: bool,
    now: Timestamp,
) -> Result<Value, Refusal> {
    let identity = Manager {
        name: manager.to_owned(),
        operation: Operation::Apply,
        subresource: String::new(),
    };
    let mut entries = live.map(entries).unwrap_or_default();
    let wanted = FieldSet::of(applied);
    let nothing = Value::Null;
    let old = live.unwrap_or(&nothing);

    let mut conflicts = Vec::new();
    for path in &wanted.0 {
        if differs(path, old, applied) {
            for entry in entries.iter_mut().filter(|e| e.manager != identity) {
                if entry.fields.touches(path) {
                    conflicts.push((described(entry), display(path)));
                    entry
                        .fields
                        .0
                        .retain(|owned| !owned.starts_with(path) && owned != path);
                }
            }
        }
    }
    if !force && !conflicts.is_empty() {
        return Err(Refusal::apply_conflict(&conflicts));
    }

    let mut merged = merge(live, applied, &mut Vec::new());
    let before: FieldSet = entries
        .iter()
        .find(|entry| entry.manager == identity)
        .map(|entry| entry.fields.clone())
        .unwrap_or_default();
    for path in before.0.difference(&wanted.0) {
        let kept = wanted.0.iter().any(|other| other.starts_with(path))
            || entries
                .iter()
                .filter(|entry| entry.manager != identity)
                .any(|entry| entry.fields.0.iter().any(|other| other.starts_with(path)));
        if !kept {
            remove(&mut merged, path);
        }
    }
    set_entry(&mut entries, identity, applied, wanted, now);
    store_entries(&mut merged, &entries);
    Ok(merged)
}

/// Writes into `new` who owns its fields after an update of `live` by a manager.
pub(crate) fn track(live: Option<&Value>, new: &mut Value, manager: &Manager, now: Timestamp) {
    let mut entries = live.map(entries).unwrap_or_default();
    let nothing = Value::Null;
    let old = live.unwrap_or(&nothing);
    let after = FieldSet::of(new);
    let changed: BTreeSet<Path> = after
        .0
        .iter()
        .filter(|path| differs(path, old, new))
        .cloned()
        .collect();
    for entry in &mut entries {
        entry.fields.0.retain(|path| {
            let taken = entry.manager != *manager && changed.contains(path);
            !taken && get(new, path).is_some()
        });
    }
    let mut own = entries
        .iter()
        .find(|entry| entry.manager == *manager)
        .map(|entry| entry.fields.clone())
        .unwrap_or_default();
    own.0.extend(changed);
    let reference = new.clone();
    set_entry(&mut entries, manager.clone(), &reference, own, now);
    store_entries(new, &entries);
}

/// Merges `patch` over `live` with the list keys that apply uses.
pub(crate) fn merge(live: Option<&Value>, patch: &Value, path: &mut Path) -> Value {
    match (live, patch) {
        (Some(Value::Object(old)), Value::Object(new)) if !is_atomic_map(path) => {
            let mut merged = old.clone();
            for (name, value) in new {
                if value.is_null() {
                    continue;
                }
                path.push(Step::Field(name.clone()));
                let inner = merge(old.get(name), value, path);
                path.pop();
                merged.insert(name.clone(), inner);
            }
            Value::Object(merged)
        }
        (Some(Value::Array(old)), Value::Array(new)) => merge_lists(old, new, path),
        (_, Value::Object(new)) => Value::Object(
            new.iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        ),
        (_, other) => other.clone(),
    }
}

fn merge_lists(old: &[Value], new: &[Value], path: &mut Path) -> Value {
    let kind = match list_kind(path, old) {
        ListKind::Atomic => ListKind::Atomic,
        _ => list_kind(path, new),
    };
    match kind {
        ListKind::Atomic => Value::Array(new.to_vec()),
        ListKind::Set => {
            let mut merged = old.to_vec();
            merged.extend(new.iter().filter(|item| !old.contains(item)).cloned());
            Value::Array(merged)
        }
        ListKind::Keyed(keys) => {
            let mut merged = old.to_vec();
            for item in new {
                let step = item_step(item, keys);
                let place = merged
                    .iter()
                    .position(|found| item_step(found, keys) == step);
                path.push(step);
                match place {
                    Some(place) => merged[place] = merge(Some(&merged[place]), item, path),
                    None => merged.push(merge(None, item, path)),
                }
                path.pop();
            }
            Value::Array(merged)
        }
    }
}

/// Tells whether a leaf has another value; an item of a list only whether it exists.
fn differs(path: &Path, old: &Value, new: &Value) -> bool {
    match (get(old, path), get(new, path)) {
        (Some(_), Some(_)) if matches!(path.last(), Some(Step::Item(_))) => false,
        // An empty map claims nothing inside the present one.
        (Some(Value::Object(_)), Some(Value::Object(new))) if new.is_empty() => false,
        (left, right) => left != right,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Any JSON without nulls, which never come this far, with names that merge in different ways.
    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            (0..3_u8).prop_map(Value::from),
            "[ab]".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let name = prop_oneof![
                Just("containers"),
                Just("name"),
                Just("ports"),
                Just("finalizers"),
                Just("selector"),
                Just("x"),
            ];
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map(name, inner, 0..4).prop_map(|fields| {
                    fields
                        .into_iter()
                        .map(|(name, field)| (name.to_owned(), field))
                        .collect()
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn applying_twice_is_applying_once(spec in any_value(), other in any_value()) {
            let object = |spec: &Value| json!({ "apiVersion": "v1", "kind": "K", "spec": spec });
            let live = apply(None, &object(&other), "other", true, now()).unwrap();
            let once = apply(Some(&live), &object(&spec), "one", true, now()).unwrap();
            let twice = apply(Some(&once), &object(&spec), "one", true, now()).unwrap();
            prop_assert_eq!(&twice, &once);
            // Whoever forced last gets through without force from then on.
            prop_assert!(apply(Some(&once), &object(&spec), "one", false, now()).is_ok());
        }
    }

    fn manifest(labels: &Value, image: &str) -> Value {
        json!({
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": { "name": "d", "namespace": "n", "labels": labels },
            "spec": { "template": { "spec": { "containers": [{ "name": "c", "image": image }] } } },
        })
    }

    fn now() -> Timestamp {
        "2026-11-30T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn fields_left_out_by_their_only_manager_disappear() {
        let first = apply(
            None,
            &manifest(&json!({"a": "1", "b": "2"}), "i:1"),
            "t",
            true,
            now(),
        );
        let mut live = first.unwrap();
        live["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = json!("Always");
        let second = apply(
            Some(&live),
            &manifest(&json!({"a": "1"}), "i:2"),
            "t",
            true,
            now(),
        );
        let second = second.unwrap();
        assert_eq!(second["metadata"]["labels"], json!({"a": "1"}));
        let container = &second["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(
            *container,
            json!({"name": "c", "image": "i:2", "imagePullPolicy": "Always"})
        );
    }

    #[test]
    fn items_left_out_disappear_with_everything_inside() {
        let mut two = manifest(&json!({}), "i:1");
        two["spec"]["template"]["spec"]["containers"] =
            json!([{"name": "c", "image": "i:1"}, {"name": "d", "image": "j:1"}]);
        let mut live = apply(None, &two, "t", false, now()).unwrap();
        live["spec"]["template"]["spec"]["containers"][1]["resources"] = json!({});
        let one = apply(Some(&live), &manifest(&json!({}), "i:1"), "t", false, now()).unwrap();
        assert_eq!(
            one["spec"]["template"]["spec"]["containers"],
            json!([{"name": "c", "image": "i:1"}])
        );
    }

    #[test]
    fn fields_of_others_are_a_conflict_unless_forced() {
        let live = apply(
            None,
            &manifest(&json!({"a": "1"}), "i:1"),
            "one",
            false,
            now(),
        )
        .unwrap();
        let same = apply(
            Some(&live),
            &manifest(&json!({"a": "1"}), "i:1"),
            "two",
            false,
            now(),
        );
        assert!(same.is_ok(), "equal values are shared");
        let other = manifest(&json!({"a": "9"}), "i:1");
        let refusal = apply(Some(&live), &other, "two", false, now()).unwrap_err();
        assert_eq!(
            refusal.message,
            "Apply failed with 1 conflict: conflict with \"one\": .metadata.labels.a"
        );
        let forced = apply(Some(&live), &other, "two", true, now()).unwrap();
        assert_eq!(forced["metadata"]["labels"]["a"], "9");
        let again = apply(
            Some(&forced),
            &manifest(&json!({}), "i:1"),
            "one",
            false,
            now(),
        );
        assert_eq!(
            again.unwrap()["metadata"]["labels"]["a"],
            "9",
            "no longer owned by one"
        );
    }

    #[test]
    fn updates_take_fields_over() {
        let live = apply(
            None,
            &manifest(&json!({"a": "1"}), "i:1"),
            "one",
            false,
            now(),
        )
        .unwrap();
        let mut new = live.clone();
        new["metadata"]["labels"]["a"] = json!("2");
        let manager = Manager {
            name: "kubectl-edit".to_owned(),
            operation: Operation::Update,
            subresource: String::new(),
        };
        track(Some(&live), &mut new, &manager, now());
        let refusal = apply(
            Some(&new),
            &manifest(&json!({"a": "1"}), "i:1"),
            "one",
            false,
            now(),
        );
        assert_eq!(
            refusal.unwrap_err().message,
            "Apply failed with 1 conflict: conflict with \"kubectl-edit\" using apps/v1: .metadata.labels.a"
        );
    }
}
