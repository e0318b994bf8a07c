//! Registries: one document for each host and each of mirrors, TLS and credentials.

use serde_json::{Value, json};
use url::Url;

use super::pem;
use super::work::{Field, Work};

pub(super) fn all(work: &mut Work<'_>) {
    if let Some(field) = work.at(&["machine", "registries", "mirrors"]) {
        for (host, mirror) in work.map(&field) {
            mirrors(work, &host, &mirror);
        }
    }
    if let Some(field) = work.at(&["machine", "registries", "config"]) {
        for (host, config) in work.map(&field) {
            if let Some(tls) = config.at(&["tls"]) {
                security(work, &host, &tls);
            }
            if let Some(auth) = config.at(&["auth"]) {
                credentials(work, &host, &auth);
            }
        }
    }
}

fn mirrors(work: &mut Work<'_>, host: &str, mirror: &Field<'_>) {
    const KIND: &str = "RegistryMirrorConfig";
    work.draft(KIND, host);
    let keep_path = mirror.at(&["overridePath"]);
    let keeps = keep_path
        .as_ref()
        .is_some_and(|field| work.flag(field) == Some(true));
    if let Some(field) = mirror.at(&["endpoints"]) {
        let before = work.refusals.len();
        let mut endpoints: Vec<Value> = Vec::new();
        for item in work.list(&field) {
            let Some(text) = work.text(&item) else {
                continue;
            };
            let web = Url::parse(&text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
            if !web {
                work.refuse(
                    &item,
                    "is no http or https URL, which a RegistryMirrorConfig needs",
                );
            }
            endpoints.push(match keeps {
                true => json!({ "url": text, "overridePath": true }),
                false => json!({ "url": text }),
            });
        }
        if work.refusals.len() == before {
            work.put(&field, KIND, host, &["endpoints"], endpoints.into());
        }
    }
    if let Some(field) = keep_path {
        match keeps {
            true => work.moved(&field, KIND, host, &["endpoints"]),
            false => work.drop(&field, "it is the default"),
        }
    }
    if let Some(field) = mirror.at(&["skipFallback"])
        && let Some(flag) = work.flag(&field)
    {
        work.put(&field, KIND, host, &["skipFallback"], flag.into());
    }
}

fn security(work: &mut Work<'_>, host: &str, tls: &Field<'_>) {
    const KIND: &str = "RegistryTLSConfig";
    work.draft(KIND, host);
    if let Some(identity) = tls.at(&["clientIdentity"]) {
        for (from, to) in [("crt", "cert"), ("key", "key")] {
            let Some(field) = identity.at(&[from]) else {
                continue;
            };
            match pem::of(work, &field) {
                Some(pem) => work.put(&field, KIND, host, &["clientIdentity", to], pem.into()),
                None if work.is_taken(&field.path) => {}
                None => work.drop(&field, "it is empty"),
            }
        }
    }
    if let Some(field) = tls.at(&["ca"]) {
        match pem::of(work, &field) {
            Some(pem) => work.put(&field, KIND, host, &["ca"], pem.into()),
            None if work.is_taken(&field.path) => {}
            None => work.drop(&field, "it is empty"),
        }
    }
    if let Some(field) = tls.at(&["insecureSkipVerify"])
        && let Some(flag) = work.flag(&field)
    {
        work.put(&field, KIND, host, &["insecureSkipVerify"], flag.into());
    }
}

fn credentials(work: &mut Work<'_>, host: &str, auth: &Field<'_>) {
    const KIND: &str = "RegistryAuthConfig";
    work.draft(KIND, host);
    let mut ways = Vec::new();
    for key in ["username", "password", "auth", "identityToken"] {
        let Some(field) = auth.at(&[key]) else {
            continue;
        };
        if field.node.as_str() == Some("") {
            work.drop(&field, "it is empty");
            continue;
        }
        if key != "password" {
            ways.push(key);
        }
        work.copy(&field, KIND, host, &[key]);
    }
    if ways.len() > 1 {
        work.refuse(
            auth,
            format!(
                "has {}; a RegistryAuthConfig takes one way only",
                ways.join(" and ")
            ),
        );
    }
}
