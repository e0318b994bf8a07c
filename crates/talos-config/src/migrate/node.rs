//! The kubelet and the node it registers.

use serde_json::json;

use super::facts::KUBERNETES;
use super::work::{Field, Role, Work};

const NODE: &str = "KubeNodeConfig";
const KUBELET: &str = "KubeletConfig";
const LABEL: &str = "node-role.kubernetes.io/control-plane";

/// What makes a `KubeNodeConfig`, and so takes the labels and taints of a control plane node into it.
const TRIGGERS: &[&[&str]] = &[
    &["machine", "nodeLabels"],
    &["machine", "nodeAnnotations"],
    &["machine", "nodeTaints"],
    &["machine", "kubelet", "skipNodeRegistration"],
    &["machine", "kubelet", "registerWithFQDN"],
    &["machine", "kubelet", "nodeIP"],
    &["cluster", "allowSchedulingOnControlPlanes"],
    &["cluster", "allowSchedulingOnMasters"],
];

pub(super) fn all(work: &mut Work<'_>) {
    if !work.target.has(14) {
        return;
    }
    node(work);
    kubelet(work);
}

fn node(work: &mut Work<'_>) {
    let control_planes = work.at(&["cluster", "allowSchedulingOnControlPlanes"]);
    let masters = work.at(&["cluster", "allowSchedulingOnMasters"]);
    let found: Vec<Field<'_>> = TRIGGERS.iter().filter_map(|keys| work.at(keys)).collect();
    if found.is_empty() {
        return;
    }
    if work.role == Role::Unknown {
        return found.iter().for_each(|field| {
            work.refuse(
                field,
                "`machine.type` does not say whether this is a control plane node, which decides labels and taints",
            );
        });
    }
    for (keys, to) in [
        (["machine", "nodeLabels"], "labels"),
        (["machine", "nodeTaints"], "taints"),
    ] {
        if let Some(field) = work.at(&keys) {
            match field.node.is_empty() {
                true => work.drop(&field, "it is empty"),
                false => work.copy(&field, NODE, "", &[to]),
            }
        }
    }
    if let Some(field) = work.at(&["machine", "kubelet", "nodeIP"])
        && field
            .at(&["validSubnets"])
            .is_none_or(|field| field.node.is_empty())
    {
        work.drop(&field, "it is empty");
    }
    let mut schedules = false;
    for (index, field) in [&control_planes, &masters].into_iter().enumerate() {
        let Some(field) = field else { continue };
        let flag = work.flag(field).unwrap_or_default();
        if index == 1 && control_planes.is_some() {
            work.drop(field, "`allowSchedulingOnControlPlanes` comes first");
        } else if work.role == Role::Worker {
            work.drop(field, "it has no effect on a worker");
        } else {
            schedules = flag;
            work.moved(field, NODE, "", &["taints"]);
        }
    }
    if work.role != Role::ControlPlane {
        return;
    }
    // Talos labels and taints control plane nodes by itself as long as the main document describes the node.
    let draft = work.draft(NODE, "");
    if let Some(labels) = draft
        .fields
        .entry("labels")
        .or_insert_with(|| json!({}))
        .as_object_mut()
    {
        labels.insert(LABEL.to_owned(), "".into());
    }
    if !schedules
        && let Some(taints) = draft
            .fields
            .entry("taints")
            .or_insert_with(|| json!({}))
            .as_object_mut()
    {
        taints.insert(LABEL.to_owned(), "NoSchedule".into());
    }
}

fn kubelet(work: &mut Work<'_>) {
    const OWN: [&str; 6] = [
        "image",
        "extraConfig",
        "extraArgs",
        "clusterDNS",
        "defaultRuntimeSeccompProfileEnabled",
        "disableManifestsDirectory",
    ];
    let Some(section) = work.at(&["machine", "kubelet"]) else {
        return;
    };
    if let Some(field) = section.at(&["extraMounts"]) {
        match field.node.is_empty() {
            true => work.drop(&field, "it is empty"),
            false => work.refuse(&field, "a KubeletConfig mounts nothing; volumes under /var/mnt are mounted into the kubelet"),
        }
    }
    if !OWN.iter().any(|key| section.at(&[key]).is_some()) {
        return;
    }
    match section.at(&["disableManifestsDirectory"]) {
        Some(field) => match work.flag(&field) {
            Some(true) => work.drop(&field, "it is always so"),
            Some(false) => work.refuse(&field, "a KubeletConfig always leaves the directory of static pods out; KubeStaticPodConfig takes its place"),
            None => {}
        },
        None => work.refuse_at(
            &section.path,
            "reads static pods of a directory, which a KubeletConfig does not; set disableManifestsDirectory to true first",
        ),
    }
    if section
        .at(&["image"])
        .is_none_or(|field| field.node.as_str() == Some(""))
    {
        let image = format!("ghcr.io/siderolabs/kubelet:v{KUBERNETES}");
        work.imply(KUBELET, "", &["image"], image.into());
        work.notes.push(format!(
            "machine.kubelet names no image, so the one of Talos {} is written out: Kubernetes {KUBERNETES}",
            work.target
        ));
    }
}
