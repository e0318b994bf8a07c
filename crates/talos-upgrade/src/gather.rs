//! Reading what a cluster looks like before an upgrade.

use std::collections::BTreeMap;

use futures::{StreamExt as _, TryStreamExt as _};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;
use talos_client::{Client, Node as Machine, Resource};
use talos_config::machine::is_same;
use talos_kube::{Component, Kubernetes, Node};

use crate::manifests::live::Live;
use crate::rules::RemovedResource;
use crate::timing::Budget;
use crate::{Error, Facts, NodeFacts, Request, TalosFacts, Timing, config, plan, rules};

/// How many nodes are read at once.
const CONCURRENCY: usize = 16;
/// How often a read is tried when a node does not answer while a plan is made.
const ATTEMPTS: usize = 3;

/// How long to go on asking a node that does not answer.
#[derive(Clone, Copy)]
pub(crate) enum Tries<'a> {
    /// A few times: nothing has begun, so the user may as well call again.
    Few(&'a Timing),
    /// Until the time of the step is spent: a run is under way, and nodes may be away for a while.
    Within(&'a Budget<'a>),
}

impl Tries<'_> {
    fn are_over(self, made: usize) -> bool {
        match self {
            Self::Few(_) => made >= ATTEMPTS,
            Self::Within(budget) => budget.is_spent(),
        }
    }

    async fn pause(self) {
        let pause = match self {
            Self::Few(timing) => timing.poll,
            Self::Within(budget) => budget.poll(),
        };
        tokio::time::sleep(pause).await;
    }
}

/// The two sides of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Cluster<'a> {
    /// Its nodes, through the Talos API.
    pub talos: &'a Client,
    /// Its Kubernetes.
    pub kubernetes: &'a Kubernetes,
}

/// Reads everything a plan is made from. Nothing is written anywhere.
///
/// Every node that the upgrade would look at must answer: control planes, and workers when kubelets are upgraded.
///
/// # Errors
/// [`Error::Talos`] with the node that does not answer, [`Error::Kubernetes`], or [`Error::Config`].
pub async fn gather(
    cluster: Cluster<'_>,
    request: &Request,
    timing: &Timing,
) -> Result<Facts, Error> {
    let nodes = cluster.kubernetes.nodes().await;
    let nodes = nodes.map_err(|source| reading(source, "list the nodes"))?;
    let pods = cluster.kubernetes.component_pods().await;
    let pods = pods.map_err(|source| reading(source, "find the running version"))?;
    let nodes = futures::stream::iter(nodes)
        .map(|node| async move {
            let wanted = node.control_plane || request.upgrade_kubelet;
            let talos = match &node.address {
                Some(address) if wanted => {
                    let machine = cluster.talos.node(address.clone());
                    Some(read_node(&machine, &node, Tries::Few(timing)).await?)
                }
                _ => None,
            };
            Ok::<_, Error>(NodeFacts { node, talos })
        })
        .buffered(CONCURRENCY)
        .try_collect()
        .await?;
    let mut facts = Facts {
        nodes,
        pods,
        removed_resources: BTreeMap::new(),
    };
    if let Ok((from, to)) = plan::versions(&facts, request) {
        let live = Live::new(cluster.kubernetes);
        for resource in rules::removed(&from, &to)
            .into_iter()
            .flat_map(|removed| &removed.resources)
        {
            let count = live.count(&api_resource(resource)).await?;
            facts.removed_resources.insert(resource.to_string(), count);
        }
    }
    Ok(facts)
}

async fn read_node(machine: &Machine, node: &Node, tries: Tries<'_>) -> Result<TalosFacts, Error> {
    let name = node.name.as_str();
    let version = ask(name, "read its version", tries, || machine.version()).await?;
    let version = version.semver().ok_or_else(|| Error::Resource {
        node: name.to_owned(),
        resource: "version".to_owned(),
        field: "tag that is a version",
    })?;
    let active = configurations(machine, name, tries).await?;
    let images = config::read(&active.text).map_err(|source| Error::Config {
        node: name.to_owned(),
        source: Box::new(source),
    })?;
    let mut facts = TalosFacts {
        version,
        pending: active.pending,
        running: BTreeMap::new(),
        arguments: BTreeMap::new(),
        configured: images.configured,
        disabled: images.disabled,
        unrendered: Vec::new(),
    };
    if node.control_plane {
        for component in Component::STATIC_PODS {
            if let Some(image) = running_image(machine, name, component, tries).await? {
                facts.running.insert(component, image);
            }
            match static_pod(machine, name, component, tries).await? {
                Some(pod) => {
                    let container = pod.pointer("/spec/containers/0");
                    let words = |key| container.and_then(|container| container.get(key));
                    let arguments = [words("command"), words("args")];
                    let arguments = arguments.into_iter().flatten().flat_map(strings).collect();
                    facts.arguments.insert(component, arguments);
                }
                None if facts.may_lack(component) => {}
                None => facts.unrendered.push(component),
            }
        }
    }
    if let Some(kubelet) = kubelet_spec(machine, name, tries).await? {
        if let Some(image) = text(&kubelet, "/image") {
            facts.running.insert(Component::Kubelet, image);
        }
        let arguments = kubelet.get("args").map(strings).unwrap_or_default();
        facts.arguments.insert(Component::Kubelet, arguments);
    }
    Ok(facts)
}

/// The active configuration of a node.
pub(crate) struct Active {
    /// Its text.
    pub(crate) text: String,
    /// Its version as a resource.
    pub(crate) version: String,
    /// Whether the one on disk is another.
    pub(crate) pending: bool,
}

/// Reads the active configuration of a node and compares it with the one on disk.
pub(crate) async fn configurations(
    machine: &Machine,
    node: &str,
    tries: Tries<'_>,
) -> Result<Active, Error> {
    let action = "read its machine configuration";
    let configs = ask(node, action, tries, || machine.machine_configs()).await?;
    let find = |id: &str| configs.iter().find(|config| config.id == id);
    let active = find(talos_client::MachineConfig::ACTIVE).ok_or_else(|| Error::Resource {
        node: node.to_owned(),
        resource: "MachineConfigs/v1alpha1".to_owned(),
        field: "content",
    })?;
    let pending = match find(talos_client::MachineConfig::PERSISTENT) {
        // It is absent until the first change where the configuration came from the platform.
        None => false,
        Some(persistent) => {
            let same = is_same(&active.text, &persistent.text);
            !same.map_err(|source| Error::Config {
                node: node.to_owned(),
                source: Box::new(source),
            })?
        }
    };
    Ok(Active {
        text: active.text.clone(),
        version: active.version.clone(),
        pending,
    })
}

/// The image a component of a control plane was told to run.
pub(crate) async fn running_image(
    machine: &Machine,
    node: &str,
    component: Component,
    tries: Tries<'_>,
) -> Result<Option<String>, Error> {
    let kind = match component {
        Component::KubeApiserver => "APIServerConfigs.kubernetes.talos.dev",
        Component::KubeControllerManager => "ControllerManagerConfigs.kubernetes.talos.dev",
        Component::KubeScheduler => "SchedulerConfigs.kubernetes.talos.dev",
        Component::Kubelet => {
            let kubelet = kubelet_spec(machine, node, tries).await?;
            return Ok(kubelet.and_then(|kubelet| text(&kubelet, "/image")));
        }
        Component::KubeProxy => return Ok(None),
    };
    // Talos 1.14 derives the configuration that counts from the one of the plain name.
    for id in [format!("final-{component}"), component.to_string()] {
        let found = resource(machine, node, ("controlplane", kind, &id), tries).await?;
        if let Some(found) = found {
            return Ok(text(&found, "/image"));
        }
    }
    Ok(None)
}

/// The static pod of a component as a node renders it.
pub(crate) async fn static_pod(
    machine: &Machine,
    node: &str,
    component: Component,
    tries: Tries<'_>,
) -> Result<Option<Value>, Error> {
    let place = ("k8s", "StaticPods.kubernetes.talos.dev", component.name());
    resource(machine, node, place, tries).await
}

async fn kubelet_spec(
    machine: &Machine,
    node: &str,
    tries: Tries<'_>,
) -> Result<Option<Value>, Error> {
    let place = ("k8s", "KubeletSpecs.kubernetes.talos.dev", "kubelet");
    resource(machine, node, place, tries).await
}

async fn resource(
    machine: &Machine,
    node: &str,
    (namespace, kind, id): (&str, &str, &str),
    tries: Tries<'_>,
) -> Result<Option<Value>, Error> {
    let found = ask(node, "read a resource", tries, || async {
        match machine.get(namespace, kind, id).await {
            Ok(found) => Ok(Some(found)),
            Err(talos_client::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    })
    .await?;
    found.map(|found| spec(node, &found)).transpose()
}

/// The content of a resource as a value.
pub(crate) fn spec(node: &str, found: &Resource) -> Result<Value, Error> {
    found.spec().map_err(|source| Error::Content {
        node: node.to_owned(),
        resource: format!("{}/{}", found.metadata.resource_type, found.metadata.id),
        source: Box::new(source),
    })
}

/// Reads something from a node, again and again if the node does not answer.
pub(crate) async fn ask<T, F>(
    node: &str,
    action: &'static str,
    tries: Tries<'_>,
    call: impl Fn() -> F,
) -> Result<T, Error>
where
    F: Future<Output = talos_client::Result<T>>,
{
    let mut made = 0;
    loop {
        made += 1;
        match call().await {
            Ok(value) => return Ok(value),
            Err(error) if error.is_transient() && !tries.are_over(made) => tries.pause().await,
            Err(source) => {
                return Err(Error::Talos {
                    node: node.to_owned(),
                    action,
                    source: Box::new(source),
                });
            }
        }
    }
}

fn reading(source: talos_kube::Error, action: &'static str) -> Error {
    Error::Kubernetes {
        action,
        source: Box::new(source),
    }
}

fn api_resource(removed: &RemovedResource) -> ApiResource {
    let gvk = GroupVersionKind::gvk(&removed.group, &removed.version, "");
    ApiResource::from_gvk_with_plural(&gvk, &removed.resource)
}

fn text(spec: &Value, pointer: &str) -> Option<String> {
    let text = spec.pointer(pointer).and_then(Value::as_str)?;
    (!text.is_empty()).then(|| text.to_owned())
}

fn strings(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}
