//! Rules of routing policy and of the firewall.

use super::{items, missing};
use crate::validate::at::At;
use crate::validate::sink::Sink;
use crate::validate::target::Context;

/// Priorities that the kernel and KubeSpan have taken.
const TAKEN: [u32; 4] = [0, 32500, 32766, 32767];

/// Checks a rule of the firewall.
pub(super) fn firewall_rule(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let selector = root.field("portSelector");
    let list = selector.field("ports");
    let ports: Vec<At<'_>> = items(&list).collect();
    ranges(&ports, sink);
    let ingress = root.field("ingress");
    for rule in items(&ingress) {
        let subnet = rule.field("subnet");
        if subnet.is_blank() {
            missing(&subnet, sink);
        }
    }
}

/// Checks that ranges of ports are ranges and do not overlap.
fn ranges(ports: &[At<'_>], sink: &mut Sink<'_>) {
    let mut ranges: Vec<(u16, u16, &At<'_>)> = Vec::with_capacity(ports.len());
    for at in ports {
        let text = at.text();
        let (low, high) = text.split_once('-').unwrap_or((&text, &text));
        if let (Ok(low), Ok(high)) = (low.parse(), high.parse()) {
            ranges.push((low, high, at));
        }
    }
    ranges.sort_by_key(|(low, ..)| *low);
    let mut before: Option<(u16, u16)> = None;
    for (low, high, at) in ranges {
        if low > high {
            sink.error(
                "bad-value",
                at,
                format!("the range ends at {high}, before its start"),
            );
        } else if let Some((from, to)) = before
            && low <= to
        {
            let other = if from == to {
                from.to_string()
            } else {
                format!("{from}-{to}")
            };
            sink.error("bad-value", at, format!("it overlaps {other}"));
        }
        before = Some((low, high));
    }
}

/// Checks a rule of routing policy.
pub(super) fn policy_rule(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let name = root.field("name");
    let text = name.text();
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u32>() {
        _ if text.is_empty() => missing(&name, sink),
        Ok(priority) if digits && TAKEN.contains(&priority) => {
            sink.error(
                "bad-name",
                &name,
                format!("the priority {priority} is taken by the system"),
            );
        }
        Ok(_) if digits => {}
        _ => {
            sink.error(
                "bad-name",
                &name,
                "the name of a rule is its priority, a number",
            );
        }
    }
    let table = root.field("table");
    let none = table.is_blank() || table.text().eq_ignore_ascii_case("unspec");
    let action = root.field("action").text().to_ascii_lowercase();
    if none && matches!(&*action, "" | "unspec" | "unicast") {
        sink.error(
            "missing-field",
            &table,
            "a rule needs a table, or an action other than unicast",
        );
    }
    let set = |key| root.field(key).number().is_some_and(|number| number != 0);
    if set("fwMask") && !set("fwMark") {
        sink.error(
            "missing-field",
            &root.field("fwMask"),
            "a mask needs a mark: `fwMark`",
        );
    }
}
