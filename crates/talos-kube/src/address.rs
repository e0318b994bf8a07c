//! Addresses of Kubernetes API servers, as people write them.

use std::fmt;
use std::net::IpAddr;

use talos_client::EndpointError;
use talos_pki::Name;

use crate::Error;

/// The port of a kube-apiserver run by Talos.
pub const DEFAULT_PORT: u16 = 6443;

/// A host and port to dial.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The name or IP address; also the first name its certificate is verified for.
    pub host: Name,
    /// The TCP port.
    pub port: u16,
}

impl Address {
    /// Reads `HOST`, `HOST:PORT`, `https://HOST[:PORT][/]` with IPv6 addresses bare or in brackets.
    ///
    /// A port that is not written is 6443, with or without `https://`; 443 is used only where it is written.
    ///
    /// # Errors
    /// [`Error::Address`] names the text and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (host, port) = split(text)?;
        Ok(Self {
            host,
            port: port.unwrap_or(DEFAULT_PORT),
        })
    }

    /// Reads the server URL of a kubeconfig: one address, or two when it names no port.
    ///
    /// A URL without a port means 443 to every Kubernetes client, but Talos serves 6443; both are candidates.
    ///
    /// # Errors
    /// [`Error::Address`] names the text and what is wrong with it.
    pub fn from_server(url: &str) -> Result<Vec<Self>, Error> {
        let (host, port) = split(url)?;
        let ports = port.map_or_else(|| vec![443, DEFAULT_PORT], |port| vec![port]);
        let address = |port| Self {
            host: host.clone(),
            port,
        };
        Ok(ports.into_iter().map(address).collect())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Name::Ip(IpAddr::V6(address)) => write!(out, "[{address}]:{}", self.port),
            host => write!(out, "{host}:{}", self.port),
        }
    }
}

fn split(text: &str) -> Result<(Name, Option<u16>), Error> {
    let refuse = |problem| Error::Address {
        text: text.to_owned(),
        problem,
    };
    let written = talos_client::split(text.trim()).map_err(|error| {
        refuse(match error {
            EndpointError::Surplus => "a path or user does not belong here",
            EndpointError::Bracket => "the bracket is not closed, or no port follows it",
            EndpointError::Port => "the port is not a number from 1 to 65535",
            _ => "the host is neither an address nor a name",
        })
    })?;
    if written
        .scheme
        .is_some_and(|scheme| !scheme.eq_ignore_ascii_case("https"))
    {
        return Err(refuse("only https:// is spoken here"));
    }
    let host = Name::parse(written.host);
    let host = host.map_err(|_| refuse("the host is neither an address nor a name"))?;
    Ok((host, written.port))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        let shown = match Address::parse(text) {
            Ok(address) => address.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn an_unwritten_port_is_6443_and_never_443() {
        check("h", "h:6443");
        check("https://h", "h:6443");
        check("https://h/", "h:6443");
        check("h:6443", "h:6443");
        check("https://h:8443/", "h:8443");
        check("https://h:443", "h:443");
        check("10.0.0.1", "10.0.0.1:6443");
        check("127.0.0.1:49153", "127.0.0.1:49153");
    }

    #[test]
    fn ipv6_is_read_with_and_without_brackets() {
        check("[fd00::1]", "[fd00::1]:6443");
        check("fd00::1", "[fd00::1]:6443");
        check("[fd00::1]:7443", "[fd00::1]:7443");
        check("https://[fd00::1]/", "[fd00::1]:6443");
    }

    #[test]
    fn a_wrong_address_is_named_with_its_mistake() {
        check(
            "http://h",
            "invalid address \"http://h\": only https:// is spoken here",
        );
        check(
            "h:x",
            "invalid address \"h:x\": the port is not a number from 1 to 65535",
        );
        check(
            "h:0",
            "invalid address \"h:0\": the port is not a number from 1 to 65535",
        );
        check(
            "",
            "invalid address \"\": the host is neither an address nor a name",
        );
        check(
            "[fd00::1",
            "invalid address \"[fd00::1\": the bracket is not closed, or no port follows it",
        );
        check(
            "h/api",
            "invalid address \"h/api\": a path or user does not belong here",
        );
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_read_as_what_it_prints(text in "[a-z0-9:./\\[\\] -]{0,24}") {
            if let Ok(address) = Address::parse(&text) {
                prop_assert_eq!(Address::parse(&address.to_string()).unwrap(), address);
            }
        }
    }

    #[test]
    fn a_server_without_a_port_has_two_candidates() {
        let shown = |url| {
            let addresses = Address::from_server(url).unwrap();
            addresses
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            shown("https://cp.example"),
            ["cp.example:443", "cp.example:6443"]
        );
        assert_eq!(shown("https://10.5.0.2:6443"), ["10.5.0.2:6443"]);
    }
}
