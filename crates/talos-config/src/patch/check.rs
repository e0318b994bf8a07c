//! Holds a document against the table of fields and reads it by their types, before anything is changed.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::delete::{DIRECTIVE, is_directive};
use super::walk::{Walk, found, text};
use crate::Error;
use crate::schema::{Field, Rule, Shape};
use crate::validate::decode::scalar;
use crate::yaml::{Kind, Node, Step};

impl Walk<'_> {
    /// Reads a document and reports every name, type and value that Talos would not decode.
    ///
    /// What is null is left out of structs: it says nothing there. A deletion stays as a mapping with the directive.
    pub(super) fn read(&mut self, node: &Node, field: &'static Field) -> Value {
        if field.shape != Shape::Free {
            if self.has_directive(node) {
                return self.directive(node);
            }
            self.refuse_directive(node);
        }
        match (field.shape, node.kind()) {
            (_, Kind::Null) => Value::Null,
            (Shape::Struct, Kind::Mapping) => self.read_struct(node, field),
            (Shape::List, Kind::List) => {
                let items = node.items().enumerate();
                let read = |(index, item)| self.at(index, |walk| walk.inside(item, field));
                items.map(read).collect()
            }
            (Shape::Map, Kind::Mapping) => {
                let mut map = Map::new();
                for (key, value) in node.entries() {
                    if self.is_refused(key) {
                        continue;
                    }
                    let value = self.at(key, |walk| match field.rule {
                        Rule::Replace => walk.argument(value),
                        _ => walk.inside(value, field),
                    });
                    map.insert(key.to_owned(), value);
                }
                Value::Object(map)
            }
            (Shape::Free, kind) => self.read_free(node, field, kind),
            (Shape::Struct | Shape::Map, _) => self.wrong("a mapping", node),
            (Shape::List, _) => self.wrong("a list", node),
            (_, Kind::Scalar) => self.read_scalar(node, field),
            (shape, _) => self.wrong(expected(shape), node),
        }
    }

    /// Returns whether a node of a strategic patch has the directive.
    fn has_directive(&self, node: &Node) -> bool {
        self.operations.is_none() && node.kind() == Kind::Mapping && node.contains(DIRECTIVE)
    }

    /// Says of a mapping that a JSON Patch wrote that it deletes nothing.
    fn refuse_directive(&mut self, node: &Node) {
        if self.operations.is_some() && node.contains(DIRECTIVE) {
            self.at(DIRECTIVE, |walk| {
                walk.problem(|place| Error::Directive {
                    place,
                    reason: "`$patch` is for strategic merge patches; a JSON Patch has `\"op\": \"remove\"`",
                });
            });
        }
    }

    /// Returns whether a key is a directive that was reported already.
    fn is_refused(&self, key: &str) -> bool {
        key == DIRECTIVE && self.operations.is_some()
    }

    fn inside(&mut self, node: &Node, field: &'static Field) -> Value {
        match &field.element {
            Some(element) if node.is_null() && element.shape == Shape::Struct => {
                if self.schema.reads_times() {
                    self.wrong("a mapping", node)
                } else {
                    Value::Null
                }
            }
            Some(element) => self.read(node, element),
            None => node.value(),
        }
    }

    fn read_struct(&mut self, node: &Node, field: &'static Field) -> Value {
        let mut map = Map::new();
        for (key, value) in node.entries() {
            if self.is_refused(key) {
                continue;
            }
            let value = self.at(key, |walk| match field.fields.get(key) {
                Some(field) => walk.read(value, field),
                None => {
                    walk.unknown(key, field);
                    value.value()
                }
            });
            if !value.is_null() {
                map.insert(key.to_owned(), value);
            }
        }
        Value::Object(map)
    }

    fn read_scalar(&mut self, node: &Node, field: &'static Field) -> Value {
        self.refuse_time(node, field);
        let mut value = node.as_scalar().cloned().unwrap_or_default();
        let is_size = matches!(field.of, "text(Size)" | "text(ByteSize)");
        let is_text = field.shape == Shape::Text
            || (field.of.starts_with("text(") && field.of != "text(PortRange)");
        if is_text
            && !value.is_string()
            && let Some(text) = text(self.patch, node)
            && (!is_size || text != value.to_string())
        {
            value = Value::String(text.into_owned());
        }
        let fits = scalar::check(&value, field);
        if field.shape == Shape::Bool
            && let Value::String(word) = &value
        {
            let words = ["yes", "on", "y"];
            value = Value::Bool(words.iter().any(|yes| word.eq_ignore_ascii_case(yes)));
        }
        if let Err(reason) = fits {
            let reason = reason.into_owned();
            self.problem(|place| Error::BadValue { place, reason });
        }
        value
    }

    /// Reads an argument of a program: a text or several.
    fn argument(&mut self, node: &Node) -> Value {
        match node.kind() {
            Kind::List => {
                let items = node.items().enumerate();
                let read = |(index, item): (usize, &Node)| match item.kind() {
                    Kind::Scalar | Kind::Null => self.argument(item),
                    _ => self.at(index, |walk| walk.wrong("a string", item)),
                };
                items.map(read).collect()
            }
            Kind::Mapping if self.has_directive(node) => self.directive(node),
            Kind::Mapping => self.wrong("a string or a list of strings", node),
            Kind::Scalar if self.schema.reads_times() && self.is_time(node) => {
                self.wrong("a string", node)
            }
            _ => self.written(node),
        }
    }

    /// Refuses what reads as a time without quotes: since Talos 1.14 it is no text.
    fn refuse_time(&mut self, node: &Node, field: &'static Field) {
        if field.shape == Shape::Text && self.schema.reads_times() && self.is_time(node) {
            self.problem(|place| Error::BadValue {
                place,
                reason: "reads as a time, not as text; quote it".to_owned(),
            });
        }
    }

    fn is_time(&self, node: &Node) -> bool {
        self.patch.written(node).is_some_and(is_time)
    }

    /// Returns whether a value of no known type has a time in it.
    fn has_time(&self, node: &Node) -> bool {
        self.is_time(node)
            || node.items().any(|item| self.has_time(item))
            || node.entries().any(|(_, value)| self.has_time(value))
    }

    fn written(&self, node: &Node) -> Value {
        text(self.patch, node).map_or(Value::Null, |text| Value::String(text.into_owned()))
    }

    /// Reads what has no fields that are known.
    fn read_free(&mut self, node: &Node, field: &'static Field, kind: Kind) -> Value {
        if field.of == "struct" && kind != Kind::Mapping {
            return self.wrong("a mapping", node);
        }
        let is_copied = !matches!(
            self.path.last(),
            Some(Step::Key(key)) if key == "baseRuntimeSpecOverrides" || key == "webhook"
        );
        let is_configuration = std::ptr::eq(self.config, self.patch);
        if self.compat && is_configuration && is_copied && self.has_time(node) {
            self.problem(|place| Error::Unmergeable {
                place,
                reason: "the official tool crashes at a time without quotes",
            });
        }
        self.look_inside(node);
        // The one struct that holds nothing, so that it stands for itself.
        let is_empty_struct = matches!(self.path.last(), Some(Step::Key(key)) if key == "nodeID");
        if is_empty_struct && !is_directive(node) {
            for (key, _) in node.entries() {
                self.at(key, |walk| walk.unknown(key, field));
            }
        }
        node.value()
    }

    /// Looks for directives in what has no fields that are known.
    fn look_inside(&mut self, node: &Node) {
        self.refuse_directive(node);
        if self.has_directive(node) && is_directive(node) {
            self.passed_over(node);
        }
        for (key, below) in node.entries() {
            self.at(key, |walk| walk.look_inside(below));
        }
        for (index, below) in node.items().enumerate() {
            self.at(index, |walk| walk.look_inside(below));
        }
    }

    /// Says which keys beside a deletion count for nothing.
    fn passed_over(&mut self, node: &Node) {
        let keys = node.entries().map(|(key, _)| key);
        let mut keys = keys.filter(|key| *key != DIRECTIVE);
        // The first one names the element of a list.
        let in_list = matches!(self.path.last(), Some(Step::Index(_)));
        if in_list {
            keys.next();
        }
        let keys: Vec<String> = keys.map(|key| format!("`{key}`")).collect();
        if !keys.is_empty() {
            let reason = match in_list {
                true => "only the first key beside `$patch: delete` names the element to delete",
                false => {
                    "`$patch: delete` deletes all of it, and a patch after this one can set it anew"
                }
            };
            self.warning(|walk| {
                format!(
                    "{}: {} is passed over: {reason}",
                    walk.place(),
                    keys.join(", ")
                )
            });
        }
    }

    /// Says which keys of a document that is deleted count for nothing.
    pub(super) fn passed_over_of_document(&mut self, root: &Node) {
        const NAMES: [&str; 4] = ["apiVersion", "kind", "name", DIRECTIVE];
        let keys = root.entries().map(|(key, _)| key);
        let keys = keys.filter(|key| !NAMES.contains(key));
        let keys: Vec<String> = keys.map(|key| format!("`{key}`")).collect();
        if !keys.is_empty() {
            self.warning(|walk| {
                format!(
                    "{}: {} is passed over: `$patch: delete` deletes the whole document",
                    walk.place(),
                    keys.join(", ")
                )
            });
        }
    }

    /// Reads a deletion: its directive, and the texts of the keys beside it.
    fn directive(&mut self, node: &Node) -> Value {
        if !is_directive(node) {
            self.problem(|place| Error::Directive {
                place,
                reason: "the only `$patch` is `delete`",
            });
        } else {
            self.passed_over(node);
        }
        let entries = node.entries();
        let read = |(key, value): (&str, &Node)| {
            // Even nothing is told by how it is written.
            let text = text(self.patch, value).or_else(|| self.patch.written(value).map(Cow::from));
            (
                key.to_owned(),
                Value::String(text.unwrap_or_default().into_owned()),
            )
        };
        Value::Object(entries.map(read).collect())
    }

    fn unknown(&mut self, key: &str, field: &'static Field) {
        let keys: Vec<&str> = self
            .path
            .iter()
            .filter_map(|step| match step {
                Step::Key(key) => Some(key.as_str()),
                Step::Index(_) => None,
            })
            .collect();
        let newer = match self.is_full() {
            true => None,
            false => self.schema.version_with(&self.kind, &keys),
        };
        let version = self.schema.table_version();
        let error = |place| Error::UnknownField {
            place,
            version,
            newer,
        };
        if self.schema.is_known() {
            return self.problem(error);
        }
        self.warning(|walk| {
            let mut names = field.fields.keys();
            let near = names.find(|known| known.eq_ignore_ascii_case(key));
            let hint = near.map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"));
            format!("{}{hint}", error(walk.place()))
        });
    }

    fn wrong(&mut self, expected: &'static str, node: &Node) -> Value {
        let found = match node.kind() {
            Kind::Null => "nothing",
            Kind::Scalar => found(node.as_scalar().unwrap_or(&Value::Null)),
            Kind::Mapping => "a mapping",
            Kind::List => "a list",
        };
        self.problem(|place| Error::WrongType {
            place,
            expected,
            found,
        });
        Value::Null
    }
}

/// Returns whether a scalar without quotes has the form of a day, alone or with a time.
fn is_time(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let (Some(year), Some(month), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let day: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    year.len() == 4
        && digits(year)
        && matches!(month.len(), 1 | 2)
        && digits(month)
        && matches!(day.len(), 1 | 2)
        && (rest.len() == day.len() || rest[day.len()..].starts_with(['T', 't', ' ']))
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
