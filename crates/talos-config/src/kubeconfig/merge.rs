//! Bringing the entries of one kubeconfig into another.

use serde_json::{Map, Value, json};

use super::read::root;
use super::{Error, Kind, Kubeconfig, Renamed};
use crate::talosconfig::free_name;
use crate::yaml::{Node, Stream};

/// Two entries of the same list and name that differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The list.
    pub kind: Kind,
    /// The name.
    pub name: String,
}

/// What to do about a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Give the newcomer the suffix `-1`, or `-2` and so on, whatever is free.
    Rename,
    /// Replace what is there.
    Overwrite,
}

/// What a merge did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Entries that came in under another name, in order.
    pub renamed: Vec<(Kind, Renamed)>,
    /// Entries that replaced others, in order.
    pub overwritten: Vec<Conflict>,
    /// The context that is current now.
    pub current: Option<String>,
}

impl Kubeconfig {
    /// Adds all entries of another file: clusters, then users, then contexts; its current context becomes current, or
    /// its last one if it has none.
    ///
    /// Equal entries stay as they are. `resolve` is asked about each conflict. A renamed cluster's new name is put into
    /// the names of users and contexts that contain the old one. `context_name` is what the context that becomes
    /// current shall be called.
    ///
    /// # Errors
    /// The text cannot be edited; nothing is changed then.
    pub fn merge(
        &mut self,
        other: &Self,
        context_name: Option<&str>,
        resolve: &mut dyn FnMut(&Conflict) -> Resolution,
    ) -> Result<Merged, Error> {
        let incoming = root(&other.file, other.text())?;
        let failed = |source| Error::Edit {
            file: self.file.clone(),
            source: Box::new(source),
        };
        let mut stream = Stream::parse(self.text()).map_err(failed)?;
        let Some(target) = stream.root_mut(0) else {
            return Err(Error::Empty {
                file: self.file.clone(),
            });
        };
        let chosen = other
            .current()
            .or(other.contexts.last().map(|context| context.name.as_str()));
        let mut merge = Merge {
            target,
            resolve,
            done: Merged::default(),
            clusters: Vec::new(),
            users: Vec::new(),
        };
        for kind in [Kind::Cluster, Kind::User, Kind::Context] {
            for (name, content) in entries(&incoming, kind) {
                let forced = context_name.filter(|_| kind == Kind::Context && chosen == Some(name));
                let final_name = merge.entry(kind, name, content, forced);
                if kind == Kind::Context && chosen == Some(name) {
                    merge.done.current = Some(final_name);
                }
            }
        }
        let done = merge.done;
        if let Some(current) = &done.current {
            target.set("current-context", json!(current));
        }
        *self = Self::parse(self.file.clone(), &stream.to_string())?;
        Ok(done)
    }
}

struct Merge<'a> {
    target: &'a mut Node,
    resolve: &'a mut dyn FnMut(&Conflict) -> Resolution,
    done: Merged,
    clusters: Vec<Renamed>,
    users: Vec<Renamed>,
}

impl Merge<'_> {
    /// Brings one entry in and returns the name it has then.
    fn entry(&mut self, kind: Kind, name: &str, content: &Value, forced: Option<&str>) -> String {
        let wanted = match forced {
            Some(forced) => forced.to_string(),
            None if kind == Kind::Cluster => name.to_string(),
            None => self.clusters.iter().fold(name.to_string(), |name, change| {
                name.replace(&change.from, &change.to)
            }),
        };
        let content = match kind {
            Kind::Context => self.redirected(content),
            _ => content.clone(),
        };
        let mut final_name = wanted.clone();
        match self.find(kind, &wanted) {
            None => self.add(kind, &wanted, content),
            Some(same) if same.means(&content) => {}
            Some(_) => {
                let conflict = Conflict { kind, name: wanted };
                match (self.resolve)(&conflict) {
                    Resolution::Overwrite => {
                        self.replace(kind, &conflict.name, content);
                        self.done.overwritten.push(conflict);
                    }
                    Resolution::Rename => {
                        final_name =
                            free_name(&conflict.name, |name| self.find(kind, name).is_some());
                        self.add(kind, &final_name, content);
                    }
                }
            }
        }
        if final_name != name {
            let renamed = Renamed {
                from: name.to_string(),
                to: final_name.clone(),
            };
            match kind {
                Kind::Cluster => self.clusters.push(renamed.clone()),
                Kind::User => self.users.push(renamed.clone()),
                Kind::Context => {}
            }
            self.done.renamed.push((kind, renamed));
        }
        final_name
    }

    /// A context follows its cluster and user to their new names.
    fn redirected(&self, context: &Value) -> Value {
        let mut context = context.clone();
        for (key, changes) in [("cluster", &self.clusters), ("user", &self.users)] {
            let Some(name) = context.get_mut(key) else {
                continue;
            };
            if let Some(change) = changes.iter().find(|change| *name == change.from.as_str()) {
                *name = json!(change.to);
            }
        }
        context
    }

    fn find(&self, kind: Kind, name: &str) -> Option<&Node> {
        let list = self.target.get(kind.list())?;
        let entry = list.items().find(|entry| is_named(entry, name))?;
        entry.get(kind.as_str())
    }

    fn add(&mut self, kind: Kind, name: &str, content: Value) {
        let mut entry = Map::new();
        entry.insert(kind.as_str().to_string(), content);
        entry.insert("name".to_string(), json!(name));
        if self.target.get(kind.list()).is_none_or(Node::is_null) {
            self.target.set(kind.list(), json!([]));
        }
        if let Some(list) = self.target.get_mut(kind.list()) {
            list.push(Value::Object(entry));
        }
    }

    fn replace(&mut self, kind: Kind, name: &str, content: Value) {
        let Some(list) = self.target.get_mut(kind.list()) else {
            return;
        };
        let index = list.items().position(|entry| is_named(entry, name));
        if let Some(entry) = index.and_then(|index| list.item_mut(index)) {
            entry.set(kind.as_str(), content);
        }
    }
}

fn is_named(entry: &Node, name: &str) -> bool {
    entry.get("name").and_then(Node::as_str) == Some(name)
}

fn entries(root: &Value, kind: Kind) -> impl Iterator<Item = (&str, &Value)> {
    let items = root.get(kind.list()).and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .filter_map(move |entry| Some((entry.get("name")?.as_str()?, entry.get(kind.as_str())?)))
}
