//! What entries of interfaces and of VLANs share: addresses, routes, DHCP and shared addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::{Map, Value, json};

use crate::migrate::work::{Field, Work};

/// Moves what entries of interfaces and of VLANs share.
pub(super) fn common(work: &mut Work<'_>, item: &Field<'_>, kind: &'static str, name: &str) {
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
    for item in work.list(&field) {
        if let Some(value) = route(work, &item) {
            values.push(value);
            sources.push(item);
        }
    }
    if work.refusals.len() > before {
        return;
    }
    if values.is_empty() {
        return work.drop(&field, "it is empty");
    }
    work.put(&field, kind, name, &["routes"], values.into());
    for (index, item) in sources.into_iter().enumerate() {
        let to = vec!["routes".into(), index.into()];
        work.trace(&item, kind, name, to);
    }
}

fn route(work: &mut Work<'_>, route: &Field<'_>) -> Option<Value> {
    let mut value = Map::new();
    let mut fields = BTreeMap::new();
    for (key, below) in work.map(route) {
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
        work.refuse(route, "has something that is no address");
        return None;
    }
    // A default route has no destination, its family is that of the gateway.
    let default = to.is_none_or(|(ip, bits)| ip.is_unspecified() && bits == 0);
    match (to, via) {
        (Some((ip, _)), Some(via)) if default && ip.is_ipv4() != via.is_ipv4() => {
            work.refuse(
                route,
                "a default route by a gateway of the other family has no equal",
            );
        }
        (_, None) if default => {
            work.refuse(route, "a default route without a gateway has no equal");
        }
        (Some((ip, _)), _) if !default && ip.is_unspecified() => {
            work.refuse(route, "a part of all addresses has no equal as destination");
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
    Some(Value::Object(value))
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

/// Returns an address as the prefix of it alone.
fn host(text: &str) -> Option<String> {
    let ip: IpAddr = text.parse().ok()?;
    Some(format!("{text}/{}", if ip.is_ipv4() { 32 } else { 128 }))
}

/// Returns the address and length of a prefix.
pub(in crate::migrate) fn prefix(text: &str) -> Option<(IpAddr, u8)> {
    let (ip, bits) = text.rsplit_once('/')?;
    let ip: IpAddr = ip.parse().ok()?;
    let bits: u8 = bits.parse().ok()?;
    (bits <= if ip.is_ipv4() { 32 } else { 128 }).then_some((ip, bits))
}
