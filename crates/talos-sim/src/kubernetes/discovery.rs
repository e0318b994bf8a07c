//! Discovery: which groups, versions and kinds the API serves, in the old and the aggregated form.

use std::sync::Arc;

use serde_json::{Value, json};

use super::kinds::{Catalog, Kind};
use super::refusal::Refusal;

/// Content type of the aggregated form.
pub(crate) const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Answers `/version`.
pub(crate) fn version(kubernetes: &str) -> Value {
    let mut parts = kubernetes.split('.');
    let (major, minor) = (parts.next().unwrap_or("1"), parts.next().unwrap_or("0"));
    let previous = minor.parse::<u32>().unwrap_or(1).saturating_sub(1);
    json!({
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": previous.to_string(),
        "gitVersion": format!("v{kubernetes}"),
        "gitCommit": "simulated",
        "gitTreeState": "clean",
        "buildDate": "2026-11-30T00:00:00Z",
        "goVersion": "go1.26.8",
        "compiler": "gc",
        "platform": "linux/amd64",
    })
}

/// Answers `/api`.
pub(crate) fn core_versions() -> Value {
    json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] })
}

/// Answers `/apis`.
pub(crate) fn groups(catalog: &Catalog) -> Value {
    let list: Vec<Value> = group_names(catalog)
        .iter()
        .map(|name| group_entry(catalog, name))
        .collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": list })
}

/// Answers `/apis/GROUP`.
///
/// # Errors
///
/// No such path, if nothing of the group is served.
pub(crate) fn group(catalog: &Catalog, name: &str) -> Result<Value, Refusal> {
    if !group_names(catalog).iter().any(|known| known == name) {
        return Err(Refusal::no_such_path());
    }
    let mut entry = group_entry(catalog, name);
    entry["kind"] = json!("APIGroup");
    entry["apiVersion"] = json!("v1");
    Ok(entry)
}

/// Answers `/api/v1` and `/apis/GROUP/VERSION`.
///
/// # Errors
///
/// No such path, if nothing of that version is served.
pub(crate) fn resources(catalog: &Catalog, group: &str, version: &str) -> Result<Value, Refusal> {
    let kinds: Vec<Arc<Kind>> = of_version(catalog, group, version);
    let Some(first) = kinds.first() else {
        return Err(Refusal::no_such_path());
    };
    let mut list = Vec::new();
    for kind in &kinds {
        let mut entry = json!({
            "name": kind.plural,
            "singularName": kind.kind.to_lowercase(),
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": kind.verbs,
        });
        if !kind.short_names.is_empty() {
            entry["shortNames"] = json!(kind.short_names);
        }
        if !kind.categories.is_empty() {
            entry["categories"] = json!(kind.categories);
        }
        list.push(entry);
        if kind.has_status() {
            list.push(json!({
                "name": format!("{}/status", kind.plural),
                "singularName": "",
                "namespaced": kind.namespaced,
                "kind": kind.kind,
                "verbs": ["get", "patch", "update"],
            }));
        }
    }
    Ok(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": first.api_version(),
        "resources": list,
    }))
}

/// Answers `/api` or `/apis` in the aggregated form.
pub(crate) fn aggregated(catalog: &Catalog, core: bool) -> Value {
    let names = if core {
        vec![String::new()]
    } else {
        group_names(catalog)
    };
    let items: Vec<Value> = names
        .iter()
        .map(|name| {
            let versions: Vec<Value> = versions(catalog, name)
                .iter()
                .map(|version| {
                    let resources: Vec<Value> = of_version(catalog, name, version)
                        .iter()
                        .map(|kind| aggregated_kind(kind))
                        .collect();
                    json!({ "version": version, "resources": resources, "freshness": "Current" })
                })
                .collect();
            json!({ "metadata": { "name": name, "creationTimestamp": null }, "versions": versions })
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn aggregated_kind(kind: &Kind) -> Value {
    let response = json!({ "group": kind.group, "version": kind.version, "kind": kind.kind });
    let mut entry = json!({
        "resource": kind.plural,
        "responseKind": response,
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.kind.to_lowercase(),
        "verbs": kind.verbs,
    });
    if !kind.short_names.is_empty() {
        entry["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        entry["categories"] = json!(kind.categories);
    }
    if kind.has_status() {
        entry["subresources"] = json!([{
            "subresource": "status",
            "responseKind": response,
            "verbs": ["get", "patch", "update"],
        }]);
    }
    entry
}

fn group_entry(catalog: &Catalog, name: &str) -> Value {
    let versions: Vec<Value> = versions(catalog, name)
        .iter()
        .map(|version| json!({ "groupVersion": format!("{name}/{version}"), "version": version }))
        .collect();
    json!({ "name": name, "versions": versions, "preferredVersion": versions.first() })
}

/// Returns the names of all groups but the core group, in the order of the catalog.
fn group_names(catalog: &Catalog) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for kind in catalog.all() {
        if !kind.group.is_empty() && !names.contains(&kind.group) {
            names.push(kind.group.clone());
        }
    }
    names
}

fn versions(catalog: &Catalog, group: &str) -> Vec<String> {
    let mut versions: Vec<String> = Vec::new();
    for kind in catalog.all() {
        if kind.group == group && !versions.contains(&kind.version) {
            versions.push(kind.version.clone());
        }
    }
    versions
}

fn of_version(catalog: &Catalog, group: &str, version: &str) -> Vec<Arc<Kind>> {
    let mut kinds = catalog.all();
    kinds.retain(|kind| kind.group == group && kind.version == version);
    kinds
}
