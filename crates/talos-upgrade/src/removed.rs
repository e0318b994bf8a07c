//! What is in use of the things a minor step takes away.

use schemars::JsonSchema;
use serde::Serialize;
use talos_kube::Component;

use crate::rules::Removed;
use crate::{Facts, NodeFacts};

/// Something in use that the target version no longer has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Finding {
    /// A command line flag.
    Flag {
        /// The node.
        node: String,
        /// The component that has it.
        component: Component,
        /// Its name without dashes.
        name: String,
    },
    /// A feature gate, set to true or false.
    FeatureGate {
        /// The node.
        node: String,
        /// The component that has it.
        component: Component,
        /// Its name.
        name: String,
    },
    /// An admission plugin of the API server.
    AdmissionPlugin {
        /// The node.
        node: String,
        /// Its name.
        name: String,
    },
    /// Objects of an API resource.
    Resource {
        /// `resource.version.group`.
        name: String,
        /// How many there are.
        count: u64,
    },
}

impl std::fmt::Display for Finding {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag {
                node,
                component,
                name,
            } => write!(
                out,
                "node {node}: {component} has the removed flag --{name}"
            ),
            Self::FeatureGate {
                node,
                component,
                name,
            } => write!(
                out,
                "node {node}: {component} sets the removed feature gate {name}"
            ),
            Self::AdmissionPlugin { node, name } => write!(
                out,
                "node {node}: {} enables the removed admission plugin {name}",
                Component::KubeApiserver
            ),
            Self::Resource { name, count } => {
                write!(out, "{count} objects of the removed API resource {name}")
            }
        }
    }
}

/// Lists everything in use on any node that the step takes away.
pub(crate) fn find(facts: &Facts, removed: &Removed) -> Vec<Finding> {
    let per_node = facts.nodes.iter().flat_map(|node| on_node(node, removed));
    let resources = removed.resources.iter().filter_map(|resource| {
        let name = resource.to_string();
        let count = *facts.removed_resources.get(&name)?;
        (count > 0).then_some(Finding::Resource { name, count })
    });
    per_node.chain(resources).collect()
}

fn on_node(node: &NodeFacts, removed: &Removed) -> Vec<Finding> {
    let Some(talos) = &node.talos else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let name = || node.node.name.clone();
    for (&component, arguments) in &talos.arguments {
        let flags = removed.flags.get(&component).into_iter().flatten();
        findings.extend(
            flags
                .filter(|flag| arguments.iter().any(|text| is_flag(text, flag)))
                .map(|flag| Finding::Flag {
                    node: name(),
                    component,
                    name: flag.clone(),
                }),
        );
        if component == Component::Kubelet {
            continue;
        }
        let set = listed(arguments, "feature-gates");
        let gates = set
            .iter()
            .map(|gate| gate.split('=').next().unwrap_or(gate));
        let mut gates: Vec<&str> = gates
            .filter(|gate| removed.feature_gates.iter().any(|gone| gone == gate))
            .collect();
        gates.dedup();
        findings.extend(gates.into_iter().map(|gate| Finding::FeatureGate {
            node: name(),
            component,
            name: gate.to_owned(),
        }));
        if component == Component::KubeApiserver {
            let plugins = listed(arguments, "enable-admission-plugins");
            findings.extend(
                plugins
                    .into_iter()
                    .filter(|plugin| removed.admission_plugins.iter().any(|gone| gone == plugin))
                    .map(|plugin| Finding::AdmissionPlugin {
                        node: name(),
                        name: plugin.to_owned(),
                    }),
            );
        }
    }
    findings
}

fn is_flag(argument: &str, flag: &str) -> bool {
    let name = argument.split('=').next().unwrap_or(argument);
    name.strip_prefix("--") == Some(flag)
}

/// The comma separated values of every occurrence of a flag, in either form.
fn listed<'a>(arguments: &'a [String], flag: &str) -> Vec<&'a str> {
    let mut values = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        if !is_flag(argument, flag) {
            continue;
        }
        let value = match argument.split_once('=') {
            Some((_, value)) => Some(value),
            None => arguments.get(index + 1).map(String::as_str),
        };
        values.extend(value.unwrap_or_default().split(',').map(str::trim));
    }
    values
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use semver::Version;
    use talos_kube::Node;

    use super::*;
    use crate::{TalosFacts, rules};

    fn check(component: Component, arguments: &[&str], step: (&str, &str), expected: &[&str]) {
        let node = NodeFacts {
            node: Node {
                name: "cp-1".to_owned(),
                control_plane: true,
                address: None,
                addresses: Vec::new(),
                kubelet_version: String::new(),
                ready: true,
            },
            talos: Some(TalosFacts {
                version: Version::new(1, 13, 9),
                pending: false,
                running: BTreeMap::new(),
                arguments: BTreeMap::from([(
                    component,
                    arguments.iter().map(|text| (*text).to_owned()).collect(),
                )]),
                configured: BTreeMap::new(),
                disabled: Vec::new(),
                unrendered: Vec::new(),
            }),
        };
        let facts = Facts {
            nodes: vec![node],
            removed_resources: BTreeMap::from([(
                "podsecuritypolicies.v1beta1.policy".to_owned(),
                2,
            )]),
            ..Facts::default()
        };
        let (from, to) = step;
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        let found = find(&facts, rules::removed(&from, &to).unwrap());
        let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn removed_flags_are_found_in_both_forms() {
        let step = ("1.33.0", "1.34.0");
        let expected = ["node cp-1: kubelet has the removed flag --cloud-config"];
        check(Component::Kubelet, &["--cloud-config=/x"], step, &expected);
        check(
            Component::Kubelet,
            &["--cloud-config", "/x"],
            step,
            &expected,
        );
        check(Component::Kubelet, &["--cloud-config-x=/x"], step, &[]);
        check(Component::KubeScheduler, &["--cloud-config=/x"], step, &[]);
    }

    #[test]
    fn removed_feature_gates_are_found_in_every_occurrence() {
        let arguments = [
            "--feature-gates=Other=true",
            "--feature-gates=LegacySidecarContainers=false,PodDisruptionConditions=true",
        ];
        let step = ("1.33.0", "1.34.0");
        check(
            Component::KubeScheduler,
            &arguments,
            step,
            &[
                "node cp-1: kube-scheduler sets the removed feature gate LegacySidecarContainers",
                "node cp-1: kube-scheduler sets the removed feature gate PodDisruptionConditions",
            ],
        );
        check(Component::Kubelet, &arguments, step, &[]);
    }

    #[test]
    fn removed_plugins_and_resources_are_found() {
        check(
            Component::KubeApiserver,
            &["--enable-admission-plugins=NodeRestriction,PodSecurityPolicy"],
            ("1.24.0", "1.25.0"),
            &[
                "node cp-1: kube-apiserver enables the removed admission plugin PodSecurityPolicy",
                "2 objects of the removed API resource podsecuritypolicies.v1beta1.policy",
            ],
        );
    }
}
