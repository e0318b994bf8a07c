//! The URL by which a cluster's machines and users reach its Kubernetes API.

use std::fmt;

use talos_pki::Name;

use super::Error;
use super::address::{Address, without_user};

/// The URL of a cluster's Kubernetes API, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    text: String,
    host: String,
}

impl Endpoint {
    /// Reads an endpoint: https, a host, and where wanted a port and a path.
    ///
    /// # Errors
    ///
    /// [`Error::Endpoint`], with what was probably meant; a user and password are in neither.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refuse = |reason, suggestion| Error::Endpoint {
            text: without_user(text).into_owned(),
            reason,
            suggestion,
        };
        if text.trim().is_empty() {
            return Err(refuse("is empty", None));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(refuse("has no scheme", suggestion(text)));
        };
        if scheme != "https" {
            return Err(refuse("must begin with https://", suggestion(rest)));
        }
        Self::of(text, rest).map_err(|reason| {
            let bracketed = rest
                .parse::<std::net::Ipv6Addr>()
                .ok()
                .and_then(|_| suggestion(rest));
            refuse(reason, bracketed)
        })
    }

    /// Reads what follows the scheme; the error says what is wrong with the whole.
    fn of(text: &str, rest: &str) -> Result<Self, &'static str> {
        let address = Address::parse(rest)?;
        if address.user.is_some() {
            return Err("must not hold a user or password");
        }
        if address.query.is_some() {
            return Err("must not have a query");
        }
        if address.fragment.is_some() {
            return Err("must not have a fragment");
        }
        // What a person may write or a certificate say is more: international names, wildcards, dashes at the ends.
        let is_foreign = !address.host.is_ascii()
            || address.host.contains(['*', '%'])
            || address
                .host
                .split('.')
                .any(|label| label.starts_with('-') || label.ends_with('-'));
        if is_foreign || Name::parse(address.host).is_err() {
            return Err("has a host that is neither an IP address nor a DNS name");
        }
        Ok(Self {
            text: text.to_owned(),
            host: address.host.to_owned(),
        })
    }

    /// Returns the text as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the host without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Makes an endpoint of what looks like a host.
fn suggestion(text: &str) -> Option<String> {
    let meant = match text.parse::<std::net::Ipv6Addr>() {
        Ok(address) => format!("https://[{address}]:6443"),
        Err(_) => {
            let is_bare = !text.contains([':', '/']);
            format!("https://{text}{}", if is_bare { ":6443" } else { "" })
        }
    };
    let rest = meant.strip_prefix("https://")?;
    Endpoint::of(&meant, rest).is_ok().then_some(meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_urls_with_a_host() {
        let check = |text: &str, host: &str| {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!((endpoint.as_str(), endpoint.host()), (text, host));
        };
        check("https://10.5.0.2:6443", "10.5.0.2");
        check("https://cp.example.org", "cp.example.org");
        check("https://cp.example.org:6443/some/path", "cp.example.org");
        check("https://[fd00::1]:6443", "fd00::1");
        check("https://[fd00::1]", "fd00::1");
        check("https://cp:65535/", "cp");
    }

    fn refused(text: &str) -> (String, Option<String>) {
        let error = Endpoint::parse(text).unwrap_err();
        let message = error.to_string();
        let Error::Endpoint { suggestion, .. } = error else {
            panic!("{error}");
        };
        (message, suggestion)
    }

    #[test]
    fn what_was_meant_is_suggested() {
        let check = |text: &str, message: &str, meant: Option<&str>| {
            let expected = format!("the cluster endpoint {text:?} {message}");
            assert_eq!(refused(text), (expected, meant.map(str::to_owned)));
        };
        check("10.5.0.2", "has no scheme", Some("https://10.5.0.2:6443"));
        check("cp:6443", "has no scheme", Some("https://cp:6443"));
        check("fd00::1", "has no scheme", Some("https://[fd00::1]:6443"));
        check(
            "http://cp",
            "must begin with https://",
            Some("https://cp:6443"),
        );
        check(
            "https://fd00::1",
            "has an IPv6 address without brackets, or several ports",
            Some("https://[fd00::1]:6443"),
        );
        check("https://", "has no host", None);
        check("https://:6443", "has no host", None);
        check("https:///path", "has no host", None);
        check("", "is empty", None);
    }

    #[test]
    fn what_talos_refuses_or_reads_otherwise_is_no_endpoint() {
        let check = |text: &str, message: &str| {
            let expected = format!("the cluster endpoint {text:?} {message}");
            assert_eq!(refused(text), (expected, None));
        };
        const HOST: &str = "has a host that is neither an IP address nor a DNS name";
        const PORT: &str = "has a port that is not a number from 1 to 65535";
        const SIGN: &str = "has a blank, control character or backslash in it";
        check("https://a\\b", SIGN);
        check("https://a b", SIGN);
        check("https://cp\u{a0}:6443", SIGN);
        check("https://cp:6443/\u{7f}", SIGN);
        for port in ["0", "00", "65536", "99999999999999999999", "x", "+1", ""] {
            check(&format!("https://cp:{port}"), PORT);
            check(&format!("https://[fd00::1]:{port}/path"), PORT);
        }
        for host in [
            "10.5.2",
            "10.5.0.256",
            "010.5.0.2",
            "0x0a.5.0.2",
            "1",
            "a..b",
            "-a",
            "ä.example",
            "a%41",
            "*.example.org",
            "[10.5.0.2]",
            "[fe80::1%25eth0]",
            "[cp]",
            "a,b",
        ] {
            check(&format!("https://{host}:6443"), HOST);
        }
        check("https://cp:6443?x=1", "must not have a query");
        check("https://cp:6443/p?", "must not have a query");
        check("https://cp:6443#f", "must not have a fragment");
        check(
            "https://cp/%zz",
            "has a % that is not followed by two hexadecimal digits",
        );
        check("https://[fd00::1", "has a host whose bracket is not closed");
        check("https://[fd00::1]x", PORT);
    }

    #[test]
    fn passwords_are_not_repeated() {
        for (text, shown) in [
            ("https://admin:hunter22@cp:6443", "https://cp:6443"),
            ("https://admin:hun/ter22@cp:6443", "https://cp:6443"),
            ("https://hunter22@cp:0", "https://cp:0"),
            ("http://admin:hunter22@cp", "http://cp"),
            ("admin:hunter22@cp", "cp"),
            ("https://admin:hunter22@", "https://"),
            ("https://admin:hun@ter22@cp:6443", "https://cp:6443"),
        ] {
            let (message, suggestion) = refused(text);
            assert!(
                message.starts_with(&format!("the cluster endpoint {shown:?} ")),
                "{message}"
            );
            assert_eq!(suggestion, None, "{text}");
            let error = format!("{:?}", Endpoint::parse(text));
            assert!(
                !error.contains("ter22") && !error.contains("admin"),
                "{error}"
            );
        }
    }
}
