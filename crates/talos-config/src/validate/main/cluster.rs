//! The cluster section.

use std::collections::HashSet;

use super::{Role, endpoint};
use crate::validate::at::At;
use crate::validate::documents::subnets;
use crate::validate::sink::Sink;
use crate::validate::target::Context;
use crate::validate::value::Url;

/// Checks the cluster section.
pub(super) fn check(root: &At<'_>, role: Role, context: &Context<'_>, sink: &mut Sink<'_>) {
    let cluster = root.field("cluster");
    if !cluster.is_set() {
        sink.error("missing-field", &cluster, "the cluster section is missing");
        return;
    }
    control_plane(&cluster, context, sink);
    let domain = cluster.fields(&["network", "dnsDomain"]);
    if !domain.is_blank() && !is_domain(&domain.text()) {
        sink.error("bad-value", &domain, "is no DNS name");
    }
    cloud_provider(&cluster, sink);
    etcd(&cluster, role, sink);
    let key = cluster.fields(&["ca", "key"]);
    if role == Role::Worker && !key.is_blank() {
        sink.error(
            "forbidden",
            &key,
            "a worker must not have the key of the authority",
        )
        .hint("write `key: \"\"`");
    }
    inline_manifests(&cluster, sink);
    discovery(&cluster, sink);
    authorizers(&cluster, sink);
    for component in ["apiServer", "controllerManager", "scheduler"] {
        for part in ["requests", "limits"] {
            let component = cluster.field(component);
            for (key, value) in component.fields(&["resources", part]).entries() {
                if !matches!(key, "cpu" | "memory") {
                    sink.error("forbidden", &value, "only `cpu` and `memory` can be set");
                }
            }
        }
    }
    if role == Role::ControlPlane {
        cni(&cluster.fields(&["network", "cni"]), context, sink);
    }
}

fn control_plane(cluster: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    let section = cluster.field("controlPlane");
    let at = section.field("endpoint");
    if at.is_set() {
        if let Some(fault) = endpoint(&at.text()) {
            sink.error("bad-endpoint", &at, fault)
                .hint("write it as `https://HOST:6443`");
        }
    } else if section.is_set() || !context.at_least(14) {
        sink.error(
            "missing-field",
            &at,
            "the endpoint of the cluster is missing",
        );
    }
    let account = cluster.field("serviceAccount");
    if context.at_least(14) && account.is_set() && !at.is_set() {
        let message = "needs the endpoint of the cluster in the same document";
        sink.error("conflict", &account, message)
            .hint("move it to a KubeServiceAccountConfig document");
    }
}

/// Returns whether a text is a domain, in which `_` may stand too.
fn is_domain(text: &str) -> bool {
    let dots = text.bytes().filter(|byte| *byte == b'.').count();
    let name = text.strip_suffix(['.', '_']).unwrap_or(text);
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let label = |label: &str| {
        (1..=63).contains(&label.len()) && !label.starts_with('-') && label.bytes().all(inside)
    };
    // A `_` at the end may be part of the last label, or stand after it.
    let whole = text.split('.').all(label);
    text.len() - dots <= 255 && (whole || name.split('.').all(label))
}

fn cloud_provider(cluster: &At<'_>, sink: &mut Sink<'_>) {
    let provider = cluster.field("externalCloudProvider");
    let manifests = provider.field("manifests");
    let enabled = provider.field("enabled");
    if manifests.len() > 0 && !enabled.is_true() {
        sink.error(
            "conflict",
            &manifests,
            "has no effect without `enabled: true`",
        );
        return;
    }
    for manifest in manifests.items() {
        if let Some(fault) = endpoint(&manifest.text()) {
            sink.error("bad-value", &manifest, fault);
        }
    }
}

fn etcd(cluster: &At<'_>, role: Role, sink: &mut Sink<'_>) {
    let etcd = cluster.field("etcd");
    if !etcd.is_set() {
        return;
    }
    if role == Role::Unknown {
        return;
    }
    if role == Role::Worker {
        sink.error("forbidden", &etcd, "only a control plane has etcd");
        return;
    }
    let ca = etcd.field("ca");
    if !ca.is_set() {
        sink.error("missing-field", &ca, "etcd needs its authority");
    }
    let subnet = etcd.field("subnet");
    let advertised = etcd.field("advertisedSubnets");
    match (subnet.is_blank(), advertised.len()) {
        (false, 1..) => {
            sink.error(
                "conflict",
                &subnet,
                "cannot stand beside `advertisedSubnets`",
            );
        }
        (false, 0) => {
            let text = subnet.text();
            let text = text.strip_prefix('!').unwrap_or(&text);
            if crate::validate::value::prefix_or_address(text).is_none() {
                let message = "is neither a subnet such as `10.0.0.0/8` nor an IP address";
                sink.error("bad-value", &subnet, message);
            }
        }
        _ => {}
    }
    subnets(&advertised, sink);
    subnets(&etcd.field("listenSubnets"), sink);
}

fn inline_manifests(cluster: &At<'_>, sink: &mut Sink<'_>) {
    let mut seen = HashSet::new();
    for manifest in cluster.field("inlineManifests").items() {
        let name = manifest.field("name");
        let text = name.text();
        if text.trim().is_empty() {
            sink.error("missing-field", &name, "the manifest has no name");
        }
        if !seen.insert(text.into_owned()) {
            sink.error(
                "duplicate",
                &name,
                "a manifest of this name is there already",
            );
        }
    }
}

fn discovery(cluster: &At<'_>, sink: &mut Sink<'_>) {
    let discovery = cluster.field("discovery");
    let enabled = discovery.field("enabled");
    let service = discovery.fields(&["registries", "service"]);
    let disabled = service.field("disabled");
    if !enabled.is_true() || disabled.is_true() {
        return;
    }
    let endpoint = service.field("endpoint");
    if !endpoint.is_blank() {
        match Url::parse_absolute(&endpoint.text()) {
            Err(fault) => {
                sink.error("bad-value", &endpoint, fault);
            }
            Ok(url) if !matches!(url.path, "" | "/") => {
                sink.error("bad-value", &endpoint, "the URL has a path");
            }
            Ok(_) => {}
        }
    }
    for key in ["id", "secret"] {
        let at = cluster.field(key);
        if at.is_blank() {
            sink.error("missing-field", &at, "the discovery service needs it");
        }
    }
}

fn authorizers(cluster: &At<'_>, sink: &mut Sink<'_>) {
    let server = cluster.field("apiServer");
    let authorizers = server.field("authorizationConfig");
    if !authorizers.is_set() {
        return;
    }
    for (key, value) in server.field("extraArgs").entries() {
        if key == "authorization-mode" || key.starts_with("authorization-webhook-") {
            let message = "cannot be used beside `authorizationConfig`";
            sink.error("conflict", &value, message);
        }
    }
    for authorizer in authorizers.items() {
        let kind = authorizer.field("type");
        if !matches!(&*kind.text(), "Node" | "RBAC" | "Webhook") {
            sink.error("bad-value", &kind, "is not one of Node, RBAC, Webhook");
        }
        let name = authorizer.field("name");
        if name.is_blank() {
            sink.error("missing-field", &name, "the authorizer has no name");
        }
    }
}

fn cni(cni: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    if !cni.is_set() {
        return;
    }
    let name = cni.field("name");
    let urls = cni.field("urls");
    let text = name.text();
    match &*text {
        "flannel" | "none" => {
            if urls.len() > 0 {
                sink.error("conflict", &urls, format!("has no effect with CNI {text}"));
            }
        }
        "custom" => {
            if urls.len() == 0 {
                sink.warning(
                    "missing-field",
                    &urls,
                    "CNI custom installs nothing without URLs",
                );
            }
            for url in urls.items() {
                if let Some(fault) = endpoint(&url.text()) {
                    sink.error("bad-value", &url, fault);
                }
            }
        }
        _ => {
            sink.error("bad-value", &name, "is not one of flannel, custom, none");
        }
    }
    if !matches!(&*text, "none" | "custom") {
        return;
    }
    let flannel = cni.field("flannel");
    let arguments = flannel.field("extraArgs");
    if arguments.len() > 0 {
        sink.error(
            "conflict",
            &arguments,
            format!("has no effect with CNI {text}"),
        );
    }
    let policies = flannel.field("kubeNetworkPoliciesEnabled");
    if context.at_least(12) && policies.is_true() {
        sink.error(
            "conflict",
            &policies,
            format!("has no effect with CNI {text}"),
        );
    }
}
