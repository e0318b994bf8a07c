//! `ichor certs renew`: new client certificates in a talosconfig or a kubeconfig.

mod kubeconfig;
mod talosconfig;

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use talos_certs::{RenewedCertificate, is_due};
use talos_config::generate::Secrets;
use talos_pki::{Authority, Certificate};

use crate::error::{Code, Error, Outcome};
use crate::files;
use crate::output::OutputArgs;
use crate::session::Session;
use crate::values;

/// Renew the client certificate of a talosconfig or kubeconfig
///
/// The new certificate is tried before it replaces the old one, in the same place of the same file; everything else in the
/// file stays as it is. With --if-expiring nothing happens while the old one lives long enough, so that it can run
/// from cron; --exit-code tells by exit code 3 that something changed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Talosconfig(talosconfig::Args),
    Kubeconfig(kubeconfig::Args),
}

/// The flags that both have.
#[derive(Debug, clap::Args)]
struct Common {
    /// Issue it here, by the authority in this secrets bundle, instead of asking a node
    #[arg(long, value_name = "FILE")]
    from_secrets: Option<PathBuf>,
    /// Do nothing unless the certificate ends within this time, such as 720h or 30d
    #[arg(long, value_name = "DURATION", value_parser = values::period)]
    if_expiring: Option<Duration>,
    /// Exit with 3 if the certificate was renewed, or would be in a dry run
    #[arg(long)]
    exit_code: bool,
    /// Only say what would be done: nothing is issued and nothing is written
    #[arg(long)]
    dry_run: bool,
    /// Try the new certificate on the cluster before it replaces the old one
    #[arg(long, default_value = "true")]
    verify: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// What became of a certificate.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document {
    /// Whether the file was changed, or would be in a dry run.
    changed: bool,
    /// Whether nothing was written.
    dry_run: bool,
    /// The file.
    path: String,
    /// The context whose certificate it is.
    context: String,
    /// The certificate that was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<RenewedCertificate>,
    /// The one that replaced it; absent if nothing was issued.
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<RenewedCertificate>,
    /// Whether the cluster accepted the new one before it was written.
    verified: bool,
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    match args.command {
        Command::Talosconfig(args) => talosconfig::run(&args, session),
        Command::Kubeconfig(args) => kubeconfig::run(&args, session),
    }
}

impl Common {
    /// Tells whether a certificate is to be renewed.
    fn is_due(&self, certificate: Option<&Certificate>, now: Timestamp) -> bool {
        let within = self
            .if_expiring
            .map(|within| SignedDuration::try_from(within).unwrap_or(SignedDuration::MAX));
        is_due(certificate, within, now)
    }

    /// Reads the secrets bundle, if one is given.
    fn secrets(&self, session: &mut Session) -> Result<Option<Secrets>, Error> {
        let Some(path) = &self.from_secrets else {
            return Ok(None);
        };
        let text = files::read(path)?;
        session.output.learn_secrets_of(&text);
        let read = Secrets::read_with_warnings(&text).map_err(|error| {
            let message = format!("{} cannot be used", path.display());
            let made = Error::of(Code::Invalid, &error).context(message);
            let problems = error.problems().iter();
            problems.fold(made, |made, problem| made.cause(problem.to_string()))
        })?;
        for warning in &read.warnings {
            let warning = format!("{}: {warning}", path.display());
            session.output.warn(&warning);
        }
        Ok(Some(read.secrets))
    }

    /// Prints what became of the certificate.
    fn finish(&self, session: &mut Session, document: &Document) -> Result<Outcome, Error> {
        if !session.output.data(document)? {
            let Document {
                path,
                context,
                old,
                new,
                ..
            } = document;
            let until = |one: &Option<RenewedCertificate>| match one {
                Some(one) => format!("until {}", one.not_after),
                None => "not there".to_owned(),
            };
            let line = match (document.changed, new) {
                (false, _) => format!("unchanged, valid {}", until(old)),
                (true, None) => format!("would be renewed, valid {} now", until(old)),
                (true, new) => format!("renewed, valid {}", until(new)),
            };
            let line = format!("{path}: context {context:?}: {line}");
            session.output.line(&line)?;
        }
        Ok(match document.changed && self.exit_code {
            true => Outcome::Found,
            false => Outcome::Done,
        })
    }
}

/// Takes an authority from a secrets bundle.
fn authority(path: &Path, what: &str, crt: &str, key: &str) -> Result<Authority, Error> {
    Authority::from_pem(crt, key).map_err(|error| {
        let message = format!("{}: the {what} cannot be used", path.display());
        Error::new(Code::Invalid, message).caused_by(&error)
    })
}

/// Makes a lifetime of what was given.
fn lifetime(ttl: Duration) -> Result<SignedDuration, Error> {
    let lifetime = SignedDuration::try_from(ttl).ok();
    lifetime
        .filter(|lifetime| lifetime.as_secs() > 0)
        .ok_or_else(|| {
            Error::new(
                Code::Usage,
                "--ttl is not a time in which a certificate can live",
            )
        })
}

/// How an error goes on about a certificate that could not be tried.
fn untried(error: Error, common: &Common) -> Error {
    let error = error.context("the new certificate was not accepted, and the old one was left");
    match (error.code(), &common.from_secrets) {
        (Code::Unreachable | Code::TimedOut, Some(_)) => {
            error.hint("--verify=false writes it without having tried it")
        }
        _ => error,
    }
}
