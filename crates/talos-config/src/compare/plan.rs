//! What a strategic merge patch of one document has to say, and what a second one has to say after it.
//!
//! A patch deletes before it merges, and one mapping cannot both delete a key and set it. What has to be deleted to be
//! set anew, such as a list that loses an element that nothing names, is deleted now and set later.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::changes::below;
use super::lists;
use crate::Schema;
use crate::schema::{Field, Pairing, Rule, Shape};

/// What patches of one mapping say.
#[derive(Default)]
pub(super) struct Plan {
    /// The first patch.
    pub(super) now: Map<String, Value>,
    /// The patch after it.
    pub(super) later: Map<String, Value>,
}

/// How one document is planned.
pub(super) struct Planner<'a> {
    pub(super) schema: Schema,
    /// Where merging was seen not to hold, so that the key is deleted and set.
    pub(super) anew: &'a HashSet<Vec<String>>,
    path: Vec<String>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(schema: Schema, anew: &'a HashSet<Vec<String>>) -> Self {
        Self {
            schema,
            anew,
            path: Vec::new(),
        }
    }

    /// Plans a mapping.
    pub(super) fn mapping(
        &mut self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        field: Option<&'static Field>,
    ) -> Plan {
        let mut plan = Plan::default();
        let added = new.keys().filter(|key| !old.contains_key(*key));
        for key in old.keys().chain(added) {
            self.path.push(key.clone());
            self.key(&mut plan, key, old.get(key), new.get(key), field);
            self.path.pop();
        }
        plan
    }

    fn key(
        &mut self,
        plan: &mut Plan,
        key: &str,
        old: Option<&Value>,
        new: Option<&Value>,
        parent: Option<&'static Field>,
    ) {
        let field = below(parent, key);
        let (old, new) = match (old, new) {
            (old, new) if old == new => return,
            (_, None) => {
                plan.now.insert(key.to_owned(), deletion());
                return;
            }
            (None, Some(new)) => {
                plan.now.insert(key.to_owned(), new.clone());
                return;
            }
            (Some(old), Some(new)) => (old, new),
        };
        // A map that replaces the values of its keys replaces lists and mappings among them too.
        let whole = parent
            .is_some_and(|parent| parent.shape == Shape::Map && parent.rule == Rule::Replace)
            || field.is_some_and(|field| field.rule == Rule::Replace && field.shape != Shape::Map);
        let made = match (old, new) {
            _ if self.anew.contains(&self.path) => None,
            _ if whole => Some(Plan::merging(key, new.clone())),
            (Value::Object(old), Value::Object(new)) => {
                let inner = self.mapping(old, new, field);
                Some(inner.under(key))
            }
            (Value::Array(old), Value::Array(new)) => {
                let items = self.list(old, new, field);
                items.map(|items| match items.is_empty() {
                    // The same elements in another order, where the order means nothing.
                    true => Plan::default(),
                    false => Plan::merging(key, Value::Array(items)),
                })
            }
            _ if self.overwrites(old, new, field) => Some(Plan::merging(key, new.clone())),
            _ => None,
        };
        match made {
            Some(mut made) => {
                plan.now.append(&mut made.now);
                plan.later.append(&mut made.later);
            }
            None => {
                plan.now.insert(key.to_owned(), deletion());
                plan.later.insert(key.to_owned(), new.clone());
            }
        }
    }

    /// Returns whether merging a scalar puts it in the place of what is there.
    fn overwrites(&self, old: &Value, new: &Value, field: Option<&'static Field>) -> bool {
        let scalar = |value: &Value| !value.is_object() && !value.is_array();
        if !scalar(old) || !scalar(new) {
            return false;
        }
        let zero = match new {
            Value::String(text) => text.is_empty(),
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::Null => true,
            _ => false,
        };
        match field.filter(|field| field.shape != Shape::Free) {
            Some(field) => {
                !zero
                    || field.rule == Rule::Always
                    || (field.optional && self.schema.zero_overwrites())
            }
            None => !zero && std::mem::discriminant(old) == std::mem::discriminant(new),
        }
    }

    /// Returns what a patch says of a list; nothing if no patch can make the one of the other.
    fn list(
        &mut self,
        old: &[Value],
        new: &[Value],
        field: Option<&'static Field>,
    ) -> Option<Vec<Value>> {
        let Some(Rule::Paired(pairing)) = field.map(|field| field.rule) else {
            return appended(old, new, |_, _| false);
        };
        if !lists::are_told(old, pairing) || !lists::are_told(new, pairing) {
            return None;
        }
        if let Pairing::KeyReplaced(_) = pairing {
            let same = |a: &Value, b: &Value| {
                lists::name(a, pairing).is_some_and(|name| lists::name(b, pairing) == Some(name))
            };
            return appended(old, new, same);
        }
        self.named(old, new, pairing, field?.element.as_deref())
    }

    /// Plans a list whose elements have names, in whatever order they come.
    fn named(
        &mut self,
        old: &[Value],
        new: &[Value],
        pairing: Pairing,
        element: Option<&'static Field>,
    ) -> Option<Vec<Value>> {
        let (places, before) = (lists::named(new, pairing), lists::named(old, pairing));
        let mut left: Vec<&Value> = old.iter().collect();
        let mut items = Vec::new();
        let mut whole = HashSet::new();
        for value in old {
            let Some(name) = lists::name(value, pairing) else {
                continue;
            };
            let other = places.get(&name).copied();
            let change = match other {
                Some(other) if new[other] == *value => continue,
                Some(other) => self.element(value, &new[other], name, element),
                None => None,
            };
            match change {
                Some(change) => items.push(change),
                None => {
                    items.push(taken(&mut left, value, Some(name))?);
                    whole.extend(other);
                }
            }
        }
        // What has no name stays in order and can only be added to.
        let unnamed = |list: &[Value]| -> Vec<usize> {
            (0..list.len())
                .filter(|at| lists::name(&list[*at], pairing).is_none())
                .collect()
        };
        let (there, after) = (unnamed(old), unnamed(new));
        let kept =
            there.len() <= after.len() && there.iter().zip(&after).all(|(a, b)| old[*a] == new[*b]);
        if !kept {
            return None;
        }
        let fresh: HashSet<usize> = after[there.len()..].iter().copied().collect();
        for (at, value) in new.iter().enumerate() {
            let added = lists::name(value, pairing).is_some_and(|name| !before.contains_key(&name));
            if added || whole.contains(&at) || fresh.contains(&at) {
                items.push(value.clone());
            }
        }
        Some(items)
    }

    /// Plans an element that meets one of its name; nothing if it has to be taken out and put in anew.
    fn element(
        &mut self,
        old: &Value,
        new: &Value,
        (key, name): (&'static str, &Value),
        field: Option<&'static Field>,
    ) -> Option<Value> {
        let plan = self.mapping(old.as_object()?, new.as_object()?, field);
        if !plan.later.is_empty() || plan.now.values().any(deletes) {
            return None;
        }
        let mut change = Map::new();
        change.insert(key.to_owned(), name.clone());
        for (key, value) in plan.now {
            change.entry(key).or_insert(value);
        }
        Some(Value::Object(change))
    }
}

impl Plan {
    fn merging(key: &str, value: Value) -> Self {
        let mut plan = Self::default();
        plan.now.insert(key.to_owned(), value);
        plan
    }

    /// Returns the plan of the mapping that holds this one.
    fn under(self, key: &str) -> Self {
        let mut plan = Self::default();
        if !self.now.is_empty() {
            plan.now.insert(key.to_owned(), Value::Object(self.now));
        }
        if !self.later.is_empty() {
            plan.later.insert(key.to_owned(), Value::Object(self.later));
        }
        plan
    }
}

/// Plans a list that is only appended to: elements are taken out so that the rest is how the new list starts.
///
/// An element that is `replaced` by another stands where it stood.
fn appended(
    old: &[Value],
    new: &[Value],
    replaced: impl Fn(&Value, &Value) -> bool,
) -> Option<Vec<Value>> {
    let mut left: Vec<&Value> = old.iter().collect();
    let mut items = Vec::new();
    let mut changed = Vec::new();
    let mut at = 0;
    for value in old {
        match new.get(at) {
            Some(next) if next == value => at += 1,
            Some(next) if replaced(value, next) => {
                changed.push(next.clone());
                at += 1;
            }
            _ => items.push(taken(&mut left, value, None)?),
        }
    }
    items.extend(changed);
    items.extend(new[at..].iter().cloned());
    Some(items)
}

/// Returns what takes an element out of a list: a key and value that no element before it has.
fn taken(
    left: &mut Vec<&Value>,
    value: &Value,
    name: Option<(&'static str, &Value)>,
) -> Option<Value> {
    let at = left.iter().position(|other| std::ptr::eq(*other, value))?;
    let plain = |key: &str, of: &Value| match of {
        Value::String(text) => !text.is_empty(),
        Value::Number(_) => true,
        _ => name.is_some_and(|(named, _)| named == key),
    };
    let map = value.as_object()?;
    let keys = map.iter().map(|(key, value)| (key.as_str(), value));
    let (key, of) = name
        .into_iter()
        .chain(keys)
        .filter(|(key, of)| plain(key, of))
        .find(|(key, of)| {
            let first = left
                .iter()
                .position(|other| other.get(*key).is_some_and(|other| alike(other, of)));
            first.is_some_and(|first| first == at || left[first] == left[at])
        })?;
    let item = json!({ key: of, "$patch": "delete" });
    left.remove(at);
    Some(item)
}

/// Returns whether a deletion takes two values for the same: by their text.
fn alike(a: &Value, b: &Value) -> bool {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    match (a, b) {
        (Value::String(a), Value::String(b)) => a == b,
        _ => a == b || text(a) == text(b),
    }
}

fn deletion() -> Value {
    json!({"$patch": "delete"})
}

fn deletes(value: &Value) -> bool {
    match value {
        Value::Object(map) => map
            .iter()
            .any(|(key, value)| key == "$patch" || deletes(value)),
        Value::Array(items) => items.iter().any(deletes),
        _ => false,
    }
}
