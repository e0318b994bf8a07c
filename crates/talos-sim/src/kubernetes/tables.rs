//! Tables for people at a terminal: what `kubectl get` asks for.

use http::{HeaderMap, header};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::workloads::is_ready;

/// Tells whether a client asks for a table.
pub(crate) fn wants_table(headers: &HeaderMap) -> bool {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.contains("as=Table;v=v1;g=meta.k8s.io"))
}

/// Shows objects of one kind as a table.
pub(crate) fn table(kind: &str, objects: &[&Value], version: &str, now: Timestamp) -> Value {
    let columns: &[&str] = match kind {
        "Pod" => &["Ready", "Status", "Restarts", "Age", "Node"],
        "Node" => &["Status", "Roles", "Age", "Version", "Internal-IP"],
        "DaemonSet" => &[
            "Desired",
            "Current",
            "Ready",
            "Up-to-date",
            "Available",
            "Age",
        ],
        "Deployment" => &["Ready", "Up-to-date", "Available", "Age"],
        _ => &["Age"],
    };
    let definition = |name: &str| {
        let format = if name == "Name" { "name" } else { "" };
        // Columns of lower priority are shown with `-o wide` only.
        let wide = matches!(name, "Node" | "Internal-IP");
        json!({
            "name": name,
            "type": "string",
            "format": format,
            "description": name,
            "priority": u8::from(wide),
        })
    };
    let definitions: Vec<Value> = std::iter::once("Name")
        .chain(columns.iter().copied())
        .map(definition)
        .collect();
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut cells = vec![object["metadata"]["name"].clone()];
            cells.extend(
                columns
                    .iter()
                    .map(|column| json!(cell(kind, column, object, now))),
            );
            json!({
                "cells": cells,
                "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": object["metadata"],
                },
            })
        })
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": { "resourceVersion": version },
        "columnDefinitions": definitions,
        "rows": rows,
    })
}

fn cell(kind: &str, column: &str, object: &Value, now: Timestamp) -> String {
    let status = &object["status"];
    let count = |field: &str| status[field].as_u64().unwrap_or_default();
    let ready = is_ready(object);
    match (kind, column) {
        (_, "Age") => age(&object["metadata"]["creationTimestamp"], now),
        ("Pod", "Ready") => {
            let all = object["spec"]["containers"].as_array().map_or(0, Vec::len);
            let containers = status["containerStatuses"].as_array().into_iter().flatten();
            let up = containers
                .filter(|container| container["ready"] == true)
                .count();
            format!("{up}/{all}")
        }
        ("Pod", "Status") => {
            let waiting = &status["containerStatuses"][0]["state"]["waiting"]["reason"];
            let shown = if object["metadata"]["deletionTimestamp"].is_string() {
                Some("Terminating")
            } else {
                waiting.as_str().or_else(|| status["phase"].as_str())
            };
            shown.unwrap_or("Unknown").to_owned()
        }
        ("Pod", "Restarts") => status["containerStatuses"][0]["restartCount"]
            .as_u64()
            .unwrap_or_default()
            .to_string(),
        ("Pod", "Node") => object["spec"]["nodeName"]
            .as_str()
            .unwrap_or("<none>")
            .to_owned(),
        ("Node", "Status") if ready => "Ready".to_owned(),
        ("Node", "Status") => "NotReady".to_owned(),
        ("Node", "Roles") => {
            let labels = object["metadata"]["labels"]
                .as_object()
                .into_iter()
                .flatten();
            let roles: Vec<&str> = labels
                .filter_map(|(name, _)| name.strip_prefix("node-role.kubernetes.io/"))
                .collect();
            if roles.is_empty() {
                "<none>".to_owned()
            } else {
                roles.join(",")
            }
        }
        ("Node", "Version") => status["nodeInfo"]["kubeletVersion"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        ("Node", "Internal-IP") => status["addresses"][0]["address"]
            .as_str()
            .unwrap_or("<none>")
            .to_owned(),
        ("DaemonSet", "Desired") => count("desiredNumberScheduled").to_string(),
        ("DaemonSet", "Current") => count("currentNumberScheduled").to_string(),
        ("DaemonSet", "Ready") => count("numberReady").to_string(),
        ("DaemonSet", "Up-to-date") => count("updatedNumberScheduled").to_string(),
        ("DaemonSet", "Available") => count("numberAvailable").to_string(),
        ("Deployment", "Ready") => {
            let wanted = object["spec"]["replicas"].as_u64().unwrap_or_default();
            format!("{}/{wanted}", count("readyReplicas"))
        }
        ("Deployment", "Up-to-date") => count("updatedReplicas").to_string(),
        ("Deployment", "Available") => count("availableReplicas").to_string(),
        _ => String::new(),
    }
}

/// Returns how long ago a time was, as kubectl writes it.
fn age(since: &Value, now: Timestamp) -> String {
    let since = since
        .as_str()
        .and_then(|since| since.parse::<Timestamp>().ok());
    let Some(since) = since else {
        return "<unknown>".to_owned();
    };
    let seconds = (now.as_second() - since.as_second()).max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => format!("{minutes}m{}s", seconds % 60),
        600..10_800 => format!("{minutes}m"),
        10_800..172_800 => format!("{hours}h"),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_as_short_as_those_of_kubectl() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        for (since, expected) in [
            ("2026-11-30T11:59:01Z", "59s"),
            ("2026-11-30T11:57:30Z", "2m30s"),
            ("2026-11-30T11:30:00Z", "30m"),
            ("2026-11-30T02:00:00Z", "10h"),
            ("2026-11-20T12:00:00Z", "10d"),
            ("soon", "<unknown>"),
        ] {
            assert_eq!(age(&json!(since), now), expected, "{since}");
        }
    }
}
