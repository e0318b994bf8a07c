//! `ichor machineconfig migrate`: deprecated fields to their documents.

use std::path::PathBuf;

use serde::Serialize;
use talos_config::migrate::{self, Plan, Refusal, Target};

use crate::commands::patch::input;
use crate::error::{Code, Error, Outcome};
use crate::files::{self, Access};
use crate::output::{Format, text_format};
use crate::session::Session;

/// Move deprecated fields to the documents of a newer Talos version
///
/// What the old form implied and the new one does not is written out, so the configuration means the same. A field
/// without an equal is refused, and then nothing is written. Lines that do not move stay as they are.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file with the machine config, - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The Talos version to move to: 1.12, 1.13 or 1.14
    #[arg(long, value_name = "VERSION", value_parser = target)]
    to: Target,
    /// Only say what would move; exit with 3 if anything would
    #[arg(long, conflicts_with_all = ["output", "in_place"])]
    check: bool,
    /// Write the result to this file instead of standard output
    #[arg(short, long, value_name = "FILE", conflicts_with = "in_place")]
    output: Option<PathBuf>,
    /// Write the result to the file it was read from
    #[arg(long)]
    in_place: bool,
    /// How to print the result: table (the text itself) or json
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = text_format)]
    format: Format,
}

/// A migrated machine config, or what migrating it would come to.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MigratedData {
    /// The Talos version.
    to: String,
    /// The text, with its secrets; absent if it was only checked or went to a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<String>,
    /// The fields that leave the main document.
    moves: Vec<MoveData>,
    /// The fields of the main document that the version has no document for.
    stays: Vec<StayData>,
    /// The fields that have no equal.
    refusals: Vec<RefusalData>,
    /// What a person should know.
    notes: Vec<String>,
}

/// A field that leaves the main document.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MoveData {
    /// Its path.
    from: String,
    /// Its line, counted from 1.
    line: u64,
    /// The kind and name of the document it goes to; absent if it means nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<String>,
    /// Its path there; empty if it is said by the document itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Why it goes nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

/// A field that stays.
#[derive(Serialize, schemars::JsonSchema)]
struct StayData {
    /// Its path.
    path: String,
    /// Its line, counted from 1.
    line: u64,
}

/// A field that has no equal.
#[derive(Serialize, schemars::JsonSchema)]
struct RefusalData {
    /// Its path.
    path: String,
    /// Its line, counted from 1.
    line: u64,
    /// Why not.
    reason: String,
}

/// Runs the command.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let path = args.file.display().to_string();
    if args.in_place && path == "-" {
        return Err(Error::new(
            Code::Usage,
            "--in-place needs a file, not standard input",
        ));
    }
    let text = input::text_of(session, &path)?;
    session.output.learn_secrets_of(&text);
    if args.check {
        let plan = migrate::plan(&text, args.to).map_err(|error| unreadable(&error, &path))?;
        return check(session, args.to, plan);
    }
    let migrated = migrate::migrate(&text, args.to).map_err(|error| match error {
        talos_config::Error::NotMovable { plan } => refused(&plan, &path, args.to),
        error => unreadable(&error, &path),
    })?;
    session.output.learn_secrets_of(&migrated.text);
    let is_json = session.output.format().is_json();
    if !is_json {
        for note in &migrated.plan.notes {
            session.output.warn(note);
        }
    }
    let output = args.output.filter(|path| !files::is_stdout(path));
    let target = output.or(args.in_place.then_some(args.file));
    if let Some(target) = &target {
        // The file it was read from keeps its mode; another one gets secrets now.
        let access = match args.in_place {
            true => Access::Everyone,
            false => Access::of(&migrated.text),
        };
        files::write(target, migrated.text.as_bytes(), access)?;
    }
    match target {
        Some(_) if !is_json => Ok(Outcome::Done),
        Some(_) => print(session, args.to, migrated.plan, None),
        None if is_json => print(session, args.to, migrated.plan, Some(migrated.text)),
        None => show(session, &migrated.text),
    }
}

/// Prints the text itself: a person looks at it, a pipe or a file takes it on.
fn show(session: &mut Session, text: &str) -> Result<Outcome, Error> {
    session.output.credentials(text, "-o FILE, a pipe")?;
    Ok(Outcome::Done)
}

/// Prints the JSON document; a configuration in it was handed in with its secrets, and is handed on with them.
fn print(
    session: &mut Session,
    to: Target,
    plan: Plan,
    config: Option<String>,
) -> Result<Outcome, Error> {
    let document = document(to, plan, config);
    session.output.credentials_json(&document)?;
    Ok(Outcome::Done)
}

/// Says what would move.
fn check(session: &mut Session, to: Target, plan: Plan) -> Result<Outcome, Error> {
    let output = &mut session.output;
    let outcome = match plan.moves.is_empty() && plan.refusals.is_empty() {
        true => Outcome::Done,
        false => Outcome::Found,
    };
    if output.format().is_json() {
        output.json(&document(to, plan, None))?;
        return Ok(outcome);
    }
    for moved in &plan.moves {
        let line = format!("line {}: {}", moved.line, moved.from);
        let goes = match (&moved.to, moved.why) {
            (Some(place), _) if place.path.is_empty() => format!("becomes {}", place.document),
            (Some(place), _) => format!("goes to {} {}", place.document, place.path),
            (None, why) => format!("is dropped: {}", why.unwrap_or("it means nothing")),
        };
        output.line(&format!("{line} {goes}"))?;
    }
    for refusal in &plan.refusals {
        output.line(&format!("{refusal} (refused)"))?;
    }
    if outcome == Outcome::Done {
        output.line(&format!("nothing to move to Talos {to}"))?;
    }
    for note in &plan.notes {
        output.warn(note);
    }
    Ok(outcome)
}

fn document(to: Target, plan: Plan, config: Option<String>) -> MigratedData {
    let moves = plan.moves.into_iter().map(|moved| {
        let (document, path) = moved.to.map(|to| (to.document, to.path)).unzip();
        MoveData {
            from: moved.from,
            line: moved.line,
            document,
            path,
            reason: moved.why,
        }
    });
    let stays = plan.stays.into_iter().map(|stay| StayData {
        path: stay.path,
        line: stay.line,
    });
    let refusals = plan.refusals.into_iter().map(|refusal| RefusalData {
        path: refusal.path,
        line: refusal.line,
        reason: refusal.reason,
    });
    MigratedData {
        to: to.to_string(),
        config,
        moves: moves.collect(),
        stays: stays.collect(),
        refusals: refusals.collect(),
        notes: plan.notes,
    }
}

/// Makes the error for a configuration with fields that have no equal, with every one of them.
fn refused(plan: &Plan, path: &str, to: Target) -> Error {
    let count = plan.refusals.len();
    let fields = if count == 1 { "field" } else { "fields" };
    let message =
        format!("{path} cannot be migrated to Talos {to}: {count} {fields} without an equal");
    plan.refusals
        .iter()
        .fold(Error::new(Code::Invalid, message), |error, refusal| {
            error.cause(cause(path, refusal))
        })
        .hint("nothing was written; change these fields, or leave the configuration in its old form, which Talos still takes")
}

fn cause(path: &str, refusal: &Refusal) -> String {
    format!(
        "{path}:{}: {}: {}",
        refusal.line, refusal.path, refusal.reason
    )
}

fn unreadable(error: &talos_config::Error, path: &str) -> Error {
    input::invalid(error).context(format!("{path} cannot be migrated"))
}

fn target(text: &str) -> Result<Target, String> {
    Target::parse(text)
        .ok_or_else(|| "there are documents to move to in 1.12, 1.13 and 1.14".to_owned())
}
