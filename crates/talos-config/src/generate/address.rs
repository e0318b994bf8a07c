//! The parts of a URL as Talos tells them apart, which is not how browsers do.

use std::borrow::Cow;

/// What follows the scheme and `://` of a URL.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Address<'a> {
    /// User and password.
    pub(super) user: Option<&'a str>,
    /// The host without brackets; what it consists of is not checked.
    pub(super) host: &'a str,
    pub(super) query: Option<&'a str>,
    pub(super) fragment: Option<&'a str>,
}

impl<'a> Address<'a> {
    /// Splits a text; the error goes with a sentence about the URL and shows nothing of it.
    pub(super) fn parse(text: &'a str) -> Result<Self, &'static str> {
        if text.contains(|sign: char| sign.is_whitespace() || sign.is_control() || sign == '\\') {
            return Err("has a blank, control character or backslash in it");
        }
        let (rest, fragment) = split(text, '#');
        let (rest, query) = split(rest, '?');
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let (host, port) = match place.strip_prefix('[') {
            Some(inner) => {
                let (host, after) = inner
                    .split_once(']')
                    .ok_or("has a host whose bracket is not closed")?;
                if !host.contains(':') {
                    return Err("has a host that is neither an IP address nor a DNS name");
                }
                (host, after)
            }
            None => place.split_at(place.find(':').unwrap_or(place.len())),
        };
        if host.is_empty() {
            return Err("has no host");
        }
        if port.starts_with(':') && port[1..].contains(':') {
            return Err("has an IPv6 address without brackets, or several ports");
        }
        if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
            return Err("has a port that is not a number from 1 to 65535");
        }
        if [path, fragment.unwrap_or_default()]
            .into_iter()
            .any(|part| !is_encoded(part))
        {
            return Err("has a % that is not followed by two hexadecimal digits");
        }
        Ok(Self {
            user,
            host,
            query,
            fragment,
        })
    }
}

/// Leaves out the user and password of what should be a URL, wherever in it they end.
pub(super) fn without_user(text: &str) -> Cow<'_, str> {
    let Some((before, after)) = text.rsplit_once('@') else {
        return Cow::Borrowed(text);
    };
    match before.find("://") {
        Some(at) => Cow::Owned(format!("{}://{after}", &before[..at])),
        None => Cow::Borrowed(after),
    }
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}

fn is_encoded(text: &str) -> bool {
    let mut parts = text.split('%');
    parts.next();
    parts.all(|part| part.len() >= 2 && part.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit))
}
