//! Writing a machine configuration with another image in it.

use talos_client::{ApplyMode, ApplyRequest, Error as TalosError};

use super::Driver;
use crate::gather::{Tries, ask, configurations};
use crate::timing::Budget;
use crate::{Error, Event, Step, config};

/// How often a write is tried when somebody else writes too.
const ATTEMPTS: usize = 5;

impl Driver<'_> {
    /// Sets the image of a step in its node's machine configuration and tells whether anything had to be written.
    ///
    /// The node has no condition to attach to a write, so the version is read again just before it. A try or staged
    /// configuration is never overwritten.
    pub(super) async fn write(&self, step: &Step) -> Result<bool, Error> {
        let machine = self.machine(step);
        let node = step.node.as_str();
        let planned = self.plan.nodes.iter().find(|planned| planned.name == node);
        let talos = planned.and_then(|planned| planned.talos.as_ref());
        let budget = Budget::new(self.cluster.kubernetes, self.timing(), self.timing().config);
        let tries = Tries::Within(&budget);
        let mut lost = None;
        for _ in 0..ATTEMPTS {
            let active = configurations(&machine, node, tries).await?;
            if active.pending {
                return Err(Error::Pending {
                    node: node.to_owned(),
                });
            }
            let next = config::with_image(&active.text, talos, step.component, &step.to);
            let next = next.map_err(|source| Error::Config {
                node: node.to_owned(),
                source: Box::new(source),
            })?;
            if next == active.text {
                // Either it was so from the start, or an attempt whose answer was lost did it.
                return Ok(lost.is_some());
            }
            let action = "read its machine configuration";
            let again = ask(node, action, tries, || machine.machine_config()).await?;
            if again.version != active.version {
                continue;
            }
            let request = ApplyRequest {
                config: next,
                mode: ApplyMode::NoReboot,
                dry_run: false,
                try_timeout: None,
            };
            match machine.apply_configuration(request).await {
                Ok(applied) => {
                    self.tell(Event::Written {
                        component: step.component,
                        node: node.to_owned(),
                        warnings: applied.warnings,
                    });
                    return Ok(true);
                }
                // Another change is being applied, or the answer was lost: look again.
                Err(error) if error.is_transient() || is_busy(&error) => lost = Some(error),
                Err(source) => return Err(failed(node, source)),
            }
            tokio::time::sleep(self.timing().poll).await;
        }
        Err(match lost {
            Some(source) => failed(node, source),
            None => Error::Contended {
                node: node.to_owned(),
            },
        })
    }
}

fn is_busy(error: &TalosError) -> bool {
    matches!(
        error,
        TalosError::Precondition { .. } | TalosError::Conflict { .. }
    )
}

fn failed(node: &str, source: TalosError) -> Error {
    Error::Talos {
        node: node.to_owned(),
        action: "write its machine configuration",
        source: Box::new(source),
    }
}
