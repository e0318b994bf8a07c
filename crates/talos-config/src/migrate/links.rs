//! The interfaces of the main document: each becomes a document of the kind of its link, and more for DHCP and shared
//! addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::facts::LINKS;
use super::selectors;
use super::work::{Field, Work};

const VLAN: &str = "VLANConfig";

/// The settings of a bond that keep their meaning: the name in the main document and in `BondConfig`.
const BOND: &[(&str, &str)] = &[
    ("mode", "bondMode"),
    ("xmitHashPolicy", "xmitHashPolicy"),
    ("lacpRate", "lacpRate"),
    ("arpValidate", "arpValidate"),
    ("arpAllTargets", "arpAllTargets"),
    ("primaryReselect", "primaryReselect"),
    ("failOverMac", "failOverMac"),
    ("adSelect", "adSelect"),
    ("miimon", "miimon"),
    ("updelay", "updelay"),
    ("downdelay", "downdelay"),
    ("arpInterval", "arpInterval"),
    ("resendIgmp", "resendIGMP"),
    ("minLinks", "minLinks"),
    ("lpInterval", "lpInterval"),
    ("packetsPerSlave", "packetsPerSlave"),
    ("numPeerNotif", "numPeerNotif"),
    ("tlbDynamicLb", "tlbLogicalLb"),
    ("allSlavesActive", "allSlavesActive"),
    ("useCarrier", "useCarrier"),
    ("adActorSysPrio", "adActorSysPrio"),
    ("adUserPortKey", "adUserPortKey"),
    ("peerNotifyDelay", "peerNotifDelay"),
];

pub(super) fn all(work: &mut Work<'_>) {
    let Some(field) = work.at(&["machine", "network", "interfaces"]) else {
        return;
    };
    let items = work.list(&field);
    let before = work.refusals.len();
    let mut ports: BTreeMap<String, Vec<(String, Field<'_>)>> = BTreeMap::new();
    let mut seen: Vec<String> = Vec::new();
    for item in &items {
        let Some(name) = name(work, item) else {
            continue;
        };
        if seen.contains(&name) {
            work.refuse(item, format!("another entry has the interface {name} too"));
            continue;
        }
        seen.push(name.clone());
        if let Some(master) = item.at(&["bridgePort", "master"]) {
            let bridge = work.text(&master).unwrap_or_default();
            ports
                .entry(bridge)
                .or_default()
                .push((name.clone(), master));
        }
        interface(work, item, &name);
    }
    for (bridge, ports) in ports {
        join(work, &bridge, ports);
    }
    if work.refusals.len() == before
        && work.drafts.iter().any(|draft| is_network(draft.kind))
        && !work.stream.roots().any(|node| {
            node.get("kind")
                .and_then(|kind| kind.as_str())
                .is_some_and(is_network)
        })
    {
        work.notes.push(
            "links that no document names got addresses by DHCP so far and will not any more: Talos stops that at the first document for a link"
                .to_owned(),
        );
    }
}

/// Returns whether documents of a kind stop DHCP on links without one.
fn is_network(kind: &str) -> bool {
    LINKS.contains(&kind) || kind.starts_with("DHCP")
}

/// Returns the name of the link that an entry is about: that of the interface, or an alias for what is selected.
fn name(work: &mut Work<'_>, item: &Field<'_>) -> Option<String> {
    let named = item.at(&["interface"]).and_then(|field| work.text(&field));
    let selector = item.at(&["deviceSelector"]);
    match (named.filter(|name| !name.is_empty()), selector) {
        (Some(name), None) => {
            work.taken.push(item.at(&["interface"])?.path);
            Some(name)
        }
        (None, Some(selector)) => {
            if let Some(vlans) = item.at(&["vlans"]).filter(|vlans| !vlans.node.is_empty()) {
                work.refuse(&vlans, "the VLANs of a selected device would get other names; name the interface first");
                return None;
            }
            selectors::alias(work, &selector)
        }
        _ => {
            work.refuse(item, "has to have either `interface` or `deviceSelector`");
            None
        }
    }
}

fn interface(work: &mut Work<'_>, item: &Field<'_>, name: &str) {
    if let Some(ignore) = item.at(&["ignore"]) {
        match work.flag(&ignore) {
            Some(true) => return work.refuse(&ignore, "no document makes Talos ignore a link"),
            Some(false) => work.drop(&ignore, "it is the default"),
            None => {}
        }
    }
    let dummy = item.at(&["dummy"]);
    let is_dummy = dummy
        .as_ref()
        .is_some_and(|field| work.flag(field) == Some(true));
    let sections = [
        ("bond", "BondConfig"),
        ("bridge", "BridgeConfig"),
        ("wireguard", "WireguardConfig"),
    ];
    let mut kinds: Vec<&'static str> = Vec::new();
    kinds.extend(is_dummy.then_some("DummyLinkConfig"));
    for (key, kind) in sections {
        kinds.extend(item.at(&[key]).map(|_| kind));
    }
    if kinds.len() > 1 {
        return work.refuse(item, format!("is to be of {} kinds at once", kinds.len()));
    }
    let kind = kinds.pop().unwrap_or("LinkConfig");
    work.trace(item, kind, name, Vec::new());
    match kind {
        "BondConfig" => bond(work, item, name),
        "BridgeConfig" => bridge(work, item, name),
        "WireguardConfig" => wireguard(work, item, name),
        _ => {}
    }
    if let Some(field) = dummy {
        match is_dummy {
            true => work.moved(&field, kind, name, &[]),
            false => work.drop(&field, "it is the default"),
        }
    }
    common(work, item, kind, name);
    let Some(field) = item.at(&["vlans"]) else {
        return;
    };
    for vlan in work.list(&field) {
        let Some(id) = vlan.at(&["vlanId"]) else {
            work.refuse(&vlan, "has no `vlanId`");
            continue;
        };
        let Some(number) = work.number(&id, 4094) else {
            continue;
        };
        let link = vlan_name(name, number);
        if work.has_draft(VLAN, &link) {
            work.refuse(
                &vlan,
                format!("another entry is the VLAN {number} of {name} too"),
            );
            continue;
        }
        work.put(&id, VLAN, &link, &["vlanID"], number.into());
        work.imply(VLAN, &link, &["vlanMode"], "802.1q".into());
        work.imply(VLAN, &link, &["parent"], name.into());
        common(work, &vlan, VLAN, &link);
    }
}

/// Returns the name that Talos gives the link of a VLAN: that of its parent and the number, where they fit.
fn vlan_name(parent: &str, number: u64) -> String {
    const LONGEST: usize = 10;
    if parent.len() <= LONGEST {
        return format!("{parent}.{number}");
    }
    let start: String = parent.chars().take(4).collect();
    let digest = super::pem::sha256(parent.as_bytes());
    let hash: String = digest
        .iter()
        .take(3)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{start}{hash}.{number}")
}

/// What entries of interfaces and of VLANs share.
fn common(work: &mut Work<'_>, item: &Field<'_>, kind: &'static str, name: &str) {
    if let Some(field) = item.at(&["mtu"])
        && let Some(mtu) = work.number(&field, u64::from(u32::MAX))
    {
        match mtu {
            0 => work.drop(&field, "it is the default"),
            _ => work.put(&field, kind, name, &["mtu"], mtu.into()),
        }
    }
    addresses(work, item, kind, name);
    routes(work, item, kind, name);
    dhcp(work, item, name);
    shared_address(work, item, name);
}

fn addresses(work: &mut Work<'_>, item: &Field<'_>, kind: &'static str, name: &str) {
    let list = item.at(&["addresses"]);
    let single = item.at(&["cidr"]);
    let mut texts = Vec::new();
    if let Some(field) = &list {
        for address in work.list(field) {
            texts.extend(work.text(&address).map(|text| (address, text)));
        }
    }
    let from_list = !texts.is_empty();
    if let Some(field) = &single
        && let Some(text) = work.text(field)
    {
        match text.is_empty() || from_list {
            true => work.drop(field, "`addresses` comes first"),
            false => texts.push((field.clone(), text)),
        }
    }
    let mut values = Vec::new();
    let mut sources = Vec::new();
    for (address, text) in texts {
        let full = if text.contains('/') {
            Some(text)
        } else {
            host(&text)
        };
        let plain = full
            .as_deref()
            .and_then(prefix)
            .filter(|(ip, _)| !ip.is_unspecified());
        match (full, plain) {
            (Some(full), Some(_)) => {
                let to = vec!["addresses".into(), values.len().into()];
                sources.push((address, to));
                values.push(json!({ "address": full }));
            }
            _ => work.refuse(&address, "is no address"),
        }
    }
    let source = if from_list { list } else { single.or(list) };
    if let Some(field) = source.filter(|field| !work.is_taken(&field.path)) {
        match values.is_empty() {
            true => work.drop(&field, "it is empty"),
            false => {
                work.put(&field, kind, name, &["addresses"], values.into());
                for (address, to) in sources {
                    work.trace(&address, kind, name, to);
                }
            }
        }
    }
}

fn routes(work: &mut Work<'_>, item: &Field<'_>, kind: &'static str, name: &str) {
    let Some(field) = item.at(&["routes"]) else {
        return;
    };
    let before = work.refusals.len();
    let mut values = Vec::new();
    let mut sources = Vec::new();
    for route in work.list(&field) {
        let mut value = Map::new();
        let mut fields = BTreeMap::new();
        for (key, below) in work.map(&route) {
            match key.as_str() {
                "network" | "gateway" | "source" => {
                    fields.insert(key, work.text(&below).unwrap_or_default());
                }
                "metric" | "mtu" => {
                    if let Some(number) = work.number(&below, u64::from(u32::MAX)) {
                        fields.insert(key, number.to_string());
                        continue;
                    }
                }
                _ => work.refuse(&below, "is unknown"),
            }
        }
        let text = |key: &str| fields.get(key).map_or("", String::as_str);
        let (network, gateway, source) = (text("network"), text("gateway"), text("source"));
        let to = prefix(network);
        let via = gateway.parse::<IpAddr>().ok();
        let from = source.parse::<IpAddr>().ok();
        if !network.is_empty() && to.is_none()
            || !gateway.is_empty() && via.is_none()
            || !source.is_empty() && from.is_none()
        {
            work.refuse(&route, "has something that is no address");
            continue;
        }
        // A default route has no destination, its family is that of the gateway.
        let default = to.is_none_or(|(ip, bits)| ip.is_unspecified() && bits == 0);
        match (to, via) {
            (Some((ip, _)), Some(via)) if default && ip.is_ipv4() != via.is_ipv4() => {
                work.refuse(
                    &route,
                    "a default route by a gateway of the other family has no equal",
                );
            }
            (_, None) if default => {
                work.refuse(&route, "a default route without a gateway has no equal");
            }
            (Some((ip, _)), _) if !default && ip.is_unspecified() => {
                work.refuse(
                    &route,
                    "a part of all addresses has no equal as destination",
                );
            }
            _ => {}
        }
        if !default {
            value.insert("destination".to_owned(), network.into());
        }
        for key in ["gateway", "source"] {
            if !text(key).is_empty() {
                value.insert(key.to_owned(), text(key).into());
            }
        }
        for key in ["metric", "mtu"] {
            if let Some(number) = text(key).parse::<u64>().ok().filter(|number| *number > 0) {
                value.insert(key.to_owned(), number.into());
            }
        }
        values.push(Value::Object(value));
        sources.push(route);
    }
    if work.refusals.len() > before {
        return;
    }
    if values.is_empty() {
        return work.drop(&field, "it is empty");
    }
    work.put(&field, kind, name, &["routes"], values.into());
    for (index, route) in sources.into_iter().enumerate() {
        let to = vec!["routes".into(), index.into()];
        work.trace(&route, kind, name, to);
    }
}

/// The old form asked without a client identifier and the documents do not, so that is written out.
fn dhcp(work: &mut Work<'_>, item: &Field<'_>, name: &str) {
    let options = item.at(&["dhcpOptions"]);
    let field = item.at(&["dhcp"]);
    let on = field
        .as_ref()
        .is_some_and(|field| work.flag(field) == Some(true));
    if !on {
        for field in [field, options].into_iter().flatten() {
            if !work.is_taken(&field.path) {
                work.drop(&field, "DHCP is off");
            }
        }
        return;
    }
    let mut flag = |key: &str, default: bool| {
        let field = options.as_ref().and_then(|options| options.at(&[key]));
        field.map_or(Some(default), |field| work.flag(&field))
    };
    let (ipv4, ipv6) = (flag("ipv4", true), flag("ipv6", false));
    let mut metric = None;
    let mut duid = None;
    for (key, below) in options.iter().flat_map(Field::entries) {
        match key.as_str() {
            "ipv4" | "ipv6" => work.taken.push(below.path),
            "routeMetric" => {
                metric = work
                    .number(&below, u64::from(u32::MAX))
                    .filter(|metric| *metric > 0);
                work.taken.push(below.path);
            }
            "duidv6" => {
                duid = work.text(&below).filter(|text| !text.is_empty());
                let digits = duid.as_ref().map_or(0, |text| text.replace(':', "").len());
                let hex = |c: char| c.is_ascii_hexdigit() || c == ':';
                if digits % 2 == 1 || !duid.iter().all(|text| text.chars().all(hex)) {
                    work.refuse(&below, "is not the hexadecimal text of bytes");
                }
                work.taken.push(below.path);
            }
            _ => work.refuse(&below, "is unknown"),
        }
    }
    let mut to = Vec::new();
    let mut begin = |work: &mut Work<'_>, kind: &'static str, identifier: &str| {
        if let Some(metric) = metric {
            work.imply(kind, name, &["routeMetric"], metric.into());
        }
        work.imply(kind, name, &["clientIdentifier"], identifier.into());
        to.push(kind);
    };
    if ipv4 == Some(true) {
        begin(work, "DHCPv4Config", "none");
    }
    if ipv6 == Some(true) {
        begin(
            work,
            "DHCPv6Config",
            if duid.is_some() { "duid" } else { "none" },
        );
        if let Some(duid) = duid {
            work.imply("DHCPv6Config", name, &["duidRaw"], duid.into());
        }
    }
    for field in [field, options].into_iter().flatten() {
        match to.first() {
            Some(kind) => work.moved(&field, kind, name, &[]),
            None => work.drop(&field, "DHCP is off"),
        }
    }
}

fn shared_address(work: &mut Work<'_>, item: &Field<'_>, name: &str) {
    let Some(field) = item.at(&["vip"]) else {
        return;
    };
    if let Some(equinix) = field.at(&["equinixMetal"]) {
        return work.refuse(
            &equinix,
            "no document announces a shared address to Equinix Metal",
        );
    }
    let ip = field
        .at(&["ip"])
        .and_then(|field| work.text(&field))
        .unwrap_or_default();
    if ip.parse::<IpAddr>().is_err() {
        return work.refuse(
            &field,
            "has no address in `ip`, which the document is named by",
        );
    }
    let hcloud = field.at(&["hcloud"]);
    let kind = if hcloud.is_some() {
        "HCloudVIPConfig"
    } else {
        "Layer2VIPConfig"
    };
    if work.has_draft(kind, &ip) {
        return work.refuse(
            &field,
            format!("the address {ip} is shared by another link too"),
        );
    }
    work.imply(kind, &ip, &["link"], name.into());
    if let Some(hcloud) = hcloud {
        match hcloud.at(&["apiToken"]) {
            Some(token) => work.copy(&token, kind, &ip, &["apiToken"]),
            None => return work.refuse(&hcloud, "has no `apiToken`"),
        }
    }
    if let Some(below) = field.at(&["ip"]) {
        work.moved(&below, kind, &ip, &[]);
    }
}

fn bond(work: &mut Work<'_>, item: &Field<'_>, name: &str) {
    const KIND: &str = "BondConfig";
    let Some(bond) = item.at(&["bond"]) else {
        return;
    };
    if bond.at(&["mode"]).is_none() {
        work.refuse(&bond, "has no `mode`, which a BondConfig needs");
    }
    let mut links: Vec<Value> = Vec::new();
    for (key, field) in work.map(&bond) {
        match key.as_str() {
            "interfaces" => {
                for link in work.list(&field) {
                    links.extend(work.text(&link).map(Value::from));
                }
                match links.is_empty() {
                    true => work.drop(&field, "it is empty"),
                    false => work.put(&field, KIND, name, &["links"], links.clone().into()),
                }
            }
            "deviceSelectors" => {
                for selector in work.list(&field) {
                    links.extend(selectors::alias(work, &selector).map(Value::from));
                }
                if !links.is_empty() {
                    work.put(&field, KIND, name, &["links"], links.clone().into());
                }
            }
            _ => match BOND.iter().find(|(from, _)| *from == key) {
                // Nothing and zero mean the default in the main document, and what they say in a BondConfig.
                Some(_) if field.node.means(&json!(0)) || field.node.means(&json!("")) => {
                    work.drop(&field, "it is the default");
                }
                Some((_, to)) if key == "useCarrier" => {
                    if let Some(flag) = work.flag(&field) {
                        work.put(&field, KIND, name, &[to], flag.into());
                    }
                }
                Some((_, to)) => work.put(&field, KIND, name, &[to], field.value()),
                None if field.node.means(&json!("")) || field.node.means(&json!([])) => {
                    work.drop(&field, "it is empty");
                }
                None => work.refuse(&field, "a BondConfig has no such setting"),
            },
        }
    }
    if links.is_empty() {
        work.refuse(&bond, "has no links, of which a BondConfig needs one");
    }
}

fn bridge(work: &mut Work<'_>, item: &Field<'_>, name: &str) {
    const KIND: &str = "BridgeConfig";
    let Some(bridge) = item.at(&["bridge"]) else {
        return;
    };
    if let Some(field) = bridge.at(&["interfaces"]) {
        match field.node.is_empty() {
            true => work.drop(&field, "it is empty"),
            false => work.copy(&field, KIND, name, &["links"]),
        }
    }
    let flags: [(&[&str], &[&str]); 2] = [
        (&["stp", "enabled"], &["stp", "enabled"]),
        (&["vlan", "vlanFiltering"], &["vlan", "filtering"]),
    ];
    for (from, to) in flags {
        if let Some(field) = bridge.at(from)
            && let Some(flag) = work.flag(&field)
        {
            work.put(&field, KIND, name, to, flag.into());
        }
    }
    // The main document has it on where it says nothing.
    work.imply(KIND, name, &["stp", "enabled"], true.into());
}

/// Ports that name their bridge become links that the bridge names.
fn join(work: &mut Work<'_>, bridge: &str, ports: Vec<(String, Field<'_>)>) {
    const KIND: &str = "BridgeConfig";
    if !work.has_draft(KIND, bridge) {
        for (_, field) in ports {
            work.refuse(
                &field,
                format!("no interface here is the bridge {bridge:?}"),
            );
        }
        return;
    }
    for (port, field) in ports {
        let draft = work.draft(KIND, bridge);
        let links = draft.fields.entry("links").or_insert_with(|| json!([]));
        if let Value::Array(links) = links
            && !links.contains(&json!(port))
        {
            links.push(port.into());
        }
        work.moved(&field, KIND, bridge, &["links"]);
    }
}

fn wireguard(work: &mut Work<'_>, item: &Field<'_>, name: &str) {
    const KIND: &str = "WireguardConfig";
    let Some(wireguard) = item.at(&["wireguard"]) else {
        return;
    };
    match wireguard.at(&["privateKey"]) {
        Some(field) => work.copy(&field, KIND, name, &["privateKey"]),
        None => work.refuse(
            &wireguard,
            "has no `privateKey`, which a WireguardConfig needs",
        ),
    }
    for key in ["listenPort", "firewallMark"] {
        if let Some(field) = wireguard.at(&[key]) {
            work.put(&field, KIND, name, &[key], field.value());
        }
    }
    let Some(field) = wireguard.at(&["peers"]) else {
        return;
    };
    let before = work.refusals.len();
    for peer in work.list(&field) {
        for (key, below) in work.map(&peer) {
            match key.as_str() {
                "endpoint" => {
                    let text = work.text(&below).unwrap_or_default();
                    if !text.is_empty() && text.parse::<std::net::SocketAddr>().is_err() {
                        work.refuse(&below, "a WireguardConfig takes an address and a port only");
                    }
                }
                "allowedIPs" => {
                    for item in work.list(&below) {
                        if work.text(&item).is_some_and(|text| prefix(&text).is_none()) {
                            work.refuse(&item, "is no subnet");
                        }
                    }
                }
                "publicKey" | "persistentKeepaliveInterval" => {}
                _ => work.refuse(&below, "is unknown"),
            }
        }
    }
    if work.refusals.len() == before {
        work.copy(&field, KIND, name, &["peers"]);
    }
}

/// Returns an address as the prefix of it alone.
fn host(text: &str) -> Option<String> {
    let ip: IpAddr = text.parse().ok()?;
    Some(format!("{text}/{}", if ip.is_ipv4() { 32 } else { 128 }))
}

/// Returns the address and length of a prefix.
pub(super) fn prefix(text: &str) -> Option<(IpAddr, u8)> {
    let (ip, bits) = text.rsplit_once('/')?;
    let ip: IpAddr = ip.parse().ok()?;
    let bits: u8 = bits.parse().ok()?;
    (bits <= if ip.is_ipv4() { 32 } else { 128 }).then_some((ip, bits))
}
