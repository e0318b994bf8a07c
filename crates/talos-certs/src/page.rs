//! A report as one page for people: no script, nothing fetched, readable in light and dark.

mod findings;
mod matrix;
mod timeline;

use jiff::Timestamp;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::{Inventory, Report};

const STYLE: &str = include_str!("page/style.css");

/// Writes a report and the inventory beside it as a self-contained HTML page; `now` is the moment that the report was made at.
pub fn page(report: &Report, inventory: &Inventory, now: Timestamp) -> String {
    let title = match &report.endpoint {
        Some(endpoint) => format!("Certificates of {}", endpoint.url),
        None => "Certificates".to_owned(),
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                // Nothing may be loaded and nothing may run, whatever a name in a certificate tries.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#findings" { "Skip to the findings" }
                header {
                    h1 { (title) }
                    p { "Looked at on " time datetime=(now) { (moment(now)) } ", UTC." }
                    (summary(report))
                    nav aria-label="Sections" {
                        a href="#findings" { "Findings" }
                        a href="#timeline" { "Expiry" }
                        a href="#names" { "Names" }
                        a href="#not-checked" { "Not looked at" }
                    }
                }
                main {
                    (findings::section(report))
                    (timeline::section(inventory, now))
                    (matrix::section(report))
                    (not_checked(report))
                }
            }
        }
    };
    page.into_string()
}

fn summary(report: &Report) -> Markup {
    let servers = report.servers.iter().map(|server| server.findings.len());
    let clients = report.clients.iter().map(|client| client.findings.len());
    let found: usize = servers.chain(clients).sum();
    let figures = [
        (found, "findings", found > 0),
        (report.servers.len(), "servers", false),
        (report.clients.len(), "client certificates", false),
        (report.not_checked.len(), "not looked at", report.incomplete),
    ];
    html! {
        dl.figures {
            @for (figure, what, bad) in figures {
                div.bad[bad] { dt { (what) } dd { (figure) } }
            }
        }
    }
}

fn not_checked(report: &Report) -> Markup {
    html! {
        section #not-checked aria-labelledby="not-checked-title" {
            h2 #not-checked-title { "Not looked at" }
            @if report.not_checked.is_empty() {
                p { "Everything that was asked for could be looked at." }
            } @else {
                div.scroll role="region" aria-labelledby="not-checked-title" tabindex="0" {
                    table {
                        thead { tr { th scope="col" { "Node" } th scope="col" { "Server" } th scope="col" { "Why" } } }
                        tbody {
                            @for left_out in &report.not_checked {
                                tr {
                                    th scope="row" { (left_out.node) }
                                    td { @if let Some(kind) = left_out.kind { (kind.as_str()) } }
                                    td { (left_out.why) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Writes a moment to the minute, as people read it.
fn moment(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests;
