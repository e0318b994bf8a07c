//! A report on certificates for people.

use jiff::Timestamp;
use talos_certs::{Fix, Problem, Report, Server, Source};

use crate::error::Error;
use crate::output::{Output, columns};
use crate::times::ago;

/// Prints servers, names and findings, each finding with the command that repairs it.
pub(super) fn report(output: &mut Output, report: &Report, now: Timestamp) -> Result<(), Error> {
    if let Some(endpoint) = &report.endpoint {
        let source = endpoint.source.as_str();
        output.line(&format!(
            "Cluster endpoint: {} (from {source})",
            endpoint.url
        ))?;
        output.line("")?;
    }
    certificates(output, report, now)?;
    names(output, report)?;
    for server in &report.servers {
        let title = format!("{} {}", server.node, server.kind.as_str());
        findings(output, &title, &server.findings)?;
        if let Some(fix) = &server.fix {
            fix_line(output, fix)?;
        }
    }
    for client in &report.clients {
        findings(output, &client.place, &client.findings)?;
    }
    if !report.has_findings() && !report.servers.is_empty() {
        output.line("")?;
        output.line("No findings.")?;
    }
    not_checked(output, report);
    Ok(())
}

/// Warns of what could not be looked at.
pub(super) fn not_checked(output: &mut Output, report: &Report) {
    for left_out in &report.not_checked {
        let server = left_out.kind.map(|kind| format!(" {}", kind.as_str()));
        let server = server.unwrap_or_default();
        output.warn(&format!(
            "not checked: {}{server}: {}",
            left_out.node, left_out.why
        ));
    }
}

fn certificates(output: &mut Output, report: &Report, now: Timestamp) -> Result<(), Error> {
    let mut table = columns(["WHERE", "CERTIFICATE", "SEEN", "SUBJECT", "ISSUER", "ENDS"]);
    for server in &report.servers {
        let seen = match (server.source, &server.address) {
            (Source::Resource, _) => "in the node's resources".to_owned(),
            (Source::Served, Some(address)) => format!("served at {address}"),
            (Source::Served, None) => "served".to_owned(),
        };
        let certificate = &server.certificate;
        table.add_row([
            server.node.clone(),
            server.kind.as_str().to_owned(),
            seen,
            certificate.subject.clone(),
            certificate.issuer.clone(),
            ends(&certificate.not_after, now),
        ]);
    }
    for client in &report.clients {
        let certificate = &client.certificate;
        table.add_row([
            client.place.clone(),
            "client".to_owned(),
            "in the file".to_owned(),
            certificate.subject.clone(),
            certificate.issuer.clone(),
            ends(&certificate.not_after, now),
        ]);
    }
    if report.servers.is_empty() && report.clients.is_empty() {
        return Ok(());
    }
    output.table(&table)
}

fn names(output: &mut Output, report: &Report) -> Result<(), Error> {
    let mut table = columns(["NODE", "SERVER", "NAME", "BECAUSE", "COVERED BY"]);
    let mut any = false;
    let rows = report.servers.iter();
    let rows = rows.flat_map(|server| server.names.iter().map(move |name| (server, name)));
    for (server, name) in rows {
        any = true;
        let sources: Vec<&str> = name.sources.iter().map(|source| source.as_str()).collect();
        let covered = name.covered_by.as_deref().unwrap_or("MISSING");
        let sources = sources.join(", ");
        let Server { node, kind, .. } = server;
        table.add_row([node, kind.as_str(), &name.name, &sources, covered]);
    }
    if any {
        output.line("")?;
        output.table(&table)?;
    }
    Ok(())
}

fn findings(output: &mut Output, title: &str, problems: &[Problem]) -> Result<(), Error> {
    if problems.is_empty() {
        return Ok(());
    }
    output.line("")?;
    output.line(&format!("{title}:"))?;
    for problem in problems {
        output.line(&format!("  {}: {}", problem.code, problem.message))?;
        if let Some(advice) = &problem.advice {
            output.line(&format!("    {advice}"))?;
        }
    }
    Ok(())
}

fn fix_line(output: &mut Output, fix: &Fix) -> Result<(), Error> {
    let node = fix.node.as_deref().unwrap_or("NODE");
    output.line(&format!(
        "  {} adds what is missing ({}):",
        fix.setting, fix.cost
    ))?;
    output.line(&format!(
        "    ichor patch mc -n {node} --patch '{}'",
        fix.patch
    ))
}

fn ends(not_after: &str, now: Timestamp) -> String {
    match not_after.parse::<Timestamp>() {
        Ok(end) => ago(end, now),
        Err(_) => not_after.to_owned(),
    }
}
