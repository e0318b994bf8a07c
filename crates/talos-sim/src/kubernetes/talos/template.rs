//! Built-in YAML with marks that are filled in.

use std::sync::LazyLock;

use serde_json::Value;

/// A built-in YAML file, read when it is first needed.
#[derive(Debug)]
pub(crate) struct Template(LazyLock<Value>);

impl Template {
    /// Makes a template of a function that reads a built-in file.
    pub(crate) const fn new(read: fn() -> Value) -> Self {
        Self(LazyLock::new(read))
    }

    /// Returns the content with its marks.
    pub(crate) fn value(&self) -> &Value {
        &self.0
    }
}

/// Returns a value in which every `{{name}}` is replaced.
pub(crate) fn fill(value: &Value, marks: &[(&str, &str)]) -> Value {
    match value {
        Value::String(text) if text.contains("{{") => {
            let filled = marks
                .iter()
                .fold(text.clone(), |text, (name, replacement)| {
                    text.replace(&format!("{{{{{name}}}}}"), replacement)
                });
            Value::String(filled)
        }
        Value::Array(items) => items.iter().map(|item| fill(item, marks)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| (name.clone(), fill(field, marks)))
            .collect(),
        other => other.clone(),
    }
}
