//! What a machine configuration says about Kubernetes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::config::Documents;

/// A component of the control plane that runs as a static pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Component {
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
}

impl Component {
    /// All components in the order in which they are upgraded.
    pub(crate) const ALL: [Self; 3] = [Self::ApiServer, Self::ControllerManager, Self::Scheduler];

    /// Returns the name of the static pod and its container.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
        }
    }

    /// Returns the component of a static pod.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|component| component.name() == name)
    }

    /// Returns the key below `cluster`.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::ApiServer => "apiServer",
            Self::ControllerManager => "controllerManager",
            Self::Scheduler => "scheduler",
        }
    }
}

/// What a machine configuration says about Kubernetes, with Talos' defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    /// Name of the cluster.
    pub(crate) cluster: String,
    /// `cluster.controlPlane.endpoint`.
    pub(crate) endpoint: String,
    /// Domain of services.
    pub(crate) dns_domain: String,
    /// Networks of pods.
    pub(crate) pod_subnets: Vec<String>,
    /// Networks of services.
    pub(crate) service_subnets: Vec<String>,
    /// First service address, that of the API.
    pub(crate) service_address: String,
    /// Address of the DNS service.
    pub(crate) dns_address: String,
    /// `cluster.apiServer.certSANs`.
    pub(crate) api_server_names: Vec<String>,
    /// Images of the components of the control plane.
    pub(crate) images: BTreeMap<Component, String>,
    /// Components that run; the others are disabled.
    pub(crate) enabled: Vec<Component>,
    /// `cluster.apiServer.admissionControl`.
    pub(crate) admission: Value,
    /// `cluster.apiServer.auditPolicy`.
    pub(crate) audit_policy: Value,
    /// Further arguments of the components.
    pub(crate) extra_args: BTreeMap<Component, Value>,
    /// Whether kube-proxy is deployed.
    pub(crate) proxy: bool,
    /// Image of kube-proxy.
    pub(crate) proxy_image: String,
    /// Mode of kube-proxy.
    pub(crate) proxy_mode: String,
    /// Image of the kubelet.
    pub(crate) kubelet_image: String,
    /// Whether CoreDNS is deployed.
    pub(crate) dns: bool,
    /// Image of CoreDNS.
    pub(crate) dns_image: String,
    /// `flannel`, `custom` or `none`.
    pub(crate) cni: String,
    /// Bootstrap token, id and secret.
    pub(crate) token: (String, String),
    /// Whether pods may use the Talos API.
    pub(crate) talos_access: bool,
}

impl Settings {
    /// Reads a configuration; images that it leaves out have the version `kubernetes`.
    pub(crate) fn read(config: &Documents, kubernetes: &str) -> Self {
        let text = |pointer: &str| {
            config
                .at(pointer)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let is = |pointer: &str| config.at(pointer).and_then(Value::as_bool).unwrap_or(false);
        let list = |pointer: &str, default: &str| -> Vec<String> {
            let items = config
                .at(pointer)
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let mut found: Vec<String> =
                items.filter_map(Value::as_str).map(str::to_owned).collect();
            if found.is_empty() {
                found.push(default.to_owned());
            }
            found
        };
        let image = |key: &str, name: &str| {
            let set = config.image(key).map(str::to_owned);
            set.unwrap_or_else(|| format!("registry.k8s.io/{name}:v{kubernetes}"))
        };
        let images = Component::ALL
            .map(|component| (component, image(component.key(), component.name())))
            .into();
        let extra_args = Component::ALL
            .map(|component| {
                let pointer = format!("/cluster/{}/extraArgs", component.key());
                (
                    component,
                    config.at(&pointer).cloned().unwrap_or_else(|| json!({})),
                )
            })
            .into();
        let enabled = Component::ALL.into_iter().filter(|component| {
            !is(&format!(
                "/machine/controlPlane/{}/disabled",
                component.key()
            ))
        });
        let value = |pointer: &str, default: Value| config.at(pointer).cloned().unwrap_or(default);
        let audit_policy = json!({
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "rules": [{ "level": "Metadata" }],
        });
        let proxy_image = image("proxy", "kube-proxy");
        let proxy_mode = text("/cluster/proxy/mode").unwrap_or_else(|| default_mode(&proxy_image));
        let service_address = config.service_address().map(|address| address.to_string());
        let service_address = service_address.unwrap_or_else(|| "10.96.0.1".to_owned());
        let dns_address = match service_address.strip_suffix('1') {
            Some(network) if network.ends_with(['.', ':']) => format!("{network}10"),
            _ => "10.96.0.10".to_owned(),
        };
        let kubelet_image = config.kubelet_image().map(str::to_owned);
        let token = text("/cluster/token").unwrap_or_default();
        let (id, secret) = token.split_once('.').unwrap_or((&token, ""));
        Self {
            cluster: text("/cluster/clusterName").unwrap_or_else(|| "talos".to_owned()),
            endpoint: config.endpoint().unwrap_or_default().to_owned(),
            dns_domain: text("/cluster/network/dnsDomain")
                .unwrap_or_else(|| "cluster.local".to_owned()),
            pod_subnets: list("/cluster/network/podSubnets", "10.244.0.0/16"),
            service_subnets: list("/cluster/network/serviceSubnets", "10.96.0.0/12"),
            service_address,
            dns_address,
            api_server_names: config.api_server_cert_sans(),
            images,
            enabled: enabled.collect(),
            admission: value("/cluster/apiServer/admissionControl", json!([])),
            audit_policy: value("/cluster/apiServer/auditPolicy", audit_policy),
            extra_args,
            proxy: !is("/cluster/proxy/disabled"),
            proxy_image,
            proxy_mode,
            kubelet_image: kubelet_image
                .unwrap_or_else(|| format!("ghcr.io/siderolabs/kubelet:v{kubernetes}")),
            dns: !is("/cluster/coreDNS/disabled"),
            dns_image: text("/cluster/coreDNS/image")
                .unwrap_or_else(|| "registry.k8s.io/coredns/coredns:v1.14.6".to_owned()),
            cni: text("/cluster/network/cni/name").unwrap_or_else(|| "flannel".to_owned()),
            token: (id.to_owned(), secret.to_owned()),
            talos_access: is("/machine/features/kubernetesTalosAPIAccess/enabled"),
        }
    }

    /// Returns the image of a component.
    pub(crate) fn image(&self, component: Component) -> &str {
        self.images
            .get(&component)
            .map(String::as_str)
            .unwrap_or_default()
    }
}

/// Returns the tag of an image without a leading `v`; a digest does not count.
pub(crate) fn tag(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or_default();
    let last = name.rsplit('/').next().unwrap_or_default();
    let tag = last.split_once(':').map_or("", |(_, tag)| tag);
    tag.strip_prefix('v').unwrap_or(tag)
}

/// Talos derives the mode from the image's version: nftables from 1.31 on.
fn default_mode(image: &str) -> String {
    let minor = tag(image)
        .split('.')
        .nth(1)
        .and_then(|minor| minor.parse::<u32>().ok());
    let mode = if minor.is_some_and(|minor| minor < 31) {
        "iptables"
    } else {
        "nftables"
    };
    mode.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_beside_ports_and_digests() {
        for (image, expected) in [
            ("registry.k8s.io/kube-proxy:v1.36.3", "1.36.3"),
            ("reg.local:5000/kube-apiserver:v1.35.0", "1.35.0"),
            ("a/b:v1.34.1@sha256:00", "1.34.1"),
            ("reg.local:5000/b", ""),
        ] {
            assert_eq!(tag(image), expected, "{image}");
        }
        assert_eq!(default_mode("p:v1.30.9"), "iptables");
        assert_eq!(default_mode("p:v1.31.0-rc.1"), "nftables");
    }

    #[test]
    fn what_a_configuration_leaves_out_has_defaults() {
        let config = Documents::read("machine:\n  type: controlplane\ncluster: {}\n").unwrap();
        let settings = Settings::read(&config, "1.33.4");
        assert_eq!(
            settings.image(Component::Scheduler),
            "registry.k8s.io/kube-scheduler:v1.33.4"
        );
        assert_eq!(settings.kubelet_image, "ghcr.io/siderolabs/kubelet:v1.33.4");
        assert_eq!(settings.dns_address, "10.96.0.10");
        assert_eq!(settings.cni, "flannel");
    }
}
