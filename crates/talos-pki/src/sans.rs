//! Does a certificate cover a name? The common name never counts.

use std::collections::HashSet;

use crate::{Certificate, Name};

/// Names below which looking at each entry is quicker than an index of them.
const FEW: usize = 8;

/// Tells whether subjectAltName covers a name or address by which a server is reached.
pub fn covers(certificate: &Certificate, name: &Name) -> bool {
    covered_by(certificate, name).is_some()
}

/// Returns the entry of subjectAltName that covers a name, by the rules of RFC 9525: the same address, the same DNS
/// name whatever its case, or a wildcard in place of exactly its first label. An entry that ends with a dot covers nothing.
pub fn covered_by<'certificate>(
    certificate: &'certificate Certificate,
    name: &Name,
) -> Option<&'certificate Name> {
    certificate
        .names()
        .iter()
        .find(|entry| entry_covers(entry, name))
}

/// Returns the entries of subjectAltName that cover none of the expected names.
pub fn unexpected<'certificate>(
    certificate: &'certificate Certificate,
    expected: &[Name],
) -> Vec<&'certificate Name> {
    let plain: HashSet<Name> = expected.iter().map(plain).collect();
    let parents: HashSet<&str> = plain.iter().filter_map(parent).collect();
    let is_expected = |entry: &&Name| match folded(entry) {
        Name::Dns(entry) if entry.starts_with("*.") => parents.contains(&entry[2..]),
        entry => plain.contains(&entry),
    };
    let entries = certificate.names().iter();
    entries.filter(|entry| !is_expected(entry)).collect()
}

/// Answers for many names whether one certificate covers them.
pub(crate) enum Covering<'certificate> {
    Entries(&'certificate Certificate),
    Index(HashSet<Name>),
}

impl<'certificate> Covering<'certificate> {
    pub(crate) fn of(certificate: &'certificate Certificate, questions: usize) -> Self {
        if questions <= FEW {
            return Self::Entries(certificate);
        }
        Self::Index(certificate.names().iter().map(folded).collect())
    }

    pub(crate) fn has(&self, name: &Name) -> bool {
        match self {
            Self::Entries(certificate) => covers(certificate, name),
            Self::Index(index) => {
                let plain = plain(name);
                let wildcard = parent(&plain).map(|parent| Name::Dns(format!("*.{parent}")));
                index.contains(&plain) || wildcard.is_some_and(|name| index.contains(&name))
            }
        }
    }
}

/// Says why an entry that a person may take for the name does not cover it.
pub(crate) fn near_miss(certificate: &Certificate, name: &Name) -> Option<String> {
    let asked = plain(name).to_string();
    let entries = certificate.names();
    for entry in entries {
        let (Name::Dns(entry), Name::Dns(_)) = (entry, name) else {
            if matches!(entry, Name::Dns(entry) if *entry == asked) {
                return Some("the address stands there as a DNS name, which does not count".into());
            }
            continue;
        };
        if !entry.is_ascii() {
            return Some(
                "there are names that are not ASCII, where IDNs must be A-labels (xn--)".into(),
            );
        }
        let lower = entry.to_ascii_lowercase();
        if lower.strip_suffix('.') == Some(&asked) {
            return Some(format!(
                "the entry {entry:?} ends with a dot, so that clients do not accept it"
            ));
        }
        let Some(parent) = lower.strip_prefix("*.") else {
            if lower.contains('*') && asked.ends_with(lower.rsplit('*').next().unwrap_or_default())
            {
                return Some(format!(
                    "in the entry {entry:?} the wildcard is not the whole first label"
                ));
            }
            continue;
        };
        if asked == parent || asked.ends_with(&format!(".{parent}")) {
            return Some(if parent.contains('.') {
                format!("the wildcard {entry:?} stands for exactly one label")
            } else {
                format!("the wildcard {entry:?} is too wide: clients want two labels after it")
            });
        }
    }
    let common_name = certificate.common_name()?;
    let same = common_name.eq_ignore_ascii_case(&asked);
    match (same, entries.is_empty()) {
        (true, true) => Some(
            "there are no names in it at all, and the common name, which is the same, does not count"
                .into(),
        ),
        (true, false) => Some("the common name is the same, which does not count".into()),
        _ => None,
    }
}

/// Writes an entry as it is compared.
fn folded(entry: &Name) -> Name {
    match entry {
        Name::Dns(name) => Name::Dns(name.to_ascii_lowercase()),
        Name::Ip(address) => Name::Ip(*address),
    }
}

/// Writes a name that is asked for as it is compared: without a dot at its end.
fn plain(name: &Name) -> Name {
    match folded(name) {
        Name::Dns(mut text) if text.ends_with('.') => {
            text.pop();
            Name::Dns(text)
        }
        folded => folded,
    }
}

/// Returns what a wildcard must end with to cover a name.
fn parent(plain: &Name) -> Option<&str> {
    let Name::Dns(name) = plain else { return None };
    let (first, parent) = name.split_once('.')?;
    (parent.contains('.') && !first.is_empty() && first != "*").then_some(parent)
}

fn entry_covers(entry: &Name, name: &Name) -> bool {
    match (entry, name) {
        (Name::Ip(entry), Name::Ip(address)) => entry == address,
        (Name::Dns(entry), Name::Dns(name)) => dns_covers(entry, name),
        _ => false,
    }
}

fn dns_covers(entry: &str, name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    if entry.is_empty() || name.is_empty() {
        return false;
    }
    if entry.eq_ignore_ascii_case(name) {
        return true;
    }
    let (Some(parent), Some((first, rest))) = (entry.strip_prefix("*."), name.split_once('.'))
    else {
        return false;
    };
    // Like the TLS libraries, a wildcard needs two labels after it and stands for a whole label.
    parent.contains('.') && !first.is_empty() && first != "*" && parent.eq_ignore_ascii_case(rest)
}
