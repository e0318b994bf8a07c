//! `ichor schema`: the JSON Schema of what commands print with `-o json`.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use super::patch::change;
use super::{
    bootstrap, certs, config, events, generate, get, kubeconfig, logs, machineconfig, reboot,
    service, sim, upgrade_k8s, validate, version,
};
use crate::error::{Code, Error, Outcome};
use crate::output::Output;
use crate::report::Report;
use crate::session::Session;

/// Print the JSON Schema of a command's JSON output
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The command, such as `get` or `sim up`; without one, the commands that have a schema are listed
    command: Vec<String>,
}

/// Makes the schema of a command's document.
type Make = fn() -> Schema;

/// The commands whose output has a schema; `ndjson` behind a command is one line of its stream.
const SCHEMAS: &[(&str, Make)] = &[
    ("apply-config", of::<Report<change::Change>>),
    ("bootstrap", of::<Report<bootstrap::Bootstrapped>>),
    ("certs check", of::<talos_certs::Report>),
    ("certs fix", of::<certs::fix::Fixed>),
    ("certs inspect", of::<certs::inspect::Inspected>),
    ("certs list", of::<talos_certs::Inventory>),
    ("certs renew kubeconfig", of::<certs::renew::Document>),
    ("certs renew talosconfig", of::<certs::renew::Document>),
    ("certs rotate-ca", of::<certs::rotate_ca::Document>),
    ("certs watch ndjson", of::<certs::watch::Event>),
    ("config contexts", of::<config::Contexts>),
    ("config info", of::<config::Info>),
    ("config merge", of::<config::Changed>),
    ("config remove", of::<config::Removed>),
    ("edit", of::<Report<change::Change>>),
    ("error", of::<crate::output::ErrorDocument>),
    ("events ndjson", of::<events::EventData>),
    ("gen ca", of::<generate::Generated>),
    ("gen config", of::<generate::Generated>),
    ("gen crt", of::<generate::Generated>),
    ("gen csr", of::<generate::Generated>),
    ("gen key", of::<generate::Generated>),
    ("gen keypair", of::<generate::Generated>),
    ("gen secrets", of::<generate::Generated>),
    ("get", of::<Report<Vec<get::ResourceData>>>),
    ("get ndjson", of::<get::ItemData>),
    ("kubeconfig", of::<kubeconfig::Written>),
    ("logs", of::<Report<logs::Log>>),
    ("logs ndjson", of::<logs::Line>),
    ("machineconfig diff", of::<machineconfig::diff::DiffData>),
    (
        "machineconfig diff patches",
        of::<machineconfig::diff::PatchesData>,
    ),
    ("machineconfig gen", of::<generate::Generated>),
    (
        "machineconfig migrate",
        of::<machineconfig::migrate::MigratedData>,
    ),
    (
        "machineconfig patch",
        of::<machineconfig::patch::PatchedData>,
    ),
    ("patch", of::<Report<change::Change>>),
    ("reboot", of::<Report<reboot::Rebooted>>),
    ("service", of::<Report<Vec<service::ServiceData>>>),
    ("service restart", of::<Report<service::Driven>>),
    ("service start", of::<Report<service::Driven>>),
    ("service stop", of::<Report<service::Driven>>),
    ("sim up", of::<sim::Started>),
    ("upgrade-k8s", of::<upgrade_k8s::Document>),
    ("upgrade-k8s ndjson", of::<upgrade_k8s::EventLine>),
    ("validate", of::<validate::ValidatedData>),
    ("version", of::<version::Document>),
];

/// Prints the schema.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let wanted = args.command.join(" ");
    if wanted.is_empty() {
        return list(&mut session.output);
    }
    let (_, make) = SCHEMAS
        .iter()
        .find(|(command, _)| *command == wanted)
        .ok_or_else(|| {
            Error::new(Code::NotFound, format!("there is no schema for {wanted:?}"))
                .hint("`ichor schema` lists the commands that have one")
        })?;
    session.output.json(&make())?;
    Ok(Outcome::Done)
}

/// Makes the schema of what is written: a field that may be left out is not required.
fn of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::default().for_serialize();
    settings.into_generator().into_root_schema_for::<T>()
}

fn list(output: &mut Output) -> Result<Outcome, Error> {
    for (command, _) in SCHEMAS {
        output.line(command)?;
    }
    Ok(Outcome::Done)
}
