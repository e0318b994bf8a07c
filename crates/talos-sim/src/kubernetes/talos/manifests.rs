//! Manifests as Talos renders them: what a cluster needs besides its control plane.

use serde_json::{Value, json};

use super::settings::Settings;
use super::template::{Template, fill};

/// Image of flannel in Talos 1.13.9.
pub(crate) const FLANNEL_IMAGE: &str = "ghcr.io/siderolabs/flannel:0.28.8";

static MANIFESTS: Template = Template::new(|| {
    serde_saphyr::from_str(include_str!("../../../data/kubernetes-manifests.yaml"))
        .unwrap_or_default()
});

/// Renders all manifests that the settings ask for: id and objects, in the order of the ids.
pub(crate) fn manifests(settings: &Settings) -> Vec<(String, Value)> {
    let pods = settings.pod_subnets.join(",");
    let marks = [
        ("token-id", settings.token.0.as_str()),
        ("token-secret", &settings.token.1),
        ("pod-subnets", &pods),
        ("proxy-image", &settings.proxy_image),
        ("proxy-mode", &settings.proxy_mode),
        ("dns-address", &settings.dns_address),
        ("dns-domain", &settings.dns_domain),
        ("coredns-image", &settings.dns_image),
        ("flannel-image", FLANNEL_IMAGE),
        ("kubeprism-port", "7445"),
    ];
    let entries = MANIFESTS.value().as_array().into_iter().flatten();
    entries
        .filter(|entry| match entry["id"].as_str() {
            Some("05-flannel") => settings.cni == "flannel",
            Some("10-kube-proxy") => settings.proxy,
            Some("11-core-dns" | "11-core-dns-svc") => settings.dns,
            Some("13-talos-service-account-crd") => settings.talos_access,
            _ => true,
        })
        .map(|entry| {
            let id = entry["id"].as_str().unwrap_or_default().to_owned();
            (id, fill(&entry["objects"], &marks))
        })
        .collect()
}

/// Describes what the manifests are rendered from, the spec of `BootstrapManifestsConfigs`.
pub(crate) fn bootstrap_config(settings: &Settings) -> Value {
    let pods = settings.pod_subnets.join(",");
    json!({
        "string": "https://127.0.0.1:7445",
        "clusterDomain": settings.dns_domain,
        "podCIDRs": settings.pod_subnets,
        "proxyEnabled": settings.proxy,
        "proxyImage": settings.proxy_image,
        "proxyArgs": [
            format!("--cluster-cidr={pods}"),
            "--conntrack-max-per-core=0",
            "--hostname-override=$(NODE_NAME)",
            "--kubeconfig=/etc/kubernetes/kubeconfig",
            format!("--proxy-mode={}", settings.proxy_mode),
        ],
        "coreDNSEnabled": settings.dns,
        "coreDNSImage": settings.dns_image,
        "dnsServiceIP": settings.dns_address,
        "dnsServiceIPv6": "",
        "flannelEnabled": settings.cni == "flannel",
        "flannelImage": FLANNEL_IMAGE,
        "flannelExtraArgs": [],
        "flannelKubeServiceHost": "127.0.0.1",
        "flannelKubeServicePort": "7445",
        "flannelKubeNetworkPoliciesEnabled": false,
        "flannelKubeNetworkPoliciesImage": "registry.k8s.io/networking/kube-network-policies:v1.1.0",
        "podSecurityPolicyEnabled": false,
        "talosAPIServiceEnabled": settings.talos_access,
        "cniName": settings.cni,
    })
}
