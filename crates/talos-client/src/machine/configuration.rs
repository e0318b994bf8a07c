//! Giving a node a machine configuration.

use std::time::Duration;

use talos_api::machine::ApplyConfigurationRequest;
use talos_api::machine::apply_configuration_request::Mode;

use crate::error::from_metadata;
use crate::nodes::only;
use crate::{Node, Result};

/// How a configuration is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyMode {
    /// Without a reboot where the change allows it, else with one.
    Auto,
    /// Now; refused when the change needs a reboot.
    NoReboot,
    /// With a reboot; Talos 1.14 refuses it on a configured node.
    Reboot,
    /// At the next boot.
    Staged,
    /// Now and not for good: it is rolled back after a while.
    Try,
}

impl ApplyMode {
    /// The word users write for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::NoReboot => "no-reboot",
            Self::Reboot => "reboot",
            Self::Staged => "staged",
            Self::Try => "try",
        }
    }

    fn to_wire(self) -> Mode {
        match self {
            Self::Auto => Mode::Auto,
            Self::NoReboot => Mode::NoReboot,
            Self::Reboot => Mode::Reboot,
            Self::Staged => Mode::Staged,
            Self::Try => Mode::Try,
        }
    }

    fn from_wire(mode: i32) -> Option<Self> {
        Some(match Mode::try_from(mode).ok()? {
            Mode::Auto => Self::Auto,
            Mode::NoReboot => Self::NoReboot,
            Mode::Reboot => Self::Reboot,
            Mode::Staged => Self::Staged,
            Mode::Try => Self::Try,
        })
    }
}

/// A whole machine configuration, and how to apply it.
#[derive(Clone)]
pub struct ApplyRequest {
    /// The configuration: one or more YAML documents. The node keeps it as it is, comments included.
    pub config: String,
    /// How to apply it; always sent, because the wire's default is a reboot.
    pub mode: ApplyMode,
    /// Only check and describe. Even so it cancels a pending rollback of a tried configuration.
    pub dry_run: bool,
    /// When a tried configuration is rolled back; none leaves it to the node (60 s).
    pub try_timeout: Option<Duration>,
}

/// What a node did with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The mode that was really used; unknown if this client does not know it.
    pub mode: Option<ApplyMode>,
    /// The same in words, with a difference in a dry run. It can hold secrets.
    pub details: String,
    /// What the node's validation noticed; always empty in a dry run.
    pub warnings: Vec<String>,
}

impl Node {
    /// Gives the node a configuration.
    ///
    /// # Errors
    /// The node refused it ([`Error::Invalid`](crate::Error::Invalid) says why, one problem each), is busy with another
    /// one, or the call gave no answer; after a lost connection the configuration may have been applied.
    pub async fn apply_configuration(&self, request: ApplyRequest) -> Result<Applied> {
        let request = ApplyConfigurationRequest {
            data: request.config.into_bytes(),
            mode: request.mode.to_wire().into(),
            dry_run: request.dry_run,
            try_mode_timeout: request
                .try_timeout
                .and_then(|timeout| timeout.try_into().ok()),
        };
        let (answer, context) = self
            .unary(None, async |wire| {
                super::machine(wire).apply_configuration(request).await
            })
            .await?;
        let message = only(answer.messages, &context)?;
        match from_metadata(message.metadata.as_ref(), &context) {
            Some(error) => Err(error),
            None => Ok(Applied {
                mode: ApplyMode::from_wire(message.mode),
                details: message.mode_details,
                warnings: message.warnings,
            }),
        }
    }
}
