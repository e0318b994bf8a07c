//! Pulling every image before anything is changed.

use futures::StreamExt as _;
use talos_client::{Call, ImageScope};
use tokio::time::Instant;

use super::Driver;
use crate::{Error, Event, ImageStore, Pull, PullFailure};

/// How often a pull is tried when a node or registry does not answer.
const ATTEMPTS: usize = 3;

impl Driver<'_> {
    /// Pulls the images of the plan, several nodes at once, one image at a time on each.
    ///
    /// # Errors
    /// [`Error::Pull`] with everything that failed, so that one run shows all that is missing.
    pub(super) async fn pull(&self) -> Result<(), Error> {
        let mut nodes: Vec<&str> = Vec::new();
        for pull in &self.plan.pulls {
            if !nodes.contains(&pull.node.as_str()) {
                nodes.push(&pull.node);
            }
        }
        let outcomes: Vec<Result<Vec<PullFailure>, Error>> = futures::stream::iter(nodes)
            .map(|node| self.pull_on(node))
            .buffered(self.options.concurrency.max(1))
            .collect()
            .await;
        let mut failures = Vec::new();
        for outcome in outcomes {
            failures.extend(outcome?);
        }
        if failures.is_empty() {
            return Ok(());
        }
        Err(Error::Pull { failures })
    }

    async fn pull_on(&self, node: &str) -> Result<Vec<PullFailure>, Error> {
        let mut failures = Vec::new();
        for pull in self.plan.pulls.iter().filter(|pull| pull.node == node) {
            let next = format!("{} was pulled on {node}", pull.image);
            self.safe_point(&next)?;
            self.tell(Event::Pulling {
                node: pull.node.clone(),
                image: pull.image.clone(),
            });
            // Nothing was changed yet, and a node whose caller leaves ends the pull or keeps the image.
            let pulled = tokio::select! {
                pulled = self.pull_one(pull) => pulled,
                () = self.options.stop.requested(self.timing().poll) => {
                    self.safe_point(&next)?;
                    continue;
                }
            };
            match pulled {
                Ok(()) => self.tell(Event::Pulled {
                    node: pull.node.clone(),
                    image: pull.image.clone(),
                }),
                Err(talos_client::Error::NotImplemented { .. }) => {
                    self.tell(Event::PullUnsupported {
                        node: pull.node.clone(),
                    });
                    break;
                }
                Err(error) => failures.push(PullFailure {
                    node: pull.node.clone(),
                    image: pull.image.clone(),
                    error: Box::new(error),
                }),
            }
        }
        Ok(failures)
    }

    async fn pull_one(&self, pull: &Pull) -> talos_client::Result<()> {
        let machine = self.cluster.talos.node(pull.address.clone());
        let scope = match pull.store {
            ImageStore::Pods => ImageScope::Kubernetes,
            ImageStore::System => ImageScope::System,
        };
        let limit = self.timing().pull;
        let deadline = Instant::now() + limit;
        let mut attempt = 1;
        loop {
            let pulling = machine.image_pull(scope, &pull.image, |_| {});
            let Ok(pulled) = tokio::time::timeout_at(deadline, pulling).await else {
                return Err(talos_client::Error::TimedOut {
                    call: Box::new(Call {
                        node: Some(pull.node.clone()),
                        endpoint: String::new(),
                        method: "ImagePull".to_owned(),
                    }),
                    after: limit,
                });
            };
            match pulled {
                Ok(_) => return Ok(()),
                Err(error) if error.is_transient() && attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
            }
            tokio::time::sleep(self.timing().pull_retry).await;
        }
    }
}
