//! Strategic merge patches: which document of a patch meets which of the configuration.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::Settings;
use super::conflicts::Claims;
use super::delete::{self, DIRECTIVE, is_directive};
use super::documents::{self, Identity, Positions, identity, is_nothing};
use super::merge::kept;
use super::walk::{Walk, append};
use crate::schema::{Field, MAIN};
use crate::yaml::{Kind, Node, Stream};
use crate::{Error, Place};

/// What one document of a patch asks for.
struct Change {
    /// The position of the document in the patch.
    index: usize,
    identity: Identity,
    fields: Option<&'static Field>,
    /// The document as the table of fields reads it.
    value: Value,
    /// Whether the whole document is to go.
    is_deletion: bool,
    /// Whether more than the names of the document is left of it without its deletions.
    has_rest: bool,
}

/// Applies the documents of a patch in their order; whatever is wrong with them is reported together.
pub(super) fn apply(
    stream: &mut Stream,
    patch: &Stream,
    settings: &Settings,
    warnings: &mut Vec<String>,
) -> Result<(), Vec<Error>> {
    let mut problems = Vec::new();
    if settings.compat {
        append(&mut problems, refused_configuration(stream, settings));
    }
    let changes = read(stream, patch, settings, &mut problems, warnings);
    if !problems.is_empty() {
        return Err(problems);
    }
    if changes.is_empty() && settings.compat && patch.roots().any(|root| !root.is_null()) {
        return Err(vec![Error::NoPatch {
            reason: "nothing to merge".to_owned(),
        }]);
    }
    let mut added = Vec::new();
    let mut fresh = HashSet::new();
    let mut positions = Positions::new(stream, settings.compat);
    for change in in_order(changes) {
        // To the official tool, what this patch added is not there yet.
        let is_new =
            settings.compat && settings.refuses_doubles() && fresh.contains(&change.identity);
        let target = positions.find(&change.identity).filter(|_| !is_new);
        if target.is_none() && !change.is_deletion {
            fresh.insert(change.identity.clone());
            added.push((change.identity.clone(), patch.line(change.index, &[])));
        }
        // The root is taken out, so that the rest can be read meanwhile.
        let root = target.and_then(|index| stream.root_mut(index));
        let root = root.map(|root| std::mem::replace(root, Node::from(Value::Null)));
        let mut walk = walk(stream, patch, settings, change.index, &change.identity);
        let after = change.apply(root, &mut walk);
        append(&mut problems, walk.problems);
        warnings.append(&mut walk.warnings);
        match (after, target) {
            (After::Kept(root), Some(index)) => {
                if let Some(place) = stream.root_mut(index) {
                    *place = root;
                }
            }
            (After::Gone, Some(_)) => positions.remove(&change.identity),
            (After::Added { empty, document }, _) => {
                for _ in 0..empty {
                    stream.push(Value::Object(Map::new()));
                }
                if let Some(document) = document {
                    positions.add(stream, &change.identity, document);
                }
            }
            _ => {}
        }
    }
    positions.finish(stream);
    let claims = Claims::new(stream);
    for (identity, line) in added {
        if let Some(other) = claims.against(&identity) {
            let document = identity.label();
            let conflict = Error::Conflict {
                document,
                other,
                line,
            };
            append(&mut problems, [conflict]);
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems),
    }
}

/// Reports what is wrong with the documents of a patch whatever they meet.
pub(super) fn check(
    stream: &Stream,
    patch: &Stream,
    settings: &Settings,
) -> Result<(), Vec<Error>> {
    let mut problems = Vec::new();
    read(stream, patch, settings, &mut problems, &mut Vec::new());
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems),
    }
}

/// Puts the main document first: what it deletes, then what it merges.
fn in_order(changes: Vec<Change>) -> Vec<Change> {
    let (main, others): (Vec<Change>, Vec<Change>) = changes
        .into_iter()
        .partition(|change| change.identity.is_main());
    let deletions = main
        .iter()
        .filter(|change| delete::count(&change.value) > 0)
        .map(Change::deletions_only);
    let deletions: Vec<Change> = deletions.collect();
    let merges = main.into_iter().map(|mut change| {
        delete::prune(&mut change.value);
        change
    });
    let merges = merges.filter(|change| change.has_rest);
    deletions.into_iter().chain(merges).chain(others).collect()
}

/// Reads all documents of a patch before any is applied.
fn read(
    stream: &Stream,
    patch: &Stream,
    settings: &Settings,
    problems: &mut Vec<Error>,
    warnings: &mut Vec<String>,
) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    let mut with_rest = HashSet::new();
    for (index, root) in patch.roots().enumerate() {
        if root.is_null() || (is_nothing(root, settings.compat) && !is_directive(root)) {
            continue;
        }
        let identity = match identity(patch, index, root) {
            Ok(identity) => identity,
            Err(problem) => {
                append(problems, [problem]);
                continue;
            }
        };
        let mut walk = walk(stream, patch, settings, index, &identity);
        let change = Change::read(root, index, identity, &mut walk);
        append(problems, walk.problems);
        warnings.append(&mut walk.warnings);
        let is_doubled = change.has_rest && !with_rest.insert(change.identity.clone());
        if settings.compat && is_doubled && settings.refuses_doubles() {
            problems.push(Error::UnknownDocument {
                reason: format!("{} stands twice in the patch", change.identity.full_label()),
                line: patch.line(index, &[]),
            });
        }
        changes.push(change);
    }
    changes
}

/// Returns what the official tool, which decodes every configuration that it patches, refuses of one.
fn refused_configuration(stream: &Stream, settings: &Settings) -> Vec<Error> {
    let mut problems = Vec::new();
    let claims = Claims::new(stream);
    for (index, root) in stream
        .roots()
        .enumerate()
        .filter(|(_, root)| !root.is_null())
    {
        // What an earlier patch wrote for a deletion is not read again.
        if root.is_empty() && stream.line(index, &[]).is_none() {
            continue;
        }
        match identity(stream, index, root) {
            Ok(identity) => {
                let mut walk = walk(stream, stream, settings, index, &identity);
                problems.extend(claims.against(&identity).map(|other| Error::Conflict {
                    document: identity.label(),
                    other,
                    line: walk.place().line,
                }));
                Change::read(root, index, identity, &mut walk);
                append(&mut problems, walk.problems);
            }
            Err(problem) => append(&mut problems, [problem]),
        }
    }
    let inside = |source| match source {
        more @ Error::MoreProblems { .. } => more,
        source => Error::InConfiguration {
            source: Box::new(source),
        },
    };
    problems.into_iter().map(inside).collect()
}

fn walk<'a>(
    config: &'a Stream,
    patch: &'a Stream,
    settings: &Settings,
    index: usize,
    identity: &Identity,
) -> Walk<'a> {
    Walk {
        schema: settings.schema,
        compat: settings.compat,
        config,
        patch,
        index,
        document: identity.label(),
        kind: identity.kind.clone(),
        operations: None,
        path: Vec::new(),
        problems: Vec::new(),
        warnings: Vec::new(),
    }
}

/// What became of a document.
enum After {
    Kept(Node),
    Gone,
    /// A document is to be added, after some empty ones.
    Added {
        empty: usize,
        document: Option<Value>,
    },
}

impl Change {
    fn read(root: &Node, index: usize, identity: Identity, walk: &mut Walk<'_>) -> Self {
        let fields = walk
            .schema
            .kind(&identity.kind)
            .filter(|_| identity.version == MAIN);
        let is_deletion = root.contains(DIRECTIVE);
        let value = if is_deletion {
            if identity.is_main() {
                walk.problem(|place| Error::Directive {
                    place,
                    reason: "the main document cannot be deleted",
                });
            } else if !is_directive(root) {
                walk.problem(|place| Error::Directive {
                    place,
                    reason: "the only `$patch` is `delete`",
                });
            } else {
                walk.passed_over_of_document(root);
            }
            Value::Null
        } else if let Some(fields) = fields {
            walk.read(root, fields)
        } else {
            unknown_kind(&identity, walk);
            root.value()
        };
        let is_rest = |(key, node): (&str, &Node)| {
            let is_name = matches!(key, "version" | "kind" | "name");
            let is_scalar = matches!(node.kind(), Kind::Scalar | Kind::Null);
            let says_nothing = (is_name && is_scalar) || delete::is_gone(node);
            !says_nothing
        };
        let has_rest = !is_deletion && root.entries().any(is_rest);
        Self {
            index,
            identity,
            fields,
            value,
            is_deletion,
            has_rest,
        }
    }

    /// Returns the same change without what it merges.
    fn deletions_only(&self) -> Self {
        Self {
            index: self.index,
            identity: self.identity.clone(),
            fields: self.fields,
            value: delete::only(&self.value),
            is_deletion: self.is_deletion,
            has_rest: false,
        }
    }

    /// Applies the change to the root of the document that it is for, if the configuration has one.
    fn apply(&self, root: Option<Node>, walk: &mut Walk<'_>) -> After {
        let Some(mut root) = root else {
            return self.add(walk);
        };
        if self.is_deletion {
            return After::Gone;
        }
        let mut value = self.value.clone();
        if delete::count(&value) > 0 {
            walk.delete(Some(&mut root), &value, self.fields);
            delete::prune(&mut value);
        }
        let Value::Object(map) = &value else {
            return After::Kept(root);
        };
        match self.fields {
            // Deletions alone leave nothing to merge.
            _ if !self.has_rest => {}
            Some(fields) => walk.merge(&mut root, map, fields),
            None => walk.free(&mut root, &value),
        }
        if self.identity.is_main() {
            documents::stay_main(&mut root);
        }
        After::Kept(root)
    }

    /// Adds the document, since the configuration has none like it.
    fn add(&self, walk: &mut Walk<'_>) -> After {
        let deletions = match self.is_deletion {
            true => 1,
            false => delete::count(&self.value),
        };
        if deletions > 0 && !walk.compat {
            walk.problem(|place: Place| Error::NoDocument {
                document: self.identity.full_label(),
                line: place.line,
            });
            return After::Added {
                empty: 0,
                document: None,
            };
        }
        let mut empty = 0;
        if deletions > 0 && walk.schema.adds_missing() {
            // The official tool writes each deletion as an empty document, or crashes if it has a name.
            if !self.identity.name.is_empty() {
                walk.problem(|place| Error::Unmergeable {
                    place,
                    reason: "the official tool crashes, since the configuration has no such document",
                });
            }
            empty = deletions;
        }
        let mut value = self.value.clone();
        delete::prune(&mut value);
        let document = match kept(&value) {
            Value::Object(map) if self.has_rest || deletions == 0 => Some(map),
            _ => None,
        };
        let document = document.map(|map| self.named(map, walk));
        After::Added { empty, document }
    }

    /// Returns a new document with what it cannot be without.
    fn named(&self, mut map: Map<String, Value>, walk: &mut Walk<'_>) -> Value {
        if self.identity.is_main() && map.keys().all(|key| key == "version") {
            map.insert("machine".to_owned(), Value::Null);
        }
        if self.fields.is_some_and(Field::is_named) && self.identity.name.is_empty() {
            let kind = &self.identity.kind;
            walk.warnings.push(format!(
                "document {kind}: `name` is missing, so a document without a name is added"
            ));
            map.insert("name".to_owned(), Value::String(String::new()));
        }
        Value::Object(map)
    }
}

/// Refuses a kind that the Talos version does not have; a Talos that is not known has to judge itself.
fn unknown_kind(identity: &Identity, walk: &mut Walk<'_>) {
    let schema = walk.schema;
    let newer = (identity.version == MAIN)
        .then(|| schema.version_with(&identity.kind, &[]))
        .flatten();
    let error = Error::UnknownKind {
        document: identity.label(),
        version: schema.table_version(),
        newer,
        line: walk.place().line,
    };
    match schema.is_known() {
        true => append(&mut walk.problems, [error]),
        false => walk.warning(|_| error.to_string()),
    }
}
