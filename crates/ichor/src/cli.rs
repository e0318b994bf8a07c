//! The command line: global flags and one variant per verb.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use crate::commands;
use crate::env::Env;
use crate::error::{Error, Outcome};
use crate::flags;
use crate::output::Format;
use crate::session::Session;
use crate::values;

/// A native client for Talos Linux clusters
///
/// Every flag can also be set by an environment variable: --dry-run by ICHOR_DRY_RUN. A flag wins over its variable.
#[derive(Debug, clap::Parser)]
#[command(
    name = "ichor",
    version,
    long_version = commands::version::LONG,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags that every verb takes.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Read this talosconfig instead of looking for one
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) talosconfig: Option<PathBuf>,
    /// Use this context of the talosconfig instead of the current one
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Dial these endpoints instead of the context's
    #[arg(short, long, global = true, value_name = "HOST", value_delimiter = ',')]
    pub(crate) endpoints: Vec<String>,
    /// Act on these nodes, named as the endpoints see them
    #[arg(short, long, global = true, value_name = "NODE", value_delimiter = ',')]
    pub(crate) nodes: Vec<String>,
    /// Act on all nodes of the context, also when the command changes something
    #[arg(long, global = true)]
    pub(crate) all_nodes: bool,
    /// Name this cluster to a proxy that serves several
    #[arg(short, long, global = true, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
    /// Look for keys that sign requests in this folder
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) siderov1_keys_dir: Option<PathBuf>,
    /// Call this many nodes at the same time
    #[arg(long, global = true, value_name = "N", default_value = "32")]
    pub(crate) concurrency: std::num::NonZeroUsize,
    /// Give up connecting after this long
    #[arg(long, global = true, value_name = "DURATION", default_value = "10s", value_parser = values::duration)]
    pub(crate) connect_timeout: Duration,
    /// Give up waiting for a single answer after this long
    #[arg(long, global = true, value_name = "DURATION", default_value = "1m", value_parser = values::duration)]
    pub(crate) request_timeout: Duration,
    /// Print secrets instead of masking them
    #[arg(long, global = true)]
    pub(crate) show_secrets: bool,
    /// Answer yes to every question
    #[arg(short, long, global = true, alias = "noconfirm")]
    pub(crate) yes: bool,
    /// Say more about what is done
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

/// Declares the verbs: the variant of each, and which file runs it.
macro_rules! verbs {
    ($($(#[$attribute:meta])* $variant:ident => $module:ident,)*) => {
        /// What to do.
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Command {
            $($(#[$attribute])* $variant(commands::$module::Args),)*
        }

        impl Command {
            /// Runs the verb.
            pub(crate) fn run(self, session: &mut Session) -> Result<Outcome, Error> {
                match self {
                    $(Self::$variant(args) => commands::$module::run(args, session),)*
                }
            }
        }
    };
}

verbs! {
    #[command(alias = "apply")]
    ApplyConfig => apply_config,
    Bootstrap => bootstrap,
    Certs => certs,
    Completion => completion,
    Config => config,
    Demo => demo,
    Edit => edit,
    Events => events,
    #[command(name = "gen")]
    Gen => generate,
    #[command(alias = "g")]
    Get => get,
    Kubeconfig => kubeconfig,
    Logs => logs,
    #[command(alias = "mc")]
    Machineconfig => machineconfig,
    Man => man,
    Patch => patch,
    Read => read,
    Reboot => reboot,
    #[command(name = "rotate-ca")]
    RotateCa => rotate_ca,
    Schema => schema,
    #[command(alias = "services")]
    Service => service,
    Sim => sim,
    #[command(name = "upgrade-k8s")]
    UpgradeK8s => upgrade_k8s,
    Validate => validate,
    Version => version,
}

/// Returns the definition of the command line as help, completions and manual pages show it.
pub(crate) fn plain_command() -> clap::Command {
    Cli::command()
}

/// Returns the definition of the command line as it is parsed.
fn command() -> clap::Command {
    flags::go_style(plain_command())
}

/// Parses a command line; the format is the one errors should be printed in too.
pub(crate) fn parse(args: &[OsString], env: &Env) -> Result<(Cli, Format), clap::Error> {
    let mut matches =
        flags::parse(command(), args, env).map_err(|error| plain_help(error, args))?;
    let format = format(&matches);
    Ok((Cli::from_arg_matches_mut(&mut matches)?, format))
}

/// Prints help from the plain definitions: the other spellings that Go's flag rules add would only be noise there.
fn plain_help(error: clap::Error, args: &[OsString]) -> clap::Error {
    let is_help = |error: &clap::Error| {
        matches!(
            error.kind(),
            ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        )
    };
    if !is_help(&error) {
        return error;
    }
    match plain_command().try_get_matches_from(args) {
        Err(plain) if is_help(&plain) => plain,
        _ => error,
    }
}

/// Returns the format chosen by the verb's own `--output`, or by `--format` where `--output` is a path.
fn format(matches: &ArgMatches) -> Format {
    let mut chosen = matches;
    while let Some((_, below)) = chosen.subcommand() {
        chosen = below;
    }
    ["output", "format"]
        .iter()
        .find_map(|id| chosen.try_get_one::<Format>(id).ok().flatten())
        .cloned()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }
}
