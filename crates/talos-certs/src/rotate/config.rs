//! The authorities in a machine configuration: reading them, and changing them without touching anything else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use talos_config::machine::MachineConfig;
use talos_config::yaml::{Node, Stream};
use talos_pki::{Authority, Certificate};

use super::Rotated;

/// The kind of document in which Talos 1.14 keeps the authorities of Kubernetes.
const DOCUMENT: &str = "KubeAPIServerCAConfig";

/// The authorities that a configuration names for one purpose.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// The one that issues; workers of Talos 1.14 name only accepted ones.
    pub(super) issuing: Option<Certificate>,
    /// Those that are accepted besides.
    pub(super) accepted: Vec<Certificate>,
}

/// How far a node is; each stage follows from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Only the old authority is known.
    Old,
    /// The new one is accepted.
    Accepts,
    /// The new one issues, and the old one is accepted.
    Issues,
    /// The old one is gone.
    Dropped,
}

/// What is wrong with the authorities of a configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigProblem {
    /// The text is not YAML.
    #[error("the machine configuration cannot be read")]
    Syntax {
        /// Where and why.
        source: Box<talos_config::Error>,
    },
    /// A field is not what it should be.
    #[error("{field} is not {expected}")]
    Field {
        /// Path of the field.
        field: String,
        /// What belongs there.
        expected: &'static str,
    },
    /// A certificate cannot be read.
    #[error("{field} cannot be read")]
    Certificate {
        /// Path of the field.
        field: String,
        /// Why not.
        source: talos_pki::Error,
    },
}

/// A change of the authorities of a configuration.
#[derive(Clone, Copy)]
pub(super) enum Change<'a> {
    /// Accepts an authority.
    Accept(&'a Certificate),
    /// Lets the new authority issue and accepts the old one.
    Issue {
        new: &'a Authority,
        old: &'a Certificate,
    },
    /// Forgets an accepted authority.
    Drop(&'a Certificate),
}

/// How a place spells what it holds.
#[derive(Clone, Copy)]
struct Place {
    /// Section of the main document; none for a document of its own.
    section: Option<&'static str>,
    issuing: &'static str,
    certificate: &'static str,
}

impl Place {
    fn of(config: &MachineConfig, authority: Rotated) -> Self {
        let main = |section| Self {
            section: Some(section),
            issuing: "ca",
            certificate: "crt",
        };
        match authority {
            Rotated::Talos => main("machine"),
            Rotated::Kubernetes if config.document(DOCUMENT).is_some() => Self {
                section: None,
                issuing: "issuingCA",
                certificate: "cert",
            },
            Rotated::Kubernetes => main("cluster"),
        }
    }

    fn path(self, key: &str) -> String {
        match self.section {
            Some(section) => format!("{section}.{key}"),
            None => format!("{DOCUMENT}: {key}"),
        }
    }

    fn holder(self, config: &MachineConfig) -> Option<&Value> {
        match self.section {
            Some(section) => config.main()?.get(section),
            None => config.document(DOCUMENT),
        }
    }

    fn read(self, field: &str, value: &Value) -> Result<Certificate, ConfigProblem> {
        let field = || self.path(field);
        let text = value.as_str().ok_or_else(|| ConfigProblem::Field {
            field: field(),
            expected: "a text",
        })?;
        let pem = match self.section {
            None => text.as_bytes().to_vec(),
            Some(_) => {
                let letters: String = text.split_ascii_whitespace().collect();
                STANDARD.decode(letters).map_err(|_| ConfigProblem::Field {
                    field: field(),
                    expected: "base64",
                })?
            }
        };
        let broken = |source| ConfigProblem::Certificate {
            field: field(),
            source,
        };
        Ok(Certificate::many_from_pem(pem)
            .map_err(broken)?
            .swap_remove(0))
    }

    fn written(self, pem: &str) -> Value {
        match self.section {
            Some(_) => json!(STANDARD.encode(pem)),
            None => json!(pem),
        }
    }

    fn entry(self, certificate: &Certificate) -> Value {
        let text = self.written(&certificate.pem());
        match self.section {
            Some(_) => json!({"crt": text}),
            None => text,
        }
    }

    /// The certificate of an entry of the accepted list, as it is written.
    fn of_entry(self, entry: &Value) -> Option<Value> {
        match self.section {
            Some(_) => entry.get("crt").cloned(),
            None => Some(entry.clone()),
        }
    }
}

/// Returns the setting that holds the accepted authorities.
pub(super) fn accepted_setting(config: &str, authority: Rotated) -> Result<String, ConfigProblem> {
    Ok(Place::of(&parse(config)?, authority).path("acceptedCAs"))
}

/// Returns the setting that holds the issuing authority.
pub(super) fn issuing_setting(config: &str, authority: Rotated) -> Result<String, ConfigProblem> {
    let place = Place::of(&parse(config)?, authority);
    Ok(place.path(place.issuing))
}

/// Reads the authorities of a configuration.
pub(super) fn read(config: &str, authority: Rotated) -> Result<Held, ConfigProblem> {
    let config = parse(config)?;
    let place = Place::of(&config, authority);
    let Some(holder) = place.holder(&config) else {
        return Ok(Held::default());
    };
    let issuing = holder
        .get(place.issuing)
        .and_then(|pair| pair.get(place.certificate))
        .filter(|value| !value.is_null() && value.as_str() != Some(""));
    let accepted = holder.get("acceptedCAs").and_then(Value::as_array);
    let accepted = accepted.into_iter().flatten();
    Ok(Held {
        issuing: issuing
            .map(|value| place.read(&format!("{}.{}", place.issuing, place.certificate), value))
            .transpose()?,
        accepted: accepted
            .filter_map(|entry| place.of_entry(entry))
            .map(|value| place.read("acceptedCAs", &value))
            .collect::<Result<_, _>>()?,
    })
}

impl Held {
    fn accepts(&self, authority: &Certificate) -> bool {
        self.accepted.iter().any(|one| one.der() == authority.der())
    }

    fn issues(&self, authority: &Certificate) -> bool {
        let issuing = self.issuing.as_ref();
        issuing.is_some_and(|one| one.der() == authority.der())
    }

    /// Tells how far a change from one authority to another is; nothing if neither of them issues or is accepted.
    pub(super) fn stage(&self, old: &Certificate, new: Option<&Certificate>) -> Option<Stage> {
        let is_new = |test: &dyn Fn(&Certificate) -> bool| new.is_some_and(test);
        let (knows_old, knows_new) = (
            self.accepts(old),
            is_new(&|authority| self.accepts(authority)),
        );
        if self.issues(old) {
            return Some(if knows_new {
                Stage::Accepts
            } else {
                Stage::Old
            });
        }
        if is_new(&|authority| self.issues(authority)) || self.issuing.is_none() {
            return match (knows_old, knows_new || self.issuing.is_some()) {
                (true, true) => Some(Stage::Issues),
                (false, true) => Some(Stage::Dropped),
                (true, false) => Some(Stage::Old),
                (false, false) => None,
            };
        }
        None
    }
}

/// Changes the authorities of a configuration; every other line stays as it is.
pub(super) fn write(
    text: &str,
    authority: Rotated,
    is_control_plane: bool,
    change: Change<'_>,
) -> Result<String, ConfigProblem> {
    let config = parse(text)?;
    let held = read(text, authority)?;
    let place = Place::of(&config, authority);
    let mut stream = Stream::parse(text).map_err(syntax)?;
    let missing = || ConfigProblem::Field {
        field: place.section.unwrap_or(DOCUMENT).to_owned(),
        expected: "there",
    };
    let is_ours = |root: &Node| match place.section {
        Some(section) => !root.contains("kind") && root.contains(section),
        None => root.get("kind").and_then(Node::as_str) == Some(DOCUMENT),
    };
    let index = stream.roots().position(is_ours).ok_or_else(missing)?;
    let root = stream.root_mut(index).ok_or_else(missing)?;
    let holder = match place.section {
        Some(section) => root.get_mut(section).ok_or_else(missing)?,
        None => root,
    };
    match change {
        Change::Accept(new) => {
            if !held.issues(new) && !held.accepts(new) {
                accept(holder, place, new);
            }
        }
        Change::Issue { new, old } => {
            let Some(issuing) = holder
                .get_mut(place.issuing)
                .filter(|_| held.issuing.is_some())
            else {
                // A worker that names only accepted authorities.
                return Ok(text.to_owned());
            };
            if held.issues(new.certificate()) {
                return Ok(text.to_owned());
            }
            issuing.set(place.certificate, place.written(&new.certificate().pem()));
            if is_control_plane {
                issuing.set("key", place.written(&new.key().pem()));
            }
            if !held.accepts(old) {
                accept(holder, place, old);
            }
            forget(holder, place, new.certificate());
        }
        Change::Drop(old) => forget(holder, place, old),
    }
    Ok(stream.to_string())
}

fn accept(holder: &mut Node, place: Place, authority: &Certificate) {
    let entry = place.entry(authority);
    match holder.get_mut("acceptedCAs").filter(|list| !list.is_null()) {
        Some(list) if !list.is_empty() => list.push(entry),
        _ => holder.set("acceptedCAs", json!([entry])),
    }
}

fn forget(holder: &mut Node, place: Place, authority: &Certificate) {
    let Some(list) = holder.get_mut("acceptedCAs") else {
        return;
    };
    let is_it = |entry: &Node| {
        let value = place.of_entry(&entry.value());
        let read = value.and_then(|value| place.read("acceptedCAs", &value).ok());
        read.is_some_and(|one| one.der() == authority.der())
    };
    let mut is_changed = false;
    while let Some(index) = list.items().position(is_it) {
        list.remove_item(index);
        is_changed = true;
    }
    // A list that was empty before is not ours.
    if is_changed && list.is_empty() {
        holder.remove("acceptedCAs");
    }
}

fn parse(text: &str) -> Result<MachineConfig, ConfigProblem> {
    MachineConfig::parse(text).map_err(syntax)
}

fn syntax(source: talos_config::Error) -> ConfigProblem {
    ConfigProblem::Syntax {
        source: Box::new(source),
    }
}

#[cfg(test)]
mod tests;
