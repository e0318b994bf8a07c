//! Moving deprecated fields of the main document to the documents that newer Talos versions have for them.
//!
//! [`plan`] says what would move where, what stays and what has no equal; [`migrate`] does it, if nothing has to be
//! refused. What does not move stays byte for byte, and moved fields keep their comments. Moving changes no meaning: what
//! the old form implied and the new one does not is written out, and what cannot be said in the new form is refused.
//!
//! Fields that are only renamed stand in one table ([`table`]); the others have a function each.

mod api_server;
mod cluster;
mod comments;
mod control_plane;
mod drafts;
mod facts;
mod install;
mod links;
mod machine;
mod network;
mod node;
mod oidc;
mod paths;
mod pem;
mod registries;
mod selectors;
mod table;
#[cfg(test)]
mod tests;
mod work;
mod write;

use std::collections::{HashMap, HashSet};

use crate::facts::is_main;
use crate::patch::documents::{refuse_doubles, refuse_others};
use crate::schema::{Field, MAIN, Shape};
use crate::validate::{self, Finding, Mode, Options, Severity};
use crate::yaml::{Kind, Step, Stream};
use crate::{Error, Schema};

pub use facts::Target;

use drafts::Draft;
use work::Work;

/// What moving a configuration to a version comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The fields that leave the main document.
    pub moves: Vec<Move>,
    /// The fields of the main document that the version has no document for.
    pub stays: Vec<Stay>,
    /// What has no equal; nothing can be moved as long as there is any.
    pub refusals: Vec<Refusal>,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// A field that leaves the main document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Its path, such as `machine.time.servers`.
    pub from: String,
    /// Its line, counted from 1.
    pub line: u64,
    /// Where it goes; nowhere if it means nothing.
    pub to: Option<Place>,
    /// Why it goes nowhere.
    pub why: Option<&'static str>,
}

/// A place in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The kind and name, such as `VLANConfig/eth0.5`.
    pub document: String,
    /// The path of the field; empty for the document itself.
    pub path: String,
}

/// A field that stays in the main document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stay {
    /// Its path.
    pub path: String,
    /// Its line, counted from 1.
    pub line: u64,
}

/// A field that cannot be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its path.
    pub path: String,
    /// Its line, counted from 1.
    pub line: u64,
    /// Why not.
    pub reason: String,
}

/// A configuration whose deprecated fields have moved.
#[derive(Clone)]
pub struct Migrated {
    /// The text.
    pub text: String,
    /// What moved.
    pub plan: Plan,
}

impl std::fmt::Debug for Migrated {
    /// Leaves the text out: it has secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Migrated")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}: {}", self.line, self.path, self.reason)
    }
}

/// Works out what moving a configuration to a Talos version comes to.
///
/// # Errors
///
/// [`Error::Syntax`] for a text that is not YAML.
pub fn plan(text: &str, target: Target) -> Result<Plan, Error> {
    match migrate(text, target) {
        Ok(migrated) => Ok(migrated.plan),
        Err(Error::NotMovable { plan }) => Ok(*plan),
        Err(error) => Err(error),
    }
}

/// Moves the deprecated fields of a configuration to the documents of a Talos version.
///
/// # Errors
///
/// [`Error::Syntax`] for a text that is not YAML, [`Error::UnknownDocument`] for a document that no
/// configuration has, [`Error::DocumentTwice`] for one that says something twice,
/// [`Error::NotMovable`] with the plan if something has no equal.
pub fn migrate(text: &str, target: Target) -> Result<Migrated, Error> {
    let stream = Stream::parse(text)?;
    refuse_others(&stream)?;
    refuse_doubles(&stream)?;
    let Some(mut work) = work(&stream, text, target) else {
        return Ok(Migrated {
            text: text.to_owned(),
            plan: plan_of(None),
        });
    };
    let merged = write::merged(&mut work);
    // What could move is held against the rules even if not all can, so that all problems are told together.
    let new = write::text(&work, merged).and_then(|new| {
        validated(&mut work, text, &new)?;
        Ok(new)
    });
    if !work.refusals.is_empty() {
        work.refusals.sort_by_key(|refusal| refusal.line);
        return Err(Error::NotMovable {
            plan: Box::new(plan_of(Some(work))),
        });
    }
    Ok(Migrated {
        text: new?,
        plan: plan_of(Some(work)),
    })
}

/// Goes through a configuration; nothing if it has no main document.
fn work<'a>(stream: &'a Stream, text: &'a str, target: Target) -> Option<Work<'a>> {
    let (index, root) = stream.roots().enumerate().find(|(_, node)| is_main(node))?;
    let mut work = Work::new(stream, text, index, root, target);
    // Rules that need to see several fields come before the table that moves each by itself.
    network::all(&mut work);
    registries::all(&mut work);
    install::all(&mut work);
    machine::all(&mut work);
    node::all(&mut work);
    cluster::all(&mut work);
    control_plane::all(&mut work);
    table::all(&mut work);
    control_plane::images(&mut work);
    rest(&mut work);
    work.moves.sort_by_key(|moved| moved.line);
    work.refusals.sort_by_key(|refusal| refusal.line);
    Some(work)
}

/// Takes the deprecated parts away once all in them has gone, and refuses what nobody knew.
fn rest(work: &mut Work<'_>) {
    for facts::Section { path, since, .. } in facts::DEPRECATED {
        if !work.target.has(since) {
            continue;
        }
        if let Some(field) = work.root.at(path) {
            left(work, &field);
            if !work.is_taken(&field.path) {
                work.taken.push(field.path);
            }
        }
    }
}

/// Refuses what is left below a field.
fn left(work: &mut Work<'_>, field: &work::Field<'_>) {
    if work.is_taken(&field.path) || field.node.is_null() {
        return;
    }
    let entries = field.entries();
    if !entries.is_empty() {
        entries.iter().for_each(|(_, field)| left(work, field));
    } else if field.node.kind() == Kind::List {
        field.items().iter().for_each(|field| left(work, field));
    } else if field.node.kind() == Kind::Scalar && !is_known(work.target, &field.path) {
        let reason = format!("Talos {} has no such field", work.target);
        work.refuse(field, reason);
    } else if field.node.kind() == Kind::Scalar && !has_refused(work, &field.path) {
        let reason = format!("Talos {} has no document for it", work.target);
        work.refuse(field, reason);
    }
}

/// Returns whether the main document has a field.
fn is_known(target: Target, path: &[Step]) -> bool {
    let main = Schema::for_talos(&target.to_string()).kind(MAIN);
    let step = |field: &'static Field, step: &Step| match (&field.element, step) {
        (Some(element), _) => Some(&**element),
        (None, Step::Key(_)) if field.shape == Shape::Free => Some(field),
        (None, Step::Key(key)) => field.fields.get(key.as_str()),
        (None, Step::Index(_)) => (field.shape == Shape::Free).then_some(field),
    };
    main.is_some_and(|main| path.iter().try_fold(main, step).is_some())
}

/// Returns whether something was refused in the part that a path is in, so that what else is left there may be known.
fn has_refused(work: &Work<'_>, path: &[Step]) -> bool {
    let keys = path.iter().filter_map(|step| match step {
        Step::Key(key) => Some(key.as_str()),
        Step::Index(_) => None,
    });
    let length = match keys.take(3).collect::<Vec<_>>().as_slice() {
        ["machine", "network", "interfaces"] => 4,
        ["machine", "network" | "features", _] => 3,
        _ => 2,
    };
    let part = &path[..length.min(path.len())];
    work.refused.reach_into(part) || work.refused.cover(part)
}

/// Refuses what would make the configuration one that Talos does not take, where it was none before.
///
/// If something was refused already, what is wrong in the same part may come of that and is left out.
fn validated(work: &mut Work<'_>, old: &str, new: &str) -> Result<(), Error> {
    let options = Options {
        mode: Mode::Cloud,
        strict: false,
        talos_version: Some(work.target.to_string()),
    };
    let before = validate::validate(old, &options)?;
    let after = validate::validate(new, &options)?;
    fn what(finding: &Finding) -> (&str, &str, &str) {
        (&finding.document, &finding.path, &finding.message)
    }
    let known: HashSet<_> = before.of(Severity::Error).map(what).collect();
    let origins = |drafts: std::slice::Iter<'_, Draft>| -> HashMap<String, Origins> {
        let of = |draft: &Draft| (work::label(draft.kind, &draft.name), Origins::of(draft));
        drafts.map(of).collect()
    };
    let (mut added, mut merged) = (HashMap::new(), HashMap::new());
    if after.of(Severity::Error).next().is_some() {
        added = origins(work.drafts.iter());
        merged = origins(work.merged.iter());
    }
    let mut refusals = Vec::new();
    for finding in after.of(Severity::Error) {
        let draft = added.get(&finding.document);
        if draft.is_none() && known.contains(&what(finding)) {
            continue;
        }
        let origin = draft
            .or_else(|| merged.get(&finding.document))
            .map(|origins| origins.at(&finding.path))
            .unwrap_or_default();
        if !work.refusals.is_empty() && (origin.is_empty() || has_refused(work, &origin)) {
            continue;
        }
        let place = match (finding.document.as_str(), finding.path.as_str()) {
            ("", path) => path.to_owned(),
            (document, "") => document.to_owned(),
            (document, path) => format!("`{path}` of {document}"),
        };
        refusals.push((origin, format!("{place}: {}", finding.message)));
    }
    for (origin, reason) in refusals {
        work.refuse_at(&origin, reason);
    }
    Ok(())
}

/// Where the settings of a document stood.
struct Origins {
    /// The first of them, which stands for the document.
    first: Vec<Step>,
    /// By the path in the document.
    by_path: HashMap<String, Vec<Step>>,
}

impl Origins {
    fn of(draft: &Draft) -> Self {
        let first = draft.copies.first();
        let shown = |(from, to): &(Vec<Step>, Vec<Step>)| (work::shown(to), from.clone());
        Self {
            first: first.map(|(from, _)| from.clone()).unwrap_or_default(),
            by_path: draft.copies.iter().map(shown).collect(),
        }
    }

    /// Returns where a setting, or the nearest around it, stood.
    fn at(&self, path: &str) -> Vec<Step> {
        let ends = (0..=path.len()).rev().filter_map(|end| path.get(..end));
        let nearest = ends.into_iter().find_map(|start| self.by_path.get(start));
        nearest.unwrap_or(&self.first).clone()
    }
}

/// Sums up what was found.
fn plan_of(work: Option<Work<'_>>) -> Plan {
    let Some(work) = work else {
        return Plan {
            moves: Vec::new(),
            stays: Vec::new(),
            refusals: Vec::new(),
            notes: Vec::new(),
        };
    };
    Plan {
        stays: stays(&work),
        moves: work.moves,
        refusals: work.refusals,
        notes: work.notes,
    }
}

/// Returns what stays in the main document: whole fields of its two parts, or single ones where others beside them go.
fn stays(work: &Work<'_>) -> Vec<Stay> {
    let mut stays = Vec::new();
    let mut push = |path: &[Step]| {
        stays.push(Stay {
            path: work::shown(path),
            line: work.line(path),
        });
    };
    for (_, top) in work.root.entries() {
        let fields = top.entries();
        if fields.is_empty() {
            push(&top.path);
        }
        for (_, field) in fields {
            let goes = |path: &[Step]| work.taken.reach_into(path) || work.taken.cover(path);
            if !goes(&field.path) {
                push(&field.path);
                continue;
            }
            for (_, below) in field.entries() {
                if !goes(&below.path) {
                    push(&below.path);
                }
            }
        }
    }
    stays
}
