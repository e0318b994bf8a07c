//! Patches that suit a configuration: what is there is changed, deleted or added to, and now and then missed.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::random::Random;
use super::table::{Field, Shape};
use super::tree::{Style, Tree};
use super::{MAIN, Making, values};

/// Returns a patch for a configuration; one that cannot be read gets a patch of anything.
pub(super) fn patch(random: &mut Random, kinds: &'static [Field], config: &str) -> String {
    let documents = talos_config::yaml::read_documents(config).unwrap_or_default();
    let json = if documents.len() == 1 { 30 } else { 4 };
    if random.percent(json) {
        return operations(random, &documents);
    }
    let style = Style::any(random);
    let mut trees = Vec::new();
    let mut names = HashSet::new();
    for _ in 0..random.between(1, 3) {
        let at = random.below(documents.len());
        let existing = documents.get(at).filter(|_| random.percent(75));
        let kind = existing.map_or_else(
            || kinds[random.between(0, kinds.len() - 1)].name,
            |document| document["kind"].as_str().unwrap_or(MAIN),
        );
        let Some(fields) = kinds.iter().find(|fields| fields.name == kind) else {
            continue;
        };
        let name = existing.map_or("", |document| document["name"].as_str().unwrap_or_default());
        if !names.insert((kind.to_owned(), name.to_owned())) && random.percent(80) {
            continue;
        }
        let mut making = Making {
            anchors_wanted: random.percent(5),
            random: &mut *random,
            kind: fields.name,
            path: Vec::new(),
            budget: 14,
            anchors: Vec::new(),
        };
        trees.push(making.patch_document(fields, existing));
    }
    if trees.is_empty() {
        trees.push(Tree::Map(vec![("debug".to_owned(), Tree::raw("true"))]));
    }
    let text = style.write(random, &trees);
    match random.percent(2) {
        true => spoil(random, &text),
        false => text,
    }
}

/// Makes a patch one that is refused.
fn spoil(random: &mut Random, text: &str) -> String {
    match random.below(4) {
        0 => "machine:\n  nonsense: 1\n".to_owned(),
        1 => "$patch: delete\n".to_owned(),
        2 => text.replacen(": ", ": [", 1),
        _ => "machine:\n  kubelet: text\n".to_owned(),
    }
}

impl Making<'_> {
    fn patch_document(&mut self, fields: &'static Field, existing: Option<&Value>) -> Tree {
        let mut head = Vec::new();
        if fields.name != MAIN {
            head.push(("apiVersion".to_owned(), Tree::text(MAIN)));
            head.push(("kind".to_owned(), Tree::text(fields.name)));
            if fields.is_named() {
                let name = existing
                    .and_then(|document| document["name"].as_str())
                    .map(str::to_owned);
                let name = name.unwrap_or_else(|| self.name(fields.name, &mut HashSet::new()));
                head.push(("name".to_owned(), Tree::Text(name)));
            }
            let percent = if existing.is_some() { 14 } else { 3 };
            if self.random.percent(percent) {
                head.push(("$patch".to_owned(), Tree::text("delete")));
                return Tree::Map(head);
            }
        }
        let Tree::Map(body) = self.patch_struct(fields, existing) else {
            return Tree::Map(head);
        };
        head.extend(body);
        if head.is_empty() {
            head.push(("machine".to_owned(), Tree::empty()));
        }
        Tree::Map(head)
    }

    /// Returns changes of a few fields of a struct.
    fn patch_struct(&mut self, fields: &'static Field, existing: Option<&Value>) -> Tree {
        let root = self.path.is_empty();
        let fixed = |name: &str| root && matches!(name, "apiVersion" | "kind" | "name");
        let there: Vec<&'static Field> = fields
            .fields
            .iter()
            .filter(|field| {
                !fixed(field.name) && existing.is_some_and(|value| value.get(field.name).is_some())
            })
            .collect();
        let mut entries: Vec<(String, Tree)> = Vec::new();
        for _ in 0..self.random.between(1, 3) {
            let field = match there.is_empty() || self.random.percent(25) {
                true => &fields.fields[self.random.below(fields.fields.len())],
                false => there[self.random.below(there.len())],
            };
            if fixed(field.name) || entries.iter().any(|(name, _)| name == field.name) {
                continue;
            }
            let old = existing.and_then(|value| value.get(field.name));
            let tree = self.patch_field(field, old);
            entries.push((field.name.to_owned(), tree));
        }
        Tree::Map(entries)
    }

    fn patch_field(&mut self, field: &'static Field, old: Option<&Value>) -> Tree {
        let delete = if old.is_some() { 8 } else { 1 };
        if self.random.percent(delete) {
            return deletion(Vec::new());
        }
        if self.random.percent(3) {
            return Tree::raw(self.random.one(&["null", "~"]));
        }
        if self.random.percent(4) {
            return match field.shape {
                Shape::List => Tree::List(Vec::new()),
                Shape::Scalar if field.of == "string" => Tree::quoted(""),
                Shape::Scalar => self.field(field),
                _ => Tree::empty(),
            };
        }
        self.path.push(field.name);
        let tree = match (field.shape, old) {
            (Shape::Struct, old) => self.patch_struct(field, old),
            (Shape::List, Some(Value::Array(items))) => self.patch_list(field, items),
            (Shape::Map | Shape::Free, Some(Value::Object(map))) if !map.is_empty() => {
                let keys: Vec<&String> = map.keys().collect();
                let mut entries = Vec::new();
                for at in self.random.some(keys.len(), 2) {
                    let key = keys[at];
                    let value = match self.random.below(8) {
                        0 => deletion(Vec::new()),
                        1 => Tree::quoted(""),
                        2 => Tree::raw("null"),
                        _ => self.map_value(field, &map[key]),
                    };
                    entries.push((key.clone(), value));
                }
                if self.random.percent(40) {
                    let key = values::key(self.random, field.name);
                    if entries.iter().all(|(known, _)| known != key) {
                        let value = match field.shape {
                            Shape::Map => self.element(field),
                            _ => values::anything(self.random, 1),
                        };
                        entries.push((key.to_owned(), value));
                    }
                }
                Tree::Map(entries)
            }
            _ => self.anchored(field),
        };
        self.path.pop();
        tree
    }

    fn map_value(&mut self, field: &'static Field, old: &Value) -> Tree {
        match (field.shape, old) {
            (Shape::Map, Value::Object(_)) if !field.fields.is_empty() => {
                self.patch_struct(field, Some(old))
            }
            (Shape::Map, _) => self.element(field),
            // Anything merges into the same type only.
            (_, Value::String(_)) => Tree::text("changed"),
            (_, Value::Number(number)) if number.is_f64() => Tree::raw("2.25"),
            (_, Value::Number(_)) => Tree::raw(self.random.one(&["7", "0"])),
            (_, Value::Bool(_)) => Tree::raw("false"),
            (_, Value::Array(_)) => Tree::List(vec![values::anything(self.random, 1)]),
            (_, Value::Object(map)) if self.random.percent(50) => match map.keys().next() {
                Some(key) => Tree::Map(vec![(key.clone(), deletion(Vec::new()))]),
                None => Tree::empty(),
            },
            _ => values::anything(self.random, 1),
        }
    }

    /// Returns elements to add to a list, to meet those that are there, or to delete.
    fn patch_list(&mut self, field: &'static Field, items: &[Value]) -> Tree {
        let mut trees = Vec::new();
        for _ in 0..self.random.between(1, 2) {
            let old = items
                .get(self.random.below(items.len()))
                .and_then(Value::as_object);
            let tree = match old {
                Some(old) if !field.fields.is_empty() && self.random.percent(60) => {
                    let key = field.pairing().filter(|key| old.contains_key(*key));
                    let first = old.keys().next().map(String::as_str);
                    let selector = key.or(first).and_then(|key| old.get_key_value(key));
                    let Some((key, value)) = selector else {
                        continue;
                    };
                    let head = vec![(key.clone(), Tree::from(value))];
                    match self.random.percent(30) {
                        true => deletion(head),
                        false => {
                            let Tree::Map(mut entries) =
                                self.patch_struct(field, Some(&Value::Object(old.clone())))
                            else {
                                continue;
                            };
                            // Deleting inside an element is refused, so it is asked for seldom.
                            entries.retain(|(known, value)| {
                                known != key && (!deletes(value) || self.random.percent(10))
                            });
                            Tree::Map(head.into_iter().chain(entries).collect())
                        }
                    }
                }
                _ => self.element(field),
            };
            trees.push(tree);
        }
        Tree::List(trees)
    }
}

fn deletion(mut head: Vec<(String, Tree)>) -> Tree {
    head.push(("$patch".to_owned(), Tree::text("delete")));
    Tree::Map(head)
}

fn deletes(tree: &Tree) -> bool {
    match tree {
        Tree::Map(entries) => entries
            .iter()
            .any(|(key, value)| key == "$patch" || deletes(value)),
        Tree::List(items) => items.iter().any(deletes),
        _ => false,
    }
}

/// Returns a JSON Patch, written as JSON or as YAML.
fn operations(random: &mut Random, documents: &[Value]) -> String {
    let main = documents
        .iter()
        .find(|document| document.get("kind").is_none());
    let mut root = main
        .or(documents.first())
        .cloned()
        .unwrap_or_else(|| json!({}));
    let mut operations = Vec::new();
    for _ in 0..random.between(1, 4) {
        let operation = operation(random, &root);
        // Later operations suit the result of the earlier ones.
        if let Ok(patch) = serde_json::from_value::<json_patch::Patch>(json!([operation.clone()])) {
            let _ = json_patch::patch(&mut root, &patch);
        }
        operations.push(operation);
    }
    let list = Value::Array(operations);
    match random.percent(50) {
        true => list.to_string(),
        false => Style::any(random).write(random, &[Tree::from(&list)]),
    }
}

fn operation(random: &mut Random, root: &Value) -> Value {
    let mut places = Vec::new();
    collect(root, String::new(), &mut places);
    let at = random.below(places.len());
    let Some((path, value)) = places.get(at) else {
        return json!({"op": "add", "path": "/machine", "value": {"type": "worker"}});
    };
    let new = match value {
        Value::String(_) => json!(random.one(&["changed", "", "yes", "0644", "1_000"])),
        Value::Bool(old) => json!(!old),
        Value::Number(_) => json!(random.between(0, 900)),
        Value::Array(items) => items
            .first()
            .map_or_else(|| json!([]), |item| json!([item])),
        other => (*other).clone(),
    };
    match random.below(12) {
        0 | 1 => json!({"op": "remove", "path": path}),
        2 => json!({"op": "test", "path": path, "value": value}),
        3 => json!({"op": "test", "path": path, "value": new}),
        4 if value.is_array() => {
            let item = value.get(0).cloned().unwrap_or_else(|| json!("new"));
            json!({"op": "add", "path": format!("{path}/{}", random.one(&["-", "0", "-1"])), "value": item})
        }
        5 if value.is_array() => {
            json!({"op": "remove", "path": format!("{path}/{}", random.one(&["-1", "0"]))})
        }
        6 => json!({"op": "copy", "from": path, "path": path}),
        7 => json!({"op": "remove", "path": format!("{path}missing")}),
        8 => json!({"op": "add", "path": path, "value": new}),
        _ => json!({"op": "replace", "path": path, "value": new}),
    }
}

fn collect<'a>(value: &'a Value, path: String, places: &mut Vec<(String, &'a Value)>) {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = format!("{path}/{}", escaped(key));
                places.push((path.clone(), value));
                collect(value, path, places);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                let path = format!("{path}/{index}");
                places.push((path.clone(), value));
                collect(value, path, places);
            }
        }
        _ => {}
    }
}
