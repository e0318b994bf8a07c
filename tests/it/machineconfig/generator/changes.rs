//! Changing one thing of a configuration, as its next version would.

use super::table::{Field, Shape};
use super::tree::Tree;
use super::{Making, values};

impl Making<'_> {
    /// Changes one thing somewhere below a struct.
    pub(super) fn change(&mut self, tree: &mut Tree, field: &'static Field) {
        let Tree::Map(entries) = tree else {
            return;
        };
        let root = self.path.is_empty();
        let fixed =
            |key: &str| key == "<<" || (root && matches!(key, "apiVersion" | "kind" | "name"));
        let open: Vec<usize> = (0..entries.len())
            .filter(|at| !fixed(&entries[*at].0))
            .collect();
        let add = open.is_empty() || self.random.percent(15);
        if add && !field.fields.is_empty() {
            let below = &field.fields[self.random.below(field.fields.len())];
            if !fixed(below.name) && entries.iter().all(|(key, _)| key != below.name) {
                let value = self.field(below);
                entries.push((below.name.to_owned(), value));
            }
            return;
        }
        let Some(&at) = open.get(self.random.below(open.len())) else {
            return;
        };
        if self.random.percent(12) && (entries.len() > 1 || !self.path.is_empty()) {
            if !is_shared(&entries[at].1) {
                entries.remove(at);
            }
            return;
        }
        let name = entries[at].0.clone();
        let value = &mut entries[at].1;
        let Some(below) = field.field(&name) else {
            if !is_shared(value) {
                *value = values::anything(self.random, 2);
            }
            return;
        };
        self.path.push(below.name);
        match (&mut *value, below.shape) {
            (Tree::Map(_), Shape::Struct) => self.change(value, below),
            (Tree::List(items), Shape::List) if !items.is_empty() => self.change_list(items, below),
            (Tree::Map(entries), Shape::Map) if !entries.is_empty() => {
                let at = self.random.below(entries.len());
                match self.random.below(3) {
                    0 if !is_shared(&entries[at].1) && entries[at].0 != "<<" => {
                        entries.remove(at);
                    }
                    1 => {
                        let key = values::key(self.random, below.name);
                        if entries.iter().all(|(known, _)| known != key) {
                            let value = self.element(below);
                            entries.push((key.to_owned(), value));
                        }
                    }
                    _ if !is_shared(&entries[at].1) && entries[at].0 != "<<" => {
                        entries[at].1 = self.element(below)
                    }
                    _ => {}
                }
            }
            (value, _) if !is_shared(value) => *value = self.plain(below),
            _ => {}
        }
        self.path.pop();
    }

    fn change_list(&mut self, items: &mut Vec<Tree>, field: &'static Field) {
        let at = self.random.below(items.len());
        match self.random.below(7) {
            0 if !is_shared(&items[at]) => {
                items.remove(at);
            }
            1 => items.insert(at, self.element(field)),
            2 if !items.iter().any(is_shared) => {
                let last = items.len() - 1;
                items.swap(at, last);
            }
            3 | 4 => items.push(self.element(field)),
            _ if matches!(items[at], Tree::Map(_)) && !field.fields.is_empty() => {
                self.change(&mut items[at], field)
            }
            _ if !is_shared(&items[at]) => items[at] = self.element(field),
            _ => {}
        }
    }
}

/// Returns whether a value has an anchor or stands for one: it cannot be taken away or moved.
fn is_shared(tree: &Tree) -> bool {
    match tree {
        Tree::Anchor(..) | Tree::Alias(_) => true,
        Tree::List(items) => items.iter().any(is_shared),
        Tree::Map(entries) => entries.iter().any(|(_, value)| is_shared(value)),
        _ => false,
    }
}
