//! Links and disks that are chosen by what they are: fields to match in the main document, an expression in documents.

use super::work::{Field, Work};

/// Gives the device that a selector finds an alias, and returns it.
///
/// An alias names one link and a selector may find several, so the selector has to have something that only one has.
pub(super) fn alias(work: &mut Work<'_>, selector: &Field<'_>) -> Option<String> {
    const KIND: &str = "LinkAliasConfig";
    let mut parts = Vec::new();
    let mut single = false;
    let before = work.refusals.len();
    for (key, field) in work.map(selector) {
        let (what, unique) = match key.as_str() {
            "busPath" => ("link.bus_path", true),
            "hardwareAddr" => ("mac(link.hardware_addr)", true),
            "permanentAddr" => ("mac(link.permanent_addr)", true),
            "pciID" => ("link.pciid", false),
            "driver" => ("link.driver", false),
            "physical" => {
                // A link of a physical device is an Ethernet link without a kind.
                match work.flag(&field) {
                    Some(true) => parts.push("link.type == 1 && link.kind == \"\"".to_owned()),
                    Some(false) => {
                        work.refuse(&field, "links that are not physical have no equal selector")
                    }
                    None => {}
                }
                continue;
            }
            _ => {
                work.refuse(&field, "is unknown");
                continue;
            }
        };
        let Some(text) = work.text(&field) else {
            continue;
        };
        if text.is_empty() {
            continue;
        }
        single |= unique && !text.contains('*');
        parts.push(matching(&text, what));
    }
    if work.refusals.len() > before {
        return None;
    }
    if !single {
        work.refuse(
            selector,
            "may find several links, and an alias names one; select by a whole busPath, hardwareAddr or permanentAddr",
        );
        return None;
    }
    let expression = parts.join(" && ");
    if let Some(name) = work.aliases.get(&expression).cloned() {
        work.moved(selector, KIND, &name, &["selector", "match"]);
        return Some(name);
    }
    // Each of the aliases so far has one of the numbers before.
    let name = (work.drafts.count(KIND)..)
        .map(|number| format!("net{number}"))
        .find(|name| !work.has_draft(KIND, name) && work.existing(KIND, name).is_none())?;
    work.aliases.insert(expression.clone(), name.clone());
    work.put(
        selector,
        KIND,
        &name,
        &["selector", "match"],
        expression.into(),
    );
    Some(name)
}

/// Returns the expression that a disk has to satisfy, of the selector of an installation.
pub(super) fn disk(work: &mut Work<'_>, selector: &Field<'_>) -> Option<String> {
    let before = work.refusals.len();
    // In the order in which Talos joins them.
    let mut parts: Vec<(usize, String)> = vec![
        (6, "disk.transport != \"\"".to_owned()),
        (9, "!disk.readonly".to_owned()),
        (10, "!disk.cdrom".to_owned()),
    ];
    for (key, field) in work.map(selector) {
        let Some(text) = work.text(&field) else {
            continue;
        };
        if text.is_empty() {
            continue;
        }
        let part = match key.as_str() {
            "size" => match size(&text) {
                Some((op, bytes)) => (0, format!("disk.size {op} {bytes}u")),
                None => {
                    work.refuse(&field, "is no size");
                    continue;
                }
            },
            "uuid" => (1, matching_always(&text, "disk.uuid")),
            "wwid" => (2, matching_always(&text, "disk.wwid")),
            "model" => (3, matching_always(&text, "disk.model")),
            "serial" => (4, matching_always(&text, "disk.serial")),
            "modalias" => (5, matching_always(&text, "disk.modalias")),
            "type" => {
                let part = match text.as_str() {
                    "nvme" => "disk.transport == \"nvme\"",
                    "sd" => "disk.transport == \"mmc\"",
                    "hdd" => "disk.rotational",
                    "ssd" => "!disk.rotational",
                    _ => {
                        work.refuse(&field, "is none of nvme, sd, hdd and ssd");
                        continue;
                    }
                };
                (7, part.to_owned())
            }
            "busPath" => (8, matching_always(&text, "disk.bus_path")),
            _ => {
                work.refuse(&field, "Talos does not select by this");
                continue;
            }
        };
        parts.push(part);
    }
    parts.sort_by_key(|(order, _)| *order);
    let texts: Vec<String> = parts.into_iter().map(|(_, text)| text).collect();
    (work.refusals.len() == before).then(|| texts.join(" && "))
}

/// Returns the expression for a text that is one or matches a pattern.
fn matching(pattern: &str, what: &str) -> String {
    match pattern.contains('*') {
        true => matching_always(pattern, what),
        false => format!("{what} == {}", quoted(pattern)),
    }
}

fn matching_always(pattern: &str, what: &str) -> String {
    format!("glob({}, {what})", quoted(pattern))
}

/// Returns a text as expressions have it.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Reads a condition such as `>= 10GB`.
fn size(text: &str) -> Option<(&'static str, u64)> {
    const OPS: [&str; 5] = [">=", "<=", ">", "<", "=="];
    let text = text.trim();
    let (op, rest) = OPS
        .iter()
        .find_map(|op| text.strip_prefix(op).map(|rest| (*op, rest)))
        .unwrap_or(("==", text));
    let rest = rest.trim();
    let digits = rest
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','))
        .unwrap_or(rest.len());
    let (number, unit) = rest.split_at(digits);
    let number = number.replace(',', "");
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1000,
        "m" | "mb" => 1000_u64.pow(2),
        "g" | "gb" => 1000_u64.pow(3),
        "t" | "tb" => 1000_u64.pow(4),
        "p" | "pb" => 1000_u64.pow(5),
        "ki" | "kib" => 1 << 10,
        "mi" | "mib" => 1 << 20,
        "gi" | "gib" => 1 << 30,
        "ti" | "tib" => 1 << 40,
        "pi" | "pib" => 1 << 50,
        _ => return None,
    };
    match number.parse::<u64>() {
        Ok(whole) => Some((op, whole.checked_mul(factor)?)),
        Err(_) => {
            let number: f64 = number
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite() && *number < 1e15)?;
            Some((op, (number * factor as f64) as u64))
        }
    }
}
