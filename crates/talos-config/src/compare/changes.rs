//! Walking two configurations side by side.

use serde_json::{Map, Value};

use super::documents::{self, Document};
use super::{Change, ChangeKind, lists};
use crate::Schema;
use crate::schema::{Field, Pairing, Rule, Shape};
use crate::yaml::{Step, Stream};

/// Returns all differences, document by document in the order of the first text.
pub(super) fn all(a: &Stream, b: &Stream, schema: Schema) -> Vec<Change> {
    let (left, right) = (documents::read(a, schema), documents::read(b, schema));
    let mut changes = Vec::new();
    for (old, new) in documents::pairs(&left, &right) {
        changes.append(&mut between(a, b, old, new));
    }
    changes
}

/// Returns the differences of two documents, or the one difference that a document is there on one side only.
fn between(a: &Stream, b: &Stream, old: Option<&Document>, new: Option<&Document>) -> Vec<Change> {
    let Some(document) = old.or(new) else {
        return Vec::new();
    };
    let mut walk = Walk {
        texts: [a, b],
        documents: [old, new],
        label: document.identity.label(),
        steps: [Vec::new(), Vec::new()],
        path: String::new(),
        changes: Vec::new(),
    };
    walk.value(
        old.map(|document| &document.value),
        new.map(|document| &document.value),
        document.fields,
    );
    walk.changes
}

struct Walk<'a> {
    texts: [&'a Stream; 2],
    documents: [Option<&'a Document>; 2],
    label: String,
    steps: [Vec<Step>; 2],
    path: String,
    changes: Vec<Change>,
}

impl Walk<'_> {
    fn value(&mut self, old: Option<&Value>, new: Option<&Value>, field: Option<&'static Field>) {
        match (old, new) {
            (Some(old), Some(new)) if old == new => {}
            (Some(Value::Object(old)), Some(Value::Object(new))) => self.mapping(old, new, field),
            (Some(Value::Array(old)), Some(Value::Array(new))) => self.list(old, new, field),
            _ => self.change(old, new),
        }
    }

    fn mapping(
        &mut self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        field: Option<&'static Field>,
    ) {
        let added = new.keys().filter(|key| !old.contains_key(*key));
        for key in old.keys().chain(added) {
            let below = below(field, key);
            let step = Step::Key(key.clone());
            let length = self.path.len();
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(&key_text(key));
            self.at([step.clone(), step], length, |walk| {
                walk.value(old.get(key), new.get(key), below)
            });
        }
    }

    fn list(&mut self, old: &[Value], new: &[Value], field: Option<&'static Field>) {
        let element = field.and_then(|field| field.element.as_deref());
        if let Some(Field {
            rule: Rule::Paired(pairing @ (Pairing::Key(_) | Pairing::Interface)),
            ..
        }) = field
            && lists::are_told(old, *pairing)
            && lists::are_told(new, *pairing)
        {
            return self.named(old, new, *pairing, element);
        }
        let (mut i, mut j) = (0, 0);
        for (end_i, end_j) in lists::common(old, new)
            .into_iter()
            .chain([(old.len(), new.len())])
        {
            // What is left over between elements that stayed is paired in order.
            let paired = (end_i - i).min(end_j - j);
            for offset in 0..(end_i - i).max(end_j - j) {
                let left = (offset < end_i - i).then_some(i + offset);
                let right = (offset < end_j - j).then_some(j + offset);
                let values = (
                    left.and_then(|at| old.get(at)),
                    right.and_then(|at| new.get(at)),
                );
                let both = offset < paired;
                let at = left.or(right).unwrap_or_default();
                let steps = [
                    Step::Index(left.unwrap_or(i)),
                    Step::Index(right.unwrap_or(j)),
                ];
                let length = self.path.len();
                self.path.push_str(&format!("[{at}]"));
                self.at(steps, length, |walk| match both {
                    true => walk.value(values.0, values.1, element),
                    false => walk.change(values.0, values.1),
                });
            }
            (i, j) = (end_i + 1, end_j + 1);
        }
    }

    /// Compares lists whose elements are known by their name; what has none is compared in order.
    fn named(
        &mut self,
        old: &[Value],
        new: &[Value],
        pairing: Pairing,
        element: Option<&'static Field>,
    ) {
        let places = lists::named(new, pairing);
        let mut unnamed = (0..new.len()).filter(|at| lists::name(&new[*at], pairing).is_none());
        let mut is_paired = vec![false; new.len()];
        let mut pairs: Vec<(Option<usize>, Option<usize>)> = Vec::new();
        for (at, value) in old.iter().enumerate() {
            let found = match lists::name(value, pairing) {
                Some(name) => places.get(&name).copied(),
                None => unnamed.next(),
            };
            if let Some(found) = found {
                is_paired[found] = true;
            }
            pairs.push((Some(at), found));
        }
        let rest = (0..new.len()).filter(|at| !is_paired[*at]);
        pairs.extend(rest.map(|at| (None, Some(at))));
        for (left, right) in pairs {
            let values = (
                left.and_then(|at| old.get(at)),
                right.and_then(|at| new.get(at)),
            );
            let name = values
                .0
                .or(values.1)
                .and_then(|value| lists::name(value, pairing));
            let text = match name {
                Some((key, Value::String(text))) => format!("[{key}={text}]"),
                Some((key, Value::Number(number))) => format!("[{key}={number}]"),
                _ => format!("[{}]", left.or(right).unwrap_or_default()),
            };
            let steps = [
                Step::Index(left.unwrap_or(old.len())),
                Step::Index(right.unwrap_or(new.len())),
            ];
            let length = self.path.len();
            self.path.push_str(&text);
            self.at(steps, length, |walk| {
                walk.value(values.0, values.1, element)
            });
        }
    }

    /// Does something one step further; the path is cut back to `length` after it.
    fn at(&mut self, steps: [Step; 2], length: usize, act: impl FnOnce(&mut Self)) {
        let [left, right] = steps;
        self.steps[0].push(left);
        self.steps[1].push(right);
        act(self);
        self.steps[0].pop();
        self.steps[1].pop();
        self.path.truncate(length);
    }

    fn change(&mut self, old: Option<&Value>, new: Option<&Value>) {
        let kind = match (old, new) {
            (Some(_), None) => ChangeKind::Removed,
            (None, _) => ChangeKind::Added,
            _ => ChangeKind::Changed,
        };
        let line = |side: usize| {
            let document = self.documents[side]?;
            self.texts[side].line(document.index, &self.steps[side])
        };
        let steps = &self.steps[usize::from(old.is_none())];
        self.changes.push(Change {
            document: self.label.clone(),
            path: self.path.clone(),
            steps: steps.clone(),
            kind,
            old: old.cloned(),
            new: new.cloned(),
            old_line: line(0),
            new_line: line(1),
        });
    }
}

/// Returns the field that a key leads to.
pub(super) fn below(field: Option<&'static Field>, key: &str) -> Option<&'static Field> {
    let field = field?;
    match field.shape {
        Shape::Map => field.element.as_deref(),
        Shape::Struct => field.fields.get(key),
        _ => None,
    }
}

/// Writes a key in a path: in quotes and brackets where it would not read as one key.
fn key_text(key: &str) -> String {
    let simple = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | ':' | '$'));
    match simple {
        true => key.to_owned(),
        false => format!("{key:?}"),
    }
}
