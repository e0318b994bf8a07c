//! Verbs that show the talosconfig.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use talos_config::talosconfig::Context;

use crate::error::{Error, Outcome};
use crate::output::columns;
use crate::session::Session;
use crate::times;

/// How many nodes of a context a table shows.
const MOST_NODES: usize = 3;

/// The contexts of a talosconfig.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Contexts {
    /// The contexts, sorted by name.
    contexts: Vec<Listed>,
}

/// One context of a talosconfig.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    /// Its name.
    name: String,
    /// Whether it is the current one.
    current: bool,
    /// Its endpoints.
    endpoints: Vec<String>,
    /// Its nodes.
    nodes: Vec<String>,
}

/// What a context is.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Info {
    /// Its name.
    context: String,
    /// Its nodes.
    nodes: Vec<String>,
    /// Its endpoints.
    endpoints: Vec<String>,
    /// The roles that its client certificate gives.
    roles: Vec<String>,
    /// How long the client certificate is still good for, such as `8760h0m0s`; null without one.
    #[serde(rename = "certTTL")]
    cert_ttl: Option<String>,
    /// When the client certificate ends; null without one.
    #[schemars(with = "Option<String>")]
    cert_not_after: Option<Timestamp>,
}

pub(super) fn contexts(session: &mut Session) -> Result<Outcome, Error> {
    let config = session.talosconfig()?;
    let listed = |(name, context): (&String, &Context)| Listed {
        name: name.clone(),
        current: config.current() == Some(name),
        endpoints: context.endpoints.clone(),
        nodes: context.nodes.clone(),
    };
    let document = Contexts {
        contexts: config.contexts().iter().map(listed).collect(),
    };
    if session.output.data(&document)? {
        return Ok(Outcome::Done);
    }
    let mut table = columns(["CURRENT", "NAME", "ENDPOINTS", "NODES"]);
    for context in &document.contexts {
        let mark = if context.current { "*" } else { "" };
        let mut nodes = context.nodes.clone();
        if nodes.len() > MOST_NODES {
            nodes.truncate(MOST_NODES);
            nodes.push("...".to_owned());
        }
        table.add_row([
            mark,
            &context.name,
            &context.endpoints.join(","),
            &nodes.join(","),
        ]);
    }
    session.output.table(&table)?;
    Ok(Outcome::Done)
}

pub(super) fn info(session: &mut Session) -> Result<Outcome, Error> {
    let config = session.talosconfig()?;
    let (name, context) = config.select(session.global.context.as_deref())?;
    let identity = config.credentials(name)?.identity;
    let leaf = identity
        .as_ref()
        .and_then(|identity| identity.chain.first());
    let now = Timestamp::now();
    let not_after = leaf.map(talos_pki::Certificate::not_after);
    let document = Info {
        context: name.to_owned(),
        nodes: context.nodes.clone(),
        endpoints: context.endpoints.clone(),
        roles: leaf.map_or_else(Vec::new, |leaf| leaf.organizations().to_vec()),
        cert_ttl: not_after.map(|end| duration(end.duration_since(now).as_secs())),
        cert_not_after: not_after,
    };
    if session.output.data(&document)? {
        return Ok(Outcome::Done);
    }
    let expires = match not_after {
        None => "no client certificate".to_owned(),
        Some(end) => format!(
            "{} ({})",
            times::ago(end, now),
            end.to_zoned_datetime(TimeZone::UTC).date()
        ),
    };
    for (label, value) in [
        ("Current context:", document.context.clone()),
        ("Nodes:", listed_or(&document.nodes, "not defined")),
        ("Endpoints:", listed_or(&document.endpoints, "not defined")),
        ("Roles:", listed_or(&document.roles, "none")),
        ("Certificate expires:", expires),
    ] {
        session.output.line(&format!("{label:<20} {value}"))?;
    }
    Ok(Outcome::Done)
}

fn listed_or(items: &[String], none: &str) -> String {
    match items {
        [] => none.to_owned(),
        items => items.join(", "),
    }
}

/// Writes seconds as Go does; what is past is negative.
fn duration(seconds: i64) -> String {
    let sign = if seconds < 0 { "-" } else { "" };
    let seconds = seconds.unsigned_abs();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{sign}{hours}h{minutes}m{}s", seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_does() {
        assert_eq!(duration(31_536_000), "8760h0m0s");
        assert_eq!(duration(3_725), "1h2m5s");
        assert_eq!(duration(-60), "-0h1m0s");
    }
}
