//! Verbs that change the talosconfig.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use talos_client::Endpoint;
use talos_config::talosconfig::{self, Context, Hidden, TalosConfig};

use super::{AddArgs, ContextArgs, EndpointArgs, MergeArgs, Missing, NodeArgs, RemoveArgs, edit};
use crate::error::{Code, Error, Outcome};
use crate::files;
use crate::session::Session;

/// What a change of the talosconfig came to.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Changed {
    /// The context that was changed, or is current now; null if none is.
    context: Option<String>,
    /// Contexts that came in under another name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    renamed: Vec<Renamed>,
}

/// A context that came in under another name.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Renamed {
    /// Its name in the other file.
    from: String,
    /// Its name here.
    to: String,
}

/// Which contexts were removed.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Removed {
    /// The contexts that are gone, or would be.
    removed: Vec<String>,
    /// Whether nothing was written.
    dry_run: bool,
}

pub(super) fn add(args: &AddArgs, session: &mut Session) -> Result<Outcome, Error> {
    named("context", std::slice::from_ref(&args.name))?;
    named("node", &session.global.nodes)?;
    let field = |path: &Option<std::path::PathBuf>| path.as_deref().map(encoded).transpose();
    let context = Context {
        endpoints: checked(&session.global.endpoints)?,
        nodes: session.global.nodes.clone(),
        ca: field(&args.ca)?,
        crt: field(&args.crt)?,
        key: field(&args.key)?.map(Hidden::new),
        ..Context::default()
    };
    edit(session, Missing::Make, |config, _| {
        config.put_context(&args.name, &context)?;
        // Files that do not belong together are refused before anything is written.
        config.credentials(&args.name)?;
        Ok(())
    })?;
    changed(session, &args.name, "added or replaced")
}

pub(super) fn context(args: &ContextArgs, session: &mut Session) -> Result<Outcome, Error> {
    edit(session, Missing::Refuse, |config, _| {
        Ok(config.set_current(&args.name)?)
    })?;
    changed(session, &args.name, "is current now")
}

pub(super) fn endpoint(args: &EndpointArgs, session: &mut Session) -> Result<Outcome, Error> {
    let endpoints = checked(&args.list)?;
    let name = edit(session, Missing::Refuse, |config, session| {
        let name = selected(config, session)?;
        config.set_endpoints(&name, &endpoints)?;
        Ok(name)
    })?;
    let list = format!("has the endpoints {}", endpoints.join(", "));
    changed(session, &name, &list)
}

pub(super) fn node(args: &NodeArgs, session: &mut Session) -> Result<Outcome, Error> {
    named("node", &args.list)?;
    let name = edit(session, Missing::Refuse, |config, session| {
        let name = selected(config, session)?;
        config.set_nodes(&name, &args.list)?;
        Ok(name)
    })?;
    let list = match args.list.as_slice() {
        [] => "lists no nodes now".to_owned(),
        nodes => format!("lists the nodes {}", nodes.join(", ")),
    };
    changed(session, &name, &list)
}

/// Refuses empty names, as an unset variable of a script leaves them.
fn named(what: &str, names: &[String]) -> Result<(), Error> {
    if names.iter().any(|name| name.trim().is_empty()) {
        return Err(Error::new(
            Code::Usage,
            format!("the name of a {what} is empty"),
        ));
    }
    Ok(())
}

pub(super) fn merge(args: &MergeArgs, session: &mut Session) -> Result<Outcome, Error> {
    let text = files::read(&args.from)?;
    let other = TalosConfig::parse(args.from.display().to_string(), &text)?;
    let document = edit(session, Missing::Make, |config, _| {
        let renamed = config.merge(&other)?;
        let renamed = renamed
            .into_iter()
            .map(|talosconfig::Renamed { from, to }| Renamed { from, to });
        Ok(Changed {
            context: config
                .current()
                .filter(|current| !current.is_empty())
                .map(str::to_owned),
            renamed: renamed.collect(),
        })
    })?;
    if !session.output.data(&document)? {
        for Renamed { from, to } in &document.renamed {
            let line = format!("renamed talosconfig context {from:?} -> {to:?}");
            session.output.note(&line);
        }
    }
    Ok(Outcome::Done)
}

pub(super) fn remove(args: &RemoveArgs, session: &mut Session) -> Result<Outcome, Error> {
    let config = session.talosconfig()?;
    let pattern = Pattern::parse(&args.pattern)?;
    let names = config.contexts().keys();
    let mut matching: Vec<String> = names.filter(|name| pattern.fits(name)).cloned().collect();
    if matching.is_empty() {
        let message = format!("no context fits {:?}", args.pattern);
        return Err(
            Error::new(Code::NotFound, message).hint("`ichor config contexts` lists the contexts")
        );
    }
    if let Some(current) = config.current() {
        let before = matching.len();
        matching.retain(|name| name != current);
        if matching.len() < before {
            let note = format!("context {current:?} is the current one and stays");
            session.output.note(&note);
        }
    }
    if !args.dry_run && !matching.is_empty() {
        session.confirm(&format!("Remove {}?", quoted(&matching)))?;
        edit(session, Missing::Refuse, |config, _| {
            for name in &matching {
                config.remove_context(name)?;
            }
            Ok(())
        })?;
    }
    let document = Removed {
        removed: matching,
        dry_run: args.dry_run,
    };
    if !session.output.data(&document)? && !document.removed.is_empty() {
        let done = if args.dry_run {
            "would remove"
        } else {
            "removed"
        };
        let line = format!("{done} {}", quoted(&document.removed));
        session.output.note(&line);
    }
    Ok(Outcome::Done)
}

fn changed(session: &mut Session, name: &str, what: &str) -> Result<Outcome, Error> {
    let document = Changed {
        context: Some(name.to_owned()),
        renamed: Vec::new(),
    };
    if !session.output.data(&document)? {
        session.output.note(&format!("context {name:?} {what}"));
    }
    Ok(Outcome::Done)
}

/// Returns the name of the context that `--context` names, or else the current one.
fn selected(config: &TalosConfig, session: &Session) -> Result<String, Error> {
    let (name, _) = config.select(session.global.context.as_deref())?;
    Ok(name.to_owned())
}

fn encoded(path: &Path) -> Result<String, Error> {
    Ok(STANDARD.encode(files::read(path)?))
}

/// Refuses what could never be dialled; what is written is what was given.
fn checked(endpoints: &[String]) -> Result<Vec<String>, Error> {
    for text in endpoints {
        if let Err(source) = text.parse::<Endpoint>() {
            let message = format!("{text:?} is not an endpoint");
            return Err(Error::new(Code::Invalid, message).caused_by(&source));
        }
    }
    Ok(endpoints.to_vec())
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    names.join(", ")
}

/// A pattern for whole names.
#[derive(Debug)]
struct Pattern {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Letter(char),
    Any,
    Run,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Pattern {
    /// Reads `*`, `?`, `[a-c]`, `[^a-c]` and `\` before a letter that stands for itself.
    fn parse(text: &str) -> Result<Self, Error> {
        let wrong = || Error::new(Code::Invalid, format!("{text:?} is not a pattern"));
        let mut letters = text.chars();
        let mut parts = Vec::new();
        while let Some(letter) = letters.next() {
            parts.push(match letter {
                '*' => Part::Run,
                '?' => Part::Any,
                '\\' => Part::Letter(letters.next().ok_or_else(wrong)?),
                '[' => class(&mut letters).ok_or_else(wrong)?,
                other => Part::Letter(other),
            });
        }
        Ok(Self { parts })
    }

    fn fits(&self, name: &str) -> bool {
        let letters: Vec<char> = name.chars().collect();
        // For each number of letters: whether the parts so far can stand for exactly these.
        let mut reach: Vec<bool> = vec![false; letters.len() + 1];
        reach[0] = true;
        for part in &self.parts {
            let mut next = vec![false; letters.len() + 1];
            for at in 0..=letters.len() {
                next[at] = match part {
                    Part::Run => reach[at] || (at > 0 && next[at - 1]),
                    one => at > 0 && reach[at - 1] && one.takes(letters[at - 1]),
                };
            }
            reach = next;
        }
        reach[letters.len()]
    }
}

impl Part {
    fn takes(&self, letter: char) -> bool {
        match self {
            Self::Letter(own) => *own == letter,
            Self::Any | Self::Run => true,
            Self::Class { negated, ranges } => {
                ranges
                    .iter()
                    .any(|(low, high)| (*low..=*high).contains(&letter))
                    != *negated
            }
        }
    }
}

fn class(letters: &mut std::str::Chars<'_>) -> Option<Part> {
    let mut rest = letters.as_str();
    let negated = rest.starts_with('^');
    rest = rest.strip_prefix('^').unwrap_or(rest);
    let (inside, behind) = rest.split_once(']')?;
    *letters = behind.chars();
    let mut ranges = Vec::new();
    let mut inside = inside.chars();
    while let Some(low) = inside.next() {
        let mut ahead = inside.clone();
        if ahead.next() == Some('-') {
            ranges.push((low, ahead.next()?));
            inside = ahead;
        } else {
            ranges.push((low, low));
        }
    }
    (!ranges.is_empty()).then_some(Part::Class { negated, ranges })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, fitting: &[&str], other: &[&str]) {
        let pattern = Pattern::parse(pattern).unwrap();
        for name in fitting {
            assert!(pattern.fits(name), "{pattern:?} {name}");
        }
        for name in other {
            assert!(!pattern.fits(name), "{pattern:?} {name}");
        }
    }

    #[test]
    fn patterns_are_for_whole_names() {
        check("lab", &["lab"], &["lab-1", "alab", ""]);
        check("lab*", &["lab", "lab-1"], &["alab"]);
        check("*a*b*", &["ab", "xaxbx"], &["ba", ""]);
        check("lab-?", &["lab-1"], &["lab-", "lab-10"]);
        check("lab-[0-9a]", &["lab-7", "lab-a"], &["lab-b"]);
        check("[^a]", &["b"], &["a", "bb"]);
        check(r"\*", &["*"], &["a"]);
        check("", &[""], &["a"]);
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in ["[", "[]", "[a-]", "\\"] {
            assert_eq!(
                Pattern::parse(text).unwrap_err().code(),
                Code::Invalid,
                "{text}"
            );
        }
    }
}
