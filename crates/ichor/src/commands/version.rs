//! `ichor version`: this program, and what nodes run.

use serde::Serialize;

use crate::error::{Error, Outcome};
use crate::output::{Format, Output, OutputArgs};
use crate::session::Session;

/// Print the version of this program and of nodes
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print only the version of this program
    #[arg(long)]
    client: bool,
    /// Ask nodes in maintenance mode: no client certificate, and the server is not verified
    #[arg(short, long)]
    insecure: bool,
    /// Print only version numbers
    #[arg(long)]
    short: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// What `--version` prints after the program's name.
pub(crate) const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("ICHOR_REVISION"),
    ")\nTalos 1.11 to 1.14, Kubernetes 1.29 to 1.37"
);

/// What `ichor version` prints.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Document {
    /// This program.
    client: Client,
}

/// This program.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Client {
    /// The program's version.
    version: &'static str,
    /// The git revision it was built from.
    revision: &'static str,
    /// The platform it was built for.
    target: &'static str,
    /// What it is made to work with.
    supported: Supported,
}

/// Versions that the program is made to work with.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Supported {
    /// Talos on the nodes.
    talos: Range,
    /// Kubernetes on the cluster.
    kubernetes: Range,
}

/// Minor versions from the oldest to the newest.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Range {
    /// The oldest minor version.
    min: &'static str,
    /// The newest minor version.
    max: &'static str,
}

const CLIENT: Client = Client {
    version: env!("CARGO_PKG_VERSION"),
    revision: env!("ICHOR_REVISION"),
    target: env!("ICHOR_TARGET"),
    supported: Supported {
        talos: Range {
            min: "1.11",
            max: "1.14",
        },
        kubernetes: Range {
            min: "1.29",
            max: "1.37",
        },
    },
};

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    if args.client {
        client(&mut session.output, args.short)?;
        return Ok(Outcome::Done);
    }
    Err(crate::error::not_implemented("ichor version"))
}

fn client(output: &mut Output, short: bool) -> Result<(), Error> {
    match output.format() {
        Format::Table | Format::Name | Format::JsonPath(_) if short => {
            output.line(&format!("Client v{}", CLIENT.version))
        }
        Format::Table | Format::Name | Format::JsonPath(_) => show_client(output),
        Format::Json | Format::Ndjson | Format::Yaml => {
            output.data(&Document { client: CLIENT }).map(|_| ())
        }
    }
}

fn show_client(output: &mut Output) -> Result<(), Error> {
    let Supported { talos, kubernetes } = CLIENT.supported;
    output.line("Client:")?;
    output.line(&format!("\tTag:         v{}", CLIENT.version))?;
    output.line(&format!("\tSHA:         {}", CLIENT.revision))?;
    output.line(&format!("\tTarget:      {}", CLIENT.target))?;
    output.line(&format!("\tTalos:       {} to {}", talos.min, talos.max))?;
    output.line(&format!(
        "\tKubernetes:  {} to {}",
        kubernetes.min, kubernetes.max
    ))
}
