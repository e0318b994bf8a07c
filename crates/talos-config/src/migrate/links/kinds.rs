//! What makes a link a bond, a bridge or a tunnel.

use serde_json::{Value, json};

use super::prefix;
use crate::migrate::selectors;
use crate::migrate::work::{Field, Work};

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

pub(super) fn bond(work: &mut Work<'_>, item: &Field<'_>, name: &str) {
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

pub(super) fn bridge(work: &mut Work<'_>, item: &Field<'_>, name: &str) {
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

pub(super) fn wireguard(work: &mut Work<'_>, item: &Field<'_>, name: &str) {
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
