//! What the main document says about names, resolvers and hosts.

use std::collections::HashMap;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::links::{self, prefix};
use super::work::Work;

pub(super) fn all(work: &mut Work<'_>) {
    hostname(work);
    nameservers(work);
    hosts(work);
    links::all(work);
    kubespan(work);
}

/// A name is set, or made from the machine's identity; made from its address, as before 1.2, it can only be in the main
/// document.
fn hostname(work: &mut Work<'_>) {
    let name = work.at(&["machine", "network", "hostname"]);
    let stable = work.at(&["machine", "features", "stableHostname"]);
    let mut named = false;
    if let Some(field) = name {
        match work.text(&field) {
            Some(text) if text.is_empty() => work.drop(&field, "it is empty"),
            Some(text) => {
                named = true;
                work.put(&field, "HostnameConfig", "", &["hostname"], text.into());
            }
            None => {}
        }
    }
    let Some(field) = stable else { return };
    match work.flag(&field) {
        Some(true) if named => work.drop(&field, "a name that is set comes first"),
        Some(true) => work.put(&field, "HostnameConfig", "", &["auto"], "stable".into()),
        Some(false) => work.drop(&field, "it is the default"),
        None => {}
    }
}

fn nameservers(work: &mut Work<'_>) {
    const KIND: &str = "ResolverConfig";
    let Some(field) = work.at(&["machine", "network", "nameservers"]) else {
        return;
    };
    let mut servers: Vec<Value> = Vec::new();
    for item in work.list(&field) {
        let Some(text) = work.text(&item) else {
            continue;
        };
        match text.parse::<IpAddr>() {
            Ok(_) => servers.push(json!({ "address": text })),
            Err(_) => work.refuse(&item, "is no address, so Talos has not used it so far"),
        }
    }
    if servers.is_empty() {
        return work.drop(&field, "it is empty");
    }
    work.put(&field, KIND, "", &["nameservers"], servers.into());
    for (index, item) in field.items().iter().enumerate() {
        let to = vec!["nameservers".into(), index.into()];
        work.trace(item, KIND, "", to);
    }
}

fn hosts(work: &mut Work<'_>) {
    const KIND: &str = "StaticHostConfig";
    const NAMES: &str = "hostnames";
    let Some(field) = work.at(&["machine", "network", "extraHostEntries"]) else {
        return;
    };
    let mut hosts: HashMap<String, Vec<Value>> = HashMap::new();
    for item in work.list(&field) {
        let address = item.at(&["ip"]).and_then(|field| work.text(&field));
        let Some(address) = address.filter(|text| text.parse::<IpAddr>().is_ok()) else {
            work.refuse(
                &item,
                "has no address in `ip`, which the document is named by",
            );
            continue;
        };
        let mut names = Vec::new();
        if let Some(aliases) = item.at(&["aliases"]) {
            for alias in work.list(&aliases) {
                names.extend(work.text(&alias).map(Value::from));
            }
        }
        if names.is_empty() {
            work.refuse(
                &item,
                "has no name in `aliases`, of which a StaticHostConfig needs one",
            );
            continue;
        }
        // An address that stands twice has the names of both entries.
        hosts.entry(address.clone()).or_default().extend(names);
        for key in ["ip", "aliases"] {
            if let Some(below) = item.at(&[key]) {
                work.taken.push(below.path);
            }
        }
        if item.entries().len() == 2 {
            work.put(&item, KIND, &address, &[NAMES], Value::Null);
        } else {
            work.imply(KIND, &address, &[NAMES], Value::Null);
        }
    }
    for (address, names) in hosts {
        let draft = work.draft(KIND, &address);
        draft.fields.insert(NAMES.to_owned(), names.into());
    }
}

/// An MTU of 0 is the default, and the networks are looked at once they are in a document.
fn kubespan(work: &mut Work<'_>) {
    if !work.target.has(13) {
        return;
    }
    if let Some(field) = work.at(&["machine", "network", "kubespan", "mtu"])
        && field.node.means(&json!(0))
    {
        work.drop(&field, "it is the default");
    }
    let networks = [
        "machine",
        "network",
        "kubespan",
        "filters",
        "excludeAdvertisedNetworks",
    ];
    if let Some(field) = work.at(&networks) {
        for item in work.list(&field) {
            if work.text(&item).is_some_and(|text| prefix(&text).is_none()) {
                work.refuse(&item, "is no subnet");
            }
        }
    }
    if let Some(field) = work.at(&["machine", "network", "kubespan"])
        && field.entries().is_empty()
    {
        work.drop(&field, "it is empty");
    }
}
