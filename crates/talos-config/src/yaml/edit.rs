//! Changing nodes; each change leaves everything beside it as it stood.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use super::layout::{Form, Quote, Span};
use super::node::{Child, Data, Node};

impl Node {
    /// Returns the value of a key for editing; what came through an alias or a `<<` becomes the mapping's own first.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        self.own();
        if let Data::Mapping(children) = &self.data
            && children.position(key).is_none()
        {
            let value = self.get(key)?.value();
            return self.append(Child::fresh(key.to_owned(), value));
        }
        match &mut self.data {
            Data::Mapping(children) => {
                let at = children.position(key)?;
                children.value_mut(at)
            }
            _ => None,
        }
    }

    /// Returns the item of a list for editing.
    pub fn item_mut(&mut self, index: usize) -> Option<&mut Self> {
        self.own();
        match &mut self.data {
            Data::List(children) => children.value_mut(index),
            _ => None,
        }
    }

    /// Gives a key of a mapping a value: an existing one is changed in place, a new one goes to the end.
    ///
    /// A node that is not a mapping becomes one.
    pub fn set(&mut self, key: &str, value: Value) {
        if let Some(node) = self.get_mut(key) {
            node.assign(value);
        } else {
            self.become_mapping();
            self.append(Child::fresh(key.to_owned(), value));
        }
    }

    /// Removes a key of a mapping with its own comments and returns whether it was there.
    pub fn remove(&mut self, key: &str) -> bool {
        if !self.contains(key) {
            return false;
        }
        self.own();
        let inherited = match &self.data {
            Data::Mapping(children) => children.has_merge(),
            _ => false,
        };
        if inherited {
            self.unmerge();
        }
        if let Data::Mapping(children) = &mut self.data
            && let Some(index) = children.position(key)
        {
            self.take(index);
        }
        true
    }

    /// Removes keys of a mapping with their own comments and returns which of them were there.
    pub fn remove_all<'k>(&mut self, keys: impl IntoIterator<Item = &'k str>) -> HashSet<&'k str> {
        let keys: HashSet<&str> = keys.into_iter().filter(|key| self.contains(key)).collect();
        if keys.is_empty() {
            return keys;
        }
        self.own();
        if matches!(&self.data, Data::Mapping(children) if children.has_merge()) {
            self.unmerge();
        }
        self.take_all(|_, child| !child.merge && keys.contains(child.key.as_str()));
        keys
    }

    /// Gives a key of a mapping another name and returns whether it was there; its value and comments stay.
    pub fn rename(&mut self, key: &str, name: &str) -> bool {
        self.own();
        let Data::Mapping(children) = &mut self.data else {
            return false;
        };
        let Some(child) = children
            .iter_mut()
            .find(|child| !child.merge && child.key == key)
        else {
            return false;
        };
        child.key = name.to_owned();
        if let Some(place) = &mut child.place {
            place.name = 0..0;
        }
        true
    }

    /// Appends an item to a list; a node that is not a list becomes one.
    pub fn push(&mut self, value: Value) {
        self.insert(usize::MAX, value);
    }

    /// Inserts an item into a list before `index`, or at the end; a node that is not a list becomes one.
    pub fn insert(&mut self, index: usize, value: Value) {
        self.own();
        if !matches!(self.data, Data::List(_)) {
            *self = Self::from(Value::Array(Vec::new()));
        }
        self.open();
        if let Data::List(children) = &mut self.data {
            let index = index.min(children.len());
            children.insert(index, Child::fresh(String::new(), value));
        }
    }

    /// Removes an item of a list with its own comments and returns whether it was there.
    pub fn remove_item(&mut self, index: usize) -> bool {
        self.own();
        if !matches!(&self.data, Data::List(children) if index < children.len()) {
            return false;
        }
        self.take(index);
        true
    }

    /// Removes items of a list with their own comments.
    pub fn remove_items(&mut self, indexes: &HashSet<usize>) {
        if indexes.is_empty() {
            return;
        }
        self.own();
        if matches!(self.data, Data::List(_)) {
            self.take_all(|index, _| indexes.contains(&index));
        }
    }

    /// Makes the node mean `value`, touching only what differs: mappings are changed key by key and lists item by item.
    pub fn assign(&mut self, value: Value) {
        if self.means(&value) {
            return;
        }
        self.own();
        match (&self.data, value) {
            (Data::Mapping(_), Value::Object(map)) => {
                let gone: Vec<String> = self
                    .entries()
                    .map(|(key, _)| key.to_owned())
                    .filter(|key| !map.contains_key(key))
                    .collect();
                self.remove_all(gone.iter().map(String::as_str));
                for (key, value) in map {
                    self.set(&key, value);
                }
            }
            (Data::List(_), Value::Array(items)) => self.assign_items(items),
            (Data::Scalar(old), Value::String(new)) if old.is_string() => {
                let quote = match self.form {
                    Form::Plain(_, quote) | Form::Fresh(quote) => quote,
                    _ => Quote::None,
                };
                *self = Self {
                    form: Form::Fresh(quote),
                    ..Self::from(Value::String(new))
                };
            }
            (_, value) => *self = Self::from(value),
        }
    }

    /// Changes a list item by item: items that stay are not touched, others are paired, and the rest comes or goes.
    fn assign_items(&mut self, items: Vec<Value>) {
        let mut runs = self.runs(&items);
        let mut items: Vec<Option<Value>> = items.into_iter().map(Some).collect();
        // From the back, so that earlier positions stay what they were.
        while let Some((old, new)) = runs.pop() {
            let paired = old.len().min(new.len());
            for at in (old.start + paired..old.end).rev() {
                self.remove_item(at);
            }
            for (offset, item) in items[new].iter_mut().filter_map(Option::take).enumerate() {
                match self.item_mut(old.start + offset) {
                    Some(node) if offset < paired => node.assign(item),
                    _ => self.insert(old.start + offset, item),
                }
            }
        }
    }

    /// Returns which stretches of the list differ from which stretches of `items`.
    fn runs(&self, items: &[Value]) -> Vec<(Range<usize>, Range<usize>)> {
        let old = self.len();
        let same = |at: usize, item: &Value| self.item(at).is_some_and(|node| node.means(item));
        let front = items
            .iter()
            .enumerate()
            .take_while(|(at, item)| same(*at, item))
            .count();
        let room = old.min(items.len()) - front;
        let from_back = |count: &usize| same(old - 1 - count, &items[items.len() - 1 - count]);
        let back = (0..room).take_while(from_back).count();
        let middle = longest_common(old - front - back, items.len() - front - back, |i, j| {
            same(front + i, &items[front + j])
        });
        let mut runs = Vec::new();
        let (mut i, mut j) = (front, front);
        let ends = middle.into_iter().map(|(i, j)| (front + i, front + j));
        for (end_i, end_j) in ends.chain([(old - back, items.len() - back)]) {
            if i < end_i || j < end_j {
                runs.push((i..end_i, j..end_j));
            }
            (i, j) = (end_i + 1, end_j + 1);
        }
        runs
    }

    /// Replaces a node that is no mapping by an empty one.
    fn become_mapping(&mut self) {
        self.own();
        if !matches!(self.data, Data::Mapping(_)) {
            *self = Self::from(Value::Object(serde_json::Map::new()));
        }
    }

    /// Appends a child and returns its value.
    fn append(&mut self, child: Child) -> Option<&mut Self> {
        self.open();
        match &mut self.data {
            Data::Mapping(children) | Data::List(children) => {
                children.add(child);
                let last = children.len().checked_sub(1)?;
                children.value_mut(last)
            }
            _ => None,
        }
    }

    /// Prepares a collection for a new child: empty brackets are written anew, as lines where lines are used.
    fn open(&mut self) {
        if matches!(self.form, Form::Flow { .. }) && self.is_empty() {
            self.form = Form::Fresh(Quote::None);
        }
    }

    /// Removes the child at `index` and keeps those comments above it that are not its own.
    fn take(&mut self, index: usize) {
        let (Data::Mapping(children) | Data::List(children)) = &mut self.data else {
            return;
        };
        let gone = children.remove(index);
        let mut kept: Vec<Span> = gone.before;
        kept.extend(gone.place.and_then(|place| place.keep));
        if let Some(next) = children.get_mut(index) {
            kept.append(&mut next.before);
            next.before = kept;
        } else if let Form::Block { after, .. } = &mut self.form {
            kept.append(after);
            *after = kept;
        }
    }

    /// Removes children as [`Self::take`] does one, in one go.
    fn take_all(&mut self, is_gone: impl Fn(usize, &Child) -> bool) {
        let (Data::Mapping(children) | Data::List(children)) = &mut self.data else {
            return;
        };
        let all = std::mem::take(&mut **children);
        let mut stay = Vec::with_capacity(all.len());
        let mut kept: Vec<Span> = Vec::new();
        for (index, mut child) in all.into_iter().enumerate() {
            if is_gone(index, &child) {
                kept.append(&mut child.before);
                kept.extend(child.place.and_then(|place| place.keep));
            } else {
                if !kept.is_empty() {
                    kept.append(&mut child.before);
                    child.before = std::mem::take(&mut kept);
                }
                stay.push(child);
            }
        }
        **children = stay;
        if let Form::Block { after, .. } = &mut self.form {
            kept.append(after);
            *after = kept;
        }
    }

    /// Writes the entries that a `<<` brought in as the mapping's own.
    pub(super) fn unmerge(&mut self) {
        let inherited: Vec<(String, Value)> = match &self.data {
            Data::Mapping(children) => self
                .entries()
                .filter(|(key, _)| {
                    !children
                        .iter()
                        .any(|child| !child.merge && child.key == *key)
                })
                .map(|(key, node)| (key.to_owned(), node.value()))
                .collect(),
            _ => return,
        };
        while let Data::Mapping(children) = &self.data
            && let Some(index) = children.iter().position(|child| child.merge)
        {
            self.take(index);
        }
        for (key, value) in inherited {
            self.append(Child::fresh(key, value));
        }
    }

    /// Replaces an alias by a copy of what it means, and an opaque form by one that can be edited.
    fn own(&mut self) {
        if let Data::Alias(target) = &self.data {
            let target = Arc::clone(target);
            *self = Self::from(target.value());
        } else if matches!(self.form, Form::Opaque(_)) {
            *self = Self::from(self.value());
        }
    }
}

/// Returns the pairs of positions of a longest common subsequence of lists of `left` and `right` items.
fn longest_common(
    left: usize,
    right: usize,
    same: impl Fn(usize, usize) -> bool,
) -> Vec<(usize, usize)> {
    const LARGE: usize = 250_000;
    if left == 0 || right == 0 || left.saturating_mul(right) > LARGE {
        return Vec::new();
    }
    let width = right + 1;
    let mut best = vec![0u32; (left + 1) * width];
    for i in (0..left).rev() {
        for j in (0..right).rev() {
            best[i * width + j] = if same(i, j) {
                best[(i + 1) * width + j + 1] + 1
            } else {
                best[(i + 1) * width + j].max(best[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut pairs = Vec::new();
    while i < left && j < right {
        if same(i, j) {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if best[(i + 1) * width + j] >= best[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}
