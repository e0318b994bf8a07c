//! Carrying out a plan, step by step.

mod kubelet;
mod pull;
mod static_pod;
mod write;

use std::sync::{Mutex, MutexGuard, PoisonError};

use talos_client::Node as Machine;
use talos_kube::{Component, Node};

use crate::timing::Budget;
use crate::{
    Action, Cluster, Error, Event, Observer, Place, Plan, Report, Step, Stop, Timing, manifests,
};

/// How a plan is carried out.
#[derive(Clone)]
pub struct RunOptions {
    /// Pauses and budgets.
    pub timing: Timing,
    /// How many nodes pull images at once.
    pub concurrency: usize,
    /// Asks for a stop between two steps.
    pub stop: Stop,
    /// Told what happens.
    pub observer: Observer,
}

/// Carries out a plan that nothing blocks, in its order, one component on one node at a time.
///
/// A failure leaves the cluster between two versions that work together; a new plan goes on from there and skips what
/// is done.
///
/// # Errors
/// [`Error::Blocked`] and [`Error::Pull`] before anything is changed, [`Error::Interrupted`] between two steps when a
/// stop was requested, else the failure of the step that names its node.
pub async fn run(plan: &Plan, cluster: Cluster<'_>, options: RunOptions) -> Result<Report, Error> {
    if plan.is_blocked() {
        return Err(Error::Blocked {
            reasons: plan.blocked.clone(),
        });
    }
    let driver = Driver {
        plan,
        cluster,
        options,
        report: Mutex::default(),
        outages: cluster.kubernetes.outages(),
        away: cluster.kubernetes.away(),
    };
    driver.tell(Event::Started {
        from: plan.from.clone(),
        to: plan.to.clone(),
    });
    driver.pull().await?;
    for step in &plan.steps {
        driver.safe_point(&format!("{} on {}", step.component, step.node))?;
        driver.step(step).await?;
    }
    driver.safe_point("the manifests")?;
    manifests::sync(&driver).await?;
    let report = driver.finish();
    driver.tell(Event::Finished {
        report: report.clone(),
    });
    Ok(report)
}

/// What the parts of a run share.
pub(crate) struct Driver<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) cluster: Cluster<'a>,
    pub(crate) options: RunOptions,
    report: Mutex<Report>,
    outages: u32,
    away: std::time::Duration,
}

impl Driver<'_> {
    pub(crate) fn tell(&self, event: Event) {
        (self.options.observer)(event);
    }

    pub(crate) fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops here if somebody asked for it.
    pub(crate) fn safe_point(&self, next: &str) -> Result<(), Error> {
        if !self.options.stop.is_requested() {
            return Ok(());
        }
        Err(Error::Interrupted {
            next: next.to_owned(),
            report: Box::new(self.finish()),
        })
    }

    fn timing(&self) -> &Timing {
        &self.options.timing
    }

    fn machine(&self, step: &Step) -> Machine {
        self.cluster.talos.node(step.address.clone())
    }

    /// The node of a step as Kubernetes shows it now.
    async fn node(&self, step: &Step) -> Result<Option<Node>, Error> {
        let nodes = self.cluster.kubernetes.nodes().await;
        let nodes = nodes.map_err(|source| Error::Kubernetes {
            action: "look at the nodes",
            source: Box::new(source),
        })?;
        Ok(nodes.into_iter().find(|node| node.name == step.node))
    }

    async fn step(&self, step: &Step) -> Result<(), Error> {
        if matches!(step.action, Action::Done | Action::Off) {
            return self.done(step, false);
        }
        self.tell(Event::Changing {
            component: step.component,
            node: step.node.clone(),
            from: step.from.clone(),
            to: step.to.clone(),
        });
        let changed = match step.component {
            Component::Kubelet => self.kubelet(step).await?,
            // Its DaemonSet follows with the manifests.
            Component::KubeProxy => self.write(step).await?,
            _ if step.action == Action::Record => self.write(step).await?,
            _ => self.static_pod(step).await?,
        };
        self.done(step, changed)
    }

    fn done(&self, step: &Step, changed: bool) -> Result<(), Error> {
        let place = Place {
            component: step.component,
            node: step.node.clone(),
        };
        let mut report = self.report();
        if changed {
            report.changed.push(place);
        } else {
            report.skipped.push(place);
        }
        drop(report);
        self.tell(Event::Done {
            component: step.component,
            node: step.node.clone(),
            changed,
        });
        Ok(())
    }

    /// Waits one poll, telling what is waited for when that changed. A step that only waits can be left here.
    ///
    /// # Errors
    /// [`Error::TimedOut`] when the budget is spent, [`Error::Interrupted`] when a step that writes nothing shall stop.
    async fn wait(
        &self,
        step: &Step,
        budget: &mut Budget<'_>,
        said: &mut String,
        state: String,
    ) -> Result<(), Error> {
        if step.action == Action::Wait {
            self.safe_point(&format!("{} on {} was ready", step.component, step.node))?;
        }
        if budget.is_spent() {
            return Err(self.timed_out(step, budget, state));
        }
        if *said != state {
            said.clone_from(&state);
            self.tell(Event::Waiting {
                component: step.component,
                node: step.node.clone(),
                state,
            });
        }
        budget.pause().await;
        Ok(())
    }

    fn timed_out(&self, step: &Step, budget: &Budget<'_>, last: String) -> Error {
        Error::TimedOut {
            node: step.node.clone(),
            component: step.component,
            image: step.to.clone(),
            waited: budget.used(),
            last,
        }
    }

    fn finish(&self) -> Report {
        let mut report = self.report().clone();
        let kubernetes = self.cluster.kubernetes;
        report.api_outages = kubernetes.outages() - self.outages;
        let away = kubernetes.away().saturating_sub(self.away);
        report.api_away_ms = u64::try_from(away.as_millis()).unwrap_or(u64::MAX);
        report
    }
}
