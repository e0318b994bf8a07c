//! Carrying a plan out: fields leave the main document, documents that are there are extended, others are appended.

use serde_json::{Map, Value};

use super::comments;
use super::drafts::{Draft, Drafts};
use super::facts::{LINKS, ORDER};
use super::work::{Work, label, shown};
use crate::Error;
use crate::yaml::{self, Node, Step, Stream};

/// The settings that go into documents that are there: which document, where in it, and what.
pub(super) type Merged = Vec<(usize, Vec<String>, Value)>;

/// Sorts the drafts, and works out what goes into documents that are there; a setting that says otherwise there is
/// refused.
pub(super) fn merged(work: &mut Work<'_>) -> Merged {
    let place = |draft: &Draft| {
        ORDER
            .iter()
            .position(|kind| *kind == draft.kind)
            .unwrap_or(ORDER.len())
    };
    let mut sorted = std::mem::take(&mut work.drafts).into_vec();
    sorted.sort_by_key(place);
    let mut merged = Merged::new();
    let mut drafts = Drafts::default();
    for draft in sorted {
        if let Some((index, node)) = work.existing(draft.kind, &draft.name) {
            into_existing(work, &draft, index, node, &mut merged);
            work.merged.push(draft);
            continue;
        }
        let is_link = LINKS.contains(&draft.kind);
        let other = LINKS
            .iter()
            .filter(|kind| is_link && **kind != draft.kind)
            .find_map(|kind| Some((*kind, work.existing(kind, &draft.name)?.0)));
        if let Some((kind, index)) = other {
            clash(work, &draft, &[], index, &label(kind, &draft.name), &[]);
        }
        drafts.push(draft);
    }
    work.drafts = drafts;
    work.refusals.sort_by_key(|refusal| refusal.line);
    merged
}

fn into_existing(
    work: &mut Work<'_>,
    draft: &Draft,
    index: usize,
    node: &Node,
    merged: &mut Merged,
) {
    let mut settings = Vec::new();
    leaves(&draft.fields, &mut Vec::new(), &mut settings);
    for (path, value) in settings {
        let keys: Vec<&str> = path.iter().map(String::as_str).collect();
        match node.at(&keys).filter(|node| !node.is_null()) {
            Some(there) if there.means(&value) => {}
            Some(_) => {
                let document = label(draft.kind, &draft.name);
                clash(work, draft, &keys, index, &document, &keys);
            }
            None => merged.push((index, path, value)),
        }
    }
}

/// Collects the settings of a draft: what is no mapping, or an empty one.
fn leaves(
    fields: &Map<String, Value>,
    path: &mut Vec<String>,
    found: &mut Vec<(Vec<String>, Value)>,
) {
    for (key, value) in fields {
        path.push(key.clone());
        match value {
            Value::Object(below) if !below.is_empty() => leaves(below, path, found),
            value => found.push((path.clone(), value.clone())),
        }
        path.pop();
    }
}

/// Refuses a setting that another document makes too, naming both places.
fn clash(
    work: &mut Work<'_>,
    draft: &Draft,
    keys: &[&str],
    index: usize,
    document: &str,
    there: &[&str],
) {
    let target: Vec<Step> = keys.iter().map(|key| Step::from(*key)).collect();
    let origin = draft
        .copies
        .iter()
        .filter(|(_, to)| target.starts_with(to) || to.starts_with(&target))
        .max_by_key(|(_, to)| to.len())
        .or(draft.copies.first())
        .map(|(from, _)| from.clone())
        .unwrap_or_default();
    let steps: Vec<Step> = there.iter().map(|key| Step::from(*key)).collect();
    let line = work.stream.line(index, &steps).unwrap_or(1);
    let what = match there {
        [] => document.to_owned(),
        _ => format!("`{}` of {document}", shown(&steps)),
    };
    work.refuse_at(&origin, format!("{what} at line {line} says otherwise"));
}

/// Returns the text of the configuration with everything in its new place.
pub(super) fn text(work: &Work<'_>, merged: Merged) -> Result<String, Error> {
    let mut stream = work.stream.clone();
    let taken = work.taken.topmost();
    if taken.is_empty() && merged.is_empty() && work.drafts.is_empty() {
        return Ok(work.stream.to_string());
    }
    if let Some(root) = stream.root_mut(work.main) {
        remove(root, &taken, 0, true);
    }
    for (index, path, value) in &merged {
        let mut node = stream.root_mut(*index);
        let Some((last, above)) = path.split_last() else {
            continue;
        };
        for key in above {
            node = node.and_then(|node| {
                if !node.contains(key) {
                    node.set(key, Value::Object(Map::new()));
                }
                node.get_mut(key)
            });
        }
        if let Some(node) = node {
            node.set(last, value.clone());
        }
    }
    let mut text = stream.to_string();
    let mut added = String::new();
    for draft in work.drafts.iter() {
        added.push_str("---\n");
        added.push_str(&document(work, draft));
    }
    if !added.is_empty() && !text.is_empty() && !text.ends_with('\n') {
        added.insert(0, '\n');
    }
    match work.crlf {
        true => text.push_str(&added.replace('\n', "\r\n")),
        false => text.push_str(&added),
    }
    check(&text, &stream, work)?;
    Ok(text)
}

/// Removes what sorted paths lead to from `depth` on, and mappings that are empty then; the two parts of the main document
/// stay. Returns whether the node is to go itself, unless it stays: nothing would be left in it.
fn remove(node: &mut Node, paths: &[&[Step]], depth: usize, stays: bool) -> bool {
    let mut gone: Vec<&Step> = Vec::new();
    for below in paths.chunk_by(|a, b| a.get(depth) == b.get(depth)) {
        let Some(step) = below.first().and_then(|path| path.get(depth)) else {
            continue;
        };
        let is_last = below.iter().any(|path| path.len() == depth + 1);
        let goes = match step {
            Step::Key(key) if is_last => node.contains(key),
            Step::Index(index) if is_last => node.item(*index).is_some(),
            Step::Key(key) => node
                .get_mut(key)
                .is_some_and(|node| remove(node, below, depth + 1, depth == 0)),
            Step::Index(index) => node
                .item_mut(*index)
                .is_some_and(|node| remove(node, below, depth + 1, true)),
        };
        if goes {
            gone.push(step);
        }
    }
    let all = !gone.is_empty() && gone.len() == node.len();
    if all && !stays {
        return true;
    }
    // From the back, so that positions in lists stay what they were.
    for step in gone.iter().rev() {
        match step {
            Step::Key(key) => node.remove(key),
            Step::Index(index) => node.remove_item(*index),
        };
    }
    false
}

/// Makes sure that the text reads as what was meant.
fn check(text: &str, stream: &Stream, work: &Work<'_>) -> Result<(), Error> {
    let again = yaml::read_documents(text).map_err(|_| Error::NotReadable)?;
    let meant: Vec<&Node> = stream.roots().filter(|root| !root.is_null()).collect();
    let same = again.len() == meant.len() + work.drafts.len()
        && meant
            .iter()
            .zip(&again)
            .all(|(root, value)| root.means(value))
        && work
            .drafts
            .iter()
            .rev()
            .zip(again.iter().rev())
            .all(|(draft, value)| *value == value_of(draft));
    if same {
        Ok(())
    } else {
        Err(Error::NotReadable)
    }
}

fn value_of(draft: &Draft) -> Value {
    /// What people look for first.
    const FIRST: [&str; 5] = ["enabled", "image", "installer", "url", "link"];
    let mut value = Map::new();
    value.insert("apiVersion".to_owned(), "v1alpha1".into());
    value.insert("kind".to_owned(), draft.kind.into());
    if !draft.name.is_empty() {
        value.insert("name".to_owned(), draft.name.clone().into());
    }
    let (first, rest): (Vec<_>, Vec<_>) = draft
        .fields
        .clone()
        .into_iter()
        .partition(|(key, _)| FIRST.contains(&key.as_str()));
    value.extend(first.into_iter().chain(rest));
    Value::Object(value)
}

/// Returns the text of a new document, with the comments that its settings had.
fn document(work: &Work<'_>, draft: &Draft) -> String {
    let value = value_of(draft);
    let text = yaml::write(&value);
    match Stream::parse(&text) {
        Ok(written) => comments::carried(work, draft, &value, &written, &text),
        Err(_) => text,
    }
}
