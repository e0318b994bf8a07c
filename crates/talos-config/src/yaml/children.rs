//! The children of a list or mapping.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::node::{Child, Node};

/// The children in order. A mapping that is asked for many keys remembers where they are.
#[derive(Default)]
pub(super) struct Children {
    all: Vec<Child>,
    index: OnceLock<Index>,
    /// How often a key was searched since the children last changed.
    searches: AtomicU32,
}

struct Index {
    keys: HashMap<String, usize>,
    has_merge: bool,
}

/// After how many searches an index pays.
const SEARCHES: u32 = 32;

impl Children {
    /// Returns where the mapping's own entry of a key is.
    pub(super) fn position(&self, key: &str) -> Option<usize> {
        match self.index() {
            Some(index) => index.keys.get(key).copied(),
            None => self
                .all
                .iter()
                .position(|child| !child.merge && child.key == key),
        }
    }

    /// Returns whether an entry is a `<<`.
    pub(super) fn has_merge(&self) -> bool {
        match self.index.get() {
            Some(index) => index.has_merge,
            None => self.all.iter().any(|child| child.merge),
        }
    }

    /// Returns the value of a child for editing; its key stays.
    pub(super) fn value_mut(&mut self, at: usize) -> Option<&mut Node> {
        self.all.get_mut(at).map(|child| &mut child.value)
    }

    /// Appends a child.
    pub(super) fn add(&mut self, child: Child) {
        if let Some(index) = self.index.get_mut() {
            index.has_merge |= child.merge;
            if !child.merge {
                index.keys.insert(child.key.clone(), self.all.len());
            }
        }
        self.all.push(child);
    }

    fn index(&self) -> Option<&Index> {
        if self.index.get().is_none() {
            let few = self.all.len() < SEARCHES as usize;
            if few || self.searches.fetch_add(1, Ordering::Relaxed) < SEARCHES {
                return None;
            }
        }
        Some(self.index.get_or_init(|| {
            Index {
                has_merge: self.all.iter().any(|child| child.merge),
                keys: self
                    .all
                    .iter()
                    .enumerate()
                    .filter(|(_, child)| !child.merge)
                    .map(|(at, child)| (child.key.clone(), at))
                    .collect(),
            }
        }))
    }
}

impl Clone for Children {
    fn clone(&self) -> Self {
        self.all.clone().into()
    }
}

impl From<Vec<Child>> for Children {
    fn from(all: Vec<Child>) -> Self {
        Self {
            all,
            ..Self::default()
        }
    }
}

impl FromIterator<Child> for Children {
    fn from_iter<I: IntoIterator<Item = Child>>(children: I) -> Self {
        Vec::from_iter(children).into()
    }
}

impl Deref for Children {
    type Target = Vec<Child>;

    fn deref(&self) -> &Vec<Child> {
        &self.all
    }
}

impl DerefMut for Children {
    /// Forgets where the keys are: anything may happen to them.
    fn deref_mut(&mut self) -> &mut Vec<Child> {
        self.index = OnceLock::new();
        self.searches = AtomicU32::new(0);
        &mut self.all
    }
}
