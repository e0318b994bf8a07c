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
    while let Some(index) = list.items().position(is_it) {
        list.remove_item(index);
    }
    if list.is_empty() {
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
mod tests {
    use jiff::Timestamp;
    use talos_pki::AuthorityKind;

    use super::*;

    fn authority(kind: AuthorityKind) -> Authority {
        let now: Timestamp = "2026-11-30T00:00:00Z".parse().unwrap();
        Authority::generate(kind, now).unwrap()
    }

    /// Carries a configuration through all rounds and returns the text after each.
    fn rounds(
        text: &str,
        rotated: Rotated,
        is_control_plane: bool,
        old: &Authority,
        new: &Authority,
    ) -> [String; 3] {
        let old = old.certificate();
        let stages = |text: &str| {
            let held = read(text, rotated).unwrap();
            held.stage(old, Some(new.certificate())).unwrap()
        };
        let next = |text: &str, change| write(text, rotated, is_control_plane, change).unwrap();
        assert_eq!(stages(text), Stage::Old);
        let first = next(text, Change::Accept(new.certificate()));
        assert!(stages(&first) >= Stage::Accepts);
        let second = next(&first, Change::Issue { new, old });
        assert_eq!(stages(&second), Stage::Issues);
        let third = next(&second, Change::Drop(old));
        assert_eq!(stages(&third), Stage::Dropped);
        // Each round done twice changes nothing.
        assert_eq!(next(&first, Change::Accept(new.certificate())), first);
        assert_eq!(next(&second, Change::Accept(new.certificate())), second);
        assert_eq!(next(&third, Change::Accept(new.certificate())), third);
        assert_eq!(next(&second, Change::Issue { new, old }), second);
        assert_eq!(next(&third, Change::Issue { new, old }), third);
        assert_eq!(next(&third, Change::Drop(old)), third);
        [first, second, third]
    }

    fn base64(text: impl AsRef<[u8]>) -> String {
        STANDARD.encode(text)
    }

    #[test]
    fn only_the_authorities_of_a_control_plane_change() {
        let (old, new) = (
            authority(AuthorityKind::Talos),
            authority(AuthorityKind::Talos),
        );
        let (old_crt, new_crt) = (
            base64(old.certificate().pem()),
            base64(new.certificate().pem()),
        );
        let (old_key, new_key) = (
            base64(old.key().pem().as_bytes()),
            base64(new.key().pem().as_bytes()),
        );
        let text = format!(
            "version: v1alpha1 # first\nmachine:\n    type: controlplane\n    ca:\n        crt: {old_crt} # mine\n        key: {old_key}\n    certSANs: [a]\ncluster: {{}}\n"
        );
        let [first, second, third] = rounds(&text, Rotated::Talos, true, &old, &new);
        for line in [
            "version: v1alpha1 # first",
            "    certSANs: [a]",
            "cluster: {}",
        ] {
            assert!(
                [&first, &second, &third]
                    .iter()
                    .all(|text| text.contains(line))
            );
        }
        assert!(first.contains(&old_key) && !first.contains(&new_key));
        assert!(second.contains(&old_crt) && second.contains(&new_key));
        assert!(!second.contains(&old_key), "the old key is gone");
        let expected = text.replace(&old_crt, &new_crt).replace(&old_key, &new_key);
        assert_eq!(third, expected);
    }

    #[test]
    fn a_worker_gets_no_key_and_keeps_what_else_it_accepts() {
        let (old, new, other) = (
            authority(AuthorityKind::Kubernetes),
            authority(AuthorityKind::Kubernetes),
            authority(AuthorityKind::Kubernetes),
        );
        let crt = |authority: &Authority| base64(authority.certificate().pem());
        let text = format!(
            "machine: {{type: worker}}\ncluster:\n    ca:\n        crt: {}\n        key: \"\"\n    acceptedCAs:\n        - crt: {} # a friend\n",
            crt(&old),
            crt(&other)
        );
        let [_, second, third] = rounds(&text, Rotated::Kubernetes, false, &old, &new);
        assert!(second.contains("key: \"\"\n"));
        assert_eq!(third, text.replace(&crt(&old), &crt(&new)));
    }

    #[test]
    fn a_document_of_its_own_is_changed_where_there_is_one() {
        let (old, new) = (
            authority(AuthorityKind::Kubernetes),
            authority(AuthorityKind::Kubernetes),
        );
        let indented = |pem: &str| pem.trim_end().replace('\n', "\n        ");
        let (pem, key) = (old.certificate().pem(), old.key().pem());
        let main = "machine: {type: controlplane}\ncluster: {token: a.b}\n---\napiVersion: v1alpha1\nkind: KubeAPIServerCAConfig\n";
        let text = format!(
            "{main}issuingCA:\n    cert: |-\n        {}\n    key: |-\n        {}\n",
            indented(&pem),
            indented(&key)
        );
        let [_, _, third] = rounds(&text, Rotated::Kubernetes, true, &old, &new);
        assert!(third.starts_with(main));
        assert_eq!(
            accepted_setting(&text, Rotated::Kubernetes).unwrap(),
            "KubeAPIServerCAConfig: acceptedCAs"
        );
        // Workers accept only.
        let text = format!("{main}acceptedCAs:\n    - |-\n        {}\n", indented(&pem));
        let [first, second, _] = rounds(&text, Rotated::Kubernetes, false, &old, &new);
        assert_eq!(first, second);
    }

    #[test]
    fn what_is_damaged_is_named() {
        let check = |text: &str, expected: &str| {
            let problem = read(text, Rotated::Talos).unwrap_err();
            assert_eq!(problem.to_string(), expected);
        };
        check("machine: {ca: {crt: '%'}}", "machine.ca.crt is not base64");
        check(
            "machine: {ca: {crt: YQ==}}",
            "machine.ca.crt cannot be read",
        );
        check(
            "machine: {acceptedCAs: [{crt: [a]}]}",
            "machine.acceptedCAs is not a text",
        );
        check("machine: [", "the machine configuration cannot be read");
    }
}
