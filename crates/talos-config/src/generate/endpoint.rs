//! The URL by which a cluster's machines and users reach its Kubernetes API.

use std::fmt;

use url::Url;

use super::Error;

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
    /// [`Error::Endpoint`], with what was probably meant.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refuse = |reason, suggestion| Error::Endpoint {
            text: text.to_owned(),
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
        if rest.is_empty() || rest.starts_with(['/', ':', '?', '#']) {
            return Err(refuse("has no host", None));
        }
        if text.contains(char::is_whitespace) {
            return Err(refuse("has a blank in it", None));
        }
        let Ok(url) = Url::parse(text) else {
            let bracketed = suggestion(rest).filter(|meant| Url::parse(meant).is_ok());
            return Err(refuse("is not a URL", bracketed));
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("must not hold a user or password", None));
        }
        let host = url.host_str().unwrap_or_default();
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        Ok(Self {
            text: text.to_owned(),
            host: host.to_owned(),
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
    Url::parse(&meant)
        .is_ok_and(|url| url.host_str().is_some())
        .then_some(meant)
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
    }

    #[test]
    fn what_was_meant_is_suggested() {
        let check = |text: &str, message: &str, meant: Option<&str>| {
            let error = Endpoint::parse(text).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("the cluster endpoint {text:?} {message}")
            );
            let Error::Endpoint { suggestion, .. } = error else {
                panic!("{error}");
            };
            assert_eq!(suggestion.as_deref(), meant, "{text}");
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
            "is not a URL",
            Some("https://[fd00::1]:6443"),
        );
        check("https://", "has no host", None);
        check("https://:6443", "has no host", None);
        check("https:///path", "has no host", None);
        check("https://a b", "has a blank in it", None);
        check("https://u:p@cp", "must not hold a user or password", None);
        check("", "is empty", None);
    }
}
