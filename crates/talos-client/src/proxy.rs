//! Which proxy leads to which endpoint.

mod bypass;

use std::fmt;
use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use url::Url;

use crate::{DialError, Endpoint};

pub use bypass::NoProxy;

/// Which proxy leads to which endpoint; the default is none.
#[derive(Clone, Debug, Default)]
pub struct ProxyRules {
    proxy: Option<ProxyUrl>,
    bypass: Option<NoProxy>,
}

impl ProxyRules {
    /// Dials every endpoint through one proxy, or none for the word `direct`, as `proxy-url` of a context says.
    ///
    /// # Errors
    /// The text is neither `direct` nor the URL of a proxy.
    pub fn always(text: &str) -> Result<Self, ProxyError> {
        if text == "direct" {
            return Ok(Self::default());
        }
        Ok(Self {
            proxy: Some(ProxyUrl::parse(text)?),
            bypass: None,
        })
    }

    /// Takes the values of `HTTPS_PROXY` and `NO_PROXY`; endpoints on this machine are never proxied.
    ///
    /// # Errors
    /// The proxy is not the URL of a proxy.
    pub fn from_environment(
        https_proxy: Option<&str>,
        no_proxy: Option<&str>,
    ) -> Result<Self, ProxyError> {
        let proxy = match https_proxy {
            None | Some("") => None,
            Some(text) if text.contains("://") => Some(ProxyUrl::parse(text)?),
            Some(text) => Some(ProxyUrl::parse(&format!("http://{text}"))?),
        };
        Ok(Self {
            proxy,
            bypass: Some(NoProxy::parse(no_proxy.unwrap_or_default())),
        })
    }

    /// Returns the proxy to dial an endpoint through.
    pub fn for_endpoint(&self, endpoint: &Endpoint) -> Option<&ProxyUrl> {
        let proxy = self.proxy.as_ref()?;
        match &self.bypass {
            Some(bypass) if bypass.covers(endpoint) => None,
            _ => Some(proxy),
        }
    }
}

/// The address of a proxy, perhaps with a user name and password.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyUrl {
    scheme: Scheme,
    host: String,
    port: u16,
    credentials: Option<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
    Socks5,
}

/// Tells why a text is no proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// It is no URL with a host.
    #[error("it is not a URL with a host")]
    Url,
    /// Its scheme is none of http, https and socks5.
    #[error("its scheme is none of http, https and socks5")]
    Scheme,
}

/// Tells what a proxy did instead of letting us through.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyFailure {
    /// It cannot be reached.
    #[error("it cannot be reached")]
    Unreachable {
        /// Why not.
        source: Box<DialError>,
    },
    /// It answered with another status than 200.
    #[error("it answered with status {status}")]
    Refused {
        /// The status.
        status: u16,
    },
    /// Its answer is not HTTP.
    #[error("its answer is not HTTP")]
    NotHttp,
    /// The connection to it broke.
    #[error("the connection to it broke")]
    Broken {
        /// What the system says.
        source: Arc<io::Error>,
    },
    /// The SOCKS conversation failed.
    #[error("the SOCKS conversation failed")]
    Socks {
        /// What went wrong.
        source: Arc<tokio_socks::Error>,
    },
    /// Its certificate is not accepted, or TLS with it fails otherwise.
    #[error("TLS with it failed")]
    Tls {
        /// What went wrong.
        source: Arc<io::Error>,
    },
}

impl ProxyUrl {
    /// Reads the URL of a proxy: `http`, `https` or `socks5`, perhaps with a user name and password.
    ///
    /// # Errors
    /// The text is something else.
    pub fn parse(text: &str) -> Result<Self, ProxyError> {
        let url = Url::parse(text).map_err(|_| ProxyError::Url)?;
        let (scheme, port) = match url.scheme() {
            "http" => (Scheme::Http, 80),
            "https" => (Scheme::Https, 443),
            "socks5" | "socks5h" => (Scheme::Socks5, 1080),
            _ => return Err(ProxyError::Scheme),
        };
        let host = url.host_str().unwrap_or_default();
        if host.is_empty() {
            return Err(ProxyError::Url);
        }
        let credentials = (!url.username().is_empty()).then(|| {
            (
                decode_percent(url.username()),
                decode_percent(url.password().unwrap_or_default()),
            )
        });
        Ok(Self {
            scheme,
            host: host.trim_matches(['[', ']']).to_string(),
            port: url.port().unwrap_or(port),
            credentials,
        })
    }

    pub(crate) fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn credentials(&self) -> Option<(&str, &str)> {
        let (user, password) = self.credentials.as_ref()?;
        Some((user, password))
    }

    pub(crate) fn basic_authorization(&self) -> Option<String> {
        let (user, password) = self.credentials()?;
        Some(format!(
            "Basic {}",
            STANDARD.encode(format!("{user}:{password}"))
        ))
    }
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::Socks5 => "socks5",
        };
        let (open, close) = if self.host.contains(':') {
            ("[", "]")
        } else {
            ("", "")
        };
        write!(f, "{scheme}://{open}{}{close}:{}", self.host, self.port)
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProxyUrl({self})")
    }
}

fn decode_percent(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes
            .get(at + 1..at + 3)
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 3;
            }
            (byte, _) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check_bypass(no_proxy: &str, endpoint: &str, direct: bool) {
        let rules = ProxyRules::from_environment(Some("proxy:3128"), Some(no_proxy)).unwrap();
        let endpoint = endpoint.parse().unwrap();
        let proxy = rules.for_endpoint(&endpoint);
        assert_eq!(proxy.is_none(), direct, "{no_proxy:?} {endpoint}");
    }

    #[test]
    fn no_proxy_covers_addresses_networks_and_domains() {
        check_bypass("", "10.0.0.1", false);
        check_bypass("*", "10.0.0.1", true);
        check_bypass("10.0.0.1", "10.0.0.1", true);
        check_bypass("10.0.0.1:1", "10.0.0.1", false);
        check_bypass("10.0.0.1:50000", "10.0.0.1", true);
        check_bypass("192.168.0.0/16, 10.0.0.0/8", "10.1.2.3", true);
        check_bypass("10.0.0.0/24", "10.1.2.3", false);
        check_bypass("0.0.0.0/0", "10.1.2.3", true);
        check_bypass("fd00::/8", "[fd00::1]", true);
        check_bypass("fd00::/8", "10.0.0.1", false);
        check_bypass("[fd00::1]:50000", "[fd00::1]", true);
        check_bypass("example.com", "example.com", true);
        check_bypass("example.com", "a.example.com", true);
        check_bypass("example.com", "badexample.com", false);
        check_bypass(".example.com", "example.com", false);
        check_bypass(".example.com", "a.example.com", true);
        check_bypass("*.example.com", "a.example.com", true);
        check_bypass("EXAMPLE.com:6443", "example.COM:6443", true);
        check_bypass("example.com:6443", "example.com", false);
    }

    #[test]
    fn this_machine_is_never_proxied_by_the_environment() {
        check_bypass("", "127.0.0.1", true);
        check_bypass("", "[::1]", true);
        check_bypass("", "localhost", true);
        let always = ProxyRules::always("http://proxy").unwrap();
        assert!(always.for_endpoint(&"127.0.0.1".parse().unwrap()).is_some());
        let direct = ProxyRules::always("direct").unwrap();
        assert!(direct.for_endpoint(&"10.0.0.1".parse().unwrap()).is_none());
    }

    #[test]
    fn a_proxy_has_a_scheme_a_host_and_perhaps_a_password_that_is_not_shown() {
        let proxy = ProxyUrl::parse("https://u%40x:p%3Aw@[fd00::1]:8443").unwrap();
        assert_eq!(proxy.credentials(), Some(("u@x", "p:w")));
        assert_eq!(proxy.basic_authorization().unwrap(), "Basic dUB4OnA6dw==");
        assert_eq!(
            format!("{proxy} {proxy:?}"),
            "https://[fd00::1]:8443 ProxyUrl(https://[fd00::1]:8443)"
        );
        assert_eq!(
            ProxyUrl::parse("socks5://s").unwrap().to_string(),
            "socks5://s:1080"
        );
        assert_eq!(
            ProxyUrl::parse("http://h").unwrap().to_string(),
            "http://h:80"
        );
        assert_eq!(ProxyUrl::parse("ftp://h").unwrap_err(), ProxyError::Scheme);
        assert_eq!(ProxyUrl::parse("h").unwrap_err(), ProxyError::Url);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in ".{0,40}") {
            let _ = ProxyUrl::parse(&text);
            let _ = NoProxy::parse(&text).covers(&"10.0.0.1".parse().unwrap());
        }
    }
}
