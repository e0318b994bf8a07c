//! Names and addresses by which a server is reached.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::Error;

/// Longest DNS name, in bytes without the trailing dot.
const MAX_NAME: usize = 253;
/// Longest label of a DNS name, in bytes.
const MAX_LABEL: usize = 63;

/// A DNS name or an IP address, as it stands in a certificate or as a client uses it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// A DNS name, possibly with a wildcard as its left-most label.
    Dns(String),
    /// An IPv4 or IPv6 address.
    Ip(IpAddr),
}

impl Name {
    /// Reads a name as people write it: brackets and a zone around an IPv6 address and a trailing dot are dropped, and
    /// the labels of an international name become those of certificates (`xn--`).
    ///
    /// # Errors
    /// [`Error::Name`] when the text is neither an address nor a DNS name.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refuse = || Error::Name {
            text: text.to_owned(),
        };
        let bracketed = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let plain = bracketed.unwrap_or(text);
        if let Ok(address) = IpAddr::from_str(without_zone(plain)) {
            return Ok(Self::Ip(address.to_canonical()));
        }
        if bracketed.is_some() {
            return Err(refuse());
        }
        let encoded = if plain.is_ascii() {
            Cow::Borrowed(plain)
        } else {
            Cow::Owned(idna::domain_to_ascii(plain).map_err(|_| refuse())?)
        };
        let name = encoded.strip_suffix('.').unwrap_or(&encoded);
        let host = name.strip_prefix("*.").unwrap_or(name);
        // A last label of digits is an address with a mistake in it, never a name.
        let last_is_number = host
            .rsplit('.')
            .next()
            .is_some_and(|label| label.bytes().all(|byte| byte.is_ascii_digit()));
        if name.len() > MAX_NAME || last_is_number || !host.split('.').all(is_label) {
            return Err(refuse());
        }
        Ok(Self::Dns(name.to_owned()))
    }

    /// Tells whether this is an IP address.
    pub fn is_ip(&self) -> bool {
        matches!(self, Self::Ip(_))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(name) => out.write_str(name),
            Self::Ip(address) => write!(out, "{address}"),
        }
    }
}

impl FromStr for Name {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl From<IpAddr> for Name {
    fn from(address: IpAddr) -> Self {
        Self::Ip(address)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn without_zone(text: &str) -> &str {
    text.split_once('%').map_or(text, |(address, _)| address)
}

/// Underscores are not host names, but certificates and kubeconfigs of real clusters have them.
fn is_label(label: &str) -> bool {
    !label.is_empty()
        && label.len() <= MAX_LABEL
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_read_as_people_write_them() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(
                Name::parse(text).ok().map(|name| name.to_string()),
                expected.map(str::to_owned),
                "{text}"
            );
        };
        check("10.5.0.2", Some("10.5.0.2"));
        check("[fd00::1]", Some("fd00::1"));
        check("FD00:0:0:0:0:0:0:1", Some("fd00::1"));
        check("::ffff:10.5.0.2", Some("10.5.0.2"));
        check("fe80::1%eth0", Some("fe80::1"));
        check("cp-1.example.com.", Some("cp-1.example.com"));
        check("*.example.com", Some("*.example.com"));
        check("localhost", Some("localhost"));
        check("a_b.example", Some("a_b.example"));
        check("", None);
        check(".", None);
        check("a..b", None);
        check("10.5.0", None);
        check("10.5.0.256", None);
        check("[cp-1]", None);
        check("cp-1:6443", None);
        check("https://cp-1", None);
        check("a b", None);
        check("München.example.", Some("xn--mnchen-3ya.example"));
        check("*.münchen.example", Some("*.xn--mnchen-3ya.example"));
        // Digits of another script, which an IDN maps to an address.
        check("１０.5.0.2", None);
        check("mün chen.example", None);
        check("\u{202e}example", None);
        check(&"a".repeat(64), None);
        check(&["abcdefgh"; 32].join("."), None);
    }

    proptest! {
        #[test]
        fn what_is_read_is_read_again_from_its_own_text(text in "\\PC{0,40}|[a-z0-9.:*-]{0,40}") {
            if let Ok(name) = Name::parse(&text) {
                prop_assert_eq!(Name::parse(&name.to_string()).unwrap(), name);
            }
        }
    }
}
