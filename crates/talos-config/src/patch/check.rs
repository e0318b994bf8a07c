//! Holds a strategic patch against the table of fields before anything is changed.

use serde_json::Value;

use super::delete::DIRECTIVE;
use crate::schema::{Field, MAIN, Schema, Shape};
use crate::{Error, Place};

/// Checks every field of a document for its name and type.
///
/// A field that a Talos without a table of its own may know is a warning.
pub(super) fn document(
    patch: &Value,
    fields: &'static Field,
    place: &Place,
    schema: Schema,
    warnings: &mut Vec<String>,
) -> Result<(), Error> {
    let mut checker = Checker {
        schema,
        document: &place.document,
        path: Vec::new(),
        warnings,
    };
    checker.value(patch, fields)
}

struct Checker<'a> {
    schema: Schema,
    document: &'a str,
    path: Vec<String>,
    warnings: &'a mut Vec<String>,
}

impl Checker<'_> {
    fn value(&mut self, value: &Value, field: &'static Field) -> Result<(), Error> {
        match (field.shape, value) {
            (_, Value::Null) | (Shape::Free, _) => Ok(()),
            // A deletion stands where any value may.
            (_, Value::Object(map))
                if map.contains_key(DIRECTIVE) && field.shape != Shape::Struct =>
            {
                Ok(())
            }
            (Shape::Struct, Value::Object(map)) => {
                for (key, value) in map {
                    if key == DIRECTIVE {
                        continue;
                    }
                    self.path.push(key.clone());
                    match field.fields.get(key.as_str()) {
                        Some(field) => self.value(value, field)?,
                        None => self.unknown(key, field)?,
                    }
                    self.path.pop();
                }
                Ok(())
            }
            (Shape::List, Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.path.push(format!("[{index}]"));
                    self.inside(item, field)?;
                    self.path.pop();
                }
                Ok(())
            }
            (Shape::Map, Value::Object(map)) => {
                for (key, value) in map {
                    self.path.push(key.clone());
                    self.inside(value, field)?;
                    self.path.pop();
                }
                Ok(())
            }
            (shape, value) if fits(shape, value) => Ok(()),
            (shape, value) => Err(Error::WrongType {
                place: self.place(),
                expected: expected(shape),
                found: found(value),
            }),
        }
    }

    fn inside(&mut self, value: &Value, field: &'static Field) -> Result<(), Error> {
        match &field.element {
            Some(element) => self.value(value, element),
            None => Ok(()),
        }
    }

    fn unknown(&mut self, key: &str, field: &'static Field) -> Result<(), Error> {
        let path: Vec<&str> = self
            .path
            .iter()
            .map(String::as_str)
            .filter(|part| !part.starts_with('['))
            .collect();
        let kind = self
            .document
            .split('/')
            .next()
            .filter(|kind| !kind.is_empty())
            .unwrap_or(MAIN);
        let error = Error::UnknownField {
            place: self.place(),
            version: self.schema.table_version().to_owned(),
            newer: self.schema.version_with(kind, &path).map(str::to_owned),
        };
        if self.schema.is_known() {
            return Err(error);
        }
        let near = field
            .fields
            .keys()
            .find(|known| known.eq_ignore_ascii_case(key));
        let hint = near.map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"));
        self.warnings.push(format!("{error}{hint}"));
        Ok(())
    }

    fn place(&self) -> Place {
        Place {
            document: self.document.to_owned(),
            path: path(&self.path),
        }
    }
}

/// Joins the parts of a path; positions stand in brackets.
pub(super) fn path(parts: &[String]) -> String {
    let mut out = String::new();
    for part in parts {
        if !out.is_empty() && !part.starts_with('[') {
            out.push('.');
        }
        out.push_str(part);
    }
    out
}

/// Returns whether the decoder of Talos takes a scalar for a field.
fn fits(shape: Shape, value: &Value) -> bool {
    match (shape, value) {
        (Shape::Text | Shape::Either, Value::String(_) | Value::Number(_) | Value::Bool(_)) => true,
        (Shape::Url, Value::String(_)) | (Shape::Bool, Value::Bool(_)) => true,
        (Shape::Bool, Value::String(text)) => {
            const WORDS: [&str; 8] = ["yes", "no", "on", "off", "y", "n", "true", "false"];
            WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
        }
        (Shape::Number, Value::Number(number)) => !number.is_f64(),
        _ => false,
    }
}

fn expected(shape: Shape) -> &'static str {
    match shape {
        Shape::Bool => "true or false",
        Shape::Number => "a whole number",
        Shape::Text | Shape::Either => "a string",
        Shape::Url => "a URL",
        Shape::Struct | Shape::Map => "a mapping",
        Shape::List => "a list",
        Shape::Free => "any value",
    }
}

/// Names the type of a value without showing it.
pub(super) fn found(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}
