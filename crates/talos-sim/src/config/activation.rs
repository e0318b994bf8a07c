//! What a change needs to become active, and how it is shown.

use serde_json::{Map, Value};
use similar::TextDiff;

use crate::config::Documents;
use crate::cosi::yaml;
use crate::options::TalosVersion;

/// Keys of `machine` that a running machine takes up at once, up to Talos 1.13.
const IMMEDIATE: [&str; 18] = [
    "acceptedCAs",
    "ca",
    "certSANs",
    "controlPlane",
    "install",
    "kernel",
    "kubelet",
    "logging",
    "network",
    "nodeAnnotations",
    "nodeLabels",
    "nodeTaints",
    "pods",
    "registries",
    "seccompProfiles",
    "sysctls",
    "sysfs",
    "time",
];

/// The same below `machine.features`.
const IMMEDIATE_FEATURES: [&str; 5] = [
    "hostDNS",
    "imageCache",
    "kubePrism",
    "kubernetesTalosAPIAccess",
    "nodeAddressSortAlgorithm",
];

/// Lines of a difference beyond which only its size is shown.
const DIFF_LIMIT: usize = 75_000;

/// The first part of the main document whose change needs a reboot, such as `machine.type`.
pub(crate) fn needs_reboot(
    version: TalosVersion,
    old: &Documents,
    new: &Documents,
) -> Option<String> {
    if version >= TalosVersion::V1_14 {
        return None;
    }
    let empty = Value::Null;
    let (old, new) = (old.main().unwrap_or(&empty), new.main().unwrap_or(&empty));
    let top =
        changed(old, new).find(|key| !matches!(key.as_str(), "cluster" | "debug" | "machine"));
    if top.is_some() {
        return top;
    }
    let (old, new) = (part(old, "machine"), part(new, "machine"));
    let mut fixed = changed(old, new).filter(|key| !IMMEDIATE.contains(&key.as_str()));
    if let Some(key) = fixed.find(|key| key != "features") {
        return Some(format!("machine.{key}"));
    }
    let (old, new) = (part(old, "features"), part(new, "features"));
    if old.is_null() != new.is_null() {
        return Some("machine.features".to_owned());
    }
    let feature = changed(old, new).find(|key| !IMMEDIATE_FEATURES.contains(&key.as_str()))?;
    Some(format!("machine.features.{feature}"))
}

/// The difference as a dry run shows it: both sides without comments.
pub(crate) fn diff(old: &Documents, new: &Documents) -> String {
    let (old, new) = (plain(old), plain(new));
    if old == new {
        return "No changes.".to_owned();
    }
    if old.lines().count().max(new.lines().count()) > DIFF_LIMIT {
        return "The difference is too long to be shown.".to_owned();
    }
    TextDiff::from_lines(&old, &new)
        .unified_diff()
        .header("a", "b")
        .to_string()
}

/// The documents without comments, the main one first.
fn plain(documents: &Documents) -> String {
    let mains = documents
        .0
        .iter()
        .filter(|document| document.kind.is_empty());
    let others = documents
        .0
        .iter()
        .filter(|document| !document.kind.is_empty());
    let texts: Vec<String> = mains
        .chain(others)
        .map(|document| yaml::render(&document.value))
        .collect();
    texts.join("---\n")
}

fn part<'a>(value: &'a Value, key: &str) -> &'a Value {
    value.get(key).unwrap_or(&Value::Null)
}

/// Keys whose values differ.
fn changed<'a>(old: &'a Value, new: &'a Value) -> impl Iterator<Item = String> + 'a {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    let (old, new) = (
        old.as_object().unwrap_or(&EMPTY),
        new.as_object().unwrap_or(&EMPTY),
    );
    let removed = old.keys().filter(|&key| !new.contains_key(key));
    let keys = removed.chain(new.keys());
    keys.filter(move |&key| !same(old.get(key), new.get(key)))
        .cloned()
}

/// Absent, null, empty and false values mean the same to a machine.
fn same(old: Option<&Value>, new: Option<&Value>) -> bool {
    let is_zero = |value: Option<&Value>| match value {
        None | Some(Value::Null | Value::Bool(false)) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Bool(true) | Value::Number(_)) => false,
    };
    old == new || is_zero(old) && is_zero(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(version: TalosVersion, old: &str, new: &str, expected: Option<&str>) {
        let (old, new) = (Documents::read(old).unwrap(), Documents::read(new).unwrap());
        assert_eq!(needs_reboot(version, &old, &new).as_deref(), expected);
    }

    #[test]
    fn only_some_changes_need_a_reboot() {
        use TalosVersion::{V1_13_9, V1_14};
        let old = "machine: {type: worker, token: a, features: {rbac: true}}\ncluster: {id: x}\n";
        let with = |from: &str, to: &str| old.replace(from, to);
        check(V1_13_9, old, &with("id: x", "id: y"), None);
        check(
            V1_13_9,
            old,
            &with("token: a", "token: a, certSANs: [b]"),
            None,
        );
        check(
            V1_13_9,
            old,
            &with("token: a", "token: b"),
            Some("machine.token"),
        );
        check(
            V1_13_9,
            old,
            &with("rbac: true", "rbac: true, kubePrism: {enabled: true}"),
            None,
        );
        check(
            V1_13_9,
            old,
            &with("rbac: true", "rbac: false"),
            Some("machine.features.rbac"),
        );
        check(
            V1_13_9,
            old,
            &(old.to_owned() + "persist: true\n"),
            Some("persist"),
        );
        check(V1_14, old, &with("token: a", "token: b"), None);
    }

    #[test]
    fn differences_leave_comments_out() {
        let read = |text| Documents::read(text).unwrap();
        let old = read("machine:\n    type: worker # a comment\n");
        assert_eq!(
            diff(&old, &read("machine: {type: worker}\n")),
            "No changes."
        );
        let changed = diff(&old, &read("machine: {type: controlplane}\n"));
        assert_eq!(
            changed,
            "--- a\n+++ b\n@@ -1,2 +1,2 @@\n machine:\n-    type: worker\n+    type: controlplane\n"
        );
    }
}
