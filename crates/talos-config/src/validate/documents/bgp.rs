//! Rules of BGP.

use std::collections::{BTreeMap, HashSet};
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
    let mut seen: HashSet<String> = HashSet::new();
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
            seen.insert(key);
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
    let mut sources: HashSet<String> = HashSet::new();
    let mut taken = Taken::default();
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
        sources.insert(name);
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
            if let Some((address, length)) = taken.add(prefix) {
                sink.error("conflict", &at, format!("it overlaps {address}/{length}"));
            }
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

/// Prefixes that have no address in common, by family and first address.
#[derive(Default)]
struct Taken(BTreeMap<(bool, u128), (IpAddr, u8)>);

impl Taken {
    /// Adds a prefix, or returns the one it overlaps.
    fn add(&mut self, prefix: (IpAddr, u8)) -> Option<(IpAddr, u8)> {
        let family = prefix.0.is_ipv4();
        let start = bits(prefix.0) & mask(prefix.1);
        let before = self.0.range(..=(family, start)).next_back();
        let after = self.0.range((family, start)..).next();
        let other = [before, after]
            .into_iter()
            .flatten()
            .find(|((of, _), other)| *of == family && overlap(**other, prefix));
        let other = other.map(|(_, other)| *other);
        if other.is_none() {
            self.0.insert((family, start), prefix);
        }
        other
    }
}

/// Returns the bits of a prefix of a length, first bit highest.
fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

/// Returns whether two prefixes of one family have an address in common.
fn overlap((a, a_length): (IpAddr, u8), (b, b_length): (IpAddr, u8)) -> bool {
    let mask = mask(a_length.min(b_length));
    bits(a) & mask == bits(b) & mask
}
