//! The kubelet, a service of Talos.

use jiff::Timestamp;
use serde_json::Value;
use talos_client::{Node as Machine, Resource, Watch, WatchEvent, WatchOptions};

use super::Driver;
use crate::gather::{Tries, ask, spec};
use crate::timing::Budget;
use crate::{Action, Error, Step};

impl Driver<'_> {
    /// Changes the kubelet of one node and waits until the node reports it; tells whether a write was needed.
    pub(super) async fn kubelet(&self, step: &Step) -> Result<bool, Error> {
        let machine = self.machine(step);
        let mut service = Service::watch(self, step, &machine).await?;
        if step.action == Action::Change {
            // A kubelet that is down would restart, or not, for reasons of its own.
            service.until(self, step, Wanted::Healthy).await?;
        }
        let wrote = self.write(step).await?;
        self.follow_config(step).await?;
        if wrote {
            service.until(self, step, Wanted::Restarted).await?;
        }
        self.reported(step).await?;
        Ok(wrote)
    }

    /// Waits until the node reports the new version and is ready.
    async fn reported(&self, step: &Step) -> Result<(), Error> {
        let version = format!("v{}", self.plan.to);
        let mut budget = Budget::new(self.cluster.kubernetes, self.timing(), self.timing().node);
        let mut said = String::new();
        loop {
            let state = match self.node(step).await? {
                Some(node) if node.kubelet_version != version => {
                    format!("the node reports {}", node.kubelet_version)
                }
                Some(node) if !node.ready => "the node is not ready".to_owned(),
                Some(_) => return Ok(()),
                None => {
                    return Err(Error::NodeGone {
                        node: step.node.clone(),
                    });
                }
            };
            self.wait(step, &mut budget, &mut said, state).await?;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Healthy,
    Restarted,
}

/// The kubelet service of a node, watched.
struct Service {
    machine: Machine,
    watch: Watch,
    state: Restart,
}

impl Service {
    async fn watch(driver: &Driver<'_>, step: &Step, machine: &Machine) -> Result<Self, Error> {
        let timing = driver.timing();
        let budget = Budget::new(driver.cluster.kubernetes, timing, timing.kubelet);
        Ok(Self {
            machine: machine.clone(),
            watch: open(step, machine, &budget).await?,
            state: Restart::default(),
        })
    }

    async fn until(
        &mut self,
        driver: &Driver<'_>,
        step: &Step,
        wanted: Wanted,
    ) -> Result<(), Error> {
        let mut budget = Budget::new(
            driver.cluster.kubernetes,
            driver.timing(),
            driver.timing().kubelet,
        );
        let mut said = String::new();
        loop {
            let arrived = match wanted {
                Wanted::Healthy => self.state.is_healthy(),
                Wanted::Restarted => self.state.is_healthy() && self.state.restarted(),
            };
            if arrived {
                if wanted == Wanted::Healthy {
                    self.state.mark();
                }
                return Ok(());
            }
            if wanted == Wanted::Healthy {
                // Nothing of this step was written yet.
                driver.safe_point(&format!("{} on {}", step.component, step.node))?;
            }
            let state = self.state.words(wanted).to_owned();
            // Events may come without end, so the time is looked at whatever comes.
            if budget.is_spent() {
                return Err(driver.timed_out(step, &budget, state));
            }
            let event = tokio::time::timeout(driver.timing().poll, self.watch.next()).await;
            match event {
                Ok(Ok(Some(event))) => self.state.observe(&step.node, &event)?,
                Ok(Ok(None) | Err(_)) => {
                    driver.wait(step, &mut budget, &mut said, state).await?;
                    self.watch = open(step, &self.machine, &budget).await?;
                }
                Err(_) => driver.wait(step, &mut budget, &mut said, state).await?,
            }
        }
    }
}

async fn open(step: &Step, machine: &Machine, budget: &Budget<'_>) -> Result<Watch, Error> {
    let kind = "Services.v1alpha1.talos.dev";
    let options = WatchOptions::default();
    let action = "watch its kubelet";
    ask(&step.node, action, Tries::Within(budget), || {
        machine.watch("runtime", kind, Some("kubelet"), options)
    })
    .await
}

/// What was seen of a service: whether it is healthy, and whether it was restarted since a mark.
///
/// A restart shows as an end and a new beginning. The last content of the one that ended still says healthy, and
/// healthy services change for reasons of their own, so only an end or a new time of creation counts.
#[derive(Debug, Default)]
struct Restart {
    created: Option<Timestamp>,
    marked: Option<Timestamp>,
    ended: bool,
    healthy: bool,
}

impl Restart {
    fn observe(&mut self, node: &str, event: &WatchEvent) -> Result<(), Error> {
        match event {
            WatchEvent::Created(resource) | WatchEvent::Updated { new: resource, .. } => {
                self.see(node, resource)
            }
            WatchEvent::Destroyed(_) => {
                self.ended = true;
                self.healthy = false;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn see(&mut self, node: &str, resource: &Resource) -> Result<(), Error> {
        let spec = spec(node, resource)?;
        let is = |key: &str| spec.get(key) == Some(&Value::Bool(true));
        self.healthy = is("running") && is("healthy");
        self.created = resource.metadata.created;
        Ok(())
    }

    fn mark(&mut self) {
        self.marked = self.created;
        self.ended = false;
    }

    fn is_healthy(&self) -> bool {
        self.healthy
    }

    fn restarted(&self) -> bool {
        self.ended || self.marked != self.created
    }

    fn words(&self, wanted: Wanted) -> &'static str {
        if wanted == Wanted::Restarted && !self.restarted() {
            "the kubelet has not restarted yet"
        } else {
            "the kubelet is not healthy"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(created: &str, healthy: bool) -> Resource {
        let metadata = talos_client::Metadata {
            created: Some(created.parse().unwrap()),
            ..Default::default()
        };
        Resource {
            metadata,
            yaml_spec: format!("running: true\nhealthy: {healthy}\nunknown: false\n"),
            proto_spec: Vec::new(),
        }
    }

    const BEFORE: &str = "2026-11-30T16:11:56Z";
    const AFTER: &str = "2026-11-30T17:16:15Z";

    fn started() -> Restart {
        let mut restart = Restart::default();
        let first = WatchEvent::Created(service(BEFORE, true));
        restart.observe("n", &first).unwrap();
        assert!(restart.is_healthy());
        restart.mark();
        restart
    }

    #[test]
    fn a_restart_is_an_end_a_beginning_and_health() {
        let mut restart = started();
        let mut see = |event: WatchEvent| {
            restart.observe("n", &event).unwrap();
            (restart.restarted(), restart.is_healthy())
        };
        let changed = |resource| WatchEvent::Updated {
            old: None,
            new: resource,
        };
        // Health flaps on a loaded machine.
        assert_eq!(see(changed(service(BEFORE, false))), (false, false));
        assert_eq!(see(changed(service(BEFORE, true))), (false, true));
        // What is gone still says that it is healthy.
        assert_eq!(
            see(WatchEvent::Destroyed(service(BEFORE, true))),
            (true, false)
        );
        assert_eq!(
            see(WatchEvent::Created(service(AFTER, false))),
            (true, false)
        );
        assert_eq!(see(changed(service(AFTER, true))), (true, true));
    }

    #[test]
    fn an_end_that_was_missed_shows_in_the_time_of_creation() {
        let mut restart = started();
        let event = WatchEvent::Created(service(AFTER, true));
        restart.observe("n", &event).unwrap();
        assert!(restart.restarted() && restart.is_healthy());
    }
}
