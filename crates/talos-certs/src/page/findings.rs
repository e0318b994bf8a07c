//! What is wrong, and what repairs it.

use maud::{Markup, html};

use crate::Report;
use crate::report::{Fix, Problem};

pub(super) fn section(report: &Report) -> Markup {
    let servers = report.servers.iter().map(|server| {
        let title = format!("{} {}", server.node, server.kind.as_str());
        (title, &server.findings, server.fix.as_ref())
    });
    let clients = report.clients.iter();
    let clients = clients.map(|client| (client.place.clone(), &client.findings, None));
    let found = servers.chain(clients);
    let found: Vec<_> = found
        .filter(|(_, problems, _)| !problems.is_empty())
        .collect();
    html! {
        section #findings aria-labelledby="findings-title" {
            h2 #findings-title { "Findings" }
            @if found.is_empty() {
                p.good { "Nothing was found." }
            }
            @for (title, problems, fix) in found {
                details open {
                    summary { (title) span.count { (problems.len()) } }
                    ul { @for problem in problems { (one(problem)) } }
                    @if let Some(fix) = fix { (repair(fix)) }
                }
            }
        }
    }
}

fn one(problem: &Problem) -> Markup {
    html! {
        li {
            code.word { (problem.code) } " " (problem.message)
            @if let Some(advice) = &problem.advice { p.advice { (advice) } }
        }
    }
}

fn repair(fix: &Fix) -> Markup {
    let node = fix.node.as_deref().unwrap_or("NODE");
    html! {
        div.fix {
            p { code { (fix.setting) } " adds what is missing: " (fix.cost) "." }
            pre tabindex="0" { code { "ichor patch mc -n " (node) " --patch '" (fix.patch) "'" } }
        }
    }
}
