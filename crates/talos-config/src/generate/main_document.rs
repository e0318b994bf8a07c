//! The main document of a configuration.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::secrets::{Encryption, KeyPair};
use super::{Params, Secrets};
use crate::machine::MachineType;

/// The port on which nodes reach Kubernetes through themselves.
pub(super) const KUBE_PRISM_PORT: u16 = 7445;
/// What pods and services get their addresses from.
pub(super) const POD_SUBNET: &str = "10.244.0.0/16";
pub(super) const SERVICE_SUBNET: &str = "10.96.0.0/12";
/// The image of the kubelet.
pub(super) const KUBELET: &str = "ghcr.io/siderolabs/kubelet";
/// The label of control planes that no load balancer should send pods' traffic to.
pub(super) const EXCLUDE_LABEL: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// A mapping in the order in which its fields are put.
#[derive(Default)]
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    pub(super) fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }

    /// Puts a value that may be absent.
    pub(super) fn put_some(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    /// Puts a value under a condition.
    pub(super) fn put_if(&mut self, condition: bool, key: &str, value: impl FnOnce() -> Value) {
        if condition {
            self.put(key, value());
        }
    }
}

impl From<Fields> for Value {
    fn from(fields: Fields) -> Self {
        Self::Object(fields.0)
    }
}

/// Makes the main document.
pub(super) fn main(kind: MachineType, params: &Params, secrets: &Secrets) -> Value {
    json!({
        "version": "v1alpha1",
        "debug": false,
        "persist": true,
        "machine": machine(kind, params, secrets),
        "cluster": cluster(kind, params, secrets),
    })
}

fn machine(kind: MachineType, params: &Params, secrets: &Secrets) -> Value {
    let is_control_plane = kind == MachineType::ControlPlane;
    let contract = params.release.contract();
    let mut machine = Fields::default();
    machine.put(
        "type",
        match kind {
            MachineType::ControlPlane => "controlplane",
            MachineType::Worker => "worker",
        },
    );
    machine.put("token", secrets.trustd_token.as_str());
    machine.put("ca", pair(&secrets.os, is_control_plane));
    machine.put("certSANs", params.additional_sans.as_slice());
    if contract.has_kubernetes_documents() {
        machine.put("features", json!({"diskQuotaSupport": true}));
        return machine.into();
    }
    let mut kubelet = Fields::default();
    kubelet.put_some("image", params.kubernetes_image(KUBELET));
    kubelet.put_if(
        contract.has_seccomp_default(),
        "defaultRuntimeSeccompProfileEnabled",
        || true.into(),
    );
    kubelet.put_if(
        contract.has_audit_policy(),
        "disableManifestsDirectory",
        || true.into(),
    );
    machine.put("kubelet", kubelet);
    if !contract.has_kube_span_document() {
        let mut network = Fields::default();
        network.put_if(params.kube_span, "kubespan", || json!({"enabled": true}));
        machine.put("network", network);
    }
    let mut install = Fields::default();
    install.put_if(!params.install_disk.is_empty(), "disk", || {
        params.install_disk.as_str().into()
    });
    install.put("image", params.install_image.as_str());
    install.put("wipe", false);
    install.put_if(
        contract.has_network_documents(),
        "grubUseUKICmdline",
        || true.into(),
    );
    machine.put("install", install);
    if !contract.has_network_documents() {
        machine.put_some("registries", registries(params));
    }
    machine.put("features", features(params));
    machine.put_if(
        is_control_plane && contract.has_forwarded_dns(),
        "nodeLabels",
        || json!({EXCLUDE_LABEL: ""}),
    );
    machine.into()
}

fn features(params: &Params) -> Value {
    let contract = params.release.contract();
    let had_switches = !contract.has_network_documents();
    let mut features = Fields::default();
    features.put_if(had_switches, "rbac", || true.into());
    features.put_if(
        had_switches && contract.has_seccomp_default(),
        "stableHostname",
        || true.into(),
    );
    features.put_if(
        had_switches && contract.has_audit_policy(),
        "apidCheckExtKeyUsage",
        || true.into(),
    );
    features.put_if(contract.has_disk_quota(), "diskQuotaSupport", || {
        true.into()
    });
    features.put_if(
        contract.has_kube_prism(),
        "kubePrism",
        || json!({"enabled": true, "port": KUBE_PRISM_PORT}),
    );
    if contract.has_host_dns() {
        let mut dns = Fields::default();
        dns.put("enabled", true);
        dns.put_if(contract.has_forwarded_dns(), "forwardKubeDNSToHost", || {
            true.into()
        });
        features.put("hostDNS", dns);
    }
    features.into()
}

/// Mirrors as they were before they had documents.
fn registries(params: &Params) -> Option<Value> {
    let mut mirrors: std::collections::BTreeMap<&str, Vec<&str>> = params
        .registry_mirrors
        .iter()
        .map(|(host, urls)| (host.as_str(), urls.iter().map(String::as_str).collect()))
        .collect();
    if params.release.contract().mirrors_old_registry() {
        let old = mirrors.entry("k8s.gcr.io").or_default();
        if old.is_empty() {
            old.extend(["https://registry.k8s.io", "https://k8s.gcr.io"]);
        }
    }
    let mirrors: Map<String, Value> = mirrors
        .into_iter()
        .map(|(host, urls)| (host.to_owned(), json!({"endpoints": urls})))
        .collect();
    (!mirrors.is_empty()).then(|| json!({"mirrors": mirrors}))
}

fn cluster(kind: MachineType, params: &Params, secrets: &Secrets) -> Value {
    let is_control_plane = kind == MachineType::ControlPlane;
    let contract = params.release.contract();
    let mut cluster = Fields::default();
    let etcd = || json!({"ca": pair(&secrets.etcd, true)});
    if contract.has_kubernetes_documents() {
        cluster.put("token", secrets.bootstrap_token.as_str());
        cluster.put_if(is_control_plane, "etcd", etcd);
        return cluster.into();
    }
    cluster.put("id", secrets.cluster_id.as_str());
    cluster.put("secret", secrets.cluster_secret.as_str());
    cluster.put(
        "controlPlane",
        json!({"endpoint": params.endpoint.as_str()}),
    );
    cluster.put_if(
        is_control_plane || contract.has_forwarded_dns(),
        "clusterName",
        || params.cluster_name.as_str().into(),
    );
    cluster.put("network", network(params));
    cluster.put("token", secrets.bootstrap_token.as_str());
    if is_control_plane {
        match &secrets.encryption {
            Encryption::Secretbox(secret) => {
                cluster.put("secretboxEncryptionSecret", secret.as_str())
            }
            Encryption::AesCbc(secret) => cluster.put("aescbcEncryptionSecret", secret.as_str()),
        }
    }
    cluster.put("ca", pair(&secrets.kubernetes, is_control_plane));
    if is_control_plane {
        cluster.put("aggregatorCA", pair(&secrets.aggregator, true));
        cluster.put(
            "serviceAccount",
            json!({"key": STANDARD.encode(&secrets.service_account)}),
        );
        cluster.put("apiServer", api_server(params));
        for (key, name) in [
            ("controllerManager", "kube-controller-manager"),
            ("proxy", "kube-proxy"),
            ("scheduler", "kube-scheduler"),
        ] {
            cluster.put(key, image(params, name));
        }
    }
    cluster.put("discovery", discovery(params));
    cluster.put_if(is_control_plane, "etcd", etcd);
    cluster.into()
}

fn api_server(params: &Params) -> Value {
    let contract = params.release.contract();
    let mut api_server = image(params, "kube-apiserver");
    let mut names = params.additional_sans.clone();
    if !contract.has_network_documents() {
        names.insert(0, params.endpoint.host().to_owned());
    }
    api_server.put_if(!names.is_empty(), "certSANs", || names.into());
    api_server.put_if(
        !contract.has_network_documents(),
        "disablePodSecurityPolicy",
        || true.into(),
    );
    api_server.put_if(
        contract.has_pod_security(),
        "admissionControl",
        || json!([{"name": "PodSecurity", "configuration": pod_security()}]),
    );
    api_server.put_if(contract.has_audit_policy(), "auditPolicy", audit_policy);
    api_server.into()
}

fn discovery(params: &Params) -> Value {
    let kubernetes = match params.release.contract().has_seccomp_default() {
        true => json!({"disabled": true}),
        false => json!({}),
    };
    json!({
        "enabled": params.discovery,
        "registries": {"kubernetes": kubernetes, "service": {}},
    })
}

pub(super) fn network(params: &Params) -> Value {
    json!({
        "dnsDomain": params.dns_domain,
        "podSubnets": [POD_SUBNET],
        "serviceSubnets": [SERVICE_SUBNET],
    })
}

/// The image of a part of Kubernetes, unless Talos is to choose it.
pub(super) fn image(params: &Params, name: &str) -> Fields {
    let mut fields = Fields::default();
    let repository = format!("registry.k8s.io/{name}");
    fields.put_some("image", params.kubernetes_image(&repository));
    fields
}

/// Lets pods run that keep to the baseline, and warns about those that are not restricted.
pub(super) fn pod_security() -> Value {
    json!({
        "apiVersion": "pod-security.admission.config.k8s.io/v1alpha1",
        "defaults": {
            "audit": "restricted",
            "audit-version": "latest",
            "enforce": "baseline",
            "enforce-version": "latest",
            "warn": "restricted",
            "warn-version": "latest",
        },
        "exemptions": {"namespaces": ["kube-system"], "runtimeClasses": [], "usernames": []},
        "kind": "PodSecurityConfiguration",
    })
}

/// Logs who did what, without the content.
pub(super) fn audit_policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "rules": [{"level": "Metadata"}],
    })
}

/// A certificate and its key as the main document holds them; workers do not get the key.
fn pair(pair: &KeyPair, with_key: bool) -> Value {
    let key = match with_key {
        true => STANDARD.encode(&pair.key),
        false => String::new(),
    };
    json!({"crt": STANDARD.encode(&pair.crt), "key": key})
}
