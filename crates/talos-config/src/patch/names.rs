//! Finding the element of a long list that an element of a patch is paired with, without searching the list each time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::Value;

use super::walk::text;
use super::zero::is_zero;
use crate::schema::{Field, Pairing};
use crate::yaml::{Node, Stream};

/// Where the elements of a long list stand, by what they are paired by.
pub(super) struct Names<'a> {
    config: &'a Stream,
    element: &'static Field,
    key: &'static str,
    /// Whether the last element of a name is meant, and the first otherwise.
    takes_last: bool,
    texts: HashMap<String, usize>,
    numbers: HashMap<i64, usize>,
    /// The first element without a name.
    absent: Option<usize>,
    /// The first element without a name or with one that is zero.
    nameless: Option<usize>,
    /// For interfaces: where devices are selected, by all that selects them; absent while it is not known.
    selectors: Option<HashMap<Vec<String>, usize>>,
    is_interface: bool,
}

impl<'a> Names<'a> {
    pub(super) fn new(
        node: &Node,
        pairing: Pairing,
        element: &'static Field,
        config: &'a Stream,
    ) -> Self {
        let (key, takes_last) = match pairing {
            Pairing::Key(key) => (key, false),
            Pairing::KeyReplaced(key) => (key, true),
            Pairing::Interface => ("interface", false),
        };
        let mut names = Self {
            config,
            element,
            key,
            takes_last,
            texts: HashMap::with_capacity(node.len()),
            numbers: HashMap::new(),
            absent: None,
            nameless: None,
            selectors: None,
            is_interface: matches!(pairing, Pairing::Interface),
        };
        for (at, element) in node.items().enumerate() {
            names.add(element, at);
        }
        names
    }

    /// Returns the position of the element of `node` that an element of a patch is for.
    pub(super) fn of(&mut self, item: &Value, node: &Node, compat: bool) -> Option<usize> {
        let name = item.get(self.key).filter(|name| !name.is_null());
        if self.is_interface && name.is_none_or(|name| name == "") {
            let selector = item.get("deviceSelector")?.as_object()?;
            // Two that say whether the device is physical are never the same to the official tool.
            if compat && selector.contains_key("physical") {
                return None;
            }
            let wanted = self.selector(|key| {
                let value = selector.get(key);
                let value = value.filter(|value| !is_zero(value, self.selector_field(key), true));
                value.map(|value| match value {
                    Value::String(text) => Cow::Borrowed(text.as_str()),
                    value => Cow::Owned(value.to_string()),
                })
            });
            return self.selectors(node).get(&wanted).copied();
        }
        let Some(name) = name else {
            return self.nameless;
        };
        let named = match name {
            Value::String(text) => self.texts.get(text).copied(),
            number => whole(number).and_then(|number| self.numbers.get(&number).copied()),
        };
        let is_zero = is_zero(name, &self.element.fields[self.key], true);
        let absent = self.absent.filter(|_| is_zero);
        match (named, absent) {
            (Some(one), Some(other)) if self.takes_last => Some(one.max(other)),
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Learns of the element that was pushed last.
    pub(super) fn pushed(&mut self, node: &Node) {
        let at = node.len().saturating_sub(1);
        let Some(element) = node.item(at) else {
            return;
        };
        self.add(element, at);
        if let Some(mut selectors) = self.selectors.take() {
            self.add_selector(&mut selectors, element, at);
            self.selectors = Some(selectors);
        }
    }

    /// Learns of an element of a patch that was merged: what it is named by may select a device in another way now.
    pub(super) fn merged(&mut self, item: &Value) {
        let has = |key| item.get(key).is_some_and(|value| !value.is_null());
        if has("interface") && has("deviceSelector") {
            self.selectors = None;
        }
    }

    fn add(&mut self, element: &Node, at: usize) {
        let config = self.config;
        let takes_last = self.takes_last;
        let put = |place: &mut Option<usize>| match place {
            Some(_) if !takes_last => {}
            place => *place = Some(at),
        };
        let name = element.get(self.key).filter(|name| !name.is_null());
        let Some(name) = name else {
            put(&mut self.absent);
            return put(&mut self.nameless);
        };
        let scalar = name.as_scalar();
        if scalar.is_some_and(|value| is_zero(value, &self.element.fields[self.key], true)) {
            put(&mut self.nameless);
        }
        if let Some(number) = scalar.and_then(whole) {
            keep(self.numbers.entry(number), at, takes_last);
        }
        if let Some(text) = text(config, name) {
            keep(self.texts.entry(text.into_owned()), at, takes_last);
        }
    }

    /// Returns where devices are selected, which is found out again after something changed.
    fn selectors(&mut self, node: &Node) -> &HashMap<Vec<String>, usize> {
        let mut known = self.selectors.take();
        if known.is_none() {
            let mut selectors = HashMap::with_capacity(node.len());
            for (at, element) in node.items().enumerate() {
                self.add_selector(&mut selectors, element, at);
            }
            known = Some(selectors);
        }
        self.selectors.insert(known.unwrap_or_default())
    }

    fn add_selector(&self, selectors: &mut HashMap<Vec<String>, usize>, element: &Node, at: usize) {
        let there = element.get("deviceSelector");
        if let Some(there) = there.filter(|node| !node.is_null()) {
            let selector =
                self.selector(|key| there.get(key).and_then(|node| text(self.config, node)));
            selectors.entry(selector).or_insert(at);
        }
    }

    /// Returns all that selects a device, in the order of the fields; empty texts for what is left out.
    fn selector<'v>(&self, value: impl Fn(&str) -> Option<Cow<'v, str>>) -> Vec<String> {
        let keys = self.element.fields["deviceSelector"].fields.keys();
        keys.map(|key| value(key).unwrap_or_default().into_owned())
            .collect()
    }

    fn selector_field(&self, key: &str) -> &'static Field {
        &self.element.fields["deviceSelector"].fields[key]
    }
}

fn keep<K>(entry: Entry<'_, K, usize>, at: usize, takes_last: bool) {
    match entry {
        Entry::Occupied(mut entry) if takes_last => {
            entry.insert(at);
        }
        entry => {
            entry.or_insert(at);
        }
    }
}

/// Returns a number as a whole one, if it is one; 5 and 5.0 are the same.
fn whole(value: &Value) -> Option<i64> {
    let number = value.as_number()?;
    let float = || {
        let float = number.as_f64().filter(|_| number.is_f64())?;
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
        let whole = float as i64;
        (float.fract() == 0.0 && float.abs() < 9.0e15).then_some(whole)
    };
    number.as_i64().or_else(float)
}
