//! The verbs, one file each: `Args` and `run`.
//!
//! `Args` derives `clap::Args`; its doc comment is the help text (imperative, no final period). Booleans are plain
//! `bool` fields with `#[arg(long)]`, lists of talosctl's type `strings` carry `value_delimiter = ','`, durations
//! `value_parser = values::duration`; Go's `--flag=false` and `ICHOR_<FLAG>` come by themselves. A verb that prints data
//! flattens [`OutputArgs`](crate::output::OutputArgs). Global flags are in `session.global`, never declared again.
//!
//! `run` is synchronous; a verb that talks to nodes takes `session.runtime()?` and calls `run(async { .. })`, or
//! `run_steps(|interrupt| async { .. })` if it must not be torn in the middle; one that changes nodes calls
//! `session.change_each(&target, async |node| ..)`, which does that for each of them. Results over nodes go through
//! [`report`](crate::report::report), which makes the JSON document, the error lines and the exit code.

pub(crate) mod apply_config;
pub(crate) mod bootstrap;
pub(crate) mod certs;
pub(crate) mod completion;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod edit;
pub(crate) mod events;
pub(crate) mod generate;
pub(crate) mod get;
pub(crate) mod kubeconfig;
pub(crate) mod logs;
pub(crate) mod machineconfig;
pub(crate) mod man;
pub(crate) mod patch;
pub(crate) mod read;
pub(crate) mod reboot;
pub(crate) mod schema;
pub(crate) mod service;
pub(crate) mod sim;
pub(crate) mod upgrade_k8s;
pub(crate) mod validate;
pub(crate) mod version;

// talosctl has this verb at the top; here it stands with the other verbs for certificates too.
pub(crate) use certs::rotate_ca;
