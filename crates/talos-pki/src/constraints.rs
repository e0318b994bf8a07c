//! Names that an authority may, or may not, issue certificates for.

use std::net::IpAddr;

use x509_parser::extensions::{GeneralName, GeneralSubtree, NameConstraints as Parsed};

use crate::Name;

/// The nameConstraints extension, as far as it is about DNS names and addresses.
#[derive(Clone, Default)]
pub(crate) struct NameConstraints {
    permitted: Subtrees,
    excluded: Subtrees,
}

#[derive(Clone, Default)]
struct Subtrees {
    domains: Vec<String>,
    /// Address and mask, one after the other.
    networks: Vec<Vec<u8>>,
}

impl NameConstraints {
    pub(crate) fn read(parsed: &Parsed<'_>) -> Self {
        Self {
            permitted: Subtrees::read(parsed.permitted_subtrees.as_deref()),
            excluded: Subtrees::read(parsed.excluded_subtrees.as_deref()),
        }
    }

    /// Returns the first name that a certificate below this authority must not have.
    pub(crate) fn refused<'name>(&self, names: &'name [Name]) -> Option<&'name Name> {
        names.iter().find(|name| {
            self.excluded.hold(name) || self.permitted.speak_of(name) && !self.permitted.hold(name)
        })
    }
}

impl Subtrees {
    fn read(parsed: Option<&[GeneralSubtree<'_>]>) -> Self {
        let mut read = Self::default();
        for subtree in parsed.unwrap_or_default() {
            match &subtree.base {
                GeneralName::DNSName(domain) => read.domains.push((*domain).to_owned()),
                GeneralName::IPAddress(network) => read.networks.push(network.to_vec()),
                _ => {}
            }
        }
        read
    }

    fn speak_of(&self, name: &Name) -> bool {
        match name {
            Name::Dns(_) => !self.domains.is_empty(),
            Name::Ip(_) => !self.networks.is_empty(),
        }
    }

    fn hold(&self, name: &Name) -> bool {
        match name {
            Name::Dns(name) => self.domains.iter().any(|domain| is_below(name, domain)),
            Name::Ip(address) => self.networks.iter().any(|network| is_in(*address, network)),
        }
    }
}

/// A domain holds itself and everything below it; one that starts with a dot only what is below it.
fn is_below(name: &str, domain: &str) -> bool {
    let name = name.strip_prefix("*.").unwrap_or(name).to_ascii_lowercase();
    let domain = domain.to_ascii_lowercase();
    let Some(rest) = name.strip_suffix(&domain) else {
        return false;
    };
    domain.is_empty()
        || (rest.is_empty() && !domain.starts_with('.'))
        || rest.ends_with('.')
        || (!rest.is_empty() && domain.starts_with('.'))
}

fn is_in(address: IpAddr, network: &[u8]) -> bool {
    let octets = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let (base, mask) = network.split_at(network.len() / 2);
    base.len() == octets.len()
        && mask.len() == octets.len()
        && octets
            .iter()
            .zip(base)
            .zip(mask)
            .all(|((octet, base), mask)| octet & mask == base & mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_and_networks_hold_what_rfc_5280_says() {
        assert!(is_below("cp.example.com", "example.com"));
        assert!(is_below("Example.com", "example.COM"));
        assert!(is_below("cp.example.com", ".example.com"));
        assert!(is_below("*.example.com", "example.com"));
        assert!(is_below("anything", ""));
        assert!(!is_below("example.com", ".example.com"));
        assert!(!is_below("badexample.com", "example.com"));
        assert!(!is_below("example.org", "example.com"));
        let network = [10, 5, 0, 0, 255, 255, 0, 0];
        assert!(is_in("10.5.9.9".parse().unwrap(), &network));
        assert!(!is_in("10.6.0.1".parse().unwrap(), &network));
        assert!(!is_in("fd00::1".parse().unwrap(), &network));
        assert!(!is_in("10.5.9.9".parse().unwrap(), &[10]));
    }
}
