//! URLs as Go's standard library tells their parts, which is more lenient than the standard of browsers.

use std::borrow::Cow;

/// The parts of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::validate) struct Url<'a> {
    /// The scheme in lower case; empty if there is none.
    pub(in crate::validate) scheme: String,
    /// The host with its port, as written.
    pub(in crate::validate) authority: &'a str,
    /// The path, as written.
    pub(in crate::validate) path: &'a str,
    /// What follows a scheme without `/`.
    pub(in crate::validate) opaque: &'a str,
}

impl<'a> Url<'a> {
    /// Reads a URL, which may be relative or empty.
    ///
    /// The error says what is wrong without showing the text, which may hold a password.
    pub(in crate::validate) fn parse(text: &'a str) -> Result<Self, &'static str> {
        let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
        if !is_encoded(fragment) {
            return Err("a % in the fragment is not followed by two hexadecimal digits");
        }
        Self::parts(text, false)
    }

    /// Reads a URL that must not be relative to another.
    pub(in crate::validate) fn parse_absolute(text: &'a str) -> Result<Self, &'static str> {
        match text {
            "" => Err("the URL is empty"),
            _ => Self::parts(text, true),
        }
    }

    /// Returns the host without port and brackets.
    pub(in crate::validate) fn host(&self) -> &'a str {
        let host = self.split().0;
        host.strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host)
    }

    /// Returns the port; empty if there is none.
    pub(in crate::validate) fn port(&self) -> &'a str {
        self.split().1
    }

    /// Returns the host as it is connected to, with escapes resolved as far as they matter.
    pub(in crate::validate) fn plain_host(&self) -> Cow<'a, str> {
        match self.host() {
            host if host.contains("%25") => Cow::Owned(host.replace("%25", "%")),
            host => Cow::Borrowed(host),
        }
    }

    fn split(&self) -> (&'a str, &'a str) {
        match self.authority.rfind(':') {
            Some(colon) if is_port(&self.authority[colon..]) => {
                (&self.authority[..colon], &self.authority[colon + 1..])
            }
            _ => (self.authority, ""),
        }
    }

    fn parts(text: &'a str, absolute: bool) -> Result<Self, &'static str> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("the URL has control characters");
        }
        if text == "*" {
            return Ok(Self {
                path: text,
                ..Self::default()
            });
        }
        let (scheme, rest) = scheme(text)?;
        let rest = rest.split('?').next().unwrap_or_default();
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                return Ok(Self {
                    scheme,
                    opaque: rest,
                    ..Self::default()
                });
            }
            if absolute {
                return Err("the URL has neither a scheme nor a leading slash");
            }
            if rest
                .split('/')
                .next()
                .is_some_and(|part| part.contains(':'))
            {
                return Err("the URL has no scheme, and a colon where it cannot be");
            }
        }
        let with_authority = !scheme.is_empty() || (!absolute && !rest.starts_with("///"));
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) if with_authority => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            _ => ("", rest),
        };
        if !is_encoded(path) {
            return Err("a % in the path is not followed by two hexadecimal digits");
        }
        Ok(Self {
            scheme,
            authority: host(authority)?,
            path,
            opaque: "",
        })
    }
}

/// Splits off the scheme.
fn scheme(text: &str) -> Result<(String, &str), &'static str> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("the scheme of the URL is missing"),
            b':' => return Ok((text[..index].to_ascii_lowercase(), &text[index + 1..])),
            _ => break,
        }
    }
    Ok((String::new(), text))
}

/// Checks the part between `//` and the path, and returns the host and port of it.
fn host(authority: &str) -> Result<&str, &'static str> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (user, host),
        None => ("", authority),
    };
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user.bytes().all(known) || !is_encoded(user) {
        return Err("the user or password of the URL has characters that must be escaped");
    }
    let after = match host.strip_prefix('[') {
        Some(_) => {
            let end = host.rfind(']').ok_or("the `]` of the host is missing")?;
            let address = host[1..end].replace("%25", "%");
            if super::address(&address).is_none_or(|address| address.is_ipv4()) {
                return Err("the host in brackets is no IPv6 address");
            }
            &host[end + 1..]
        }
        None => {
            let port = host.rfind(':').map_or("", |colon| &host[colon..]);
            if host[..host.len() - port.len()].contains(':') {
                return Err("an IPv6 address as host must stand in brackets");
            }
            port
        }
    };
    if !is_port(after) {
        return Err("the port is not a number");
    }
    let name = &host[..host.len() - after.len()];
    let known = |byte: u8| {
        !byte.is_ascii()
            || byte.is_ascii_alphanumeric()
            || b"-._~!$&'()*+,;=:[]<>\"%".contains(&byte)
    };
    if !name.bytes().all(known) {
        return Err("the host has characters that no host has");
    }
    if !name.starts_with('[') && !is_host_encoded(name) {
        return Err("the host has an escape that no host has");
    }
    Ok(host)
}

/// Returns whether a text is nothing, or a colon and digits.
fn is_port(text: &str) -> bool {
    match text.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => text.is_empty(),
    }
}

/// Returns whether each `%` is followed by two hexadecimal digits.
fn is_encoded(text: &str) -> bool {
    text.split('%')
        .skip(1)
        .all(|part| part.len() >= 2 && part.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns whether each `%` stands for a byte that is not ASCII.
fn is_host_encoded(text: &str) -> bool {
    is_encoded(text)
        && text.split('%').skip(1).all(|part| {
            part.starts_with(|digit: char| digit.to_digit(16).is_some_and(|of| of >= 8))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told() {
        let url = Url::parse("HTTPS://user:p%40ss@[fe80::1%25eth0]:6443/a?b#c").unwrap();
        assert_eq!((url.scheme.as_str(), url.path), ("https", "/a"));
        assert_eq!((url.host(), url.port()), ("fe80::1%25eth0", "6443"));
        assert_eq!(url.plain_host(), "fe80::1%eth0");
        let url = Url::parse("tcp:opaque").unwrap();
        assert_eq!((url.authority, url.opaque), ("", "opaque"));
        let url = Url::parse("https://host:/").unwrap();
        assert_eq!((url.host(), url.port()), ("host", ""));
        let url = Url::parse("host/path").unwrap();
        assert_eq!(
            (url.scheme.as_str(), url.authority, url.path),
            ("", "", "host/path")
        );
        assert_eq!(Url::parse(""), Ok(Url::default()));
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for bad in [
            ":6443",
            "1.2.3.4:6443",
            "https://host:port",
            "https://[::1",
            "https://[::1]x",
            "https://[1.2.3.4]",
            "https://[not]",
            "https://ho st",
            "https://a\nb",
            "https://a/%zz",
            "https://%41",
            "https://u ser@host",
            "https://::1:80",
            "h:/%",
            "a#%1",
        ] {
            assert!(Url::parse(bad).is_err(), "{bad}");
        }
        assert!(Url::parse_absolute("").is_err() && Url::parse_absolute("host").is_err());
    }
}
