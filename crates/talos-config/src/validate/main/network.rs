//! The network section of the machine: interfaces, addresses, routes, and KubeSpan.

use std::collections::HashMap;

use super::{Role, bond};
use crate::validate::at::At;
use crate::validate::documents::subnets;
use crate::validate::sink::Sink;
use crate::validate::target::Context;
use crate::validate::value;

/// The least MTU of KubeSpan.
const KUBESPAN_MTU: i128 = 1280;

/// Checks the network section.
pub(super) fn check(root: &At<'_>, role: Role, context: &Context<'_>, sink: &mut Sink<'_>) {
    let network = root.fields(&["machine", "network"]);
    if !network.is_set() {
        return;
    }
    let interfaces = network.field("interfaces");
    let members = members(&interfaces, sink);
    for interface in interfaces.items() {
        if !interface.is_set() {
            sink.error("missing-field", &interface, "there is no interface here");
            continue;
        }
        if role == Role::Worker {
            virtual_address(&interface, sink);
            let vlans = interface.field("vlans");
            vlans.items().for_each(|vlan| virtual_address(&vlan, sink));
        }
        if interface.field("ignore").is_true() {
            continue;
        }
        self::interface(&interface, sink);
        addressing(&interface, &members, sink);
        routes(&interface, sink);
    }
    kubespan(root, &network, context, sink);
}

/// Finds which link each member of a bond or bridge belongs to.
fn members(interfaces: &At<'_>, sink: &mut Sink<'_>) -> HashMap<String, String> {
    let mut owners: HashMap<String, String> = HashMap::new();
    for interface in interfaces.items() {
        let owner = interface.field("interface").text().into_owned();
        let bond = interface.field("bond");
        let bridge = interface.field("bridge");
        if bond.is_set() && bridge.is_set() {
            sink.error(
                "conflict",
                &bridge,
                "an interface is a bond or a bridge, not both",
            );
        }
        let bonded = bond.field("interfaces");
        let selectors = bond.field("deviceSelectors");
        if bonded.len() > 0 && selectors.len() > 0 {
            let message = "a bond names its members or selects them, not both";
            sink.error("conflict", &selectors, message);
        }
        let bridged = bridge.field("interfaces");
        let list = if bridge.is_set() { &bridged } else { &bonded };
        for member in list.items() {
            let name = member.text();
            match owners.get(&*name) {
                Some(other) if *other != owner => {
                    let message = format!("`{name}` belongs to `{other}` already");
                    sink.error("conflict", &member, message);
                }
                _ => {}
            }
            owners.insert(name.into_owned(), owner.clone());
        }
    }
    owners
}

fn virtual_address(link: &At<'_>, sink: &mut Sink<'_>) {
    let vip = link.field("vip");
    if vip.is_set() {
        sink.error("forbidden", &vip, "only control planes share an address");
    }
}

fn interface(interface: &At<'_>, sink: &mut Sink<'_>) {
    let name = interface.field("interface");
    let selector = interface.field("deviceSelector");
    match (name.is_blank(), selector.is_set()) {
        (true, false) => {
            let message = "neither `interface` nor `deviceSelector` tells which interface it is";
            sink.error("missing-field", &name, message);
        }
        (false, true) => {
            sink.error("conflict", &selector, "cannot stand beside `interface`");
        }
        _ => {}
    }
    let named = |(_, value): (&str, At<'_>)| match value.bool() {
        Some(_) => true,
        None => !value.is_blank(),
    };
    if selector.is_set() && !selector.entries().any(named) {
        sink.error("missing-field", &selector, "selects nothing");
    }
    let bond = interface.field("bond");
    if bond.is_set() {
        bond::check(&bond, sink);
    }
    wireguard(interface, sink);
    for vlan in interface.field("vlans").items() {
        let addresses = vlan.field("addresses");
        let cidr = vlan.field("cidr");
        exclusive(&addresses, &cidr, sink);
        if !cidr.is_blank() {
            address(&cidr, sink);
        }
        addresses.items().for_each(|item| address(&item, sink));
    }
}

fn wireguard(interface: &At<'_>, sink: &mut Sink<'_>) {
    let wireguard = interface.field("wireguard");
    if !wireguard.is_set() {
        return;
    }
    let key = |key: &At<'_>, sink: &mut Sink<'_>| {
        if value::base64(&key.text()).is_none_or(|bytes| bytes.len() != 32) {
            sink.error("bad-value", key, "is not the base64 of a key of 32 bytes");
        }
    };
    key(&wireguard.field("privateKey"), sink);
    for peer in wireguard.field("peers").items() {
        key(&peer.field("publicKey"), sink);
        let endpoint = peer.field("endpoint");
        let text = endpoint.text();
        let fits = value::host_port(&text)
            .is_some_and(|(host, _)| !host.contains(':') || value::address(host).is_some());
        if !text.is_empty() && !fits {
            sink.error("bad-value", &endpoint, "is not a host with a port");
        }
        for allowed in peer.field("allowedIPs").items() {
            if !is_cidr(&allowed.text()) {
                sink.error(
                    "bad-value",
                    &allowed,
                    "is not a subnet such as `10.0.0.0/8`",
                );
            }
        }
    }
}

fn addressing(interface: &At<'_>, members: &HashMap<String, String>, sink: &mut Sink<'_>) {
    let name = interface.field("interface");
    let addresses = interface.field("addresses");
    let cidr = interface.field("cidr");
    let vip = interface.field("vip");
    if let Some(owner) = members.get(&*name.text()) {
        let dhcp = interface.field("dhcp");
        let used = dhcp.is_true() || !cidr.is_blank() || addresses.len() > 0 || vip.is_set();
        if used {
            let message = format!("is a member of `{owner}`, so it has no addresses of its own");
            sink.error("conflict", &name, message);
        }
    }
    exclusive(&addresses, &cidr, sink);
    if !cidr.is_blank() {
        address(&cidr, sink);
        sink.warning("deprecated", &cidr, "is deprecated")
            .hint("write the address into `addresses`");
    }
    addresses.items().for_each(|item| address(&item, sink));
    let shared = vip.field("ip");
    if vip.is_set() && value::ip(&shared.text()).is_none() {
        sink.error("bad-value", &shared, "is not an IP address");
    }
}

fn exclusive(addresses: &At<'_>, cidr: &At<'_>, sink: &mut Sink<'_>) {
    if addresses.len() > 0 && !cidr.is_blank() {
        sink.error("conflict", cidr, "cannot stand beside `addresses`");
    }
}

fn address(at: &At<'_>, sink: &mut Sink<'_>) {
    let text = at.text();
    let fits = match text.contains('/') {
        true => is_cidr(&text),
        false => value::ip(&text).is_some(),
    };
    if !fits {
        sink.error(
            "bad-value",
            at,
            "is not an IP address, such as `10.0.0.5/24`",
        );
    }
}

/// Returns whether a text is an address with a length, which may have zeros before it.
fn is_cidr(text: &str) -> bool {
    text.split_once('/').is_some_and(|(address, bits)| {
        let most: u8 = if address.contains(':') { 128 } else { 32 };
        let plain = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
        value::ip(address).is_some() && plain && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
    })
}

fn routes(interface: &At<'_>, sink: &mut Sink<'_>) {
    for route in interface.field("routes").items() {
        let network = route.field("network");
        let gateway = route.field("gateway");
        let source = route.field("source");
        if !network.is_blank() && !is_cidr(&network.text()) {
            sink.error(
                "bad-value",
                &network,
                "is not a subnet such as `10.0.0.0/8`",
            );
        }
        for address in [&gateway, &source] {
            if !address.is_blank() && value::ip(&address.text()).is_none() {
                sink.error("bad-value", address, "is not an IP address");
            }
        }
        if gateway.is_blank() && network.is_blank() {
            let message = "a route needs a network or a gateway";
            sink.error("missing-field", &route, message);
        }
    }
}

fn kubespan(root: &At<'_>, network: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    let kubespan = network.field("kubespan");
    let enabled = kubespan.field("enabled");
    if !enabled.is_true() {
        return;
    }
    let mtu = kubespan.field("mtu");
    if mtu
        .number()
        .is_some_and(|mtu| mtu != 0 && mtu < KUBESPAN_MTU)
    {
        sink.error("bad-value", &mtu, format!("is less than {KUBESPAN_MTU}"));
    }
    subnets(&kubespan.fields(&["filters", "endpoints"]), sink);
    if context.at_least(12) {
        let excluded = kubespan.fields(&["filters", "excludeAdvertisedNetworks"]);
        for network in excluded.items() {
            if value::prefix(&network.text()).is_none() {
                sink.error(
                    "bad-value",
                    &network,
                    "is not a subnet such as `10.0.0.0/8`",
                );
            }
        }
    }
    // From 1.14 on, documents may say it.
    if context.at_least(14) {
        return;
    }
    let cluster = root.field("cluster");
    let discovery = cluster.fields(&["discovery", "enabled"]);
    if !discovery.is_true() {
        sink.error("missing-field", &discovery, "KubeSpan needs discovery");
    }
    for key in ["id", "secret"] {
        let at = cluster.field(key);
        if at.is_blank() {
            sink.error("missing-field", &at, "KubeSpan needs it");
        }
    }
}
