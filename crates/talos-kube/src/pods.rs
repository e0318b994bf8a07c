//! The pods of Kubernetes' own components.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, Kubernetes};

/// The label by which Talos marks the pods of a component; its value is the component's name.
pub const COMPONENT_LABEL: &str = "k8s-app";

/// A component that an upgrade changes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Component {
    /// The API server, a static pod of control planes.
    KubeApiserver,
    /// The controller manager, a static pod of control planes.
    KubeControllerManager,
    /// The scheduler, a static pod of control planes.
    KubeScheduler,
    /// The service proxy, a DaemonSet.
    KubeProxy,
    /// The node agent, a service of Talos.
    Kubelet,
}

impl Component {
    /// Every component, in the order of an upgrade.
    pub const ALL: [Self; 5] = [
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::KubeScheduler,
        Self::KubeProxy,
        Self::Kubelet,
    ];

    /// The components that run as static pods, in the order of an upgrade.
    pub const STATIC_PODS: [Self; 3] = [
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::KubeScheduler,
    ];

    /// The name as in images, labels and pod names.
    pub fn name(self) -> &'static str {
        match self {
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::KubeProxy => "kube-proxy",
            Self::Kubelet => "kubelet",
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A pod of a component in `kube-system`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentPod {
    /// The pod's name.
    pub name: String,
    /// Its identity; a static pod's mirror pod gets a new one when it is replaced.
    pub uid: String,
    /// The component it runs.
    pub component: Component,
    /// The node it runs on, by its name in Kubernetes.
    pub node: Option<String>,
    /// The addresses of that node as the kubelet reports them; empty until it does.
    pub host_addresses: Vec<String>,
    /// The image its specification asks for. The status may name a newer one while the specification is still old.
    pub image: String,
    /// The annotations `talos.dev/...`, without that prefix.
    pub annotations: BTreeMap<String, String>,
    /// True when its condition `Ready` is true.
    pub ready: bool,
    /// True once its deletion began.
    pub deleting: bool,
}

impl ComponentPod {
    /// Reads a pod; `None` when it carries no component's label or no container of that name.
    pub fn read(pod: &Pod) -> Option<Self> {
        let label = pod.metadata.labels.as_ref()?.get(COMPONENT_LABEL)?;
        let component = Component::ALL
            .into_iter()
            .find(|component| component.name() == label)?;
        let spec = pod.spec.as_ref()?;
        let container = spec
            .containers
            .iter()
            .find(|container| container.name == *label)?;
        let status = pod.status.clone().unwrap_or_default();
        let annotations = pod.metadata.annotations.clone().unwrap_or_default();
        let talos = annotations.into_iter().filter_map(|(key, value)| {
            let key = key.strip_prefix("talos.dev/")?.to_owned();
            Some((key, value))
        });
        let addresses = status.host_ips.unwrap_or_default();
        let mut host_addresses: Vec<String> =
            addresses.into_iter().map(|address| address.ip).collect();
        host_addresses.extend(status.host_ip);
        host_addresses.dedup();
        Some(Self {
            name: pod.metadata.name.clone().unwrap_or_default(),
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            component,
            node: spec.node_name.clone(),
            host_addresses,
            image: container.image.clone().unwrap_or_default(),
            annotations: talos.collect(),
            ready: status
                .conditions
                .unwrap_or_default()
                .iter()
                .any(|condition| condition.type_ == "Ready" && condition.status == "True"),
            deleting: pod.metadata.deletion_timestamp.is_some(),
        })
    }
}

impl Kubernetes {
    /// Lists the pods of all components in `kube-system`.
    ///
    /// # Errors
    /// [`Error::Request`] or [`Error::Outage`].
    pub async fn component_pods(&self) -> Result<Vec<ComponentPod>, Error> {
        self.pods(ListParams::default()).await
    }

    /// Lists the pods of one component in `kube-system`.
    ///
    /// # Errors
    /// [`Error::Request`] or [`Error::Outage`].
    pub async fn pods_of(&self, component: Component) -> Result<Vec<ComponentPod>, Error> {
        let params = ListParams::default().labels(&format!("{COMPONENT_LABEL}={component}"));
        self.pods(params).await
    }

    async fn pods(&self, params: ListParams) -> Result<Vec<ComponentPod>, Error> {
        let list = self
            .call("list the pods of kube-system", |client| {
                let params = params.clone();
                async move {
                    Api::<Pod>::namespaced(client, "kube-system")
                        .list(&params)
                        .await
                }
            })
            .await?;
        Ok(list.items.iter().filter_map(ComponentPod::read).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(label: &str, container: &str) -> Option<ComponentPod> {
        let pod = json!({
            "metadata": {
                "name": "kube-scheduler-cp-1",
                "uid": "u",
                "labels": {"k8s-app": label},
                "annotations": {
                    "kubernetes.io/config.source": "file",
                    "talos.dev/config-version": "3",
                },
            },
            "spec": {
                "nodeName": "cp-1",
                "containers": [
                    {"name": "sidecar", "image": "other"},
                    {"name": container, "image": "registry.k8s.io/kube-scheduler:v1.34.0"},
                ],
            },
            "status": {
                "hostIP": "10.5.0.2",
                "hostIPs": [{"ip": "10.5.0.2"}],
                "containerStatuses": [],
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        });
        ComponentPod::read(&serde_json::from_value::<Pod>(pod).unwrap())
    }

    #[test]
    fn the_container_of_the_components_name_counts() {
        let read = pod("kube-scheduler", "kube-scheduler").unwrap();
        assert_eq!(read.component, Component::KubeScheduler);
        assert_eq!(read.image, "registry.k8s.io/kube-scheduler:v1.34.0");
        assert_eq!(read.host_addresses, ["10.5.0.2"]);
        assert_eq!(read.annotations["config-version"], "3");
        assert_eq!(read.annotations.len(), 1);
        assert!(read.ready);
    }

    #[test]
    fn other_pods_are_no_component_pods() {
        assert_eq!(pod("kube-dns", "kube-scheduler"), None);
        assert_eq!(pod("kube-scheduler", "scheduler"), None);
    }
}
