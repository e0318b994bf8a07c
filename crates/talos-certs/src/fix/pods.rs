//! What a node says of its control plane pods: whether they are ready, and whether they were started anew.

use std::collections::BTreeMap;

use serde_json::Value;
use talos_client::Node;

/// The control plane pods of a node at one moment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pods {
    /// What is other after a start, by pod.
    starts: BTreeMap<String, String>,
    /// Those that are not ready.
    unready: Vec<String>,
}

impl Pods {
    /// Asks a node; one that does not tell, such as one that lacks the rights, is judged by what it serves alone.
    pub(super) async fn of(node: &Node) -> Option<Self> {
        let kind = "StaticPodStatuses.kubernetes.talos.dev";
        let statuses = node.list("k8s", kind).await.ok()?;
        let mut pods = Self::default();
        for status in &statuses {
            pods.add(&status.metadata.id, &status.spec().ok()?);
        }
        (!pods.starts.is_empty()).then_some(pods)
    }

    fn add(&mut self, id: &str, status: &Value) {
        let list = |key: &str| {
            status
                .get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        let is_ready = list("conditions")
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        if !is_ready {
            self.unready.push(id.to_owned());
        }
        let containers = list("containerStatuses").map(|container| {
            let state = &container["state"]["running"]["startedAt"];
            format!(
                "{} {} {state}",
                container["containerID"], container["restartCount"]
            )
        });
        let containers: Vec<String> = containers.collect();
        let start = format!("{} {}", status["startTime"], containers.join(" "));
        self.starts.insert(id.to_owned(), start);
    }

    /// Names a pod that is not ready.
    pub(super) fn unready(&self) -> Option<&str> {
        self.unready.first().map(String::as_str)
    }

    /// Tells whether all of them were started anew since an earlier moment.
    pub(super) fn were_started_since(&self, before: &Self) -> bool {
        let mut starts = self.starts.iter();
        !self.starts.is_empty()
            && starts.all(|(id, start)| before.starts.get(id).is_some_and(|old| old != start))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pods(started: [&str; 3], ready: bool) -> Pods {
        let mut pods = Pods::default();
        let names = [
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
        ];
        for (name, started) in names.into_iter().zip(started) {
            let status = json!({
                "conditions": [
                    {"type": "PodScheduled", "status": "True"},
                    {"type": "Ready", "status": if ready { "True" } else { "False" }},
                ],
                "containerStatuses": [{
                    "containerID": "containerd://1",
                    "restartCount": 0,
                    "state": {"running": {"startedAt": started}},
                }],
                "startTime": "2026-11-30T16:12:18Z",
            });
            pods.add(&format!("kube-system/{name}-lab-cp-1"), &status);
        }
        pods
    }

    #[test]
    fn a_restart_is_over_when_every_pod_was_started_anew_and_is_ready() {
        let before = pods(["a", "a", "a"], true);
        assert_eq!(before.unready(), None);
        assert!(!before.were_started_since(&before));
        assert!(!pods(["b", "a", "b"], true).were_started_since(&before));
        assert!(pods(["b", "b", "b"], true).were_started_since(&before));
        let waiting = pods(["b", "b", "b"], false);
        assert_eq!(
            waiting.unready(),
            Some("kube-system/kube-apiserver-lab-cp-1")
        );
    }
}
