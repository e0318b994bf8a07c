//! Which names each server's certificate covers.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::report::{NameVerdict, Server};
use crate::{Report, ServerKind};

/// Writes a table per kind of server: a row a server, a column a name that several are reached by; what only one server
/// is reached by stands in its last cell, so that large clusters make long tables and not square ones.
pub(super) fn section(report: &Report) -> Markup {
    let kinds = ServerKind::OF_NODES.into_iter().chain([ServerKind::Other]);
    html! {
        section #names aria-labelledby="names-title" {
            h2 #names-title { "Names" }
            label { input #only-missing type="checkbox"; " Only servers that lack a name" }
            @for kind in kinds {
                @let servers = report.servers.iter().filter(|server| server.kind == kind);
                @let servers: Vec<&Server> = servers.filter(|server| !server.names.is_empty()).collect();
                @if !servers.is_empty() { (table(kind, &servers)) }
            }
        }
    }
}

fn table(kind: ServerKind, servers: &[&Server]) -> Markup {
    let mut asked: BTreeMap<&str, usize> = BTreeMap::new();
    for name in servers.iter().flat_map(|server| &server.names) {
        *asked.entry(&name.name).or_default() += 1;
    }
    let shared: Vec<&str> = asked
        .iter()
        .filter(|(_, count)| **count > 1)
        .map(|(name, _)| *name)
        .collect();
    let title = format!("names-{}", kind.as_str());
    html! {
        h3 #(title) { (kind.as_str()) }
        div.scroll role="region" aria-labelledby=(title) tabindex="0" {
            table.matrix {
                thead {
                    tr {
                        th scope="col" { "Node" }
                        @for name in &shared { th scope="col" { (name) } }
                        th scope="col" { "Its own names" }
                    }
                }
                tbody {
                    @for server in servers {
                        @let complete = server.names.iter().all(|name| name.covered_by.is_some());
                        tr.complete[complete] {
                            th scope="row" { (server.node) }
                            @for name in &shared {
                                (cell(server.names.iter().find(|verdict| verdict.name == *name)))
                            }
                            td {
                                @for name in server.names.iter().filter(|name| asked.get(name.name.as_str()) == Some(&1)) {
                                    span class=(class(name)) title=(reason(name)) { (mark(name)) " " (name.name) } " "
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn cell(verdict: Option<&NameVerdict>) -> Markup {
    match verdict {
        Some(verdict) => {
            html! { td class=(class(verdict)) title=(reason(verdict)) { (mark(verdict)) } }
        }
        None => html! { td.unasked { "not asked" } },
    }
}

fn class(verdict: &NameVerdict) -> &'static str {
    if verdict.covered_by.is_some() {
        "covered"
    } else {
        "missing"
    }
}

fn mark(verdict: &NameVerdict) -> &'static str {
    if verdict.covered_by.is_some() {
        "\u{2713}"
    } else {
        "\u{2717} missing"
    }
}

fn reason(verdict: &NameVerdict) -> String {
    let sources: Vec<&str> = verdict
        .sources
        .iter()
        .map(|source| source.as_str())
        .collect();
    let sources = sources.join(", ");
    match &verdict.covered_by {
        Some(name) => format!("{sources}; covered by {name}"),
        None => format!("{sources}; no name of the certificate covers it"),
    }
}
