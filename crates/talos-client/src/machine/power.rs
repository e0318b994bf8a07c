//! Starting over: reboot, and the first start of etcd.

use talos_api::machine::reboot_request::Mode;
use talos_api::machine::{BootstrapRequest, RebootRequest};

use crate::error::from_metadata;
use crate::nodes::only;
use crate::{Node, Result};

/// How a node reboots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RebootMode {
    /// Straight into the new kernel where the machine can do that.
    #[default]
    Default,
    /// Through the firmware.
    PowerCycle,
    /// Without stopping anything in order; since Talos 1.12.
    Force,
}

impl Node {
    /// Reboots the node and returns the actor whose events tell how that goes on.
    ///
    /// # Errors
    /// The node refused, or the call gave no answer.
    pub async fn reboot(&self, mode: RebootMode) -> Result<String> {
        let mode = match mode {
            RebootMode::Default => Mode::Default,
            RebootMode::PowerCycle => Mode::Powercycle,
            RebootMode::Force => Mode::Force,
        };
        let request = RebootRequest { mode: mode.into() };
        let (answer, context) = self
            .unary(None, async |wire| {
                super::machine(wire).reboot(request).await
            })
            .await?;
        let message = only(answer.messages, &context)?;
        match from_metadata(message.metadata.as_ref(), &context) {
            Some(error) => Err(error),
            None => Ok(message.actor_id),
        }
    }

    /// Starts etcd as the first member of a new cluster.
    ///
    /// # Errors
    /// etcd has data already ([`Error::Conflict`](crate::Error::Conflict)), the node is not ready for it, or the call
    /// gave no answer.
    pub async fn bootstrap(&self) -> Result<()> {
        let request = BootstrapRequest {
            recover_etcd: false,
            recover_skip_hash_check: false,
        };
        let (answer, context) = self
            .unary(None, async |wire| {
                super::machine(wire).bootstrap(request).await
            })
            .await?;
        let message = only(answer.messages, &context)?;
        match from_metadata(message.metadata.as_ref(), &context) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
