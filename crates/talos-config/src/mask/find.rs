//! Telling which values are secret.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::yaml::{Kind, Node, Stream};

/// Fields whose value is secret, in lower case.
const NAMES: [&str; 21] = [
    "aescbcencryptionsecret",
    "apitoken",
    "auth",
    "bootstraptoken",
    "bootstraptokenid",
    "bootstraptokensecret",
    "client-key-data",
    "clustersecret",
    "identitytoken",
    "passphrase",
    "password",
    "presharedkey",
    "privatekey",
    "refresh-token",
    "secret",
    "secretboxencryptionsecret",
    "serviceencryptionkey",
    "sharedsecret",
    "token",
    "token-secret",
    "uniquetoken",
];

/// Fields whose every value is secret.
const HOLDERS: [&str; 2] = ["extramanifestheaders", "headers"];

/// Parameters of URLs that are secret.
const PARAMETERS: [&str; 4] = ["jointoken", "token", "password", "secret"];

/// What in a string is secret.
enum Found {
    Nothing,
    Whole,
    /// These parts.
    Parts(Vec<Range<usize>>),
    /// The text is of documents that hold secrets.
    Documents,
}

/// Returns the secret strings of a document.
pub(super) fn secrets(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(value, "", false, &mut found);
    found
}

/// Replaces the secret strings of a document.
pub(super) fn replace(node: &mut Node, by: &mut dyn FnMut(&str) -> String) {
    replace_in(node, "", false, by);
}

/// Returns where a line shows a secret: the value behind a field whose name says so.
pub(super) fn in_line(line: &str) -> Option<Range<usize>> {
    let body = line.trim_end();
    let colon = body.find(": ")?;
    let name = body[..colon]
        .trim_start_matches(['+', '-', ' ', '\t', '#', '{'])
        .trim_matches(['"', '\'']);
    let value = body[colon + 2..].trim_start();
    let is_secret =
        is_secret_name(name) || (name == "key" && is_private_key(value.trim_matches(['"', '\''])));
    let opens = value.starts_with(['{', '[', '|', '>', '&', '*', '#', super::OPEN]);
    let bare = value.trim_end_matches(',');
    let empty = matches!(bare, "" | "\"\"" | "''" | "null" | "~" | "true" | "false");
    if !is_secret || opens || empty {
        return None;
    }
    let start = body.len() - value.len();
    let in_flow = body[..colon].contains('{');
    let length = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => quoted_length(value, quote),
        _ if in_flow => value.find([',', '}']).unwrap_or(value.len()),
        // A value without quotes takes the rest of its line, spaces included.
        _ => value.find(" #").unwrap_or(value.len()),
    };
    Some(start..start + length)
}

/// Returns the length of a quoted value with its quotes; all of the text if the closing quote is missing.
fn quoted_length(value: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in value.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' && quote == '"' {
            escaped = true;
        } else if c == quote {
            return at + 1;
        }
    }
    value.len()
}

/// Returns what a value of a Secret's `data` says, if it is base64 of text.
pub(super) fn decoded(value: &str) -> Option<String> {
    let bytes = STANDARD.decode(value.trim()).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    text.chars()
        .all(|c| !c.is_control() || c.is_whitespace())
        .then_some(text)
}

fn collect(value: &Value, name: &str, secret: bool, found: &mut Vec<String>) {
    match value {
        Value::String(text) => match find(text, name, secret) {
            Found::Nothing => {}
            Found::Whole => found.push(text.clone()),
            Found::Parts(parts) => {
                found.extend(parts.into_iter().map(|part| text[part].to_owned()))
            }
            Found::Documents => {
                for document in crate::yaml::read_documents(text).unwrap_or_default() {
                    collect(&document, "", false, found);
                }
            }
        },
        Value::Number(number) if secret || is_secret_name(name) => found.push(number.to_string()),
        // A key as a list of bytes is hidden as a whole; its bytes are no values to look for elsewhere.
        Value::Array(items) if items.iter().all(Value::is_number) => {}
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect(item, name, secret, found)),
        Value::Object(map) => {
            let shape = Shape::of(
                |key| map.get(key).and_then(Value::as_str),
                |key| map.contains_key(key),
            );
            for (key, value) in map {
                collect(value, key, secret || shape.hides(key), found);
            }
        }
        _ => {}
    }
}

fn replace_in(node: &mut Node, name: &str, secret: bool, by: &mut dyn FnMut(&str) -> String) {
    match node.kind() {
        Kind::Null => {}
        Kind::Scalar => {
            let Some(text) = node.as_str().map(str::to_owned) else {
                let scalar = node
                    .as_scalar()
                    .filter(|value| value.is_number())
                    .map(ToString::to_string);
                if let Some(text) = scalar.filter(|_| secret || is_secret_name(name)) {
                    node.assign(Value::String(by(&text)));
                }
                return;
            };
            let masked = match find(&text, name, secret) {
                Found::Nothing => return,
                Found::Whole => by(&text),
                Found::Parts(parts) => {
                    parts
                        .into_iter()
                        .rev()
                        .fold(text.clone(), |mut text, part| {
                            let mark = by(&text[part.clone()]);
                            text.replace_range(part, &mark);
                            text
                        })
                }
                Found::Documents => inner(&text, by).unwrap_or_else(|| by(&text)),
            };
            node.assign(Value::String(masked));
        }
        Kind::List if (secret || is_secret_name(name)) && is_bytes(node) => {
            node.assign(Value::String(by(super::MASK)));
        }
        Kind::List => {
            for index in 0..node.len() {
                if let Some(item) = node.item_mut(index) {
                    replace_in(item, name, secret, by);
                }
            }
        }
        Kind::Mapping => {
            let shape = Shape::of(
                |key| node.get(key).and_then(Node::as_str),
                |key| node.contains(key),
            );
            let keys: Vec<String> = node.entries().map(|(key, _)| key.to_owned()).collect();
            for key in keys {
                if let Some(value) = node.get_mut(&key) {
                    replace_in(value, &key, secret || shape.hides(&key), by);
                }
            }
        }
    }
}

/// Returns whether a list holds nothing but numbers, and some.
fn is_bytes(node: &Node) -> bool {
    node.value()
        .as_array()
        .is_some_and(|items| !items.is_empty() && items.iter().all(Value::is_number))
}

/// Replaces the secrets of a text that is documents itself.
fn inner(text: &str, by: &mut dyn FnMut(&str) -> String) -> Option<String> {
    let mut stream = Stream::parse(text).ok()?;
    for index in 0..stream.len() {
        replace(stream.root_mut(index)?, by);
    }
    Some(stream.to_string())
}

/// What a mapping is, as far as it makes its values secret.
struct Shape {
    is_secret: bool,
    is_pair: bool,
}

impl Shape {
    fn of<'a>(text: impl Fn(&str) -> Option<&'a str>, has: impl Fn(&str) -> bool) -> Self {
        Self {
            is_secret: text("kind") == Some("Secret"),
            is_pair: has("crt") || has("cert"),
        }
    }

    fn hides(&self, key: &str) -> bool {
        (self.is_secret && matches!(key, "data" | "stringData"))
            || (self.is_pair && key == "key")
            || HOLDERS.contains(&key.to_ascii_lowercase().as_str())
    }
}

fn find(text: &str, name: &str, secret: bool) -> Found {
    if text.is_empty() || text == super::MASK {
        return Found::Nothing;
    }
    if secret || is_secret_name(name) || is_private_key(text) {
        return Found::Whole;
    }
    if text.contains('\n')
        && text.contains("kind:")
        && text.contains("Secret")
        && holds_secrets(text)
    {
        return Found::Documents;
    }
    // Environments are lists of NAME=value too.
    if let Some((variable, value)) = text.split_once('=')
        && !variable.contains(char::is_whitespace)
        && !value.is_empty()
        && is_secret_name(variable)
    {
        let whole = text.len() - value.len()..text.len();
        return Found::Parts(std::iter::once(whole).collect());
    }
    let parts = in_url(text);
    if parts.is_empty() {
        Found::Nothing
    } else {
        Found::Parts(parts)
    }
}

/// Returns whether a text is documents with secrets in them.
fn holds_secrets(text: &str) -> bool {
    crate::yaml::read_documents(text).is_ok_and(|documents| {
        documents
            .iter()
            .any(|document| !secrets(document).is_empty())
    })
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // Variables of an environment carry their meaning in their name too.
    NAMES.contains(&name.as_str())
        || name.contains("password")
        || name.contains("passphrase")
        || [
            "authkey",
            "_api_key",
            "_token",
            "_password",
            "_secret",
            "_secret_key",
            "_secret_access_key",
        ]
        .iter()
        .any(|end| name.ends_with(end))
}

fn is_private_key(text: &str) -> bool {
    const MARK: &str = "PRIVATE KEY-----";
    if text.contains(MARK) {
        return true;
    }
    // Base64 of "-----BEGIN " begins like this.
    text.starts_with("LS0tLS1CRUdJTi")
        && STANDARD
            .decode(text.trim())
            .is_ok_and(|pem| String::from_utf8_lossy(&pem).contains(MARK))
}

/// Returns where the URLs of a text have passwords and secret parameters.
fn in_url(text: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    for (at, _) in text.match_indices("://") {
        let start = at + 3;
        let url = &text[start..];
        let end = url
            .find(|c: char| c.is_whitespace() || matches!(c, '"' | '\''))
            .unwrap_or(url.len());
        let url = &url[..end];
        let authority = &url[..url.find(['/', '?', '#']).unwrap_or(url.len())];
        if let Some((user, _)) = authority.rsplit_once('@')
            && let Some(colon) = user.find(':')
            && colon + 1 < user.len()
        {
            parts.push(start + colon + 1..start + user.len());
        }
        let mut from = url.find('?').map_or(url.len(), |at| at + 1);
        while from < url.len() {
            let pair = &url[from..from + url[from..].find(['&', '#']).unwrap_or(url.len() - from)];
            if let Some((name, value)) = pair.split_once('=')
                && PARAMETERS.contains(&name.to_ascii_lowercase().as_str())
                && !value.is_empty()
            {
                let start = start + from + name.len() + 1;
                parts.push(start..start + value.len());
            }
            from += pair.len() + 1;
        }
    }
    parts
}
