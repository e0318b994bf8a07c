//! A component that runs as a static pod.

use std::time::Instant;

use serde_json::Value;
use talos_kube::{Component, ComponentPod, Node};

use super::Driver;
use crate::facts::is_on;
use crate::gather::{Tries, running_image, static_pod};
use crate::judge::{Mark, PodState, judge};
use crate::timing::Budget;
use crate::{Error, Step};

/// The annotation with the version of the files kube-apiserver reads at its start.
const FILES: &str = "config-file-version";

impl Driver<'_> {
    /// Changes one static pod on one node and waits until the new one is ready; tells whether a write was needed.
    pub(super) async fn static_pod(&self, step: &Step) -> Result<bool, Error> {
        let node = self.known_node(step).await?;
        let before = self.pod(step.component, &node).await?;
        let wrote = self.write(step).await?;
        self.follow_config(step).await?;
        let mark = before.as_ref().filter(|_| wrote).map(Mark::from);
        let mut budget = Budget::new(self.cluster.kubernetes, self.timing(), self.timing().pod);
        let mut said = String::new();
        loop {
            let pod = self.pod(step.component, &node).await?;
            let state = judge(pod.as_ref(), &step.to, mark.as_ref());
            if state == PodState::Ready {
                break;
            }
            self.wait(step, &mut budget, &mut said, state.to_string())
                .await?;
        }
        if matches!(
            step.component,
            Component::KubeApiserver | Component::KubeScheduler
        ) {
            self.settle(step, &node).await?;
        }
        Ok(wrote)
    }

    /// Waits until the node told the component to run the image.
    pub(super) async fn follow_config(&self, step: &Step) -> Result<(), Error> {
        let machine = self.machine(step);
        let mut budget = Budget::new(self.cluster.kubernetes, self.timing(), self.timing().config);
        let mut said = String::new();
        loop {
            let tries = Tries::Within(&budget);
            let running = running_image(&machine, &step.node, step.component, tries).await?;
            if running.as_ref() == Some(&step.to) {
                return Ok(());
            }
            let state = match running {
                Some(image) => format!("Talos still means to run {image}"),
                None => "Talos does not mean to run it".to_owned(),
            };
            self.wait(step, &mut budget, &mut said, state).await?;
        }
    }

    /// Waits until kube-apiserver of the node runs with the files it is meant to read.
    ///
    /// Its authorization file names its image, and its files' version counts the scheduler's configuration too. So a
    /// change of the scheduler restarts kube-apiserver once more, with the same image and the same configuration version.
    /// Going on meanwhile could take down the API servers of two nodes at once.
    async fn settle(&self, step: &Step, node: &Node) -> Result<(), Error> {
        let machine = self.machine(step);
        let mut budget = Budget::new(self.cluster.kubernetes, self.timing(), self.timing().pod);
        let mut said = String::new();
        let mut since: Option<Instant> = None;
        loop {
            let component = Component::KubeApiserver;
            let tries = Tries::Within(&budget);
            let meant = static_pod(&machine, &step.node, component, tries).await?;
            let meant = meant.as_ref().and_then(|pod| {
                pod.pointer("/metadata/annotations/talos.dev~1config-file-version")
                    .and_then(Value::as_str)
            });
            let Some(meant) = meant else {
                return Ok(());
            };
            let pod = self.pod(component, node).await?;
            let settled = pod.is_some_and(|pod| {
                pod.annotations.get(FILES).map(String::as_str) == Some(meant)
                    && pod.ready
                    && !pod.deleting
            });
            if !settled {
                since = None;
                let state = "kube-apiserver restarts with new files".to_owned();
                self.wait(step, &mut budget, &mut said, state).await?;
                continue;
            }
            let since = *since.get_or_insert_with(Instant::now);
            if since.elapsed() >= self.timing().settle {
                return Ok(());
            }
            tokio::time::sleep(self.timing().poll.min(self.timing().settle)).await;
        }
    }

    async fn known_node(&self, step: &Step) -> Result<Node, Error> {
        let node = self.node(step).await?;
        node.ok_or_else(|| Error::NodeGone {
            node: step.node.clone(),
        })
    }

    /// The pod of a component on a node; of several the one that is not being deleted.
    async fn pod(&self, component: Component, node: &Node) -> Result<Option<ComponentPod>, Error> {
        let pods = self.cluster.kubernetes.pods_of(component).await;
        let pods = pods.map_err(|source| Error::Kubernetes {
            action: "look at the pods of a component",
            source: Box::new(source),
        })?;
        let found = pods.into_iter().filter(|pod| is_on(pod, node));
        Ok(found.min_by_key(|pod| pod.deleting))
    }
}
