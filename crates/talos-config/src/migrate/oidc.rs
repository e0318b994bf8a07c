//! Arguments for OpenID Connect, as the configuration of an authenticator.

use serde_json::{Value, json};

use super::work::{Field, Work};

/// Returns the authenticator that the `oidc-` arguments of the API server set up, and the arguments it is made of;
/// nothing if there are none, or if one has no equal.
pub(super) fn authenticator<'a>(
    work: &mut Work<'_>,
    arguments: &[(String, Field<'a>)],
) -> Option<(Value, Vec<Field<'a>>)> {
    let mine: Vec<&(String, Field<'_>)> = arguments
        .iter()
        .filter(|(key, _)| key.starts_with("oidc-"))
        .collect();
    let (first, before) = (mine.first()?, work.refusals.len());
    let mut texts: Vec<(&str, String)> = Vec::new();
    for (key, field) in mine.iter().copied() {
        match key.as_str() {
            "oidc-issuer-url"
            | "oidc-client-id"
            | "oidc-username-claim"
            | "oidc-username-prefix"
            | "oidc-groups-claim"
            | "oidc-groups-prefix"
            | "oidc-required-claim" => {
                let values = match field.node.kind() {
                    crate::yaml::Kind::List => field.items(),
                    _ => vec![field.clone()],
                };
                for value in values {
                    texts.extend(work.text(&value).map(|text| (key.as_str(), text)));
                }
            }
            "oidc-ca-file" => work.refuse(
                field,
                "names a file, and a KubeAuthenticationConfig has the certificates themselves",
            ),
            _ => work.refuse(field, "a KubeAuthenticationConfig has no such setting"),
        }
    }
    // The last one counts where an argument stands more than once.
    let text = |key: &str| {
        texts
            .iter()
            .rev()
            .find(|(known, _)| *known == key)
            .map(|(_, text)| text.as_str())
    };
    let (Some(issuer), Some(client)) = (text("oidc-issuer-url"), text("oidc-client-id")) else {
        if work.refusals.len() == before {
            work.refuse(
                &first.1,
                "stands without both oidc-issuer-url and oidc-client-id, without which the API server does not start",
            );
        }
        return None;
    };
    let claim = text("oidc-username-claim").unwrap_or("sub");
    let prefix = match text("oidc-username-prefix") {
        Some("-") => String::new(),
        Some(prefix) if !prefix.is_empty() => prefix.to_owned(),
        _ if claim == "email" => String::new(),
        _ => format!("{issuer}#"),
    };
    let mut jwt = json!({
        "issuer": { "url": issuer, "audiences": [client] },
        "claimMappings": { "username": { "claim": claim, "prefix": prefix } },
    });
    if let Some(claim) = text("oidc-groups-claim").filter(|claim| !claim.is_empty()) {
        let prefix = text("oidc-groups-prefix").unwrap_or_default();
        jwt["claimMappings"]["groups"] = json!({ "claim": claim, "prefix": prefix });
    }
    let mut rules: Vec<Value> = Vec::new();
    let required = texts
        .iter()
        .filter(|(key, _)| *key == "oidc-required-claim");
    for pair in required.flat_map(|(_, text)| text.split(',')) {
        match pair.split_once('=') {
            Some((claim, value)) => rules.push(json!({ "claim": claim, "requiredValue": value })),
            None => work.refuse(&first.1, "has a required claim without a value"),
        }
    }
    if !rules.is_empty() {
        jwt["claimValidationRules"] = rules.into();
    }
    let fields = mine.into_iter().map(|(_, field)| field.clone()).collect();
    (work.refusals.len() == before).then_some((jwt, fields))
}
