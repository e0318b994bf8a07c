//! Hiding secrets: in configurations, in differences of them, and wherever else their values appear.
//!
//! What is secret is told by the name of its field, by what it looks like (private keys, passwords in URLs) and by what
//! holds it (a Kubernetes Secret, also inside an inline manifest), so documents of kinds nobody knows are covered too. A
//! value that is secret in one place is hidden in every other.

mod find;

use std::collections::HashMap;

use serde_json::Value;

use crate::diff;
use crate::yaml::Stream;

/// What stands in the place of a secret.
pub const MASK: &str = "******";

/// The secret values that were seen.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Each value with its number; those that are masked wherever they appear come first, the longest first.
    values: Vec<(String, usize)>,
    numbers: HashMap<String, usize>,
}

impl Secrets {
    /// Starts without any secret.
    pub fn new() -> Self {
        Self::default()
    }

    /// Collects the secrets of a text: of its YAML documents if it holds any, else of its lines.
    pub fn collect(&mut self, text: &str) {
        self.hide(text);
    }

    /// Adds one secret value.
    pub fn add(&mut self, value: &str) {
        self.number(value);
        // What stands on lines of its own may be indented or marked elsewhere.
        for line in value
            .lines()
            .map(str::trim)
            .filter(|line| line.len() >= LONG && *line != value)
        {
            if !line.starts_with("-----") {
                self.number(line);
            }
        }
        if let Some(text) = find::decoded(value).filter(|text| text.len() >= LONG) {
            self.number(&text);
        }
    }

    /// Returns the secret values.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(value, _)| value.as_str())
    }

    /// Returns a text with every secret value in it hidden, and what looks like a secret by itself.
    pub fn mask(&self, text: &str) -> String {
        let mut secrets = self.clone();
        let text = secrets.hide_lines(text);
        reveal(&secrets.hide_values(&text))
    }

    /// Replaces the secrets of a text by marks, the same value by the same mark.
    fn hide(&mut self, text: &str) -> String {
        let structured = match Stream::parse(text) {
            Ok(stream) if stream.roots().any(|root| !root.is_empty()) => {
                self.hide_documents(stream)
            }
            _ => text.to_owned(),
        };
        let lines = self.hide_lines(&structured);
        self.hide_values(&lines)
    }

    fn hide_documents(&mut self, mut stream: Stream) -> String {
        for index in 0..stream.len() {
            if let Some(root) = stream.root_mut(index) {
                let found = find::secrets(&root.value());
                for secret in &found {
                    self.add(secret);
                }
                if !found.is_empty() {
                    find::replace(root, &mut |secret| self.mark(secret));
                }
            }
        }
        stream.to_string()
    }

    /// Hides what a line shows to be secret: `token: ...`, also in a difference, a list or a comment.
    fn hide_lines(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            match find::in_line(line) {
                Some(range) => {
                    let value = line[range.clone()].trim_matches(['"', '\'']).to_owned();
                    if value == MASK {
                        out.push_str(line);
                        continue;
                    }
                    self.add(&value);
                    out.push_str(&line[..range.start]);
                    out.push_str(&self.mark(&value));
                    out.push_str(&line[range.end..]);
                }
                None => out.push_str(line),
            }
        }
        out
    }

    fn hide_values(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (value, number) in &self.values {
            if out.contains(value.as_str()) {
                out = replace(&out, value, &mark(*number));
            }
        }
        out
    }

    fn mark(&mut self, value: &str) -> String {
        mark(self.number(value))
    }

    fn number(&mut self, value: &str) -> usize {
        let next = self.numbers.len();
        let number = *self.numbers.entry(value.to_owned()).or_insert(next);
        if number == next && value.len() >= SHORTEST && value != MASK {
            let at = self
                .values
                .partition_point(|(known, _)| known.len() > value.len());
            self.values.insert(at, (value.to_owned(), number));
        }
        number
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} secrets", self.numbers.len())
    }
}

/// Returns a configuration, or any text, with its secrets hidden.
pub fn text(text: &str) -> String {
    reveal(&Secrets::new().hide(text))
}

/// Returns a value with its secrets hidden.
pub fn value(value: &Value) -> Value {
    let mut secrets = Secrets::new();
    for secret in find::secrets(value) {
        secrets.add(&secret);
    }
    let mut node = crate::yaml::Node::from(value.clone());
    find::replace(&mut node, &mut |_| MASK.to_owned());
    let mut masked = node.value();
    mask_strings(&mut masked, &secrets);
    masked
}

/// Returns the unified difference of two configurations with secrets hidden; a secret that changes is seen to change.
pub fn diff(old: &str, new: &str, old_name: &str, new_name: &str) -> String {
    let mut secrets = Secrets::new();
    secrets.collect(old);
    secrets.collect(new);
    let (old, new) = (secrets.hide(old), secrets.hide(new));
    reveal(&diff::unified(&old, &new, old_name, new_name))
}

/// From this length on a secret is looked for inside words; a shorter one has to stand alone.
const LONG: usize = 8;

/// Shorter values are not looked for: they would hide unrelated text.
const SHORTEST: usize = 3;

/// Marks stand between these characters, which no text uses.
const OPEN: char = '\u{f0000}';
const CLOSE: char = '\u{f0001}';

fn mark(number: usize) -> String {
    format!("{OPEN}{number}{CLOSE}")
}

/// Writes the mask in the place of each mark.
fn reveal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        out.push_str(before);
        out.push_str(MASK);
        rest = after.split_once(CLOSE).map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
}

/// Replaces a value in a text; a short one only where it is no part of a word.
fn replace(text: &str, value: &str, by: &str) -> String {
    if value.len() >= LONG {
        return text.replace(value, by);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(value) {
        let end = at + value.len();
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let joined = rest[..at].ends_with(is_word) || rest[end..].starts_with(is_word);
        let in_mark = rest[..at].ends_with(OPEN);
        out.push_str(&rest[..at]);
        out.push_str(if joined || in_mark { value } else { by });
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

fn mask_strings(value: &mut Value, secrets: &Secrets) {
    match value {
        Value::String(text) if text != MASK => *text = reveal(&secrets.hide_values(text)),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| mask_strings(item, secrets)),
        Value::Object(map) => map
            .values_mut()
            .for_each(|value| mask_strings(value, secrets)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
