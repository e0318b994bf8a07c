//! The machine section, but for its network.

use std::collections::HashSet;

use super::Role;
use crate::validate::Mode;
use crate::validate::at::At;
use crate::validate::documents::{
    annotations, kubelet_settings, labels, runtime_spec, subnets, taints,
};
use crate::validate::sink::Sink;
use crate::validate::target::Context;
use crate::validate::value::Url;

/// Checks the machine section.
pub(super) fn check(machine: &At<'_>, role: Role, context: &Context<'_>, sink: &mut Sink<'_>) {
    kind(machine, role, sink);
    authority(machine, role, sink);
    install(machine, context, sink);
    features(machine, role, context, sink);
    kubelet(machine, sink);
    disks(machine, sink);
    encryption(machine, sink);
    logging(machine, sink);
    labels(&machine.field("nodeLabels"), sink);
    annotations(&machine.field("nodeAnnotations"), sink);
    taints(&machine.field("nodeTaints"), sink);
    let overrides = machine.field("baseRuntimeSpecOverrides");
    runtime_spec(&overrides, sink);
    if !context.at_least(14) {
        registries(machine, sink);
        return;
    }
    if overrides.len() > 0 {
        sink.warning("deprecated", &overrides, "is deprecated")
            .hint("use a CRIBaseRuntimeSpecConfig document");
    }
    let files = machine.field("files");
    if files.len() > 0 {
        sink.warning("deprecated", &files, "is deprecated")
            .hint("use the documents for what the files are for, such as EtcFileConfig");
    }
}

fn kind(machine: &At<'_>, role: Role, sink: &mut Sink<'_>) {
    let kind = machine.field("type");
    let text = kind.text();
    match &*text {
        "" | "join" => {
            sink.warning("old-type", &kind, "the machine is taken for a worker")
                .hint("write `type: worker`");
        }
        _ if role == Role::Unknown => {
            let message = "is no type of machine: `controlplane` or `worker`";
            sink.error("bad-value", &kind, message);
        }
        _ => {}
    }
}

/// Checks that a control plane has the key of its authority, and that a worker does not.
fn authority(machine: &At<'_>, role: Role, sink: &mut Sink<'_>) {
    let ca = machine.field("ca");
    let key = ca.field("key");
    let accepted = machine.field("acceptedCAs");
    if !ca.is_set() && (accepted.len() == 0 || role == Role::ControlPlane) {
        sink.error("missing-field", &ca, "the machine's authority is missing");
        return;
    }
    match role {
        Role::ControlPlane if key.is_blank() => {
            sink.error(
                "missing-field",
                &key,
                "a control plane needs the key of its authority",
            );
        }
        Role::Worker if ca.is_set() => {
            if !key.is_blank() {
                sink.error(
                    "forbidden",
                    &key,
                    "a worker must not have the key of the authority",
                )
                .hint("write `key: \"\"`");
            }
            let certificate = ca.field("crt");
            if certificate.is_blank() && accepted.len() == 0 {
                let message = "a worker needs a certificate to trust, here or in `acceptedCAs`";
                sink.error("missing-field", &certificate, message);
            }
        }
        _ => {}
    }
}

fn install(machine: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    let install = machine.field("install");
    if context.mode == Mode::Metal {
        match install.is_set() {
            true => disk(&install, context, sink),
            false if context.at_least(14) => {}
            false => {
                sink.error(
                    "missing-field",
                    &install,
                    "mode metal needs to know where to install",
                )
                .hint("name a disk in `machine.install.disk`");
            }
        }
    }
    let extensions = install.field("extensions");
    let mut seen = HashSet::new();
    for extension in extensions.items() {
        let image = extension.field("image");
        if !seen.insert(image.text().into_owned()) {
            sink.error("duplicate", &image, "the extension is there already");
        }
    }
    if extensions.len() > 0 {
        sink.warning("deprecated", &extensions, "is deprecated")
            .hint("build the extensions into the image: https://factory.talos.dev");
    }
}

/// Checks that it is told which disk to install to.
fn disk(install: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    let disk = install.field("disk");
    let selector = install.field("diskSelector");
    if disk.is_blank() && !selector.is_set() {
        let message = "neither `disk` nor `diskSelector` tells where to install";
        sink.error("missing-field", &disk, message);
    }
    let name = selector.field("name");
    if !name.is_blank() {
        sink.error("forbidden", &name, "disks are not selected by name")
            .hint("name the disk in `machine.install.disk`");
    }
    let kind = selector.field("type");
    if !["", "nvme", "sd", "hdd", "ssd"].contains(&&*kind.text()) {
        sink.error("bad-value", &kind, "is not one of ssd, hdd, nvme, sd");
    }
    let arguments = install.field("extraKernelArgs");
    if context.at_least(12) && arguments.len() > 0 && install.field("grubUseUKICmdline").is_true() {
        let message = "has no effect with `grubUseUKICmdline`";
        sink.error("conflict", &arguments, message)
            .hint("build the arguments into the image, or set `grubUseUKICmdline: false`");
    }
}

fn features(machine: &At<'_>, role: Role, context: &Context<'_>, sink: &mut Sink<'_>) {
    let features = machine.field("features");
    let host_dns = features.field("hostDNS");
    let enabled = host_dns.field("enabled");
    let forwards = host_dns.field("forwardKubeDNSToHost");
    // From 1.14 on, a document may say it.
    if context.mode == Mode::Container && !context.at_least(14) {
        for needed in [&enabled, &forwards] {
            if !needed.is_true() {
                sink.error("missing-field", needed, "must be true in mode container");
            }
        }
    }
    if context.at_least(12) && forwards.is_true() && !enabled.is_true() {
        sink.error(
            "conflict",
            &forwards,
            "has no effect without `hostDNS.enabled`",
        );
    }
    let algorithm = features.field("nodeAddressSortAlgorithm");
    if !algorithm.is_blank() && !["v1", "v2"].contains(&&*algorithm.text().to_lowercase()) {
        sink.error("bad-value", &algorithm, "is not one of v1, v2");
    }
    let access = features.field("kubernetesTalosAPIAccess");
    let enabled = access.field("enabled");
    if !enabled.is_true() {
        return;
    }
    if role != Role::ControlPlane {
        sink.error(
            "forbidden",
            &enabled,
            "only a control plane gives access to its API",
        );
    }
    let rbac = features.field("rbac");
    if !context.at_least(12) && !rbac.is_true() {
        sink.error("conflict", &rbac, "must be on to give access to the API");
    }
    for allowed in access.field("allowedRoles").items() {
        let known = match &*allowed.text() {
            "os:admin" | "os:operator" | "os:reader" | "os:etcd:backup" | "os:meta:writer"
            | "os:impersonator" => true,
            "os:image:verifier" => context.at_least(13),
            _ => false,
        };
        if !known {
            sink.error(
                "bad-value",
                &allowed,
                "is no role of Talos, such as `os:reader`",
            );
        }
    }
}

fn kubelet(machine: &At<'_>, sink: &mut Sink<'_>) {
    let kubelet = machine.field("kubelet");
    subnets(&kubelet.fields(&["nodeIP", "validSubnets"]), sink);
    kubelet_settings(&kubelet.field("extraConfig"), sink);
}

fn disks(machine: &At<'_>, sink: &mut Sink<'_>) {
    for disk in machine.field("disks").items() {
        if !disk.is_set() {
            sink.error("missing-field", &disk, "there is no disk here");
        }
        let partitions = disk.field("partitions");
        let last = partitions.len().saturating_sub(1);
        for (index, partition) in partitions.items().enumerate() {
            let size = partition.field("size");
            let whole = matches!(&*size.text(), "" | "0");
            if whole && index != last {
                let message = "takes the whole disk, but another partition follows";
                sink.error("missing-field", &size, message);
            }
        }
    }
}

fn encryption(machine: &At<'_>, sink: &mut Sink<'_>) {
    for (_, partition) in machine.field("systemDiskEncryption").entries() {
        if !partition.is_set() {
            continue;
        }
        let keys = partition.field("keys");
        if keys.len() == 0 {
            sink.error(
                "missing-field",
                &keys,
                "the partition has no key to encrypt it with",
            );
        }
        let mut slots = HashSet::new();
        for key in keys.items() {
            let slot = key.field("slot");
            if !slots.insert(slot.number().unwrap_or(0)) {
                sink.error("duplicate", &slot, "the slot is in use already");
            }
            let kinds = ["nodeID", "static", "kms", "tpm"];
            if !kinds.iter().any(|kind| key.field(kind).is_set()) {
                let message = "the key is none of nodeID, static, kms and tpm";
                sink.error("missing-field", &key, message);
            }
        }
    }
}

fn logging(machine: &At<'_>, sink: &mut Sink<'_>) {
    let destinations = machine.fields(&["logging", "destinations"]);
    for destination in destinations.items() {
        let endpoint = destination.field("endpoint");
        match Url::parse(&endpoint.text()) {
            _ if !endpoint.is_set() => {
                sink.error(
                    "missing-field",
                    &endpoint,
                    "there is no endpoint to send logs to",
                );
            }
            Ok(url) => {
                if url.authority.is_empty() {
                    sink.error("bad-value", &endpoint, "the URL has no host");
                }
                if !["tcp", "udp"].contains(&&*url.scheme) {
                    sink.error("bad-value", &endpoint, "the scheme is neither tcp nor udp");
                }
            }
            // The decoder has said it.
            Err(_) => {}
        }
        let format = destination.field("format");
        if format.text() != "json_lines" {
            sink.error("bad-value", &format, "the only format is json_lines");
        }
    }
}

fn registries(machine: &At<'_>, sink: &mut Sink<'_>) {
    let registries = machine.field("registries");
    for section in ["config", "mirrors"] {
        for (_, registry) in registries.field(section).entries() {
            if !registry.is_set() {
                sink.error(
                    "missing-field",
                    &registry,
                    "there is nothing for this registry",
                );
            }
        }
    }
}
