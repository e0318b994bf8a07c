//! Rules of links: what they are called, their addresses and routes, and what each kind adds.

use super::{items, missing};
use crate::validate::at::At;
use crate::validate::sink::Sink;
use crate::validate::target::Context;
use crate::validate::value;

/// Longest name of a link, in bytes.
const LONGEST: usize = 15;

/// Tables of routes that the kernel keeps for itself, with the one that stands for none.
const RESERVED_TABLES: [&str; 5] = ["", "unspec", "default", "main", "local"];

/// Checks a link that has nothing of its own to check.
pub(super) fn plain(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    common(root, sink);
}

/// Checks a bond.
pub(super) fn bond(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    if root
        .field("bondMode")
        .text()
        .eq_ignore_ascii_case("802.3ad")
    {
        for key in ["miimon", "updelay", "downdelay"] {
            let at = root.field(key);
            if !at.is_set() {
                sink.warning("missing-field", &at, "a bond of mode 802.3ad should set it");
            }
        }
    }
    common(root, sink);
}

/// Checks a VRF.
pub(super) fn vrf(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let table = root.field("table");
    let name = table.text().to_ascii_lowercase();
    if RESERVED_TABLES.contains(&&*name) {
        match table.is_set() {
            true => {
                sink.error(
                    "bad-value",
                    &table,
                    "a VRF needs a table of its own, between 1 and 252",
                );
            }
            false => missing(&table, sink),
        }
    }
    common(root, sink);
}

/// Checks a pair of virtual links.
pub(super) fn veth(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let (name, peer) = (root.field("name"), root.field("peer"));
    let other = peer.field("name");
    for at in [&name, &other] {
        if at.is_blank() {
            missing(at, sink);
        } else if let Some(wrong) = link_name(&at.text()) {
            sink.error("bad-name", at, wrong);
        }
    }
    if !name.is_blank() && name.text() == other.text() {
        sink.error("bad-name", &other, "the two ends need different names");
    }
    common(root, sink);
    common(&peer, sink);
}

fn link_name(name: &str) -> Option<String> {
    let odd = |letter: char| letter.is_whitespace() || letter.is_control() || is_invisible(letter);
    match name {
        "." | ".." => Some("a link cannot be called that".into()),
        _ if name.len() > LONGEST => Some(format!("a name of a link has at most {LONGEST} bytes")),
        _ if name.contains(['/', ':']) => Some("a name of a link has no `/` and no `:`".into()),
        _ if name.contains(odd) => {
            Some("a name of a link has only printable characters and no spaces".into())
        }
        _ => None,
    }
}

/// Returns whether a letter only changes how others are shown.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e000}'..='\u{f8ff}' | '\u{fff9}'..='\u{ffff}')
}

/// Checks a WireGuard link.
pub(super) fn wireguard(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    key(&root.field("privateKey"), true, sink);
    let peers = root.field("peers");
    for peer in items(&peers) {
        key(&peer.field("publicKey"), true, sink);
        key(&peer.field("presharedKey"), false, sink);
        let interval = peer.field("persistentKeepaliveInterval");
        if value::duration(&interval.text()).is_some_and(|interval| interval < 0) {
            sink.error("bad-value", &interval, "it must not be negative");
        }
    }
    common(root, sink);
}

fn key(at: &At<'_>, needed: bool, sink: &mut Sink<'_>) {
    if at.is_blank() {
        if needed {
            missing(at, sink);
        }
    } else if value::base64(&at.text()).is_none_or(|key| key.len() != 32) {
        sink.error("bad-value", at, "a WireGuard key is base64 of 32 bytes");
    }
}

/// Checks what all links have: addresses and routes.
fn common(at: &At<'_>, sink: &mut Sink<'_>) {
    let addresses = at.field("addresses");
    for item in items(&addresses) {
        let address = item.field("address");
        if address.is_blank() {
            missing(&address, sink);
        } else {
            specified(&address, sink);
        }
    }
    let routes = at.field("routes");
    for route in items(&routes) {
        for key in ["destination", "gateway", "source"] {
            specified(&route.field(key), sink);
        }
    }
}

/// Reports an address or prefix of the address that means any.
fn specified(at: &At<'_>, sink: &mut Sink<'_>) {
    let text = at.text();
    let address = text.split('/').next().unwrap_or_default();
    if value::ip(address).is_some_and(|address| address.is_unspecified()) {
        let finding = sink.error("bad-value", at, format!("{text} means any address"));
        if text.contains('/') {
            finding.hint("a default route has no `destination`");
        }
    }
}

/// Checks an alias of links.
pub(super) fn alias(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let name = root.field("name");
    let text = name.text();
    match text.split_once('%') {
        None if text.is_empty() => missing(&name, sink),
        Some((before, after)) if before.is_empty() || after != "d" => {
            sink.error(
                "bad-name",
                &name,
                "a name for several links ends in `%d`, as `net%d` does",
            );
        }
        _ => {}
    }
}
