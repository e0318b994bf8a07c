//! What users write to say where a node's API is, and the address it stands for.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use rustls_pki_types::ServerName;
use talos_pki::Name;

/// The port of the Talos API.
pub const DEFAULT_PORT: u16 = 50000;

/// Where a node's API can be dialled: a host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    host: Host,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Host {
    Name(String),
    Ip(IpAddr),
}

/// Tells why a text is no endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// There is no host in it.
    #[error("it has no host")]
    NoHost,
    /// The host is neither an address nor a DNS name.
    #[error("its host is neither an IP address nor a DNS name")]
    Host,
    /// The bracket of an IPv6 address is not closed, or something else than a port is behind it.
    #[error("its bracket is not closed, or is not followed by a port")]
    Bracket,
    /// The port is not a number from 1 to 65535.
    #[error("its port is not a number from 1 to 65535")]
    Port,
    /// It has a path, a query, or a user name.
    #[error("it has more than a scheme, a host and a port")]
    Surplus,
    /// It has an IPv6 zone, such as `%eth0`.
    #[error("IPv6 zones are not supported")]
    Zone,
}

impl Endpoint {
    /// Returns the host without brackets.
    pub fn host(&self) -> String {
        match &self.host {
            Host::Name(name) => name.clone(),
            Host::Ip(ip) => ip.to_string(),
        }
    }

    /// Returns the address, if the host is one.
    pub fn ip(&self) -> Option<IpAddr> {
        match self.host {
            Host::Name(_) => None,
            Host::Ip(ip) => Some(ip),
        }
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns whether the host is this node: the same address, or the same name.
    pub fn is_host(&self, node: &str) -> bool {
        match (&self.host, node.parse::<IpAddr>()) {
            (Host::Ip(ip), Ok(node)) => *ip == node,
            (Host::Name(name), Err(_)) => name.eq_ignore_ascii_case(node),
            _ => false,
        }
    }

    /// Returns the host as it is looked for in the server's certificate.
    pub fn name(&self) -> Name {
        match &self.host {
            Host::Ip(ip) => Name::Ip(*ip),
            Host::Name(name) => Name::Dns(name.clone()),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => write!(f, "{name}:{}", self.port),
            Host::Ip(IpAddr::V4(ip)) => write!(f, "{ip}:{}", self.port),
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]:{}", self.port),
        }
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    /// Reads `host`, `host:port`, an IPv4 or IPv6 address with or without brackets and port, or any of these with a
    /// scheme before and a slash behind. Without a port it is 443 after `https://`, else 50000.
    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let Written { scheme, host, port } = split(text)?;
        let default_port = match scheme {
            Some(scheme) if scheme.eq_ignore_ascii_case("https") => 443,
            _ => DEFAULT_PORT,
        };
        Ok(Self {
            host: parse_host(host)?,
            port: port.unwrap_or(default_port),
        })
    }
}

/// The parts of an address as people write it; what is left out has no default here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written<'text> {
    /// What stands before `://`.
    pub scheme: Option<&'text str>,
    /// The host as it is written, without brackets; it may be anything, also empty.
    pub host: &'text str,
    /// The port, from 1 on.
    pub port: Option<u16>,
}

/// Splits `[SCHEME://]HOST[:PORT][/]`, with IPv6 addresses bare or in brackets.
///
/// # Errors
/// There is more in it than that, the scheme is not one, a bracket is not closed, or the port is not one.
pub fn split(text: &str) -> Result<Written<'_>, EndpointError> {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, text),
    };
    if scheme.is_some_and(|scheme| !is_scheme(scheme)) {
        return Err(EndpointError::Host);
    }
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains(['/', '?', '#', '@']) {
        return Err(EndpointError::Surplus);
    }
    let (host, port) = split_port(authority)?;
    Ok(Written {
        scheme,
        host,
        port: port.map(parse_port).transpose()?,
    })
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Splits at the colon before the port; a bare IPv6 address has none.
fn split_port(authority: &str) -> Result<(&str, Option<&str>), EndpointError> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, behind) = rest.split_once(']').ok_or(EndpointError::Bracket)?;
        if !host.contains(':') {
            return Err(EndpointError::Host);
        }
        return match behind.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if behind.is_empty() => Ok((host, None)),
            None => Err(EndpointError::Bracket),
        };
    }
    match authority.split_once(':') {
        Some((_, rest)) if rest.contains(':') => Ok((authority, None)),
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((authority, None)),
    }
}

fn parse_port(text: &str) -> Result<u16, EndpointError> {
    if !text.chars().all(|c| c.is_ascii_digit()) {
        return Err(EndpointError::Port);
    }
    match text.parse() {
        Ok(0) | Err(_) => Err(EndpointError::Port),
        Ok(port) => Ok(port),
    }
}

fn parse_host(text: &str) -> Result<Host, EndpointError> {
    if text.is_empty() {
        return Err(EndpointError::NoHost);
    }
    if text.contains('%') {
        return Err(EndpointError::Zone);
    }
    if let Ok(ip) = text.parse() {
        return Ok(Host::Ip(ip));
    }
    match ServerName::try_from(text) {
        Ok(ServerName::DnsName(_)) => Ok(Host::Name(text.to_string())),
        _ => Err(EndpointError::Host),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Result<&str, EndpointError>) {
        let read = text
            .parse::<Endpoint>()
            .map(|endpoint| endpoint.to_string());
        assert_eq!(read, expected.map(str::to_string), "{text}");
    }

    #[test]
    fn every_documented_form_has_its_port() {
        check("h", Ok("h:50000"));
        check("https://h", Ok("h:443"));
        check("h:6443", Ok("h:6443"));
        check("https://h:8443/", Ok("h:8443"));
        check("[fd00::1]", Ok("[fd00::1]:50000"));
        check("fd00::1", Ok("[fd00::1]:50000"));
        check("[fd00::1]:50001", Ok("[fd00::1]:50001"));
        check("https://[fd00::1]", Ok("[fd00::1]:443"));
        check("10.5.0.2", Ok("10.5.0.2:50000"));
        check("10.5.0.2:1", Ok("10.5.0.2:1"));
        check("grpc://h", Ok("h:50000"));
        check("grpc://h:7", Ok("h:7"));
        check("HTTPS://h", Ok("h:443"));
        check(
            "talos.default.svc.cluster.local",
            Ok("talos.default.svc.cluster.local:50000"),
        );
    }

    #[test]
    fn what_is_no_endpoint_says_why() {
        check("", Err(EndpointError::NoHost));
        check(":50000", Err(EndpointError::NoHost));
        check("https://", Err(EndpointError::NoHost));
        check("h:", Err(EndpointError::Port));
        check("h:0", Err(EndpointError::Port));
        check("h:65536", Err(EndpointError::Port));
        check("h:+80", Err(EndpointError::Port));
        check("h:port", Err(EndpointError::Port));
        check("https://h/path", Err(EndpointError::Surplus));
        check("https://user@h", Err(EndpointError::Surplus));
        check("a host", Err(EndpointError::Host));
        check("[fd00::1", Err(EndpointError::Bracket));
        check("[fd00::1]7", Err(EndpointError::Bracket));
        check("[10.0.0.1]", Err(EndpointError::Host));
        check("fe80::1%eth0", Err(EndpointError::Zone));
        check("bücher.example", Err(EndpointError::Host));
    }

    #[test]
    fn a_node_is_its_own_endpoint_by_address_or_name() {
        let ip: Endpoint = "[fd00:0::1]:7".parse().unwrap();
        assert!(ip.is_host("fd00::1") && !ip.is_host("fd00::2") && !ip.is_host("fd00"));
        let name: Endpoint = "Node-1".parse().unwrap();
        assert!(name.is_host("node-1") && !name.is_host("10.5.0.2"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,40}") {
            let _ = text.parse::<Endpoint>();
        }

        #[test]
        fn what_is_printed_reads_back_the_same(text in "(https://)?([a-z][a-z0-9.-]{0,8}|\\[[0-9a-f:]{2,12}\\]|[0-9.]{7,9})(:[0-9]{1,5})?/?") {
            if let Ok(endpoint) = text.parse::<Endpoint>() {
                prop_assert_eq!(endpoint.to_string().parse::<Endpoint>(), Ok(endpoint));
            }
        }
    }
}
