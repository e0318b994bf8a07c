//! `ichor config`: the talosconfig.

mod change;
mod show;

use std::path::PathBuf;

use talos_config::talosconfig::TalosConfig;

use crate::env::TalosconfigPlace;
use crate::error::{Code, Error, Outcome};
use crate::files::{self, Access, Protocol};
use crate::output::OutputArgs;
use crate::session::Session;

pub(crate) use change::{Changed, Removed};
pub(crate) use show::{Contexts, Info};

/// Manage the talosconfig
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Add(AddArgs),
    #[command(alias = "use-context")]
    Context(ContextArgs),
    #[command(alias = "get-contexts")]
    Contexts(ContextsArgs),
    #[command(alias = "endpoints")]
    Endpoint(EndpointArgs),
    Info(InfoArgs),
    Merge(MergeArgs),
    #[command(alias = "nodes")]
    Node(NodeArgs),
    Remove(RemoveArgs),
}

/// Add a context from PEM files, or replace the one of this name
///
/// The current context stays. --endpoints and --nodes give the new context its lists.
#[derive(Debug, clap::Args)]
struct AddArgs {
    /// Name of the context
    #[arg(value_name = "CONTEXT")]
    name: String,
    /// Authorities that sign the servers' certificates
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The client's certificate
    #[arg(long, value_name = "FILE", requires = "key")]
    crt: Option<PathBuf>,
    /// The client's private key
    #[arg(long, value_name = "FILE", requires = "crt")]
    key: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Make a context the current one
#[derive(Debug, clap::Args)]
struct ContextArgs {
    /// Name of the context
    #[arg(value_name = "CONTEXT")]
    name: String,
    #[command(flatten)]
    output: OutputArgs,
}

/// List contexts
#[derive(Debug, clap::Args)]
struct ContextsArgs {
    #[command(flatten)]
    output: OutputArgs,
}

/// Set the endpoints of the current context, or of --context
#[derive(Debug, clap::Args)]
struct EndpointArgs {
    /// The endpoints, in place of those there are
    #[arg(value_name = "ENDPOINT", required = true)]
    list: Vec<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Show the current context, or --context
#[derive(Debug, clap::Args)]
struct InfoArgs {
    #[command(flatten)]
    output: OutputArgs,
}

/// Add the contexts of another talosconfig
///
/// A context whose name is taken by another one is renamed. The other file's current context becomes current.
#[derive(Debug, clap::Args)]
struct MergeArgs {
    /// The other talosconfig
    #[arg(value_name = "FILE")]
    from: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

/// Set the nodes of the current context, or of --context; none clears the list
#[derive(Debug, clap::Args)]
struct NodeArgs {
    /// The nodes, in place of those there are
    #[arg(value_name = "NODE")]
    list: Vec<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Remove contexts
///
/// The current context stays.
#[derive(Debug, clap::Args)]
struct RemoveArgs {
    /// Name of the contexts, in which `*` is any text, `?` any letter and `[a-c]` one of some letters
    #[arg(value_name = "PATTERN")]
    pattern: String,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    match args.command {
        Command::Add(args) => change::add(&args, session),
        Command::Context(args) => change::context(&args, session),
        Command::Contexts(_) => show::contexts(session),
        Command::Endpoint(args) => change::endpoint(&args, session),
        Command::Info(_) => show::info(session),
        Command::Merge(args) => change::merge(&args, session),
        Command::Node(args) => change::node(&args, session),
        Command::Remove(args) => change::remove(&args, session),
    }
}

/// Whether a talosconfig that does not exist is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Refuse,
    Make,
}

/// Changes the talosconfig under its lock, and writes it only if the text differs.
fn edit<T>(
    session: &mut Session,
    missing: Missing,
    change: impl FnOnce(&mut TalosConfig, &mut Session) -> Result<T, Error>,
) -> Result<T, Error> {
    let TalosconfigPlace { path, writable, .. } = session.talosconfig_place()?;
    if !writable {
        let message = format!("{} cannot be changed: Talos provides it", path.display());
        return Err(
            Error::new(Code::Precondition, message).hint("name another file with --talosconfig")
        );
    }
    if missing == Missing::Refuse && !path.exists() {
        // Says where it was looked for.
        session.talosconfig()?;
    }
    let lock = files::lock(&path, Protocol::Own, session)?;
    let (old, text) = match path.exists() {
        true => (true, files::read(&path)?),
        false => (false, TalosConfig::EMPTY.to_owned()),
    };
    let mut config = TalosConfig::parse(path.display().to_string(), &text)?;
    let result = change(&mut config, session)?;
    if !old || config.text() != text {
        files::write(&path, config.text().as_bytes(), Access::Owner)?;
    }
    drop(lock);
    Ok(result)
}
