//! Documents as text, with comments where they are wanted.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::examples::{self, Audience};
use super::{Comments, Params, explain};
use crate::machine::MachineType;
use crate::yaml;

/// Writes documents one after the other.
pub(super) fn stream(documents: &[Value], params: &Params, kind: MachineType) -> String {
    let audience = Audience {
        contract: params.release.contract(),
        kind,
    };
    let mut out = String::with_capacity(32 << 10);
    for (index, document) in documents.iter().enumerate() {
        if index > 0 {
            out.push_str("---\n");
        }
        match document {
            Value::Object(fields) if params.comments != Comments::default() => {
                let kind = fields.get("kind").and_then(Value::as_str);
                let printer = Printer {
                    kind: kind.unwrap_or_default(),
                    comments: params.comments,
                    audience,
                };
                printer.document(&mut out, fields);
            }
            plain => out.push_str(&yaml::write(plain)),
        }
    }
    if params.comments.examples {
        for example in examples::documents(audience) {
            if documents.iter().any(|document| example.repeats(document)) {
                continue;
            }
            comment(&mut out, 0, "---");
            comment(&mut out, 0, example.text);
        }
    }
    out
}

struct Printer<'a> {
    kind: &'a str,
    comments: Comments,
    audience: Audience,
}

impl Printer<'_> {
    fn document(&self, out: &mut String, fields: &Map<String, Value>) {
        if self.comments.docs
            && let Some(text) = explain::document(self.kind)
        {
            comment(out, 0, text);
        }
        self.fields(out, fields, 0, "");
    }

    fn fields(&self, out: &mut String, fields: &Map<String, Value>, indent: usize, path: &str) {
        for (key, value) in fields {
            let path = match path {
                "" => key.clone(),
                path => format!("{path}.{key}"),
            };
            if self.comments.docs
                && let Some(text) = explain::field(self.kind, &path)
            {
                comment(out, indent, text);
            }
            match value {
                Value::Object(below) if !below.is_empty() && !explain::is_free(&path) => {
                    // The empty mapping stands for what follows on lines of its own.
                    let line = one(key, Value::Object(Map::new()));
                    let name = line.trim_end().strip_suffix(" {}").unwrap_or(&line);
                    indented(out, indent, name);
                    self.fields(out, below, indent + 4, &path);
                }
                value => indented(out, indent, &one(key, value.clone())),
            }
        }
        if !self.comments.examples {
            return;
        }
        for example in examples::fields(self.audience, self.kind, path) {
            if !fields.contains_key(example.key()) {
                comment(out, indent, example.text);
            }
        }
    }
}

/// Writes a field as a document of its own.
fn one(key: &str, value: Value) -> String {
    yaml::write(&Value::Object(Map::from_iter([(key.to_owned(), value)])))
}

fn indented(out: &mut String, indent: usize, text: &str) {
    for line in text.lines() {
        if !line.is_empty() {
            out.extend(std::iter::repeat_n(' ', indent));
            out.push_str(line);
        }
        out.push('\n');
    }
}

fn comment(out: &mut String, indent: usize, text: &str) {
    for line in text.lines() {
        // Writing to a string does not fail.
        let _ = writeln!(out, "{:indent$}# {line}", "");
    }
}
