//! Which endpoints are dialled without a proxy.

use std::net::IpAddr;

use crate::Endpoint;

/// Endpoints that are dialled without a proxy, as `NO_PROXY` lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoProxy {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    All,
    Ip(IpAddr, Option<u16>),
    Net(IpAddr, u8),
    /// A domain without leading dot; with `exact`, subdomains only are not meant: the domain itself counts too.
    Domain {
        name: String,
        itself: bool,
        port: Option<u16>,
    },
}

impl NoProxy {
    /// Reads a list, separated by commas, of `*`, addresses, networks such as `10.0.0.0/8`, and domains; a domain
    /// covers its subdomains, and with a leading dot only these. A port behind an entry limits it to that port.
    pub fn parse(text: &str) -> Self {
        let rules = text.split(',').filter_map(|entry| rule(entry.trim()));
        Self {
            rules: rules.collect(),
        }
    }

    /// Returns whether an endpoint is dialled without a proxy; those on this machine always are.
    pub fn covers(&self, endpoint: &Endpoint) -> bool {
        let host = endpoint.host().to_ascii_lowercase();
        let host = host.trim_end_matches('.');
        let local = match endpoint.ip() {
            Some(ip) => ip.is_loopback(),
            None => host == "localhost",
        };
        local
            || self
                .rules
                .iter()
                .any(|rule| rule.covers(host, endpoint.ip(), endpoint.port()))
    }
}

fn rule(entry: &str) -> Option<Rule> {
    if entry.is_empty() {
        return None;
    }
    if entry == "*" {
        return Some(Rule::All);
    }
    if let Some((ip, bits)) = entry.split_once('/')
        && let (Ok(ip), Ok(bits)) = (ip.parse(), bits.parse())
    {
        return Some(Rule::Net(ip, bits));
    }
    if let Ok(ip) = entry.trim_matches(['[', ']']).parse() {
        return Some(Rule::Ip(ip, None));
    }
    let (name, port) = match entry.rsplit_once(':') {
        Some((name, port)) => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => return None,
        },
        None => (entry, None),
    };
    if let Ok(ip) = name.trim_matches(['[', ']']).parse() {
        return Some(Rule::Ip(ip, port));
    }
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix('*').unwrap_or(&name);
    let bare = name.trim_start_matches('.');
    (!bare.is_empty()).then(|| Rule::Domain {
        name: bare.to_string(),
        itself: bare == name,
        port,
    })
}

impl Rule {
    fn covers(&self, host: &str, ip: Option<IpAddr>, at: u16) -> bool {
        match self {
            Self::All => true,
            Self::Ip(own, port) => ip == Some(*own) && port.is_none_or(|port| port == at),
            Self::Net(net, bits) => ip.is_some_and(|ip| in_net(ip, *net, *bits)),
            Self::Domain { name, itself, port } => {
                let fits = match host.strip_suffix(name.as_str()) {
                    Some("") => *itself,
                    Some(front) => front.ends_with('.'),
                    None => false,
                };
                fits && port.is_none_or(|port| port == at)
            }
        }
    }
}

fn in_net(ip: IpAddr, net: IpAddr, bits: u8) -> bool {
    match (ip, net) {
        (IpAddr::V4(ip), IpAddr::V4(net)) => {
            let shift = 32u32.saturating_sub(bits.into());
            shift == 32 || ip.to_bits() >> shift == net.to_bits() >> shift
        }
        (IpAddr::V6(ip), IpAddr::V6(net)) => {
            let shift = 128u32.saturating_sub(bits.into());
            shift == 128 || ip.to_bits() >> shift == net.to_bits() >> shift
        }
        _ => false,
    }
}
