//! An inventory for people.

use std::collections::BTreeMap;

use jiff::Timestamp;
use talos_certs::{Inventory, Listed, ListedPlace, NotChecked, Renewal, Validity};

use crate::error::Error;
use crate::output::{Output, column_list, columns, one_line};
use crate::times::ago;

/// Further places of a certificate that are shown.
const PLACES: usize = 2;
/// Names of a certificate that are shown.
const NAMES: usize = 12;
/// Nodes that one warning names.
const NODES: usize = 5;

/// Prints one row for each certificate, and one more for each further place.
pub(super) fn inventory(
    output: &mut Output,
    inventory: &Inventory,
    wide: bool,
    now: Timestamp,
) -> Result<(), Error> {
    if inventory.certificates.is_empty() {
        output.line("No certificates.")?;
    } else {
        certificates(output, inventory, wide, now)?;
    }
    requests(output, inventory, now)?;
    for (why, nodes) in together(&inventory.not_checked) {
        output.warn(&format!("not checked: {nodes}: {why}"));
    }
    Ok(())
}

fn certificates(
    output: &mut Output,
    inventory: &Inventory,
    wide: bool,
    now: Timestamp,
) -> Result<(), Error> {
    let mut headers = vec![
        "ENDS",
        "NODE",
        "CERTIFICATE",
        "WHERE",
        "SUBJECT",
        "ISSUED BY",
        "KEY",
        "RENEWED BY",
    ];
    if wide {
        headers.extend(["NOT BEFORE", "NOT AFTER", "NAMES", "FINGERPRINT"]);
    }
    let width = headers.len();
    let mut table = column_list(headers.into_iter().map(str::to_owned).collect());
    for listed in &inventory.certificates {
        let shown = if wide { usize::MAX } else { PLACES };
        let mut places = listed.places.iter();
        if let Some(first) = places.next() {
            table.add_row(row(listed, first, wide, now));
        }
        for place in places.by_ref().take(shown) {
            table.add_row(blank(
                width,
                &node(place),
                &place.purpose,
                &short(&place.place),
            ));
        }
        let rest = places.count();
        if rest > 0 {
            table.add_row(blank(width, "", "", &format!("and {rest} more places")));
        }
    }
    output.table(&table)
}

fn row(listed: &Listed, place: &ListedPlace, wide: bool, now: Timestamp) -> Vec<String> {
    let certificate = &listed.certificate;
    let moment = |text: &str| match text.parse::<Timestamp>() {
        Ok(time) => ago(time, now),
        Err(_) => text.to_owned(),
    };
    let ends = match listed.validity {
        Validity::Valid => moment(&certificate.not_after),
        Validity::Expired => format!("EXPIRED {}", moment(&certificate.not_after)),
        Validity::NotYetValid => {
            format!("NOT YET VALID, begins {}", moment(&certificate.not_before))
        }
    };
    let issuer = match &listed.issued_by {
        Some(issuer) => issuer.name.clone(),
        None if certificate.issuer.is_empty() => "unknown".to_owned(),
        None => format!("unknown ({})", one_line(&certificate.issuer)),
    };
    let mut cells = vec![
        ends,
        node(place),
        listed.purpose.clone(),
        short(&place.place),
        one_line(&certificate.subject),
        issuer,
        certificate.algorithm.clone(),
        renewed(&listed.renewal, now),
    ];
    if wide {
        let mut names: Vec<&str> = certificate.names.iter().map(String::as_str).collect();
        let more = names.len().saturating_sub(NAMES);
        names.truncate(NAMES);
        let mut names = names.join(",");
        if more > 0 {
            names.push_str(&format!(" and {more} more"));
        }
        cells.extend([
            certificate.not_before.clone(),
            certificate.not_after.clone(),
            one_line(&names),
            certificate.fingerprint.clone(),
        ]);
    }
    cells
}

fn blank(width: usize, node: &str, purpose: &str, place: &str) -> Vec<String> {
    let mut cells = vec![String::new(); width];
    for (cell, text) in cells.iter_mut().skip(1).zip([node, purpose, place]) {
        text.clone_into(cell);
    }
    cells
}

/// Leaves out of a resource's type what all of them have in common.
fn short(place: &str) -> String {
    one_line(&place.replacen(".secrets.talos.dev", "", 1))
}

fn node(place: &ListedPlace) -> String {
    place.node.clone().unwrap_or_else(|| "-".to_owned())
}

fn renewed(renewal: &Renewal, now: Timestamp) -> String {
    let at = renewal.at.as_deref().map(|text| match text.parse() {
        Ok(time) => ago(time, now),
        Err(_) => text.to_owned(),
    });
    match (at, &renewal.note) {
        (Some(at), _) => format!("{}, {at}", renewal.by),
        (None, Some(note)) => format!("{} ({note})", renewal.by),
        (None, None) => renewal.by.clone(),
    }
}

/// Prints the requests that wait for somebody, or were turned down.
fn requests(output: &mut Output, inventory: &Inventory, now: Timestamp) -> Result<(), Error> {
    let mut table = columns(["REQUEST", "STATE", "SIGNER", "REQUESTER", "SUBJECT", "MADE"]);
    let open = inventory.requests.iter();
    let open = open.filter(|request| request.state != "issued");
    let mut any = false;
    for request in open {
        any = true;
        let made = request
            .created
            .as_deref()
            .and_then(|text| text.parse().ok());
        table.add_row([
            request.name.clone(),
            request.state.clone(),
            request.signer.clone(),
            one_line(&request.requester),
            one_line(&request.subject),
            made.map_or_else(|| "-".to_owned(), |made| ago(made, now)),
        ]);
    }
    if any {
        output.line("")?;
        output.table(&table)?;
    }
    Ok(())
}

/// Puts what cannot be looked at for the same reason into one line.
fn together(not_checked: &[NotChecked]) -> Vec<(String, String)> {
    let mut order = Vec::new();
    let mut reasons: BTreeMap<(Option<&str>, &str), Vec<&str>> = BTreeMap::new();
    for left_out in not_checked {
        let kind = left_out.kind.map(talos_certs::ServerKind::as_str);
        let key = (kind, left_out.why.as_str());
        let nodes = reasons.entry(key).or_insert_with(|| {
            order.push(key);
            Vec::new()
        });
        nodes.push(&left_out.node);
    }
    order
        .into_iter()
        .map(|key| {
            let nodes = reasons.get(&key).map(Vec::as_slice).unwrap_or_default();
            let more = nodes.len().saturating_sub(NODES);
            let mut named = nodes
                .iter()
                .take(NODES)
                .copied()
                .collect::<Vec<_>>()
                .join(", ");
            if more > 0 {
                named.push_str(&format!(" and {more} more"));
            }
            let named = match key.0 {
                Some(kind) => format!("{kind} of {named}"),
                None => named,
            };
            (key.1.to_owned(), named)
        })
        .collect()
}
