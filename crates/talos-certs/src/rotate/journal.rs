//! What a rotation has to remember when it is killed, above all the new authority with its private key.

use serde::{Deserialize, Serialize};
use talos_pki::{Authority, Certificate};

use super::{RotateError, Rotated, Round};

/// What rotations of one cluster have to remember; its text is a credential.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    /// The rotations that were begun.
    pub rotations: Vec<Rotation>,
}

/// One rotation that was begun.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// Which authority.
    pub authority: Rotated,
    /// The authority that goes.
    pub old: Certificate,
    /// The authority that comes.
    pub new: Authority,
    /// The first round that was not verified on every node yet.
    pub round: Round,
    /// Whether it is over.
    pub finished: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    version: u32,
    rotations: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    authority: Rotated,
    old: String,
    new: String,
    key: String,
    round: Round,
    finished: bool,
}

const VERSION: u32 = 1;

impl Journal {
    /// Reads what an earlier run left.
    ///
    /// # Errors
    /// [`RotateError::Damaged`].
    pub fn parse(text: &str) -> Result<Self, RotateError> {
        let damaged = |reason: String| RotateError::Damaged { reason };
        // The text holds a key, of which an error of the parser could show a part.
        let file: File = serde_json::from_str(text).map_err(|error| {
            damaged(format!("line {}, column {}", error.line(), error.column()))
        })?;
        if file.version != VERSION {
            return Err(damaged(format!(
                "version {} is not known here",
                file.version
            )));
        }
        let rotations = file.rotations.into_iter().map(|entry| {
            let old = Certificate::many_from_pem(&entry.old)?.swap_remove(0);
            Ok(Rotation {
                authority: entry.authority,
                old,
                new: Authority::from_pem(&entry.new, &entry.key)?,
                round: entry.round,
                finished: entry.finished,
            })
        });
        let rotations: Result<_, talos_pki::Error> = rotations.collect();
        Ok(Self {
            rotations: rotations.map_err(|error| damaged(error.to_string()))?,
        })
    }

    /// Writes the text to keep; it holds private keys.
    pub fn text(&self) -> String {
        let entry = |rotation: &Rotation| Entry {
            authority: rotation.authority,
            old: rotation.old.pem(),
            new: rotation.new.certificate().pem(),
            key: rotation.new.key().pem().to_string(),
            round: rotation.round,
            finished: rotation.finished,
        };
        let file = File {
            version: VERSION,
            rotations: self.rotations.iter().map(entry).collect(),
        };
        serde_json::to_string_pretty(&file).unwrap_or_default()
    }

    /// Returns what is remembered of one authority.
    pub fn of(&self, authority: Rotated) -> Option<&Rotation> {
        let mut rotations = self.rotations.iter();
        rotations.find(|rotation| rotation.authority == authority)
    }

    pub(super) fn of_mut(&mut self, authority: Rotated) -> Option<&mut Rotation> {
        let mut rotations = self.rotations.iter_mut();
        rotations.find(|rotation| rotation.authority == authority)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use talos_pki::AuthorityKind;

    use super::*;

    #[test]
    fn what_is_kept_is_read_back() {
        let now: Timestamp = "2026-11-30T00:00:00Z".parse().unwrap();
        let authority = || Authority::generate(AuthorityKind::Talos, now).unwrap();
        let (old, new) = (authority(), authority());
        let journal = Journal {
            rotations: vec![Rotation {
                authority: Rotated::Talos,
                old: old.certificate().clone(),
                new: new.clone(),
                round: Round::IssueNew,
                finished: false,
            }],
        };
        let text = journal.text();
        let read = Journal::parse(&text).unwrap();
        let [rotation] = read.rotations.as_slice() else {
            panic!("one rotation")
        };
        assert_eq!(rotation.old.der(), old.certificate().der());
        assert_eq!(rotation.new.certificate().der(), new.certificate().der());
        assert_eq!(rotation.round, Round::IssueNew);
        let shown = format!("{journal:?}");
        assert!(!shown.contains("PRIVATE KEY"), "{shown}");
        for broken in [
            "",
            "{}",
            "{\"version\": 2, \"rotations\": []}",
            &text[..200],
        ] {
            let error = Journal::parse(broken).unwrap_err();
            assert!(matches!(error, RotateError::Damaged { .. }), "{broken}");
        }
    }
}
