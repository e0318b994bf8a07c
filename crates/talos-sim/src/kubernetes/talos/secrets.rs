//! Certificates and kubeconfigs of the control plane, and the resources that hold them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use talos_pki::{Authority, Issued, Name};

use super::settings::Settings;
use super::{CONTROL_PLANE, SECRETS, put};
use crate::certificates::{changes, names_spec, pair, parse};
use crate::config::Documents;
use crate::error::Error;
use crate::node::NodeState;
use crate::pki::{self, YEAR, failed};
use crate::shared::Shared;
use crate::trust::{Trust, authority_spec};

/// Type of the authorities and keys of Kubernetes.
const ROOTS: &str = "KubernetesRootSecrets.secrets.talos.dev";
const DYNAMIC: &str = "KubernetesDynamicCerts.secrets.talos.dev";

/// The names and addresses that kube-apiserver's certificate has to cover (facts/config.md §4.1).
pub(crate) fn names(node: &NodeState, settings: &Settings) -> Vec<Name> {
    let domain = &settings.dns_domain;
    let fixed = [
        "kubernetes".to_owned(),
        "kubernetes.default".to_owned(),
        "kubernetes.default.svc".to_owned(),
        format!("kubernetes.default.svc.{domain}"),
        "localhost".to_owned(),
        node.name.clone(),
        settings.service_address.clone(),
        endpoint_host(&settings.endpoint).to_owned(),
    ];
    let mut names: BTreeSet<Name> = fixed
        .iter()
        .chain(&settings.api_server_names)
        .filter_map(|name| parse(name))
        .collect();
    names.insert(Name::Ip(node.address));
    names.insert(Name::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    names.into_iter().collect()
}

/// Writes `CertSANs/k8s` and tells whether that changed anything.
pub(crate) fn publish_names(shared: &Shared, node: &NodeState, names: &[Name]) -> bool {
    let kind = "CertSANs.secrets.talos.dev";
    let version = |node: &NodeState| {
        node.store
            .get(SECRETS, kind, "k8s")
            .map(|found| found.metadata.version)
    };
    let before = version(node);
    let owner = "secrets.KubernetesCertSANsController";
    put(
        shared,
        node,
        (SECRETS, kind, "k8s"),
        owner,
        names_spec(names, ""),
    );
    version(node) != before
}

/// Issues the certificate that kube-apiserver presents, and shows it in `KubernetesDynamicCerts`.
///
/// # Errors
///
/// The certificate could not be made.
pub(crate) fn issue_serving(
    shared: &Shared,
    node: &NodeState,
    names: Vec<Name>,
) -> Result<Issued, Error> {
    let now = node.now(shared);
    let trust = node.trust();
    let (signer, aggregator) = signers(node, &trust)?;
    let serving = signer.issue(&pki::kube_server(names), now);
    let serving = serving.map_err(|source| failed("kube-apiserver", source))?;
    let user = "apiserver-kubelet-client";
    let kubelet = pki::kube_client(signer, user, "system:masters", YEAR, now)?;
    let proxy = pki::front_proxy(aggregator, now)?;
    let spec = json!({
        "apiServer": pair(&serving),
        "apiServerKubeletClient": pair(&kubelet),
        "frontProxy": pair(&proxy),
    });
    let owner = "secrets.KubernetesDynamicCertsController";
    put(
        shared,
        node,
        (SECRETS, DYNAMIC, "k8s-dynamic-certs"),
        owner,
        spec,
    );
    Ok(serving)
}

/// Writes the root secrets, the kubeconfigs and the certificates of a control plane for the first time.
///
/// # Errors
///
/// A certificate could not be made.
pub(crate) fn install(
    shared: &Shared,
    node: &NodeState,
    config: &Documents,
    settings: &Settings,
) -> Result<Issued, Error> {
    let names = names(node, settings);
    publish_names(shared, node, &names);
    let serving = issue_serving(shared, node, names)?;
    reissue(shared, node, config, settings)?;
    Ok(serving)
}

/// Writes the root secrets and, as they changed, new kubeconfigs; their version is what static pods show.
///
/// # Errors
///
/// A certificate could not be made.
pub(crate) fn reissue(
    shared: &Shared,
    node: &NodeState,
    config: &Documents,
    settings: &Settings,
) -> Result<(), Error> {
    let trust = node.trust();
    let (signer, _) = signers(node, &trust)?;
    let root = root_secrets(config, settings, &trust);
    let id = (SECRETS, ROOTS, "k8s");
    put(shared, node, id, "secrets.RootKubernetesController", root);

    let local = "https://127.0.0.1:7445";
    let now = node.now(shared);
    let client = |user: &str, group: &str| pki::kube_client(signer, user, group, YEAR, now);
    let authority = trust.kubernetes.all_pem();
    let write = |server: &str, context: &str, user: &str, issued: &Issued| {
        kubeconfig(&settings.cluster, &authority, server, context, user, issued)
    };
    let manager = "system:kube-controller-manager";
    let scheduler = "system:kube-scheduler";
    let spec = json!({
        "schedulerKubeconfig": write(local, "default", scheduler, &client(scheduler, scheduler)?),
        "controllerManagerKubeconfig": write(local, "default", manager, &client(manager, manager)?),
        "localhostAdminKubeconfig": write(local, "admin", "admin", &client("talos:admin", "system:masters")?),
        "adminKubeconfig": write(&settings.endpoint, "admin", "admin", &client("admin", "system:masters")?),
    });
    let id = (SECRETS, "KubernetesSecrets.secrets.talos.dev", "k8s-certs");
    let written = put(shared, node, id, "secrets.KubernetesController", spec);
    let status = json!({ "ready": true, "version": written.metadata.version.to_string() });
    let id = (
        CONTROL_PLANE,
        "SecretStatuses.kubernetes.talos.dev",
        "static-pods",
    );
    put(
        shared,
        node,
        id,
        "k8s.RenderSecretsStaticPodController",
        status,
    );
    Ok(())
}

/// Returns the host of an endpoint URL, without the brackets of an IPv6 address.
pub(crate) fn endpoint_host(endpoint: &str) -> &str {
    let rest = endpoint
        .split_once("://")
        .map_or(endpoint, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    if let Some(inside) = authority.strip_prefix('[') {
        return inside.split(']').next().unwrap_or_default();
    }
    authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host)
}

/// Writes what the kubelet of a node is told about the cluster; tells whether that changed anything.
pub(crate) fn kubelet_secrets(shared: &Shared, node: &NodeState, settings: &Settings) -> bool {
    let spec = json!({
        "endpoint": url("https://127.0.0.1:7445"),
        "acceptedCAs": node.trust().kubernetes.accepted_spec(),
        "bootstrapTokenID": settings.token.0,
        "bootstrapTokenSecret": settings.token.1,
    });
    let kind = "KubeletSecrets.secrets.talos.dev";
    changes(
        shared,
        node,
        kind,
        "kubelet",
        "secrets.KubeletController",
        spec,
    )
}

/// Whether the authorities of Kubernetes, or whatever else static pods hold as secrets, differ from what is shown.
pub(crate) fn roots_differ(node: &NodeState, config: &Documents, settings: &Settings) -> bool {
    let shown = node.store.get(SECRETS, ROOTS, "k8s");
    let root = root_secrets(config, settings, &node.trust());
    shown.is_none_or(|shown| *shown.spec.value() != root)
}

/// The authorities that sign for kube-apiserver and for the front proxy.
fn signers<'a>(
    node: &NodeState,
    trust: &'a Trust,
) -> Result<(&'a Authority, &'a Authority), Error> {
    let signers = trust
        .kubernetes
        .signer
        .as_ref()
        .zip(trust.aggregator.as_ref());
    signers.ok_or_else(|| Error::NoTrustd {
        node: node.name.clone(),
    })
}

fn root_secrets(config: &Documents, settings: &Settings, trust: &Trust) -> Value {
    let at = |pointer: &str| config.at(pointer).cloned().unwrap_or_default();
    let mut names = vec![endpoint_host(&settings.endpoint).to_owned()];
    names.extend(settings.api_server_names.iter().cloned());
    json!({
        "name": settings.cluster,
        "endpoint": url(&settings.endpoint),
        "local_endpoint": url("https://127.0.0.1:7445"),
        "certSANs": names,
        "apiServerIPs": [settings.service_address],
        "dnsDomain": settings.dns_domain,
        "issuingCA": trust.kubernetes.issuing_spec(),
        "acceptedCAs": trust.kubernetes.accepted_spec(),
        "serviceAccount": at("/cluster/serviceAccount"),
        "aggregatorCA": trust.aggregator.as_ref().map(authority_spec),
        "aesCBCEncryptionSecret": "",
        "bootstrapTokenID": settings.token.0,
        "bootstrapTokenSecret": settings.token.1,
        "secretboxEncryptionSecret": at("/cluster/secretboxEncryptionSecret"),
    })
}

/// An address as resources hold it.
fn url(endpoint: &str) -> Value {
    let host = endpoint
        .split_once("://")
        .map_or(endpoint, |(_, rest)| rest);
    json!({
        "scheme": "https",
        "opaque": "",
        "user": null,
        "host": host.trim_end_matches('/'),
        "path": "",
        "fragment": "",
        "rawquery": "",
        "rawpath": "",
        "rawfragment": "",
        "forcequery": false,
        "omithost": false,
    })
}

fn kubeconfig(
    cluster: &str,
    authority: &str,
    server: &str,
    context: &str,
    user: &str,
    issued: &Issued,
) -> String {
    format!(
        "apiVersion: v1\n\
         clusters:\n\
         - cluster:\n\
         \x20   certificate-authority-data: {authority}\n\
         \x20   server: {server}\n\
         \x20 name: {cluster}\n\
         contexts:\n\
         - context:\n\
         \x20   cluster: {cluster}\n\
         \x20   namespace: default\n\
         \x20   user: {user}@{cluster}\n\
         \x20 name: {context}@{cluster}\n\
         current-context: {context}@{cluster}\n\
         kind: Config\n\
         users:\n\
         - name: {user}@{cluster}\n\
         \x20 user:\n\
         \x20   client-certificate-data: {certificate}\n\
         \x20   client-key-data: {key}\n",
        authority = STANDARD.encode(authority),
        certificate = STANDARD.encode(issued.certificate.pem()),
        key = STANDARD.encode(issued.key.pem().as_bytes()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_an_endpoint_is_found() {
        for (endpoint, host) in [
            ("https://10.5.0.2:6443", "10.5.0.2"),
            ("https://cp.example.com:443/", "cp.example.com"),
            ("https://[fd00::1]:6443", "fd00::1"),
            ("https://cp", "cp"),
        ] {
            assert_eq!(endpoint_host(endpoint), host);
        }
    }
}
