//! `$patch: delete`: what a strategic patch takes away before it merges the rest.

use serde_json::Value;

use super::check;
use crate::schema::{Field, Shape};
use crate::yaml::{Kind, Node};
use crate::{Error, Place};

/// The key of the directive.
pub(super) const DIRECTIVE: &str = "$patch";

/// Returns whether a directive stands anywhere below the root of a document.
pub(super) fn is_in(value: &Value) -> bool {
    match value {
        Value::Object(map) => map
            .iter()
            .any(|(key, value)| key == DIRECTIVE || is_in(value)),
        Value::Array(items) => items.iter().any(is_in),
        _ => false,
    }
}

/// Refuses directives other than `delete`.
pub(super) fn check(directive: &Value, place: &Place) -> Result<(), Error> {
    if directive.as_str() == Some("delete") {
        return Ok(());
    }
    Err(Error::Directive {
        place: place.clone(),
        reason: "the only `$patch` is `delete`",
    })
}

/// Carries out the deletions of a document and takes them out of the patch.
pub(super) fn apply(
    root: &mut Node,
    patch: &mut Value,
    fields: Option<&'static Field>,
    place: &Place,
    warnings: &mut Vec<String>,
) -> Result<(), Error> {
    let mut deleter = Deleter {
        document: &place.document,
        path: Vec::new(),
        warnings,
    };
    deleter.mapping(root, patch, fields)
}

struct Deleter<'a> {
    document: &'a str,
    path: Vec<String>,
    warnings: &'a mut Vec<String>,
}

impl Deleter<'_> {
    /// Deletes what the values of a mapping ask for.
    fn mapping(
        &mut self,
        node: &mut Node,
        patch: &mut Value,
        field: Option<&'static Field>,
    ) -> Result<(), Error> {
        let Value::Object(map) = patch else {
            return Ok(());
        };
        let mut done = Vec::new();
        for (key, value) in map.iter_mut().filter(|(_, value)| is_in(value)) {
            self.path.push(key.clone());
            let below = field.and_then(|field| match field.shape {
                Shape::Map => field.element.as_deref(),
                _ => field.fields.get(key.as_str()),
            });
            if let Some(directive) = value.get(DIRECTIVE) {
                check(directive, &self.place())?;
                self.key(node, key, field)?;
                done.push(key.clone());
            } else {
                let child = match node.contains(key) {
                    true => node.get_mut(key).ok_or_else(|| self.nothing())?,
                    false => return Err(self.first_missing(value)),
                };
                match value {
                    Value::Array(items) => self.list(child, items)?,
                    value => self.mapping(child, value, below)?,
                }
            }
            self.path.pop();
        }
        for key in done {
            map.shift_remove(&key);
        }
        Ok(())
    }

    /// Deletes a key; a field that Talos knows may be absent already, an entry of a map may not.
    fn key(
        &mut self,
        node: &mut Node,
        key: &str,
        field: Option<&'static Field>,
    ) -> Result<(), Error> {
        if node.remove(key) {
            return Ok(());
        }
        if field.is_some_and(|field| field.shape == Shape::Struct && field.fields.contains_key(key))
        {
            self.warnings
                .push(format!("{}: nothing to delete", self.place()));
            return Ok(());
        }
        Err(self.nothing())
    }

    /// Deletes the elements of a list that are named by the first key beside the directive.
    fn list(&mut self, node: &mut Node, items: &mut Vec<Value>) -> Result<(), Error> {
        let mut kept = Vec::with_capacity(items.len());
        for item in items.drain(..) {
            let Some(directive) = item.get(DIRECTIVE) else {
                if is_in(&item) {
                    return Err(Error::Directive {
                        place: self.place(),
                        reason: "nothing can be deleted inside an element of a list",
                    });
                }
                kept.push(item);
                continue;
            };
            check(directive, &self.place())?;
            let selector = item
                .as_object()
                .into_iter()
                .flatten()
                .find(|(key, _)| *key != DIRECTIVE);
            let Some((key, value)) = selector else {
                return Err(Error::Directive {
                    place: self.place(),
                    reason: "no key names the element to delete",
                });
            };
            self.path.push(format!("[{key}={}]", text(value)));
            let same = |node: &Node| node.get(key).is_some_and(|node| matches(node, value));
            let index = node.items().position(same).ok_or_else(|| self.nothing())?;
            node.remove_item(index);
            self.path.pop();
        }
        *items = kept;
        Ok(())
    }

    /// Returns the error for a deletion below a key that is not there.
    fn first_missing(&mut self, value: &Value) -> Error {
        let mut value = value;
        while let Value::Object(map) = value {
            let Some((key, below)) = map.iter().find(|(_, below)| is_in(below)) else {
                break;
            };
            self.path.push(key.clone());
            value = below;
        }
        self.nothing()
    }

    fn nothing(&self) -> Error {
        Error::NothingToDelete {
            place: self.place(),
        }
    }

    fn place(&self) -> Place {
        Place {
            document: self.document.to_owned(),
            path: check::path(&self.path),
        }
    }
}

/// Compares a value of the configuration with the selector of a deletion, scalars by their text.
fn matches(node: &Node, value: &Value) -> bool {
    match node.as_scalar() {
        Some(scalar) => text(scalar) == text(value) && node.kind() != Kind::Null,
        None => node.means(value),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(_) => "{...}".to_owned(),
        value => value.to_string(),
    }
}
