//! Reading the text of a talosconfig.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Auth, Context, Error, Hidden, TalosConfig};

pub(super) fn parse(file: String, text: &str) -> Result<TalosConfig, Error> {
    if text.trim().is_empty() {
        return Err(Error::Empty { file });
    }
    let raw: Option<RawFile> = match serde_saphyr::from_str_with_options(text, options()) {
        Ok(raw) => raw,
        Err(error) => return Err(explain(file, text, &error)),
    };
    let Some(raw) = raw else {
        return Err(Error::Empty { file });
    };
    let contexts = raw.contexts.unwrap_or_default();
    Ok(TalosConfig {
        file,
        text: Hidden::new(text),
        current: raw.context.and_then(filled),
        contexts: contexts
            .into_iter()
            .map(|(name, context)| (name, context.unwrap_or_default().into()))
            .collect(),
    })
}

/// Go's reading of YAML, as Talos does it, and errors without a snippet: it could show a key.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        strict_booleans: true,
        legacy_octal_numbers: true,
        with_snippet: false,
    }
}

#[derive(Deserialize)]
struct RawFile {
    context: Option<String>,
    contexts: Option<BTreeMap<String, Option<RawContext>>>,
}

#[derive(Default, Deserialize)]
struct RawContext {
    endpoints: Option<Vec<String>>,
    target: Option<String>,
    nodes: Option<Vec<String>>,
    ca: Option<String>,
    crt: Option<String>,
    key: Option<String>,
    auth: Option<RawAuth>,
    cluster: Option<String>,
    #[serde(rename = "proxy-url")]
    proxy_url: Option<String>,
}

#[derive(Deserialize)]
struct RawAuth {
    basic: Option<RawBasic>,
    siderov1: Option<RawSideroV1>,
}

#[derive(Deserialize)]
struct RawBasic {
    username: Option<String>,
    password: Option<String>,
}

#[derive(Deserialize)]
struct RawSideroV1 {
    identity: Option<String>,
}

impl From<RawContext> for Context {
    fn from(raw: RawContext) -> Self {
        let mut endpoints = raw.endpoints.unwrap_or_default();
        endpoints.extend(raw.target.and_then(filled));
        Self {
            endpoints,
            nodes: raw.nodes.unwrap_or_default(),
            ca: raw.ca.and_then(filled),
            crt: raw.crt.and_then(filled),
            key: raw.key.and_then(filled).map(Hidden::new),
            auth: raw.auth.map_or(Auth::None, Auth::from),
            cluster: raw.cluster.and_then(filled),
            proxy_url: raw.proxy_url.and_then(filled),
        }
    }
}

impl From<RawAuth> for Auth {
    fn from(raw: RawAuth) -> Self {
        if let Some(identity) = raw.siderov1.and_then(|auth| auth.identity).and_then(filled) {
            return Self::SideroV1 { identity };
        }
        let Some(basic) = raw.basic else {
            return Self::None;
        };
        match basic.username.and_then(filled) {
            None => Self::None,
            Some(username) => Self::Basic {
                username,
                password: Hidden::new(basic.password.unwrap_or_default()),
            },
        }
    }
}

fn filled(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Names the field that has the wrong shape; the parser's own words could show what the field holds.
fn explain(file: String, text: &str, error: &serde_saphyr::Error) -> Error {
    let value: Result<Value, _> = serde_saphyr::from_str_with_options(text, options());
    if let Ok(value) = value
        && let Some((field, expected)) = misshapen(&value)
    {
        return Error::Shape {
            file,
            field,
            expected,
        };
    }
    let location = error.location();
    Error::Syntax {
        file,
        line: location.map_or(0, |at| at.line()),
        column: location.map_or(0, |at| at.column()),
    }
}

const MAPPING: &str = "a mapping";
const LIST: &str = "a list of texts";
const TEXT: &str = "a text";

fn misshapen(file: &Value) -> Option<(String, &'static str)> {
    let Some(file) = file.as_object() else {
        return Some(("the whole file".to_string(), MAPPING));
    };
    if !text_or_nothing(file.get("context")) {
        return Some(("context".to_string(), TEXT));
    }
    let contexts = match file.get("contexts") {
        None | Some(Value::Null) => return None,
        Some(Value::Object(contexts)) => contexts,
        Some(_) => return Some(("contexts".to_string(), MAPPING)),
    };
    contexts.iter().find_map(|(name, context)| {
        let (field, expected) = misshapen_context(context)?;
        Some((format!("contexts.{name}{field}"), expected))
    })
}

fn misshapen_context(context: &Value) -> Option<(String, &'static str)> {
    let context = match context {
        Value::Null => return None,
        Value::Object(context) => context,
        _ => return Some((String::new(), MAPPING)),
    };
    for field in ["endpoints", "nodes"] {
        let fits = match context.get(field) {
            None | Some(Value::Null) => true,
            Some(Value::Array(items)) => items.iter().all(|item| text_or_nothing(Some(item))),
            Some(_) => false,
        };
        if !fits {
            return Some((format!(".{field}"), LIST));
        }
    }
    for field in ["target", "ca", "crt", "key", "cluster", "proxy-url"] {
        if !text_or_nothing(context.get(field)) {
            return Some((format!(".{field}"), TEXT));
        }
    }
    for (group, fields) in [
        ("basic", &["username", "password"][..]),
        ("siderov1", &["identity"]),
    ] {
        let auth = context.get("auth").unwrap_or(&Value::Null);
        for (path, value) in [("", auth), (group, auth.get(group).unwrap_or(&Value::Null))] {
            if !matches!(value, Value::Null | Value::Object(_)) {
                let dot = if path.is_empty() { "" } else { "." };
                return Some((format!(".auth{dot}{path}"), MAPPING));
            }
        }
        for field in fields {
            if !text_or_nothing(auth.get(group).and_then(|group| group.get(field))) {
                return Some((format!(".auth.{group}.{field}"), TEXT));
            }
        }
    }
    None
}

/// Numbers and booleans count as text: where text is wanted, YAML reads them so.
fn text_or_nothing(value: Option<&Value>) -> bool {
    !matches!(value, Some(Value::Array(_) | Value::Object(_)))
}
