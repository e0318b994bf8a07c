//! The lowest version that runs.

use schemars::JsonSchema;
use semver::Version;
use serde::Serialize;
use talos_kube::{Component, ComponentPod};

use crate::{Image, Warning};

/// The pod that sets the version to start from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// The pod's name.
    pub pod: String,
    /// The node it runs on.
    pub node: Option<String>,
    /// Its image.
    pub image: String,
    /// The version its image names.
    #[schemars(with = "String")]
    pub version: Version,
}

impl std::fmt::Display for Source {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "pod {}", self.pod)?;
        if let Some(node) = &self.node {
            write!(out, " on node {node}")?;
        }
        write!(out, " runs {}", self.image)
    }
}

/// Finds the pod with the lowest version; pods whose image names none give a warning.
pub(super) fn lowest(pods: &[ComponentPod]) -> (Option<Source>, Vec<Warning>) {
    let mut warnings = Vec::new();
    let mut lowest: Option<Source> = None;
    for pod in pods
        .iter()
        .filter(|pod| pod.component != Component::Kubelet)
    {
        let version = Image::parse(&pod.image)
            .ok()
            .and_then(|image| image.version());
        let Some(version) = version else {
            warnings.push(Warning::UnknownVersion {
                pod: pod.name.clone(),
                node: pod.node.clone(),
                image: pod.image.clone(),
            });
            continue;
        };
        if lowest.as_ref().is_none_or(|found| version < found.version) {
            lowest = Some(Source {
                pod: pod.name.clone(),
                node: pod.node.clone(),
                image: pod.image.clone(),
                version,
            });
        }
    }
    (lowest, warnings)
}
