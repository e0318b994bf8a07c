//! What a node's resources say about its names, its certificates and its cluster.

mod config;

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use talos_client::{Error, Kind, Node};
use talos_config::machine::MachineConfig;
use talos_pki::{Certificate, Name};

use crate::check::host_of;
use crate::error::sentence;
use crate::evidence::{ClockSeen, Kept, Place, WantedNames};
use crate::files::walk;
use crate::{ClusterEndpoint, EndpointSource, NodeFacts, ServerKind};

/// A type of resource that holds certificates, or tells their names.
#[derive(Clone, Copy)]
struct Kinded {
    resource_type: &'static str,
    id: &'static str,
    /// Whether only control planes have it.
    control_plane: bool,
    /// Whether it is read even when only servers are asked for: it holds what they present, or whom to trust.
    always: bool,
}

const fn kinded(resource_type: &'static str, id: &'static str) -> Kinded {
    Kinded {
        resource_type,
        id,
        control_plane: true,
        always: true,
    }
}

const API: &str = "ApiCertificates.secrets.talos.dev";
const TRUSTD: &str = "TrustdCertificates.secrets.talos.dev";
const DYNAMIC: &str = "KubernetesDynamicCerts.secrets.talos.dev";
const KUBERNETES: &str = "KubernetesSecrets.secrets.talos.dev";
const ETCD: &str = "EtcdSecrets.secrets.talos.dev";
const OS_ROOT: &str = "OSRootSecrets.secrets.talos.dev";
const KUBERNETES_ROOT: &str = "KubernetesRootSecrets.secrets.talos.dev";
const ETCD_ROOT: &str = "EtcdRootSecrets.secrets.talos.dev";
const NAMES: &str = "CertSANs.secrets.talos.dev";

/// Every resource that is read.
const RESOURCES: [Kinded; 10] = [
    Kinded {
        control_plane: false,
        ..kinded(API, "api")
    },
    kinded(TRUSTD, "trustd"),
    kinded(DYNAMIC, "k8s-dynamic-certs"),
    Kinded {
        always: false,
        ..kinded(KUBERNETES, "k8s-certs")
    },
    kinded(ETCD, "etcd"),
    Kinded {
        control_plane: false,
        always: false,
        ..kinded(OS_ROOT, "os")
    },
    kinded(KUBERNETES_ROOT, "k8s"),
    kinded(ETCD_ROOT, "etcd"),
    Kinded {
        control_plane: false,
        ..kinded(NAMES, "api")
    },
    kinded(NAMES, "k8s"),
];

/// Everything one node says; what its answers leave out is empty.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) facts: NodeFacts,
    pub(crate) endpoint: Option<ClusterEndpoint>,
    held: HashMap<ServerKind, Held>,
    pub(crate) talos_authorities: Vec<Certificate>,
    pub(crate) kubernetes_authorities: Vec<Certificate>,
    pub(crate) etcd_authorities: Vec<Certificate>,
    /// Certificates of all resources, if they were asked for.
    pub(crate) kept: Vec<Kept>,
    /// Why resources cannot be read, each reason with the types it is about.
    pub(crate) unread: Vec<(String, Vec<&'static str>)>,
    /// Why the node's machine type is not known.
    pub(crate) unknown_type: Option<String>,
}

impl Reading {
    /// Returns what the node's resources hold for a kind of server.
    pub(crate) fn held(&self, kind: ServerKind) -> &Held {
        self.held.get(&kind).unwrap_or(&NOTHING)
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

/// What to read of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// Kinds of servers that are looked at.
    pub(crate) kinds: &'a [ServerKind],
    /// Whether every certificate of every resource is wanted.
    pub(crate) resources: bool,
}

/// Reads a node; only its addresses must be readable, for everything else takes more rights or another machine type.
pub(crate) async fn read(node: &Node, wanted: Wanted<'_>) -> Result<Reading, Error> {
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
    let (hostname, machine_type, prism, config, clock) = futures::join!(
        hostname,
        machine_type,
        prism,
        node.machine_config(),
        clock(node)
    );
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
            clock,
            ..NodeFacts::default()
        },
        endpoint: endpoint(config.as_ref(), prism.ok().as_ref()),
        ..Reading::default()
    };
    if let Some(config) = &config {
        config::take(&mut reading.facts, config);
    }
    // What does not say that it is a worker may hold the certificates of a control plane.
    let is_worker = control_plane == Ok(false);
    let resources = RESOURCES.iter().filter(|resource| {
        (wanted.resources || resource.is_needed(wanted.kinds))
            && !(is_worker && resource.control_plane)
    });
    let asking = resources.map(|resource| async move {
        let answer = node
            .get("secrets", resource.resource_type, resource.id)
            .await;
        (*resource, answer)
    });
    for (resource, answer) in futures::future::join_all(asking).await {
        reading.take(resource, answer, wanted);
    }
    reading.unknown_type = control_plane.err();
    Ok(reading)
}

impl Kinded {
    /// Tells whether it is read for servers of these kinds.
    fn is_needed(self, kinds: &[ServerKind]) -> bool {
        let about = |wanted: &[ServerKind]| wanted.iter().any(|kind| kinds.contains(kind));
        self.always
            && match self.resource_type {
                TRUSTD => about(&[ServerKind::Trustd]),
                DYNAMIC | KUBERNETES_ROOT => {
                    about(&[ServerKind::KubeApiserver, ServerKind::KubePrism])
                }
                ETCD | ETCD_ROOT => about(&[ServerKind::Etcd, ServerKind::EtcdPeer]),
                _ => true,
            }
    }

    /// Returns the fields that hold what servers present.
    fn servers(self) -> &'static [(ServerKind, &'static str)] {
        match self.resource_type {
            API => &[(ServerKind::Apid, "/server/crt")],
            TRUSTD => &[(ServerKind::Trustd, "/server/crt")],
            DYNAMIC => &[(ServerKind::KubeApiserver, "/apiServer/crt")],
            ETCD => &[
                (ServerKind::Etcd, "/etcd/crt"),
                (ServerKind::EtcdPeer, "/etcdPeer/crt"),
            ],
            _ => &[],
        }
    }
}

impl Reading {
    /// Takes what one resource says.
    fn take(
        &mut self,
        resource: Kinded,
        answer: Result<talos_client::Resource, Error>,
        wanted: Wanted<'_>,
    ) {
        let kind = resource.resource_type;
        let since = answer
            .as_ref()
            .ok()
            .and_then(|resource| resource.metadata.updated);
        let spec = match answer {
            Ok(found) => found.spec().map_err(|error| (sentence(&error), true)),
            Err(error) => {
                // What is not there holds nothing, and nobody is missing it.
                let matters = error.kind() != Kind::NotFound;
                Err((sentence(&error), matters))
            }
        };
        let spec = match spec {
            Ok(spec) => spec,
            Err((why, matters)) => {
                for (server, _) in resource.servers() {
                    let refusal = Some(format!("{kind}: {why}"));
                    let chain = Vec::new();
                    self.held.insert(*server, Held { chain, refusal });
                }
                if matters {
                    self.unread(kind, why);
                }
                return;
            }
        };
        for (server, pointer) in resource.servers() {
            let chain = spec.pointer(pointer).map(readable).unwrap_or_default();
            let refusal = chain
                .is_empty()
                .then(|| format!("the resource has no {pointer}"));
            self.held.insert(*server, Held { chain, refusal });
        }
        let accepted = || spec.get("acceptedCAs").map(readable).unwrap_or_default();
        match kind {
            API => self.talos_authorities = accepted(),
            KUBERNETES_ROOT => self.kubernetes_authorities = accepted(),
            ETCD_ROOT => {
                self.etcd_authorities = spec.get("etcdCA").map(readable).unwrap_or_default();
            }
            NAMES => self.facts.wanted_names.push(WantedNames {
                kind: match resource.id {
                    "k8s" => ServerKind::KubeApiserver,
                    _ => ServerKind::Apid,
                },
                names: names(&spec),
                since,
            }),
            _ => {}
        }
        if wanted.resources {
            self.keep(resource, &spec);
        }
    }

    fn keep(&mut self, resource: Kinded, spec: &Value) {
        let kind = resource.resource_type;
        for found in walk(spec) {
            // Of a kubeconfig, which of them it is says enough.
            let field = match (kind, found.path.first()) {
                (KUBERNETES, Some(kubeconfig)) => format!("/{kubeconfig}"),
                _ => format!("/{}", found.path.join("/")),
            };
            match found.result {
                Ok(certificate) => {
                    let steps: Vec<&str> = found.path.iter().map(String::as_str).collect();
                    self.kept.push(Kept {
                        node: Some(self.facts.node.clone()),
                        purpose: purpose(kind, &steps, &certificate).to_owned(),
                        place: Place::Resource {
                            kind: kind.to_owned(),
                            id: resource.id.to_owned(),
                            field,
                        },
                        certificate,
                        manager: None,
                    });
                }
                Err(damaged) => self.unread(kind, format!("{field}: {}", damaged.why)),
            }
        }
    }

    fn unread(&mut self, resource_type: &'static str, why: String) {
        let known = self.unread.iter_mut().find(|(reason, _)| *reason == why);
        match known {
            Some((_, types)) => types.push(resource_type),
            None => self.unread.push((why, vec![resource_type])),
        }
    }
}

/// Says what a certificate of a resource is for.
fn purpose(resource_type: &str, path: &[&str], certificate: &Certificate) -> &'static str {
    match (resource_type, path) {
        (API, ["server", ..]) => "apid",
        (API, ["client", ..]) => "client of apid on other nodes",
        (API | TRUSTD | OS_ROOT, ["acceptedCAs", ..]) => "accepted Talos CA",
        (TRUSTD, ["server", ..]) => "trustd",
        (OS_ROOT, ["issuingCA", ..]) => "Talos CA",
        (DYNAMIC, ["apiServer", ..]) => "kube-apiserver",
        (DYNAMIC, ["apiServerKubeletClient", ..]) => "kube-apiserver's client of kubelets",
        (DYNAMIC, ["frontProxy", ..]) => "front proxy client",
        (KUBERNETES, [.., "certificate-authority-data"]) => "accepted Kubernetes CA",
        (KUBERNETES, ["schedulerKubeconfig", ..]) => "kube-scheduler's client",
        (KUBERNETES, ["controllerManagerKubeconfig", ..]) => "kube-controller-manager's client",
        (KUBERNETES, ["localhostAdminKubeconfig" | "adminKubeconfig", ..]) => {
            "administrator on the node"
        }
        (KUBERNETES_ROOT, ["issuingCA", ..]) => "Kubernetes CA",
        (KUBERNETES_ROOT, ["acceptedCAs", ..]) => "accepted Kubernetes CA",
        (KUBERNETES_ROOT, ["aggregatorCA", ..]) => "aggregator CA",
        (ETCD, ["etcd", ..]) => "etcd",
        (ETCD, ["etcdPeer", ..]) => "etcd-peer",
        (ETCD, ["etcdAdmin", ..]) => "administrator of etcd",
        (ETCD, ["etcdAPIServer", ..]) => "kube-apiserver's client of etcd",
        (ETCD_ROOT, _) => "etcd CA",
        _ => crate::files::generic(certificate),
    }
}

fn readable(value: &Value) -> Vec<Certificate> {
    walk(&serde_json::json!({ "crt": value }))
        .into_iter()
        .filter_map(|found| found.result.ok())
        .collect()
}

fn names(spec: &Value) -> Vec<Name> {
    let lists = ["ips", "dnsNames"];
    lists
        .iter()
        .filter_map(|list| spec.get(list)?.as_array())
        .flatten()
        .filter_map(|name| Name::parse(name.as_str()?).ok())
        .collect()
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

/// Reads the node's clock; one whose time server does not answer has none to read, and nobody waits for it long.
async fn clock(node: &Node) -> Option<ClockSeen> {
    const PATIENCE: Duration = Duration::from_secs(3);
    let asked = Timestamp::now();
    let there = tokio::time::timeout(PATIENCE, node.time())
        .await
        .ok()?
        .ok()?;
    Some(ClockSeen {
        there,
        asked,
        answered: Timestamp::now(),
    })
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
