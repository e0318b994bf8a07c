//! The API server, and who it lets do what.

use serde_json::{Map, Value, json};

use super::oidc;
use super::work::{Role, Work};

pub(super) const SERVER: &str = "KubeAPIServerConfig";
const AUTHENTICATION: &str = "KubeAuthenticationConfig";
const AUTHORIZER: &str = "KubeAuthorizerConfig";

pub(super) fn all(work: &mut Work<'_>) {
    admission(work);
    authorizers(work);
    arguments(work);
}

fn admission(work: &mut Work<'_>) {
    const KIND: &str = "KubeAdmissionControlConfig";
    let Some(field) = work.at(&["cluster", "apiServer", "admissionControl"]) else {
        return;
    };
    if field.node.is_empty() {
        return work.drop(&field, "it is empty");
    }
    for plugin in work.list(&field) {
        let name = plugin
            .at(&["name"])
            .and_then(|field| work.text(&field))
            .unwrap_or_default();
        if name.is_empty() {
            work.refuse(&plugin, "has no `name`");
        } else if work.has_draft(KIND, &name) {
            work.refuse(&plugin, format!("another entry is for {name} too"));
        } else if work.admits(&plugin, KIND) {
            match plugin.at(&["configuration"]) {
                Some(below) => work.put(&below, KIND, &name, &["configuration"], below.value()),
                None => work.imply(KIND, &name, &["configuration"], json!({})),
            }
            if let Some(below) = plugin.at(&["name"]) {
                work.moved(&below, KIND, &name, &[]);
            }
        }
    }
}

/// The old form puts Node and RBAC first where they are not named.
fn authorizers(work: &mut Work<'_>) {
    let Some(field) = work.at(&["cluster", "apiServer", "authorizationConfig"]) else {
        return;
    };
    if field.node.is_empty() {
        return work.drop(&field, "it is empty");
    }
    let items = work.list(&field);
    let has = |kind: &str| {
        items
            .iter()
            .any(|item| item.node.get("type").and_then(|node| node.as_str()) == Some(kind))
    };
    let (node, rbac) = (has("Node"), has("RBAC"));
    if node != rbac {
        let missing = if node { "RBAC" } else { "Node" };
        return work.refuse(
            &field,
            format!(
                "leaves {missing} out, which Talos adds in the midst of it; name it here first"
            ),
        );
    }
    if !work.admits(&field, AUTHORIZER) {
        return;
    }
    if !node {
        default_authorizers(work);
    }
    for item in items {
        let name = item
            .at(&["name"])
            .and_then(|field| work.text(&field))
            .unwrap_or_default();
        let kind = item
            .at(&["type"])
            .and_then(|field| work.text(&field))
            .unwrap_or_default();
        if name.is_empty() || work.has_draft(AUTHORIZER, &name) {
            work.refuse(&item, "has no `name` of its own");
            continue;
        }
        work.draft(AUTHORIZER, &name);
        work.imply(AUTHORIZER, &name, &["type"], kind.into());
        for key in ["name", "type"] {
            if let Some(below) = item.at(&[key]) {
                work.moved(
                    &below,
                    AUTHORIZER,
                    &name,
                    if key == "type" { &["type"] } else { &[] },
                );
            }
        }
        if let Some(below) = item.at(&["webhook"]) {
            work.put(&below, AUTHORIZER, &name, &["webhook"], below.value());
        }
    }
}

fn default_authorizers(work: &mut Work<'_>) {
    for (name, kind) in [("node", "Node"), ("rbac", "RBAC")] {
        work.imply(AUTHORIZER, name, &["type"], kind.into());
    }
}

/// Arguments of the API server that have documents of their own.
fn arguments(work: &mut Work<'_>) {
    let Some(section) = work.at(&["cluster", "apiServer", "extraArgs"]) else {
        return;
    };
    if work.role != Role::ControlPlane {
        return;
    }
    let fields = work.map(&section);
    let mut answers = None;
    let mut gone: Vec<&str> = Vec::new();
    for (key, field) in &fields {
        let reason = match key.as_str() {
            "anonymous-auth" => match work.text(field).and_then(|text| text.parse().ok()) {
                Some(on) => {
                    answers = Some(on);
                    let to = ["configuration", "anonymous", "enabled"];
                    work.draft(AUTHENTICATION, "");
                    work.moved(field, AUTHENTICATION, "", &to);
                    gone.push(key);
                    continue;
                }
                None => "is neither true nor false",
            },
            "authorization-mode" => {
                let text = work.text(field).unwrap_or_default();
                let mut modes = text.split(',').map(str::trim);
                if modes.all(|mode| matches!(mode, "Node" | "RBAC")) {
                    work.drop(field, "it is the default");
                    gone.push(key);
                    continue;
                }
                "names modes that belong into KubeAuthorizerConfig documents"
            }
            key if key.starts_with("authentication-config") => {
                "belongs into a KubeAuthenticationConfig, whose content is in a file here"
            }
            key if key.starts_with("authorization-") => {
                "belongs into KubeAuthorizerConfig documents, which have to be written by hand"
            }
            _ => continue,
        };
        work.refuse(field, reason);
    }
    let mut configuration = anonymous(answers.unwrap_or(false));
    let connect = oidc::authenticator(work, &fields);
    if let Some((authenticator, arguments)) = &connect {
        configuration["jwt"] = json!([authenticator]);
        work.notes.push(
            "with a KubeAuthenticationConfig the API server takes tokens signed with any algorithm for OpenID Connect, not with RS256 only"
                .to_owned(),
        );
        work.draft(AUTHENTICATION, "");
        for field in arguments {
            work.moved(field, AUTHENTICATION, "", &["configuration", "jwt"]);
        }
        gone.extend(
            fields
                .iter()
                .map(|(key, _)| key.as_str())
                .filter(|key| key.starts_with("oidc-")),
        );
    }
    if answers.is_some() || connect.is_some() {
        work.imply(AUTHENTICATION, "", &["configuration"], configuration);
    }
    if gone.is_empty() {
        return;
    }
    // The rest goes as a whole.
    let kept: Map<String, Value> = fields
        .iter()
        .filter(|(key, _)| !gone.contains(&key.as_str()))
        .map(|(key, field)| (key.clone(), work.as_written(field)))
        .collect();
    if kept.is_empty() {
        work.draft(SERVER, "");
        work.taken.push(section.path);
    } else {
        work.put(&section, SERVER, "", &["extraArgs"], kept.into());
    }
}

fn anonymous(enabled: bool) -> Value {
    json!({ "anonymous": { "enabled": enabled } })
}

/// A document for the API server takes these documents as they are; without one Talos adds what it has always had.
pub(super) fn access(work: &mut Work<'_>) {
    let section = work
        .draft(SERVER, "")
        .copies
        .first()
        .map(|(from, _)| from.clone());
    let section = section.unwrap_or_default();
    match work.existing(AUTHENTICATION, "") {
        Some((index, _)) => {
            let line = work.stream.line(index, &[]).unwrap_or(1);
            let reason = format!(
                "with a {SERVER} the {AUTHENTICATION} at line {line} would take effect, which it does not now"
            );
            work.refuse_at(&section, reason);
        }
        None => work.imply(AUTHENTICATION, "", &["configuration"], anonymous(false)),
    }
    let kinds: Vec<&str> = work
        .stream
        .roots()
        .filter(|node| node.get("kind").and_then(|kind| kind.as_str()) == Some(AUTHORIZER))
        .filter_map(|node| node.get("type")?.as_str())
        .collect();
    if kinds.is_empty() {
        if !work.drafts.iter().any(|draft| draft.kind == AUTHORIZER) {
            default_authorizers(work);
        }
    } else if !kinds.contains(&"Node") || !kinds.contains(&"RBAC") {
        let reason = format!(
            "with a {SERVER} Talos does not add Node and RBAC to the {AUTHORIZER} documents any more; add them first"
        );
        work.refuse_at(&section, reason);
    }
}
