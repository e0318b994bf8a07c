//! Rules of the Kubernetes documents, which Talos has since 1.14.

use std::net::IpAddr;

use super::pem::{self, Look};
use super::{addressing, bgp, items, missing, names};
use crate::validate::at::At;
use crate::validate::sink::Sink;
use crate::validate::target::Context;
use crate::validate::value::{self, Url};

/// Arguments of the API server that a document has taken over, and the document.
const TAKEN_ARGUMENTS: [(&str, &str); 6] = [
    ("anonymous-auth", "KubeAuthenticationConfig"),
    ("oidc-", "KubeAuthenticationConfig"),
    ("authentication-config", "KubeAuthenticationConfig"),
    ("authorization-config", "KubeAuthorizerConfig"),
    ("authorization-mode", "KubeAuthorizerConfig"),
    ("authorization-webhook-", "KubeAuthorizerConfig"),
];

/// Settings of the kubelet that Talos makes itself.
const TAKEN_SETTINGS: [&str; 13] = [
    "apiVersion",
    "authentication",
    "authorization",
    "cgroupRoot",
    "kind",
    "kubeletCgroups",
    "port",
    "protectKernelDefaults",
    "resolvConf",
    "rotateCertificates",
    "systemCgroups",
    "staticPodPath",
    "seccompDefault",
];

/// Annotations in which Talos notes what is its own.
const TAKEN_ANNOTATIONS: [&str; 3] = [
    "talos.dev/owned-labels",
    "talos.dev/owned-annotations",
    "talos.dev/owned-taints",
];

/// Roles of the Talos API.
const ROLES: [&str; 7] = [
    "os:admin",
    "os:operator",
    "os:reader",
    "os:etcd:backup",
    "os:image:verifier",
    "os:meta:writer",
    "os:impersonator",
];

/// Most bytes of all annotations of a node together.
const ANNOTATIONS: usize = 256 * 1024;

/// Checks the authority of the API server.
pub(super) fn api_server_ca(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let issuing = root.field("issuingCA");
    if issuing.is_set() {
        pem::pair(&issuing, Look::Inside, sink);
    }
    pem::certificates(&root.field("acceptedCAs"), sink);
}

/// Checks the authority of aggregated API servers.
pub(super) fn aggregator_ca(root: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    let issuing = root.field("issuingCA");
    if !issuing.is_set() {
        missing(&issuing, sink);
    }
    api_server_ca(root, context, sink);
}

/// Checks the API server.
pub(super) fn api_server(root: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    let arguments = root.field("extraArgs");
    for (name, at) in arguments.entries() {
        let taken = TAKEN_ARGUMENTS
            .iter()
            .find(|(start, _)| name.starts_with(start));
        if let Some((_, kind)) = taken {
            let finding = sink.error(
                "conflict",
                &at,
                format!("{name} cannot be given as an argument"),
            );
            match name.starts_with("oidc-signing-algs") {
                true => finding.hint(format!(
                    "{kind} has no such setting: all algorithms are taken"
                )),
                false => finding.hint(format!("a document of kind {kind} sets it")),
            }
        }
    }
    resources(root, context, sink);
}

/// Checks the authorizer.
pub(super) fn authorizer(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let webhook = root.field("webhook");
    match (&*root.field("type").text(), webhook.len()) {
        ("Webhook", 0) => missing(&webhook, sink),
        ("Webhook", _) | (_, 0) => {}
        _ => {
            sink.warning(
                "conflict",
                &webhook,
                "only an authorizer of type Webhook has it",
            );
        }
    }
}

/// Checks the cluster.
pub(super) fn cluster(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let at = root.field("endpoint");
    let text = at.text();
    let Ok(url) = Url::parse(&text) else { return };
    if text.is_empty() {
        return;
    }
    let port = url.port();
    let number = port.parse().is_ok_and(|port: u16| port > 0);
    if url.plain_host().is_empty() {
        sink.error("bad-value", &at, "the URL has no host");
    } else if !port.is_empty() && !number {
        sink.error("bad-value", &at, "the port must be between 1 and 65535");
    }
}

/// Checks a component that runs as a pod and can be turned off.
pub(super) fn pod(root: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    if root.field("enabled").bool() == Some(false) {
        return;
    }
    let image = root.field("image");
    if image.is_blank() {
        missing(&image, sink);
    }
    resources(root, context, sink);
}

/// Checks what a pod asks for and is limited to.
pub(super) fn resources(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    for keys in [["resources", "requests"], ["resources", "limits"]] {
        let at = root.fields(&keys);
        for (name, at) in at.entries() {
            if !matches!(name, "cpu" | "memory") {
                sink.error("bad-value", &at, "only `cpu` and `memory` can be set");
            }
        }
    }
}

/// Checks kube-proxy.
pub(super) fn proxy(root: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    pod(root, context, sink);
    if root.field("enabled").bool() == Some(false) {
        return;
    }
    let (mode, arguments) = (root.field("mode"), root.field("extraArgs"));
    match &*mode.text() {
        "" | "nftables" => {}
        name @ ("iptables" | "ipvs") => {
            let finding = sink.warning(
                "old-mode",
                &mode,
                format!("the mode {name} is on its way out"),
            );
            finding.hint("use nftables");
        }
        _ => {
            sink.error(
                "bad-value",
                &mode,
                "one of nftables, iptables, ipvs is expected",
            );
        }
    }
    if arguments.len() > 0 {
        sink.warning(
            "old-field",
            &arguments,
            "arguments are ignored where `config` sets the same",
        );
    }
}

/// Checks the kubelet.
pub(super) fn kubelet(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    kubelet_settings(&root.field("config"), sink);
}

/// Checks the settings of the kubelet.
pub(in crate::validate) fn kubelet_settings(settings: &At<'_>, sink: &mut Sink<'_>) {
    for (name, at) in settings.entries() {
        if TAKEN_SETTINGS.contains(&name) {
            sink.error("conflict", &at, "Talos makes this setting itself");
        }
    }
}

/// Checks the networks of pods and services.
pub(super) fn network(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let (pods, services) = (root.field("podSubnets"), root.field("serviceSubnets"));
    let mask = |key, default: u8, most: u8| match root.field(key).number() {
        None | Some(0) => Some(default),
        Some(bits) => u8::try_from(bits)
            .ok()
            .filter(|bits| (1..=most).contains(bits)),
    };
    let masks = (
        mask("nodeCIDRMaskSizeIPv4", 24, 32),
        mask("nodeCIDRMaskSizeIPv6", 64, 128),
    );
    let node = |address: IpAddr| if address.is_ipv4() { masks.0 } else { masks.1 };
    subnets(&pods, sink, |(address, length)| match node(address) {
        Some(mask) if length > mask => {
            Some(format!("it has no room for a node, which takes a /{mask}"))
        }
        Some(mask) if mask - length > 16 => Some(format!(
            "it is more than 16 bits larger than the /{mask} of a node"
        )),
        _ => None,
    });
    subnets(&services, sink, |(address, length)| {
        let whole: u8 = if address.is_ipv4() { 32 } else { 128 };
        (whole - length > 20).then(|| {
            format!(
                "it has more than 20 bits of hosts: a /{} at most",
                whole - 20
            )
        })
    });
    let (pod_count, service_count) = (items(&pods).count(), items(&services).count());
    if pod_count != service_count && pod_count > 0 && service_count > 0 {
        sink.error(
            "conflict",
            &pods,
            "there must be as many subnets of pods as of services",
        );
    }
}

fn subnets(list: &At<'_>, sink: &mut Sink<'_>, wrong: impl Fn((IpAddr, u8)) -> Option<String>) {
    let mut families: Vec<bool> = Vec::new();
    for at in items(list) {
        if at.is_blank() {
            missing(&at, sink);
        }
        let Some((address, length)) = value::prefix(&at.text()) else {
            continue;
        };
        let whole: u8 = if address.is_ipv4() { 32 } else { 128 };
        if !bgp::is_masked((address, length)) {
            sink.error(
                "bad-value",
                &at,
                "bits after the length of the prefix must be zero",
            );
        } else if whole - length < 4 {
            sink.error(
                "bad-value",
                &at,
                format!("it is too small: a /{} at least", whole - 4),
            );
        } else if let Some(wrong) = wrong((address, length)) {
            sink.error("bad-value", &at, wrong);
        }
        if families.contains(&address.is_ipv4()) {
            sink.error(
                "conflict",
                &at,
                "there can be one subnet of IPv4 and one of IPv6",
            );
        }
        families.push(address.is_ipv4());
    }
    if items(list).next().is_none() {
        missing(list, sink);
    }
}

/// Checks the node.
pub(super) fn node(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    addressing::subnets(&root.fields(&["nodeIP", "validSubnets"]), sink);
    labels(&root.field("labels"), sink);
    annotations(&root.field("annotations"), sink);
    taints(&root.field("taints"), sink);
}

/// Checks the labels of a node.
pub(in crate::validate) fn labels(labels: &At<'_>, sink: &mut Sink<'_>) {
    for (key, at) in labels.entries() {
        let wrong = names::qualified(key).or_else(|| names::label_value(&at.text()));
        report(&at, wrong, sink);
    }
}

/// Checks the annotations of a node.
pub(in crate::validate) fn annotations(annotations: &At<'_>, sink: &mut Sink<'_>) {
    let mut bytes = 0;
    for (key, at) in annotations.entries() {
        bytes += key.len() + at.text().len();
        let taken = || {
            TAKEN_ANNOTATIONS
                .contains(&key)
                .then(|| "Talos uses this annotation itself".into())
        };
        report(&at, names::qualified(key).or_else(taken), sink);
    }
    if bytes > ANNOTATIONS {
        let message = "all annotations together have more than 256 KiB";
        sink.error("bad-value", annotations, message);
    }
}

/// Checks the taints of a node.
pub(in crate::validate) fn taints(taints: &At<'_>, sink: &mut Sink<'_>) {
    for (key, at) in taints.entries() {
        let wrong = names::qualified(key).or_else(|| taint(&at.text()));
        report(&at, wrong, sink);
    }
}

fn report(at: &At<'_>, wrong: Option<String>, sink: &mut Sink<'_>) {
    if let Some(wrong) = wrong {
        sink.error("bad-value", at, wrong);
    }
}

fn taint(text: &str) -> Option<String> {
    let (value, effect) = text.split_once(':').unwrap_or(("", text));
    match effect {
        "NoSchedule" | "PreferNoSchedule" | "NoExecute" => names::label_value(value),
        _ => Some("the effect of a taint is NoSchedule, PreferNoSchedule or NoExecute".into()),
    }
}

/// Checks what signs the tokens of service accounts.
pub(super) fn service_account(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let key = root.fields(&["issuer", "privateKey"]);
    if key.is_blank() {
        missing(&key, sink);
    } else if !pem::has_key(&key.text()) {
        sink.error("bad-value", &key, "a private key in PEM is expected");
    }
}

/// Checks who may use the Talos API from inside Kubernetes.
pub(super) fn talos_api_access(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let roles = root.field("allowedRoles");
    for role in items(&roles) {
        if !ROLES.contains(&&*role.text()) {
            sink.error(
                "bad-value",
                &role,
                format!("one of {} is expected", ROLES.join(", ")),
            );
        }
    }
    if items(&roles).next().is_none() {
        sink.warning("missing-field", &roles, "without roles nothing is allowed");
    }
}
