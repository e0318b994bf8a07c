//! `ichor gen`: secrets, machine configs, keys and certificates from nothing.

mod authority;
mod certificate;
pub(crate) mod config;
mod outputs;
mod secrets;

use std::path::PathBuf;

use jiff::Timestamp;
use serde::Serialize;
use talos_config::generate::Release;

use crate::error::{Code, Error, Outcome};
use crate::session::Session;

/// Generate secrets, machine configs, keys and certificates
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Replace files that exist already
    #[arg(short, long, global = true)]
    force: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Ca(authority::Ca),
    Config(Box<config::Args>),
    Crt(certificate::Crt),
    Csr(certificate::Csr),
    Key(certificate::Key),
    Keypair(authority::Keypair),
    Secrets(secrets::Args),
}

/// What was generated.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Generated {
    /// The texts, in the order in which they were made.
    files: Vec<GeneratedFile>,
}

/// One text that was generated.
#[derive(Serialize, schemars::JsonSchema)]
struct GeneratedFile {
    /// What it is, such as `controlplane`, `secrets` or `certificate`.
    kind: &'static str,
    /// The file it was written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
    /// The text with its secrets, if it was not written to a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let force = args.force;
    match args.command {
        Command::Ca(args) => authority::run_ca(&args, force, session),
        Command::Config(args) => config::run(*args, force, session),
        Command::Crt(args) => certificate::run_crt(&args, force, session),
        Command::Csr(args) => certificate::run_csr(&args, force, session),
        Command::Key(args) => certificate::run_key(&args, force, session),
        Command::Keypair(args) => authority::run_keypair(&args, force, session),
        Command::Secrets(args) => secrets::run(&args, force, session),
    }
}

/// Returns the time that certificates start at: that of `SOURCE_DATE_EPOCH` where it is set, for output that can be
/// made again.
fn now(session: &Session) -> Result<Timestamp, Error> {
    let Some(text) = session.env.get("SOURCE_DATE_EPOCH") else {
        return Ok(Timestamp::now());
    };
    let seconds = text.parse::<i64>().ok();
    seconds
        .and_then(|seconds| Timestamp::from_second(seconds).ok())
        .ok_or_else(|| {
            let message = format!("SOURCE_DATE_EPOCH is {text:?}, which is no time");
            Error::new(Code::Invalid, message)
                .hint("it holds the seconds since 1970 as a whole number")
        })
}

/// Reads the value of `--talos-version`; without one the newest release is meant.
fn release(given: Option<&str>, session: &mut Session) -> Result<Release, Error> {
    match given {
        None => Ok(Release::newest()),
        Some("") => {
            let release = Release::newest();
            session.output.warn(&format!(
                "--talos-version is empty, which means {}, the newest that is known",
                release.contract()
            ));
            Ok(release)
        }
        Some(version) => Release::parse(version).map_err(|error| invalid(&error)),
    }
}

/// Makes the error for what cannot be generated, with all that is wrong.
fn invalid(error: &talos_config::generate::Error) -> Error {
    use talos_config::generate::Error as Source;
    let mut made = Error::of(Code::Invalid, error);
    for problem in error.problems() {
        made = made.caused_by(problem);
    }
    match error {
        Source::Endpoint {
            suggestion: Some(meant),
            ..
        } => made.hint(format!("try: {meant:?}")),
        _ => made,
    }
}

/// Makes the error for certificate material that cannot be read or made.
fn unusable(what: impl Into<String>, error: &talos_pki::Error) -> Error {
    let code = match error {
        talos_pki::Error::Crypto { .. } => Code::Failed,
        _ => Code::Invalid,
    };
    Error::of(code, error).context(what)
}
