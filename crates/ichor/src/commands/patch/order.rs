//! How a configuration is applied: the flags of all verbs that change one.

use std::time::Duration;

use clap::ValueEnum;
use talos_client::{ApplyMode, ApplyRequest};

use crate::values;

/// How a configuration is applied, as flags.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct OrderArgs {
    /// How to apply the configuration
    #[arg(short, long, value_enum, default_value = "auto")]
    mode: Mode,
    /// Show the difference and what the node would do, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Roll a tried configuration back after this long
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = values::duration)]
    timeout: Duration,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    /// Without a reboot where the change allows it, else with one
    Auto,
    /// Now; refused if the change needs a reboot
    NoReboot,
    /// With a reboot; gone since Talos 1.14
    Reboot,
    /// At the next boot
    Staged,
    /// Now, and rolled back after --timeout
    Try,
}

/// How a configuration is applied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    /// The mode, always sent.
    pub(crate) mode: ApplyMode,
    /// Whether nothing may be written.
    pub(crate) dry_run: bool,
    timeout: Duration,
}

impl OrderArgs {
    /// Returns the order that the flags give.
    pub(crate) fn order(self) -> Order {
        let mode = match self.mode {
            Mode::Auto => ApplyMode::Auto,
            Mode::NoReboot => ApplyMode::NoReboot,
            Mode::Reboot => ApplyMode::Reboot,
            Mode::Staged => ApplyMode::Staged,
            Mode::Try => ApplyMode::Try,
        };
        Order {
            mode,
            dry_run: self.dry_run,
            timeout: self.timeout,
        }
    }
}

impl Order {
    /// Returns how the nodes are announced.
    pub(crate) fn verb(self, verb: &'static str) -> &'static str {
        match (self.dry_run, verb) {
            (true, "patch") => "patch (dry run)",
            (true, "edit") => "edit (dry run)",
            (true, "apply-config") => "apply-config (dry run)",
            _ => verb,
        }
    }

    /// Returns the request that gives a node a configuration.
    pub(crate) fn request(self, config: String) -> ApplyRequest {
        ApplyRequest {
            config,
            mode: self.mode,
            dry_run: self.dry_run,
            try_timeout: (self.mode == ApplyMode::Try).then_some(self.timeout),
        }
    }
}
