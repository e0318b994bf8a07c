//! The object store of a cluster's Kubernetes API: versions, history and optimistic locking.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use rand::RngExt as _;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::kinds::Kind;
use super::refusal::Refusal;

/// Where an object lives.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Kind of the object.
    pub(crate) kind: Arc<Kind>,
    /// Namespace, empty for cluster-scoped kinds.
    pub(crate) namespace: String,
    /// Name.
    pub(crate) name: String,
}

/// What became of an object in one revision.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// Revision of the store, which is the object's resource version.
    pub(crate) revision: u64,
    /// Where the object lives.
    pub(crate) key: Key,
    /// When it happened.
    pub(crate) at: Timestamp,
    /// The object before, absent if it was created.
    pub(crate) before: Option<Arc<Value>>,
    /// The object after, absent if it was deleted.
    pub(crate) after: Option<Arc<Value>>,
}

/// What a write does with the object it was shown.
#[derive(Debug)]
pub(crate) enum Next {
    /// Nothing.
    Keep,
    /// Stores this object.
    Put(Value),
    /// Removes it.
    Delete,
}

/// All objects of a cluster with the latest changes.
#[derive(Debug)]
pub(crate) struct Objects {
    state: Mutex<State>,
    revision: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    revision: u64,
    objects: BTreeMap<Key, Arc<Value>>,
    history: VecDeque<Change>,
    /// Changes up to this revision are forgotten.
    compacted: u64,
}

/// How many changes a watch may lag behind.
const HISTORY: usize = 5000;

impl Objects {
    /// Returns an empty store.
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                revision: 1,
                objects: BTreeMap::new(),
                history: VecDeque::new(),
                compacted: 0,
            }),
            revision: watch::Sender::new(1),
        }
    }

    /// Returns one object.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Value>> {
        self.state().objects.get(key).cloned()
    }

    /// Returns the objects of a kind, in all namespaces if none is named, and the revision of the list.
    pub(crate) fn list(&self, kind: &Arc<Kind>, namespace: Option<&str>) -> (Vec<Arc<Value>>, u64) {
        let state = self.state();
        let first = Key {
            kind: Arc::clone(kind),
            namespace: namespace.unwrap_or_default().to_owned(),
            name: String::new(),
        };
        let objects = state
            .objects
            .range(first..)
            .take_while(|(key, _)| key.kind == *kind)
            .take_while(|(key, _)| namespace.is_none_or(|wanted| wanted == key.namespace))
            .map(|(_, object)| Arc::clone(object))
            .collect();
        (objects, state.revision)
    }

    /// Changes one object in one step: `change` sees the present object and says what comes next.
    ///
    /// With `dry_run` the result is computed and nothing is stored. The returned object is the one
    /// after the change, or the one before it if it was deleted; absent if there never was one.
    ///
    /// # Errors
    ///
    /// Whatever `change` refuses.
    pub(crate) fn write(
        &self,
        key: &Key,
        now: Timestamp,
        dry_run: bool,
        change: impl FnOnce(Option<&Value>) -> Result<Next, Refusal>,
    ) -> Result<Option<Arc<Value>>, Refusal> {
        let mut state = self.state();
        let before = state.objects.get(key).cloned();
        match change(before.as_deref())? {
            Next::Keep => Ok(before),
            Next::Delete => {
                if let (Some(old), false) = (&before, dry_run) {
                    let revision = state.revision + 1;
                    let mut last = old.as_ref().clone();
                    last["metadata"]["resourceVersion"] = json!(revision.to_string());
                    state.commit(key, now, Some(Arc::new(last)), None);
                    self.revision.send_replace(state.revision);
                }
                Ok(before)
            }
            Next::Put(mut object) => {
                stamp(&mut object, before.as_deref(), key, now);
                if before.as_deref().is_some_and(|old| same(old, &object)) {
                    return Ok(before);
                }
                let next = state.revision + 1;
                match (&before, dry_run) {
                    // What a dry run creates has no version; what it changes keeps the old one.
                    (None, true) => {}
                    (Some(old), true) => {
                        let kept = old["metadata"]["resourceVersion"].clone();
                        object["metadata"]["resourceVersion"] = kept;
                    }
                    (_, false) => {
                        object["metadata"]["resourceVersion"] = json!(next.to_string());
                    }
                }
                // Kubernetes shows fields in alphabetic order.
                object.sort_all_objects();
                let object = Arc::new(object);
                if !dry_run {
                    state.commit(key, now, before, Some(Arc::clone(&object)));
                    self.revision.send_replace(state.revision);
                }
                Ok(Some(object))
            }
        }
    }

    /// Returns the changes after a revision, oldest first.
    ///
    /// # Errors
    ///
    /// [`Refusal::expired`] if changes after that revision are forgotten.
    pub(crate) fn since(&self, revision: u64) -> Result<Vec<Change>, Refusal> {
        let state = self.state();
        if revision < state.compacted {
            return Err(Refusal::expired(revision, state.compacted));
        }
        let seen = state
            .history
            .partition_point(|change| change.revision <= revision);
        let changes = state.history.range(seen..).cloned().collect();
        Ok(changes)
    }

    /// Removes everything that lives in a namespace.
    pub(crate) fn clear_namespace(&self, namespace: &str, now: Timestamp) {
        let mut state = self.state();
        let inside = |key: &&Key| key.kind.namespaced && key.namespace == namespace;
        let keys: Vec<Key> = state.objects.keys().filter(inside).cloned().collect();
        for key in keys {
            let last = state.objects.get(&key).cloned();
            state.commit(&key, now, last, None);
        }
        self.revision.send_replace(state.revision);
    }

    /// Returns the changes that are still known, oldest first.
    pub(crate) fn known_changes(&self) -> Vec<Change> {
        self.state().history.iter().cloned().collect()
    }

    /// Forgets all history, so that watches from older versions are told `410 Gone`.
    pub(crate) fn compact(&self) {
        let mut state = self.state();
        state.history.clear();
        state.compacted = state.revision;
    }

    /// Returns a receiver that sees every new revision.
    pub(crate) fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn commit(
        &mut self,
        key: &Key,
        at: Timestamp,
        before: Option<Arc<Value>>,
        after: Option<Arc<Value>>,
    ) {
        self.revision += 1;
        match &after {
            Some(object) => self.objects.insert(key.clone(), Arc::clone(object)),
            None => self.objects.remove(key),
        };
        self.history.push_back(Change {
            revision: self.revision,
            key: key.clone(),
            at,
            before,
            after,
        });
        while self.history.len() > HISTORY {
            if let Some(forgotten) = self.history.pop_front() {
                self.compacted = forgotten.revision;
            }
        }
    }
}

/// Returns a random UUID of version 4.
pub(crate) fn random_uid() -> String {
    let mut bytes = [0_u8; 16];
    rand::rng().fill(&mut bytes);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// Returns a random ending for a generated name, of the letters and digits that Kubernetes uses.
pub(crate) fn suffix(length: usize) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut bytes = vec![0_u8; length];
    rand::rng().fill(bytes.as_mut_slice());
    bytes
        .iter()
        .map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]))
        .collect()
}

/// Returns a time as Kubernetes writes it: whole seconds, UTC.
pub(crate) fn seconds(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Fills in what only the server knows.
fn stamp(object: &mut Value, before: Option<&Value>, key: &Key, now: Timestamp) {
    object["apiVersion"] = json!(key.kind.api_version());
    object["kind"] = json!(key.kind.kind);
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    let counted = key.kind.has_generation();
    let generation = before.map_or(1, |old| {
        let last = old["metadata"]["generation"].as_u64().unwrap_or(1);
        last + u64::from(specification(old) != specification(object))
    });
    let metadata = &mut object["metadata"];
    metadata["name"] = json!(key.name);
    if key.kind.namespaced {
        metadata["namespace"] = json!(key.namespace);
    }
    match before {
        Some(old) => {
            for field in ["uid", "creationTimestamp", "resourceVersion"] {
                metadata[field] = old["metadata"][field].clone();
            }
        }
        None => {
            metadata["uid"] = json!(random_uid());
            metadata["creationTimestamp"] = json!(seconds(now));
            if let Some(fields) = metadata.as_object_mut() {
                fields.remove("resourceVersion");
            }
        }
    }
    if counted {
        metadata["generation"] = json!(generation);
        if key.kind.kind == "DaemonSet" {
            let annotation = "deprecated.daemonset.template.generation";
            metadata["annotations"][annotation] = json!(generation.to_string());
        }
    } else if let Some(fields) = metadata.as_object_mut() {
        fields.remove("generation");
    }
}

/// Returns everything of an object except its metadata and status.
fn specification(object: &Value) -> Map<String, Value> {
    let mut fields = object.as_object().cloned().unwrap_or_default();
    fields.retain(|name, _| !matches!(name.as_str(), "metadata" | "status"));
    fields
}

/// Tells whether two objects differ in nothing but who last wrote what when.
fn same(left: &Value, right: &Value) -> bool {
    let bare = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
            if let Some(entries) = metadata
                .get_mut("managedFields")
                .and_then(Value::as_array_mut)
            {
                for entry in entries {
                    entry["time"] = Value::Null;
                }
            }
        }
        object
    };
    bare(left) == bare(right)
}
