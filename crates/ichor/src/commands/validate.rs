//! `ichor validate`: whether Talos takes a machine config.

use serde::Serialize;
use talos_config::validate::{self, Finding, Mode, Options, Report, Severity};

use super::patch::input;
use crate::error::{Code, Error, Outcome};
use crate::output::OutputArgs;
use crate::session::Session;
use crate::values;

/// Validate a machine config
///
/// Refuses what Talos refuses, and warns of what it takes although it will not do what was meant. The version whose
/// fields and rules count is --talos-version, else the one the config installs, else the newest. Exits with 3 when the
/// config is not valid.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    // Takes the place of the global `--cluster`, whose short form talosctl has for this file.
    /// The file with the machine config, - for standard input
    #[arg(id = "cluster", short = 'c', long = "config", value_name = "FILE")]
    config: String,
    /// Where Talos runs: metal, cloud or container
    #[arg(short, long, value_name = "MODE", value_parser = mode)]
    mode: Mode,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
    /// Hold the config against this version of Talos
    #[arg(long, value_name = "VERSION", value_parser = values::talos_version)]
    talos_version: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// What was found in a machine config.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ValidatedData {
    /// The file, `-` for standard input.
    file: String,
    /// Where Talos is to run.
    mode: String,
    /// The Talos version whose fields and rules counted.
    talos_version: String,
    /// Whether Talos takes the config, and with --strict, whether there is no warning either.
    valid: bool,
    /// What was found, in the order of the file.
    findings: Vec<FindingData>,
}

/// One thing that was found.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FindingData {
    /// How much it matters: error, warning or note.
    severity: String,
    /// What it is, as a word that stays the same.
    code: &'static str,
    /// The kind and name of the document; empty for the main one.
    document: String,
    /// The path of the field; empty for the document itself.
    path: String,
    /// The line, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// What is wrong.
    message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let file = args.config;
    let text = input::text_of(session, &file)?;
    session.output.learn_secrets_of(&text);
    let options = Options {
        mode: args.mode,
        strict: args.strict,
        talos_version: args.talos_version,
    };
    let report = validate::validate(&text, &options).map_err(|error| {
        Error::of(Code::Invalid, &error)
            .context(format!("{file} cannot be read as a machine config"))
    })?;
    let valid = report.is_valid();
    let data = data(session, &file, args.mode, &report);
    if !session.output.data(&data)? {
        show(session, &file, args.mode, &report)?;
    }
    Ok(match valid {
        true => Outcome::Done,
        false => Outcome::Found,
    })
}

/// Prints what was found for people: what makes the config invalid as the result, the rest beside it.
fn show(session: &mut Session, file: &str, mode: Mode, report: &Report) -> Result<(), Error> {
    let output = &mut session.output;
    for finding in report.of(Severity::Error) {
        let line = output.mask(&line(file, finding));
        output.line(&format!("error: {line}"))?;
    }
    for finding in report.of(Severity::Warning) {
        output.warn(&line(file, finding));
    }
    notes(session, report);
    let output = &mut session.output;
    match report.of(Severity::Error).count() {
        0 => output.line(&format!("{file} is valid for {mode} mode")),
        count => {
            let errors = if count == 1 { "error" } else { "errors" };
            output.note(&format!(
                "{file} is not valid for {mode} mode: {count} {errors}"
            ));
            Ok(())
        }
    }
}

/// Tells of newer ways in one line, and of the rest one by one.
fn notes(session: &mut Session, report: &Report) {
    let (newer, other): (Vec<&Finding>, Vec<&Finding>) = report
        .of(Severity::Note)
        .partition(|finding| finding.code == "newer-way");
    for finding in other {
        session.output.note(&format!("note: {}", line("", finding)));
    }
    if !newer.is_empty() {
        let paths: Vec<&str> = newer.iter().map(|finding| &*finding.path).collect();
        session.output.note(&format!(
            "note: Talos {} has documents for {}; `ichor machineconfig migrate` moves them",
            report.talos_version,
            paths.join(", ")
        ));
    }
}

/// Writes a finding as `FILE:LINE: DOCUMENT: PATH: MESSAGE (HINT)`.
fn line(file: &str, finding: &Finding) -> String {
    let mut out = file.to_owned();
    if let Some(line) = finding.line {
        let before = if file.is_empty() { "line " } else { ":" };
        out.push_str(&format!("{before}{line}"));
    }
    for part in [&finding.document, &finding.path, &finding.message] {
        if !part.is_empty() {
            let colon = if out.is_empty() { "" } else { ": " };
            out.push_str(&format!("{colon}{part}"));
        }
    }
    if let Some(hint) = &finding.hint {
        out.push_str(&format!(" ({hint})"));
    }
    out
}

fn data(session: &Session, file: &str, mode: Mode, report: &Report) -> ValidatedData {
    let mask = |text: &str| session.output.mask(text);
    let findings = report.findings.iter().map(|finding| FindingData {
        severity: finding.severity.to_string(),
        code: finding.code,
        document: mask(&finding.document),
        path: mask(&finding.path),
        line: finding.line,
        message: mask(&finding.message),
        hint: finding.hint.clone(),
    });
    ValidatedData {
        file: file.to_owned(),
        mode: mode.to_string(),
        talos_version: report.talos_version.clone(),
        valid: report.is_valid(),
        findings: findings.collect(),
    }
}

fn mode(text: &str) -> Result<Mode, String> {
    match text {
        "metal" => Ok(Mode::Metal),
        "metal-agent" => Ok(Mode::MetalAgent),
        "cloud" => Ok(Mode::Cloud),
        "container" => Ok(Mode::Container),
        _ => Err(format!("`{text}` is none of metal, cloud, container")),
    }
}
