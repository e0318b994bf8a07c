//! Bonds, whose options depend on their mode.

use crate::validate::at::At;
use crate::validate::sink::Sink;

/// Checks a bond.
pub(super) fn check(bond: &At<'_>, sink: &mut Sink<'_>) {
    words(bond, sink);
    delays(bond, sink);
    unsupported(bond, sink);
    let mode = bond.field("mode");
    let mode = mode.text();
    let mode = if mode.is_empty() { "balance-rr" } else { &mode };
    let lacp = mode == "802.3ad";
    let balancing = matches!(mode, "balance-tlb" | "balance-alb");
    let backup = mode == "active-backup";
    // Which options a mode has, and whether 1 is as good as nothing.
    let options = [
        ("lacpRate", lacp, false),
        ("arpValidate", !lacp && !balancing, false),
        ("primary", backup || balancing, false),
        ("arpInterval", !lacp && !balancing, false),
        ("packetsPerSlave", mode == "balance-rr", true),
        ("tlbDynamicLb", balancing, false),
        ("adActorSysPrio", lacp, false),
        ("adUserPortKey", lacp, false),
    ];
    for (key, available, one) in options {
        let option = bond.field(key);
        let set = match option.number() {
            Some(number) => number > i128::from(one),
            None => !option.is_blank(),
        };
        if set && !available {
            let message = format!("has no meaning in mode {mode}");
            sink.error("conflict", &option, message);
        }
    }
}

/// Checks options that are one of some words; nothing is a default.
fn words(bond: &At<'_>, sink: &mut Sink<'_>) {
    const OPTIONS: [(&str, &[&str]); 8] = [
        (
            "mode",
            &[
                "balance-rr",
                "active-backup",
                "balance-xor",
                "broadcast",
                "802.3ad",
                "balance-tlb",
                "balance-alb",
            ],
        ),
        (
            "xmitHashPolicy",
            &["layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4"],
        ),
        ("lacpRate", &["slow", "fast"]),
        (
            "arpValidate",
            &[
                "none",
                "active",
                "backup",
                "all",
                "filter",
                "filter-active",
                "filter-backup",
            ],
        ),
        ("arpAllTargets", &["any", "all"]),
        ("primaryReselect", &["always", "better", "failure"]),
        ("failOverMac", &["none", "active", "follow"]),
        ("adSelect", &["stable", "bandwidth", "count"]),
    ];
    for (key, words) in OPTIONS {
        let option = bond.field(key);
        if !option.is_blank() && !words.contains(&&*option.text()) {
            let message = format!("is not one of {}", words.join(", "));
            sink.error("bad-value", &option, message);
        }
    }
}

fn delays(bond: &At<'_>, sink: &mut Sink<'_>) {
    let interval = bond.field("miimon").number().unwrap_or(0);
    for key in ["updelay", "downdelay"] {
        let delay = bond.field(key);
        let number = delay.number().unwrap_or(0);
        let fault = match interval {
            0 => number != 0,
            _ => number % interval != 0,
        };
        if fault {
            sink.error("conflict", &delay, "is not a multiple of `miimon`");
        }
    }
}

fn unsupported(bond: &At<'_>, sink: &mut Sink<'_>) {
    let targets = bond.field("arpIPTarget");
    if targets.len() > 0 {
        sink.error("forbidden", &targets, "is not supported");
    }
    let actor = bond.field("adActorSystem");
    if !actor.is_blank() {
        sink.error("forbidden", &actor, "is not supported");
    }
}
