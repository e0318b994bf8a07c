//! What a node's resources say about its names, its certificates and its cluster.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use talos_client::{Error, Node};
use talos_config::machine::MachineConfig;
use talos_pki::{Certificate, Name};

use crate::check::host_of;
use crate::{ClusterEndpoint, EndpointSource, NodeFacts, ServerKind};

/// Everything one node says; what its answers leave out is empty.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) facts: NodeFacts,
    pub(crate) endpoint: Option<ClusterEndpoint>,
    /// The certificate that apid presents.
    pub(crate) apid: Held,
    /// The certificate that kube-apiserver presents.
    pub(crate) kube_apiserver: Held,
    pub(crate) talos_authorities: Vec<Certificate>,
    pub(crate) kubernetes_authorities: Vec<Certificate>,
    /// Why the node's machine type is not known.
    pub(crate) unknown_type: Option<String>,
}

impl Reading {
    /// Returns what the node's resources hold for a kind of server.
    pub(crate) fn held(&self, kind: ServerKind) -> &Held {
        match kind {
            ServerKind::Apid => &self.apid,
            ServerKind::KubeApiserver => &self.kube_apiserver,
            _ => &NOTHING,
        }
    }
}

static NOTHING: Held = Held {
    chain: Vec::new(),
    refusal: None,
};

/// A certificate as a resource holds it.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) chain: Vec<Certificate>,
    /// Why there is none.
    pub(crate) refusal: Option<String>,
}

/// Reads a node; only its addresses must be readable, for everything else takes more rights or another machine type.
pub(crate) async fn read(node: &Node) -> Result<Reading, Error> {
    // Certificates cover the addresses of the past as well, but only those of now must be covered and can be dialled.
    let addresses = node.addresses().await?;
    let hostname = spec(
        node,
        "network",
        "HostnameStatuses.net.talos.dev",
        "hostname",
    );
    let machine_type = spec(
        node,
        "config",
        "MachineTypes.config.talos.dev",
        "machine-type",
    );
    let prism = spec(
        node,
        "k8s",
        "KubePrismConfigs.kubernetes.talos.dev",
        "k8s-loadbalancer-config",
    );
    let apid = spec(node, "secrets", "ApiCertificates.secrets.talos.dev", "api");
    let (hostname, machine_type, prism, apid, config) =
        futures::join!(hostname, machine_type, prism, apid, node.machine_config());
    let control_plane = machine_type.and_then(|spec| control_plane(&spec));
    let config = config
        .ok()
        .and_then(|config| MachineConfig::parse(&config.text).ok());
    let mut reading = Reading {
        facts: NodeFacts {
            node: node.name().unwrap_or_default().to_owned(),
            hostnames: hostname.map(|spec| hostnames(&spec)).unwrap_or_default(),
            addresses: addresses.into_iter().map(Name::Ip).collect(),
            control_plane: control_plane.as_ref().ok().copied(),
            has_apiserver_document: config
                .as_ref()
                .is_some_and(|config| config.document("KubeAPIServerConfig").is_some()),
        },
        endpoint: endpoint(config.as_ref(), prism.ok().as_ref()),
        talos_authorities: match &apid {
            Ok(spec) => authorities(spec, "/acceptedCAs"),
            Err(_) => Vec::new(),
        },
        apid: Held::new(apid, "/server/crt"),
        ..Reading::default()
    };
    // What does not say that it is a worker may hold the certificates of a control plane.
    if control_plane != Ok(false) {
        let certificates = spec(
            node,
            "secrets",
            "KubernetesDynamicCerts.secrets.talos.dev",
            "k8s-dynamic-certs",
        );
        let roots = spec(
            node,
            "secrets",
            "KubernetesRootSecrets.secrets.talos.dev",
            "k8s",
        );
        let (certificates, roots) = futures::join!(certificates, roots);
        reading.kube_apiserver = Held::new(certificates, "/apiServer/crt");
        if let Ok(roots) = roots {
            reading.kubernetes_authorities = authorities(&roots, "/acceptedCAs");
        }
    }
    reading.unknown_type = control_plane.err();
    Ok(reading)
}

impl Held {
    fn new(spec: Result<Value, String>, pointer: &str) -> Self {
        match spec {
            Ok(spec) => {
                let chain = spec.pointer(pointer).map(certificates).unwrap_or_default();
                let refusal = chain
                    .is_empty()
                    .then(|| format!("the resource has no {pointer}"));
                Self { chain, refusal }
            }
            Err(refusal) => Self {
                chain: Vec::new(),
                refusal: Some(refusal),
            },
        }
    }
}

/// Tells whether a machine of this type runs a kube-apiserver.
fn control_plane(machine_type: &Value) -> Result<bool, String> {
    match machine_type.as_str() {
        Some("controlplane" | "init") => Ok(true),
        Some("worker") => Ok(false),
        _ => Err(format!("the machine type is {machine_type}")),
    }
}

async fn spec(
    node: &Node,
    namespace: &str,
    resource_type: &str,
    id: &str,
) -> Result<Value, String> {
    let resource = node.get(namespace, resource_type, id).await;
    let resource = resource.map_err(|error| format!("{resource_type}: {}", sentence(&error)))?;
    resource
        .spec()
        .map_err(|error| format!("{resource_type}: {error}"))
}

/// Joins an error and its causes.
pub(crate) fn sentence(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

fn hostnames(spec: &Value) -> Vec<Name> {
    let text = |key: &str| spec.get(key).and_then(Value::as_str).unwrap_or_default();
    let (host, domain) = (text("hostname"), text("domainname"));
    let qualified = (!domain.is_empty()).then(|| format!("{host}.{domain}"));
    let all = [Some(host.to_owned()), qualified];
    all.iter()
        .flatten()
        .filter_map(|name| Name::parse(name).ok())
        .collect()
}

fn endpoint(config: Option<&MachineConfig>, prism: Option<&Value>) -> Option<ClusterEndpoint> {
    let configured = config.and_then(|config| config.cluster_endpoint());
    if let Some(url) = configured {
        return Some(ClusterEndpoint {
            url: url.to_owned(),
            source: EndpointSource::MachineConfig,
        });
    }
    // The cluster endpoint is the first upstream; the others are this node and what discovery found.
    let first = prism?.pointer("/endpoints/0")?;
    let host = Name::parse(first.get("host")?.as_str()?).ok()?;
    let port = u16::try_from(first.get("port")?.as_u64()?).ok()?;
    let url = format!("https://{}", talos_kube::Address { host, port });
    host_of(&url)?;
    Some(ClusterEndpoint {
        url,
        source: EndpointSource::KubePrismConfigs,
    })
}

fn authorities(spec: &Value, pointer: &str) -> Vec<Certificate> {
    let list = spec.pointer(pointer).and_then(Value::as_array);
    let list = list.into_iter().flatten();
    list.filter_map(|entry| entry.get("crt"))
        .flat_map(certificates)
        .collect()
}

/// Reads a certificate field: PEM, which Talos writes in base64.
fn certificates(field: &Value) -> Vec<Certificate> {
    let text = field.as_str().unwrap_or_default().trim();
    let pem = if text.starts_with("-----") {
        text.as_bytes().to_vec()
    } else {
        STANDARD.decode(text).unwrap_or_default()
    };
    Certificate::many_from_pem(pem).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_machine_type_that_says_nothing_is_unknown_and_not_a_worker() {
        let check = |machine_type: Value, expected: Option<bool>| {
            let read = control_plane(&machine_type);
            assert_eq!(read.ok(), expected, "{machine_type}");
        };
        check(json!("controlplane"), Some(true));
        check(json!("init"), Some(true));
        check(json!("worker"), Some(false));
        check(json!("unknown"), None);
        check(json!({}), None);
    }
}
