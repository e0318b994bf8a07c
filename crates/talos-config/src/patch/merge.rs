//! Merging a strategic patch into a document, field by field.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::check::{self, found};
use crate::schema::{Field, Pairing, Rule, Schema, Shape};
use crate::yaml::{Kind, Node};
use crate::{Error, Place};

/// Merges a checked patch into the document it is for.
pub(super) fn document(
    root: &mut Node,
    patch: &Value,
    fields: &'static Field,
    place: &Place,
    schema: Schema,
    warnings: &mut Vec<String>,
) -> Result<(), Error> {
    let mut merger = Merger {
        schema,
        document: &place.document,
        path: Vec::new(),
        warnings,
    };
    match patch {
        Value::Object(map) => merger.fields(root, map, fields),
        _ => Ok(()),
    }
}

/// Merges a value that no table knows: mappings by key, lists by appending.
pub(super) fn free(root: &mut Node, patch: &Value, place: &Place) -> Result<(), Error> {
    let mut warnings = Vec::new();
    let schema = Schema::newest();
    let mut merger = Merger {
        schema,
        document: &place.document,
        path: Vec::new(),
        warnings: &mut warnings,
    };
    merger.free(root, patch)
}

struct Merger<'a> {
    schema: Schema,
    document: &'a str,
    path: Vec<String>,
    warnings: &'a mut Vec<String>,
}

impl Merger<'_> {
    fn fields(
        &mut self,
        node: &mut Node,
        patch: &Map<String, Value>,
        field: &'static Field,
    ) -> Result<(), Error> {
        for (key, value) in patch {
            self.path.push(key.clone());
            match field.fields.get(key.as_str()) {
                Some(below) => self.key(node, key, value, below)?,
                None => self.free_key(node, key, value)?,
            }
            self.path.pop();
        }
        self.drop_absent(node, Some(patch), field);
        Ok(())
    }

    /// Merges the value of one key.
    fn key(
        &mut self,
        node: &mut Node,
        key: &str,
        value: &Value,
        field: &'static Field,
    ) -> Result<(), Error> {
        if value.is_null() {
            return Ok(());
        }
        let present = node.get(key).is_some_and(|node| !node.is_null());
        match (field.shape, field.rule) {
            (_, Rule::Replace) if field.shape != Shape::Map => node.set(key, value.clone()),
            (Shape::Struct | Shape::Map | Shape::List | Shape::Free | Shape::Url, _) if present => {
                if let Some(below) = node.get_mut(key) {
                    self.collection(below, value, field)?;
                }
            }
            (Shape::Map, _) if value.as_object().is_some_and(Map::is_empty) => {}
            (Shape::Struct | Shape::Map | Shape::List | Shape::Free | Shape::Url, _) => {
                node.set(key, value.clone())
            }
            _ if !is_zero(value) || (field.optional && self.schema.zero_overwrites()) => {
                node.set(key, value.clone());
            }
            (_, Rule::Always) => node.set(key, value.clone()),
            _ => {}
        }
        Ok(())
    }

    fn collection(
        &mut self,
        node: &mut Node,
        value: &Value,
        field: &'static Field,
    ) -> Result<(), Error> {
        match (field.shape, value) {
            (Shape::Url, Value::String(text)) => {
                let old = node.as_str().unwrap_or_default();
                let merged = merge_urls(old, text);
                node.assign(Value::String(merged));
            }
            (Shape::Struct, Value::Object(map)) => return self.fields(node, map, field),
            (Shape::Map, Value::Object(map)) => return self.map(node, map, field),
            (Shape::List, Value::Array(items)) => return self.list(node, items, field),
            _ => return self.free(node, value),
        }
        Ok(())
    }

    /// Merges a map: new keys are added, others merged as what the map holds.
    fn map(
        &mut self,
        node: &mut Node,
        patch: &Map<String, Value>,
        field: &'static Field,
    ) -> Result<(), Error> {
        for (key, value) in patch {
            self.path.push(key.clone());
            match &field.element {
                Some(_) if field.rule == Rule::Replace || !node.contains(key) => {
                    node.set(key, value.clone())
                }
                Some(element) => self.key(node, key, value, element)?,
                None => self.free_key(node, key, value)?,
            }
            self.path.pop();
        }
        Ok(())
    }

    /// Merges a list: elements are appended, or merged with the one they are paired with.
    fn list(
        &mut self,
        node: &mut Node,
        items: &[Value],
        field: &'static Field,
    ) -> Result<(), Error> {
        self.expect(node, Kind::List)?;
        for item in items {
            let pair = match field.rule {
                Rule::Paired(pairing) => node.items().position(|node| is_pair(node, item, pairing)),
                _ => None,
            };
            let replaced = matches!(field.rule, Rule::Paired(Pairing::KeyReplaced(_)));
            match (pair, &field.element, item) {
                (Some(index), Some(element), Value::Object(map)) if !replaced => {
                    self.path.push(format!("[{index}]"));
                    if let Some(below) = node.item_mut(index) {
                        self.fields(below, map, element)?;
                    }
                    self.path.pop();
                }
                (Some(index), _, item) => {
                    if let Some(below) = node.item_mut(index) {
                        below.assign(item.clone());
                    }
                }
                (None, _, item) => node.push(item.clone()),
            }
        }
        Ok(())
    }

    /// Merges a value whose type nobody laid down; it has to be of the type that is there.
    fn free(&mut self, node: &mut Node, value: &Value) -> Result<(), Error> {
        match value {
            Value::Null => {}
            value if node.is_null() => node.assign(value.clone()),
            Value::Object(map) => {
                self.expect(node, Kind::Mapping)?;
                for (key, value) in map {
                    self.path.push(key.clone());
                    self.free_key(node, key, value)?;
                    self.path.pop();
                }
            }
            Value::Array(items) => {
                self.expect(node, Kind::List)?;
                for item in items {
                    node.push(item.clone());
                }
            }
            value => {
                let old = node.as_scalar().map_or(Value::Null, Clone::clone);
                if node.kind() != Kind::Scalar || found(&old) != found(value) {
                    return Err(self.mismatch(node, value));
                }
                if !is_zero(value) {
                    node.assign(value.clone());
                }
            }
        }
        Ok(())
    }

    fn free_key(&mut self, node: &mut Node, key: &str, value: &Value) -> Result<(), Error> {
        match node.contains(key) {
            true if value.is_null() => Ok(()),
            true => node
                .get_mut(key)
                .map_or(Ok(()), |below| self.free(below, value)),
            false => {
                node.set(key, value.clone());
                Ok(())
            }
        }
    }

    /// Drops those sizes and expressions that Talos takes from the patch even where the patch has none.
    fn drop_absent(
        &mut self,
        node: &mut Node,
        patch: Option<&Map<String, Value>>,
        field: &'static Field,
    ) {
        if !field.reaches_always {
            return;
        }
        for (key, below) in &field.fields {
            let value = patch
                .and_then(|patch| patch.get(*key))
                .filter(|value| !value.is_null());
            if value.is_some() || !node.contains(key) {
                continue;
            }
            self.path.push((*key).to_owned());
            match (below.shape, below.rule) {
                (_, Rule::Always) => {
                    node.remove(key);
                    let place = self.place();
                    self.warnings.push(format!("{place}: dropped, as Talos does when a patch leaves it out; repeat it in the patch to keep it"));
                }
                (Shape::Struct, _) if !below.optional && below.reaches_always => {
                    if let Some(node) = node.get_mut(key) {
                        self.drop_absent(node, None, below);
                    }
                }
                _ => {}
            }
            self.path.pop();
        }
    }

    fn expect(&self, node: &Node, kind: Kind) -> Result<(), Error> {
        match (node.kind(), kind) {
            (have, want) if have == want => Ok(()),
            (_, Kind::List) => Err(self.mismatch(node, &Value::Array(Vec::new()))),
            _ => Err(self.mismatch(node, &Value::Object(Map::new()))),
        }
    }

    fn mismatch(&self, node: &Node, value: &Value) -> Error {
        let there = node.as_scalar().map_or_else(
            || match node.kind() {
                Kind::List => "a list",
                _ => "a mapping",
            },
            found,
        );
        Error::WrongType {
            place: self.place(),
            expected: there,
            found: found(value),
        }
    }

    fn place(&self) -> Place {
        Place {
            document: self.document.to_owned(),
            path: check::path(&self.path),
        }
    }
}

/// Returns whether a value is one that an omitted field has too; booleans always count.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => false,
    }
}

fn is_pair(node: &Node, item: &Value, pairing: Pairing) -> bool {
    let same = |key: &str| {
        let value = item
            .get(key)
            .filter(|value| !is_zero(value) && !value.is_null());
        value.map(|value| node.get(key).is_some_and(|node| node.means(value)))
    };
    match pairing {
        Pairing::Key(key) | Pairing::KeyReplaced(key) => same(key).unwrap_or_default(),
        Pairing::Interface => same("interface")
            .or_else(|| same("deviceSelector"))
            .unwrap_or_default(),
    }
}

/// Merges URLs part by part: what the right one leaves out stays.
fn merge_urls(left: &str, right: &str) -> String {
    let (left, right) = (split_url(left), split_url(right));
    let pick = |left: &'_ str, right: &'_ str| -> String {
        if right.is_empty() { left } else { right }.to_owned()
    };
    let scheme = pick(left.scheme, right.scheme);
    let user = pick(left.user, right.user);
    let host = pick(left.host, right.host);
    let path = pick(left.path, right.path);
    let path: Cow<'_, str> = if path.is_empty() || path.starts_with('/') || host.is_empty() {
        Cow::Owned(path)
    } else {
        Cow::Owned(format!("/{path}"))
    };
    format!(
        "{scheme}{user}{host}{path}{}{}",
        pick(left.query, right.query),
        pick(left.fragment, right.fragment)
    )
}

/// The parts of a URL with their marks: `scheme://`, `user@`, `host:port`, `/path`, `?query`, `#fragment`.
struct Url<'a> {
    scheme: &'a str,
    user: &'a str,
    host: &'a str,
    path: &'a str,
    query: &'a str,
    fragment: &'a str,
}

fn split_url(text: &str) -> Url<'_> {
    let (text, fragment) = text.split_at(text.find('#').unwrap_or(text.len()));
    let (text, query) = text.split_at(text.find('?').unwrap_or(text.len()));
    let (scheme, rest) = match text.find("://") {
        Some(at) => text.split_at(at + 3),
        None => ("", text),
    };
    let end = if scheme.is_empty() {
        0
    } else {
        rest.find('/').unwrap_or(rest.len())
    };
    let (authority, path) = rest.split_at(end);
    let (user, host) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    Url {
        scheme,
        user,
        host,
        path,
        query,
        fragment,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_merge_part_by_part() {
        for (left, right, want) in [
            ("https://a:6443", "https://b:1", "https://b:1"),
            ("https://a:6443/p?q=1", "https://b", "https://b/p?q=1"),
            ("https://u:p@a/", "https://b/x", "https://u:p@b/x"),
            (
                "udp://10.0.0.1:514/",
                "tcp://10.0.0.2:1/",
                "tcp://10.0.0.2:1/",
            ),
        ] {
            assert_eq!(merge_urls(left, right), want);
        }
    }
}
