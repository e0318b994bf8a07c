//! Rules of BGP.

use std::net::IpAddr;

use super::{items, missing};
use crate::validate::at::At;
use crate::validate::sink::Sink;
use crate::validate::target::Context;
use crate::validate::value;

/// Checks an instance of BGP.
pub(super) fn instance(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let router = root.field("routerID");
    if value::address(&router.text()).is_some_and(|address| address.is_ipv6()) {
        sink.error("bad-value", &router, "an IPv4 address is expected");
    }
    neighbors(
        &root.field("neighbors"),
        !root.field("vrf").is_blank(),
        sink,
    );
    imports(
        &root.field("importRoutes"),
        &root.field("name").text(),
        sink,
    );
}

fn neighbors(list: &At<'_>, in_vrf: bool, sink: &mut Sink<'_>) {
    let mut seen: Vec<String> = Vec::new();
    let mut any = false;
    for neighbor in items(list) {
        any = true;
        let (address, link) = (neighbor.field("address"), neighbor.field("link"));
        let key = match (address.is_blank(), link.is_blank()) {
            (false, true) => {
                let text = address.text();
                let same = value::ip(&text).map(|address| address.to_string());
                Some(same.unwrap_or_else(|| text.into_owned()))
            }
            (true, false) => Some(link.text().into_owned()),
            _ => {
                sink.error(
                    "conflict",
                    &neighbor,
                    "a neighbor has either an `address` or a `link`",
                );
                None
            }
        };
        if let Some(key) = key {
            if seen.contains(&key) {
                sink.error(
                    "duplicate",
                    &neighbor,
                    format!("there is a neighbor {key} already"),
                );
            }
            seen.push(key);
        }
        let bfd = neighbor.field("bfd");
        if bfd.is_set() && in_vrf {
            sink.error("conflict", &bfd, "BFD does not work in a VRF");
        }
        for at in [
            neighbor.field("holdTime"),
            bfd.field("transmitInterval"),
            bfd.field("receiveInterval"),
        ] {
            if value::duration(&at.text()).is_some_and(|duration| duration < 0) {
                sink.error("bad-value", &at, "it must not be negative");
            }
        }
    }
    if !any {
        sink.warning(
            "missing-field",
            list,
            "an instance without neighbors does nothing",
        );
    }
}

fn imports(list: &At<'_>, own: &str, sink: &mut Sink<'_>) {
    let mut sources: Vec<String> = Vec::new();
    let mut taken: Vec<(IpAddr, u8)> = Vec::new();
    for route in items(list) {
        let source = route.field("bgpInstance");
        let name = source.text().into_owned();
        if name.is_empty() {
            missing(&source, sink);
        } else if name == own {
            sink.error(
                "bad-value",
                &source,
                "an instance cannot import from itself",
            );
        }
        if !name.is_empty() && sources.contains(&name) {
            sink.error(
                "duplicate",
                &source,
                format!("routes of {name} are imported already"),
            );
        }
        sources.push(name);
        let prefixes = route.field("prefixes");
        let mut any = false;
        for at in items(&prefixes) {
            any = true;
            if at.is_blank() {
                missing(&at, sink);
            }
            let Some(prefix) = value::prefix(&at.text()) else {
                continue;
            };
            if !is_masked(prefix) {
                sink.error(
                    "bad-value",
                    &at,
                    "bits after the length of the prefix must be zero",
                );
            }
            if let Some(other) = taken.iter().find(|other| overlap(**other, prefix)) {
                let (address, length) = other;
                sink.error("conflict", &at, format!("it overlaps {address}/{length}"));
            }
            taken.push(prefix);
        }
        if !any {
            missing(&prefixes, sink);
        }
    }
}

/// Returns the bits of an address, first bit highest.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Returns whether a prefix has only zeros after its length.
pub(super) fn is_masked((address, length): (IpAddr, u8)) -> bool {
    bits(address)
        .checked_shl(length.into())
        .is_none_or(|rest| rest == 0)
}

/// Returns whether two prefixes have an address in common.
fn overlap((a, a_length): (IpAddr, u8), (b, b_length): (IpAddr, u8)) -> bool {
    let drop = 128 - u32::from(a_length.min(b_length));
    let start = |address| bits(address).checked_shr(drop);
    a.is_ipv4() == b.is_ipv4() && start(a) == start(b)
}
