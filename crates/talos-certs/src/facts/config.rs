//! What a machine configuration says about the names by which servers are reached.

use std::net::IpAddr;

use serde_json::Value;
use talos_config::machine::MachineConfig;
use talos_pki::Name;

use crate::evidence::WantedNames;
use crate::{NodeFacts, ServerKind};

/// Documents whose name is an address that control planes share.
const VIRTUAL_ADDRESSES: [&str; 2] = ["Layer2VIPConfig", "HCloudVIPConfig"];

/// Adds what a configuration says to the facts of its node.
pub(super) fn take(facts: &mut NodeFacts, config: &MachineConfig) {
    let lists = [
        (ServerKind::Apid, config.cert_sans()),
        (ServerKind::KubeApiserver, config.api_server_cert_sans()),
    ];
    facts.configured_names = lists
        .into_iter()
        .map(|(kind, names)| WantedNames {
            kind,
            names: names.into_iter().filter_map(name).collect(),
            since: None,
        })
        .collect();
    facts.virtual_addresses = virtual_addresses(config).into_iter().collect();
    facts.virtual_addresses.dedup();
    let main = |pointer: &str| config.main().and_then(|main| main.pointer(pointer));
    let network = config.document("KubeNetworkConfig");
    let of_network = |key: &str| network.and_then(|document| document.get(key));
    facts.service_addresses = of_network("serviceSubnets")
        .or_else(|| main("/cluster/network/serviceSubnets"))
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|subnet| first_address(subnet.as_str()?))
        .map(Name::Ip)
        .collect();
    facts.dns_domain = of_network("dnsDomain")
        .or_else(|| main("/cluster/network/dnsDomain"))
        .and_then(Value::as_str)
        .filter(|domain| !domain.is_empty())
        .map(str::to_owned);
}

fn virtual_addresses(config: &MachineConfig) -> Vec<Name> {
    let mut found: Vec<Name> = config
        .documents()
        .iter()
        .filter(|document| {
            VIRTUAL_ADDRESSES
                .iter()
                .any(|kind| document["kind"] == *kind)
        })
        .filter_map(|document| name(document.get("name")?.as_str()?))
        .collect();
    let interfaces = config
        .main()
        .and_then(|main| main.pointer("/machine/network/interfaces"));
    for interface in interfaces.and_then(Value::as_array).into_iter().flatten() {
        let vlans = interface.get("vlans").and_then(Value::as_array);
        let links = std::iter::once(interface).chain(vlans.into_iter().flatten());
        found.extend(links.filter_map(|link| name(link.pointer("/vip/ip")?.as_str()?)));
    }
    found
}

fn name(text: &str) -> Option<Name> {
    Name::parse(text).ok()
}

/// Returns the first address of a network such as `10.96.0.0/12`: that of the `kubernetes` service.
fn first_address(subnet: &str) -> Option<IpAddr> {
    let (address, _) = subnet.split_once('/')?;
    match address.parse().ok()? {
        IpAddr::V4(network) => network
            .to_bits()
            .checked_add(1)
            .map(|bits| IpAddr::V4(bits.into())),
        IpAddr::V6(network) => network
            .to_bits()
            .checked_add(1)
            .map(|bits| IpAddr::V6(bits.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> NodeFacts {
        let mut facts = NodeFacts::default();
        take(&mut facts, &MachineConfig::parse(text).unwrap());
        facts
    }

    fn texts(names: &[Name]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_main_document_tells_shared_addresses_services_and_added_names() {
        let facts = read(
            "machine:\n  certSANs: [lb.example]\n  network:\n    interfaces:\n    - interface: eth0\n      vip: {ip: 10.5.0.50}\n      vlans:\n      - vip: {ip: 10.6.0.50}\n\
             cluster:\n  apiServer: {certSANs: [172.30.0.11]}\n  network:\n    dnsDomain: cluster.local\n    serviceSubnets: [10.96.0.0/12, 'fd00:10:96::/112']\n",
        );
        assert_eq!(texts(&facts.virtual_addresses), ["10.5.0.50", "10.6.0.50"]);
        assert_eq!(
            texts(&facts.service_addresses),
            ["10.96.0.1", "fd00:10:96::1"]
        );
        assert_eq!(facts.dns_domain.as_deref(), Some("cluster.local"));
        let added = facts
            .configured_names
            .iter()
            .map(|added| texts(&added.names));
        assert_eq!(added.collect::<Vec<_>>(), [["lb.example"], ["172.30.0.11"]]);
    }

    #[test]
    fn documents_of_newer_versions_tell_the_same() {
        let facts = read(
            "apiVersion: v1alpha1\nkind: Layer2VIPConfig\nname: 10.5.0.50\nlink: eth0\n---\n\
             apiVersion: v1alpha1\nkind: KubeNetworkConfig\ndnsDomain: lab.example\nserviceSubnets: [10.32.0.0/16]\n---\n\
             apiVersion: v1alpha1\nkind: KubeAPIServerConfig\ncertExtraSANs: [lb.example]\n",
        );
        assert_eq!(texts(&facts.virtual_addresses), ["10.5.0.50"]);
        assert_eq!(texts(&facts.service_addresses), ["10.32.0.1"]);
        assert_eq!(facts.dns_domain.as_deref(), Some("lab.example"));
        assert_eq!(texts(&facts.configured_names[1].names), ["lb.example"]);
    }
}
