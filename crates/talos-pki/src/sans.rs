//! Does a certificate cover a name? The common name never counts.

use crate::{Certificate, Name};

/// Tells whether subjectAltName covers a name or address by which a server is reached.
pub fn covers(certificate: &Certificate, name: &Name) -> bool {
    covered_by(certificate, name).is_some()
}

/// Returns the entry of subjectAltName that covers a name: the same address, the same DNS name whatever its case and
/// trailing dot, or a wildcard in place of exactly its first label.
pub fn covered_by<'certificate>(
    certificate: &'certificate Certificate,
    name: &Name,
) -> Option<&'certificate Name> {
    certificate
        .names()
        .iter()
        .find(|entry| entry_covers(entry, name))
}

fn entry_covers(entry: &Name, name: &Name) -> bool {
    match (entry, name) {
        (Name::Ip(entry), Name::Ip(address)) => entry == address,
        (Name::Dns(entry), Name::Dns(name)) => dns_covers(entry, name),
        _ => false,
    }
}

fn dns_covers(entry: &str, name: &str) -> bool {
    let entry = entry.strip_suffix('.').unwrap_or(entry);
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
