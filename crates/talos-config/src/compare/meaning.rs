//! What a value means to Talos: the same for everything that decodes to the same.

use serde_json::{Map, Number, Value};

use crate::schema::{Field, Rule, Shape};
use crate::yaml::{Kind, Node, Stream};

/// Returns what a document means.
pub(super) fn of(stream: &Stream, root: &Node, fields: Option<&'static Field>) -> Value {
    match (fields, root.kind()) {
        (Some(fields), Kind::Mapping) => Value::Object(structure(stream, root, fields)),
        _ => free(root),
    }
}

/// Returns the value of a document as it stands, with the text that was written where a field is text.
pub(super) fn as_written(stream: &Stream, node: &Node, field: Option<&'static Field>) -> Value {
    match (node.kind(), field) {
        (Kind::Mapping, Some(field))
            if field.shape == Shape::Map && field.rule == Rule::Replace =>
        {
            let entries = node.entries();
            let argument = |(key, node): (&str, &Node)| (key.to_owned(), argument(stream, node));
            Value::Object(entries.map(argument).collect())
        }
        (Kind::Mapping, _) => Value::Object(
            node.entries()
                .map(|(key, node)| {
                    let below = super::changes::below(field, key);
                    (key.to_owned(), as_written(stream, node, below))
                })
                .collect(),
        ),
        (Kind::List, _) => {
            let element = field.and_then(|field| field.element.as_deref());
            node.items()
                .map(|item| as_written(stream, item, element))
                .collect()
        }
        (Kind::Scalar, Some(field)) if field.shape != Shape::Bool => {
            match scalar(stream, node, field) {
                text @ Value::String(_) => text,
                _ => node.value(),
            }
        }
        _ => node.value(),
    }
}

fn structure(stream: &Stream, node: &Node, field: &'static Field) -> Map<String, Value> {
    node.entries()
        .filter_map(|(key, below)| {
            let value = match field.fields.get(key) {
                Some(field) => meant(stream, below, field),
                None => Some(free(below)).filter(|value| !value.is_null()),
            };
            value.map(|value| (key.to_owned(), value))
        })
        .collect()
}

/// Returns what the value of a field means; nothing if that is the same as leaving the field out.
fn meant(stream: &Stream, node: &Node, field: &'static Field) -> Option<Value> {
    let value = match (node.kind(), field.shape) {
        (Kind::Null, _) => return None,
        (Kind::Mapping, Shape::Struct) => Value::Object(structure(stream, node, field)),
        (Kind::Mapping, Shape::Map) => Value::Object(
            node.entries()
                .map(|(key, below)| (key.to_owned(), inside(stream, below, field)))
                .collect(),
        ),
        (Kind::List, Shape::List) => node
            .items()
            .map(|item| inside(stream, item, field))
            .collect(),
        (Kind::Scalar, _) => scalar(stream, node, field),
        _ => free(node),
    };
    // An absent list or map and an empty one are the same, whatever the field is.
    let (is_zero, counts) = match (&value, field.shape) {
        (Value::Array(items), Shape::List) => (items.is_empty(), false),
        (Value::Object(map), Shape::Map) => (map.is_empty(), false),
        (Value::Object(map), _) => (map.is_empty(), field.optional),
        (Value::Bool(word), Shape::Bool) => (!word, field.optional),
        (Value::Number(_), Shape::Free) => (false, true),
        (Value::Number(number), _) => (number.as_f64() == Some(0.0), field.optional),
        (Value::String(text), _) => (text.is_empty(), field.optional),
        _ => (false, true),
    };
    Some(value).filter(|_| counts || !is_zero)
}

/// Returns what an element of a list or a value of a map means: it is there, even if it is empty.
fn inside(stream: &Stream, node: &Node, field: &'static Field) -> Value {
    let Some(element) = field.element.as_deref() else {
        return free(node);
    };
    if field.shape == Shape::Map && field.rule == Rule::Replace && element.shape == Shape::Free {
        return argument(stream, node);
    }
    if let Some(value) = meant(stream, node, element) {
        return value;
    }
    match element.shape {
        Shape::Text => Value::String(String::new()),
        Shape::Struct | Shape::Map => Value::Object(Map::new()),
        Shape::List => Value::Array(Vec::new()),
        Shape::Bool => Value::Bool(false),
        _ => free(node),
    }
}

/// Returns what an argument of a component means: a text or several.
fn argument(stream: &Stream, node: &Node) -> Value {
    match node.kind() {
        Kind::List => node.items().map(|item| argument(stream, item)).collect(),
        Kind::Scalar => text(stream, node),
        _ => free(node),
    }
}

/// Returns a scalar as the text that was written.
fn text(stream: &Stream, node: &Node) -> Value {
    match node.value() {
        text @ Value::String(_) => text,
        other => {
            let written = stream.written(node).map(str::to_owned);
            Value::String(written.unwrap_or_else(|| other.to_string()))
        }
    }
}

fn scalar(stream: &Stream, node: &Node, field: &Field) -> Value {
    let value = free(node);
    let is_text = matches!(field.shape, Shape::Text | Shape::Url)
        || (field.of.starts_with("text(") && field.of != "text(PortRange)");
    match (field.shape, &value) {
        // A field of text is what was written.
        (_, Value::Number(_) | Value::Bool(_)) if is_text => text(stream, node),
        (Shape::Bool, Value::String(word)) => match word.to_ascii_lowercase().as_str() {
            "yes" | "on" | "y" | "true" => Value::Bool(true),
            "no" | "off" | "n" | "false" => Value::Bool(false),
            _ => value,
        },
        _ => value,
    }
}

/// Returns a value that no table knows; 1 and 1.0 are the same.
fn free(node: &Node) -> Value {
    let mut value = node.value();
    whole_numbers(&mut value);
    value
}

fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let whole = number
                .as_f64()
                .filter(|_| number.is_f64())
                .filter(|number| number.fract() == 0.0 && number.abs() < 9.0e15);
            if let Some(whole) = whole {
                #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
                let whole = whole as i64;
                *number = Number::from(whole);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        _ => {}
    }
}
