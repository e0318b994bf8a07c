//! The interfaces of the main document: each becomes a document of the kind of its link, and more for DHCP and shared
//! addresses.

mod addressing;
mod kinds;

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use super::facts::LINKS;
use super::selectors;
use super::work::{Field, Work};

use addressing::common;
pub(super) use addressing::prefix;
use kinds::{bond, bridge, wireguard};

const VLAN: &str = "VLANConfig";

pub(super) fn all(work: &mut Work<'_>) {
    let Some(field) = work.at(&["machine", "network", "interfaces"]) else {
        return;
    };
    let items = work.list(&field);
    let before = work.refusals.len();
    let mut ports: BTreeMap<String, Vec<(String, Field<'_>)>> = BTreeMap::new();
    let mut seen: HashSet<String> = HashSet::new();
    for item in &items {
        let Some(name) = name(work, item) else {
            continue;
        };
        if !seen.insert(name.clone()) {
            work.refuse(item, format!("another entry has the interface {name} too"));
            continue;
        }
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
