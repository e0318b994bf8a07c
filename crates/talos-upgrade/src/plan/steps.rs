//! The steps on each node, and the images they need.

use semver::Version;
use talos_kube::{Component, ComponentPod};

use super::{Action, ImageStore, Pull, Step};
use crate::{Facts, Image, NodeFacts, Request, TalosFacts, Warning, rules};

/// All steps in order: component by component on the control planes, then the workers' kubelets.
pub(super) fn steps(
    facts: &Facts,
    request: &Request,
    to: &Version,
    warnings: &mut Vec<Warning>,
) -> Vec<Step> {
    let mut steps = Vec::new();
    for component in Component::ALL {
        if component == Component::Kubelet && !request.upgrade_kubelet {
            continue;
        }
        let concerned = facts
            .nodes
            .iter()
            .filter(|node| node.node.control_plane || component == Component::Kubelet);
        for node in concerned {
            let (Some(talos), Some(address)) = (&node.talos, &node.node.address) else {
                continue;
            };
            let image = target(node, talos, component, request, to, warnings);
            steps.push(Step {
                component,
                node: node.node.name.clone(),
                address: address.clone(),
                from: current(talos, component).cloned(),
                action: action(facts, node, talos, component, &image, to),
                to: image,
            });
        }
    }
    steps
}

/// The images to pull: those of every step that writes, and kube-proxy's wherever its pod is not the target yet.
pub(super) fn pulls(facts: &Facts, steps: &[Step], to: &Version) -> Vec<Pull> {
    let mut pulls = Vec::new();
    for step in steps.iter().filter(|step| step.action == Action::Change) {
        let store = match step.component {
            Component::KubeProxy => continue,
            Component::Kubelet => ImageStore::System,
            _ => ImageStore::Pods,
        };
        pulls.push(Pull {
            node: step.node.clone(),
            address: step.address.clone(),
            image: step.to.clone(),
            store,
        });
    }
    let proxy = steps
        .iter()
        .find(|step| step.component == Component::KubeProxy && step.action != Action::Off);
    let Some(proxy) = proxy else {
        return pulls;
    };
    for node in &facts.nodes {
        let Some(address) = &node.node.address else {
            continue;
        };
        let runs = facts
            .pod_on(&node.node, Component::KubeProxy)
            .and_then(version);
        if runs.as_ref() != Some(to) {
            pulls.push(Pull {
                node: node.node.name.clone(),
                address: address.clone(),
                image: proxy.to.clone(),
                store: ImageStore::Pods,
            });
        }
    }
    pulls
}

fn version(pod: &ComponentPod) -> Option<Version> {
    Image::parse(&pod.image).ok()?.version()
}

/// The image a component has now: what it was told to run, else what its configuration names.
fn current(talos: &TalosFacts, component: Component) -> Option<&String> {
    let running = talos.running.get(&component);
    running.or_else(|| talos.configured.get(&component))
}

/// The image to be: the repository asked for, else the one in use, with the flavor in use.
fn target(
    node: &NodeFacts,
    talos: &TalosFacts,
    component: Component,
    request: &Request,
    to: &Version,
    warnings: &mut Vec<Warning>,
) -> String {
    let text = talos
        .configured
        .get(&component)
        .or_else(|| talos.running.get(&component));
    let parsed = text.map(|text| Image::parse(text));
    let place = || (node.node.name.clone(), text.cloned().unwrap_or_default());
    let mut image = match parsed {
        Some(Ok(image)) => image,
        other => {
            if other.is_some() {
                let (node, image) = place();
                warnings.push(Warning::UnreadableImage {
                    node,
                    component,
                    image,
                });
            }
            Image {
                repository: rules::default_repository(component).to_owned(),
                tag: None,
                digest: None,
            }
        }
    };
    if let Some(repository) = request.repositories.get(&component)
        && *repository != image.repository
    {
        image.repository.clone_from(repository);
    } else if image.version().as_ref() == Some(to) {
        return image.to_string();
    }
    if image.digest.is_some() {
        let (node, image) = place();
        warnings.push(Warning::DigestDropped {
            node,
            component,
            image,
        });
    }
    image.at(to).to_string()
}

fn action(
    facts: &Facts,
    node: &NodeFacts,
    talos: &TalosFacts,
    component: Component,
    image: &str,
    to: &Version,
) -> Action {
    let off = talos.disabled.contains(&component);
    let runs = talos.running.get(&component).map(String::as_str) == Some(image);
    match component {
        Component::KubeProxy if off => Action::Off,
        Component::KubeProxy => {
            let configured = talos.configured.get(&component).map(String::as_str);
            if configured == Some(image) {
                Action::Done
            } else {
                Action::Change
            }
        }
        Component::Kubelet if !runs => Action::Change,
        Component::Kubelet => {
            let reported = rules::parse_version(&node.node.kubelet_version).ok();
            if reported.as_ref() == Some(to) && node.node.ready {
                Action::Done
            } else {
                Action::Wait
            }
        }
        _ if off && runs => Action::Off,
        _ if off => Action::Record,
        _ if !runs => Action::Change,
        _ => match facts.pod_on(&node.node, component) {
            Some(pod) if pod.image == image && pod.ready && !pod.deleting => Action::Done,
            _ => Action::Wait,
        },
    }
}
