//! What is wrong with the patches after one that failed.

use std::collections::HashSet;

use super::documents::{Identity, identity};
use super::{Form, Patch, Settings, json, strategic, together};
use crate::Error;
use crate::yaml::Stream;

/// Returns what is wrong with the first patch that failed and with those after it, as far as it can be told.
///
/// A patch that changes a document which a failed one was to change is only held against the fields that there are.
pub(super) fn rest(
    config: &str,
    patches: &[Patch],
    settings: &Settings,
    (first, problems): (usize, Vec<Error>),
) -> Vec<Error> {
    let mut done: Vec<&Patch> = patches[..first].iter().collect();
    let Some(mut stream) = made(config, &done, settings) else {
        return vec![in_patch(first, problems)];
    };
    let mut open = Open::default();
    open.extend(&patches[first], &stream, settings);
    let mut errors = vec![in_patch(first, problems)];
    let mut not_judged = Vec::new();
    for (index, patch) in patches.iter().enumerate().skip(first + 1) {
        let is_judged = !open.concerns(patch, &stream, settings);
        let found = match is_judged {
            true => patch.apply(&mut stream, settings, &mut Vec::new()),
            false => patch.check(&stream, settings),
        };
        let Err(found) = found else {
            match is_judged {
                true => done.push(patch),
                false => {
                    not_judged.push(index + 1);
                    open.extend(patch, &stream, settings);
                }
            }
            continue;
        };
        let found: Vec<Error> = found.into_iter().filter(stands_alone).collect();
        match found.is_empty() {
            true => not_judged.push(index + 1),
            false => errors.push(in_patch(index, found)),
        }
        open.extend(patch, &stream, settings);
        if is_judged {
            // A part of it may have been applied.
            match made(config, &done, settings) {
                Some(again) => stream = again,
                None => break,
            }
        }
    }
    if !not_judged.is_empty() {
        errors.push(Error::PatchesNotJudged {
            patches: not_judged,
        });
    }
    errors
}

fn in_patch(index: usize, problems: Vec<Error>) -> Error {
    Error::InPatch {
        number: index + 1,
        source: Box::new(together(problems)),
    }
}

/// Applies the patches that did not fail anew.
fn made(config: &str, done: &[&Patch], settings: &Settings) -> Option<Stream> {
    let mut stream = Stream::parse(config).ok()?;
    for patch in done {
        patch.apply(&mut stream, settings, &mut Vec::new()).ok()?;
    }
    Some(stream)
}

/// Returns whether a problem is there whatever other patches do.
fn stands_alone(problem: &Error) -> bool {
    !matches!(
        problem,
        Error::Conflict { .. }
            | Error::InConfiguration { .. }
            | Error::NoMainDocument { .. }
            | Error::NotChosen { .. }
            | Error::SeveralDocuments { .. }
    )
}

/// The documents of which nobody knows what they would be by now.
#[derive(Default)]
struct Open {
    all: bool,
    documents: HashSet<Identity>,
}

impl Open {
    fn concerns(&self, patch: &Patch, stream: &Stream, settings: &Settings) -> bool {
        let documents = documents(patch, stream, settings);
        self.all || documents.is_none_or(|documents| !self.documents.is_disjoint(&documents))
    }

    fn extend(&mut self, patch: &Patch, stream: &Stream, settings: &Settings) {
        match documents(patch, stream, settings) {
            Some(documents) => self.documents.extend(documents),
            None => self.all = true,
        }
    }
}

/// Returns the documents that a patch is for; nothing if that cannot be told.
fn documents(patch: &Patch, stream: &Stream, settings: &Settings) -> Option<HashSet<Identity>> {
    match &patch.0 {
        Form::Strategic(patch) => {
            let roots = patch.roots().enumerate();
            let roots = roots.filter(|(_, root)| !root.is_null() && !root.is_empty());
            roots
                .map(|(index, root)| identity(patch, index, root).ok())
                .collect()
        }
        Form::Json(_) => json::changed(stream, settings).map(|identity| HashSet::from([identity])),
        Form::Unread(text) => documents(&Patch::parse(text).ok()?, stream, settings),
    }
}

impl Patch {
    /// Reports what is wrong with the patch whatever it meets.
    fn check(&self, stream: &Stream, settings: &Settings) -> Result<(), Vec<Error>> {
        match &self.0 {
            Form::Strategic(patch) => strategic::check(stream, patch, settings),
            Form::Json(_) => Ok(()),
            Form::Unread(text) => match Self::parse(text) {
                Ok(patch) => patch.check(stream, settings),
                Err(error) => Err(vec![error]),
            },
        }
    }
}
