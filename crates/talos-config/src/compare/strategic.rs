//! The strategic merge patches that turn one configuration into another.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::documents::{self, Document};
use super::plan::Planner;
use super::{Change, changes, parse_both};
use crate::patch::{Patch, apply};
use crate::yaml::{Step, Stream, write};
use crate::{Error, Place, Schema};

/// Returns the smallest strategic merge patch that turns the first configuration into the second.
///
/// More than one text is returned where one cannot do it: they are applied in order. Nothing is returned if the two mean
/// the same. What is returned was applied, and made the second configuration.
///
/// # Errors
///
/// [`Error::Side`] for a text that is not YAML or has a document twice, [`Error::NoStrategicPatch`] where only a JSON
/// Patch does it, [`Error::UnknownKind`] and [`Error::UnknownField`] for what the Talos version does not have.
pub fn as_patch(a: &str, b: &str, schema: Schema) -> Result<Vec<String>, Error> {
    let (left, right) = parse_both(a, b)?;
    let old = documents::read(&left, schema);
    let new = documents::read(&right, schema);
    let has_main = |documents: &[Document]| documents.iter().any(|each| each.identity.is_main());
    if has_main(&old) && !has_main(&new) {
        return Err(Error::NoStrategicPatch {
            place: place("", ""),
            reason: "a strategic merge patch cannot take it away",
        });
    }
    let pairs = documents::pairs(&old, &new);
    let differences = changes::all(&left, &right, schema);
    let mut wanted = Wanted {
        schema,
        anew: HashMap::new(),
    };
    let mut refused = 0;
    loop {
        let texts = wanted.patches(&pairs);
        let result = match made(a, &texts, schema) {
            Ok(result) => result,
            Err(error) => {
                // Deleting and setting more at once may do what merging does not.
                if error.is_unknown() {
                    return Err(error);
                }
                refused += 1;
                match wanted.set_all_anew(&differences, &pairs, 4usize.saturating_sub(refused)) {
                    true => continue,
                    false => return Err(error),
                }
            }
        };
        let rest = changes::all(&result, &right, schema);
        let Some(first) = rest.first() else {
            return Ok(texts);
        };
        if !wanted.set_all_anew(&rest, &pairs, usize::MAX) {
            return Err(Error::NoStrategicPatch {
                place: place(&first.document, &first.path),
                reason: "no strategic merge patch makes it what the second configuration has",
            });
        }
    }
}

/// Applies patches and reads the result.
fn made(a: &str, texts: &[String], schema: Schema) -> Result<Stream, Error> {
    let plain = |error: Error| match error {
        Error::InPatch { source, .. } => *source,
        // Those after the first were to be applied to what it makes.
        Error::Problems { problems } => match problems.into_iter().next() {
            Some(Error::InPatch { source, .. }) => *source,
            Some(problem) => problem,
            None => Error::NotReadable,
        },
        error => error,
    };
    let patches: Vec<Patch> = texts
        .iter()
        .map(|text| Patch::parse(text))
        .collect::<Result<_, _>>()?;
    let patched = apply(a, &patches, schema).map_err(plain)?;
    Stream::parse(&patched.text)
}

/// Returns whether a part of a patch deletes and does nothing else.
fn only_deletes(value: &Value) -> bool {
    match value {
        Value::Object(map) => {
            map.contains_key("$patch") || (!map.is_empty() && map.values().all(only_deletes))
        }
        Value::Array(items) => !items.is_empty() && items.iter().all(only_deletes),
        _ => false,
    }
}

/// How the patches are to be planned.
struct Wanted {
    schema: Schema,
    /// By the label of the document: the keys that are deleted and set; no key stands for the whole document.
    anew: HashMap<String, HashSet<Vec<String>>>,
}

impl Wanted {
    fn patches(&self, pairs: &[(Option<&Document>, Option<&Document>)]) -> Vec<String> {
        let (mut now, mut later) = (Vec::new(), Vec::new());
        for pair in pairs {
            match pair {
                (Some(old), None) => now.push(deletion(old)),
                (None, Some(new)) => now.push(whole(new)),
                (Some(old), Some(new)) => self.pair(old, new, &mut now, &mut later),
                (None, None) => {}
            }
        }
        let several = self.schema.several_of_one_document();
        if several {
            now.append(&mut later);
        }
        [now, later]
            .into_iter()
            .filter(|documents| !documents.is_empty())
            .map(|documents| {
                let texts: Vec<String> = documents.iter().map(write).collect();
                texts.join("---\n")
            })
            .collect()
    }

    fn pair(&self, old: &Document, new: &Document, now: &mut Vec<Value>, later: &mut Vec<Value>) {
        if old.value == new.value {
            return;
        }
        let nothing = HashSet::new();
        let label = old.identity.label();
        let anew = self.anew.get(&label).unwrap_or(&nothing);
        if anew.contains(&Vec::new()) {
            now.push(deletion(old));
            later.push(whole(new));
            return;
        }
        let mut planner = Planner::new(self.schema, anew);
        let mut plan = planner.mapping(old.map(), new.map(), old.fields);
        // Beside deletions alone the version of the main document is passed over.
        if old.identity.is_main()
            && plan.now.len() > 1
            && plan.now.get("version").is_some_and(Value::is_string)
            && plan
                .now
                .iter()
                .all(|(key, value)| key == "version" || only_deletes(value))
            && let Some(version) = plan.now.shift_remove("version")
        {
            plan.later.insert("version".to_owned(), version);
        }
        for (body, documents) in [(plan.now, now), (plan.later, later)] {
            if body.is_empty() {
                continue;
            }
            let mut document = old.head();
            for (key, value) in body {
                document.entry(key).or_insert(value);
            }
            if document.keys().all(|key| key == "version") {
                // A main document that says nothing else is passed over.
                let both = |key: &str| old.map()[key].is_object() && new.map()[key].is_object();
                let kept = old
                    .map()
                    .keys()
                    .find(|key| new.map().contains_key(*key) && both(key));
                if let Some(key) = kept {
                    document.insert(key.clone(), Value::Object(Map::new()));
                }
            }
            documents.push(Value::Object(document));
        }
    }

    /// Has the places of differences, or what holds them, deleted and set; returns whether any of that is new.
    fn set_all_anew(
        &mut self,
        changes: &[Change],
        pairs: &[(Option<&Document>, Option<&Document>)],
        depth: usize,
    ) -> bool {
        let before = self.anew.clone();
        let both = pairs.iter().filter_map(|pair| match pair {
            (Some(old), Some(_)) => Some((old.identity.label(), *old)),
            _ => None,
        });
        let both: HashMap<String, &Document> = both.collect();
        let mut grew = false;
        for change in changes {
            if let Some(old) = both.get(&change.document) {
                grew |= self.set_anew(change, old, depth, before.get(&change.document));
            }
        }
        grew
    }

    /// Has the place of a difference, or what holds it, deleted and set; returns whether it was not so `before`.
    fn set_anew(
        &mut self,
        change: &Change,
        old: &Document,
        depth: usize,
        before: Option<&HashSet<Vec<String>>>,
    ) -> bool {
        let mut path: Vec<String> = change
            .steps
            .iter()
            .map_while(|step| match step {
                Step::Key(key) => Some(key.clone()),
                Step::Index(_) => None,
            })
            .take(depth)
            .collect();
        let there = |path: &[String]| {
            let mut value = &old.value;
            for key in path {
                match value.get(key) {
                    Some(below) => value = below,
                    None => return false,
                }
            }
            true
        };
        let anew = self.anew.entry(change.document.clone()).or_default();
        loop {
            if path.is_empty() && old.identity.is_main() {
                return false;
            }
            if there(&path) && !before.is_some_and(|before| before.contains(&path)) {
                anew.insert(path);
                return true;
            }
            if path.pop().is_none() {
                return false;
            }
        }
    }
}

fn deletion(document: &Document) -> Value {
    let mut head = document.head();
    head.insert("$patch".to_owned(), "delete".into());
    Value::Object(head)
}

/// Returns a document as a patch adds it.
fn whole(document: &Document) -> Value {
    let mut whole = document.head();
    let body: Map<String, Value> = document.map().clone();
    for (key, value) in body {
        whole.insert(key, value);
    }
    Value::Object(whole)
}

fn place(document: &str, path: &str) -> Place {
    Place {
        document: document.to_owned(),
        path: path.to_owned(),
        line: None,
    }
}
