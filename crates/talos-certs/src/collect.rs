//! Collecting what [`check`](crate::check) judges: what nodes say, and what their servers present.

use std::time::Duration;

use talos_client::{Client, Endpoint};
use talos_config::kubeconfig::{Kubeconfig, Material};
use talos_kube::Address;
use talos_pki::{Certificate, Name, Role};

use crate::check::host_of;
use crate::error::sentence;
use crate::evidence::{ClientSeen, TrustSeen};
use crate::facts::{self, Reading, Wanted};
use crate::servers;
use crate::{ClusterEndpoint, EndpointSource, Evidence, NodeFacts, NotChecked, ServerKind};

/// Where to look.
#[derive(Clone, Debug)]
pub struct CollectOptions {
    /// Nodes as the endpoints see them.
    pub nodes: Vec<String>,
    /// Endpoints of the Talos API.
    pub endpoints: Vec<Endpoint>,
    /// Authorities that the talosconfig trusts; without any, those that nodes tell.
    pub talos_authorities: Vec<Certificate>,
    /// Client certificate of the talosconfig, with what to call its place.
    pub talos_client: Option<(String, Certificate)>,
    /// Address at which one kube-apiserver can be dialled from here.
    pub k8s_endpoint: Option<Address>,
    /// Kubernetes as a kubeconfig knows it.
    pub kubernetes: KubernetesAccess,
    /// Kinds of servers to look at.
    pub kinds: Vec<ServerKind>,
    /// Other servers to look at.
    pub servers: Vec<Address>,
    /// Whether to take every certificate that nodes' resources hold, which takes os:admin.
    pub resources: bool,
    /// Servers that are dialled, and nodes that are asked, at one time.
    pub concurrency: usize,
    /// Time for one server to present its certificate.
    pub timeout: Duration,
}

impl Default for CollectOptions {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            endpoints: Vec::new(),
            talos_authorities: Vec::new(),
            talos_client: None,
            k8s_endpoint: None,
            kubernetes: KubernetesAccess::default(),
            kinds: vec![ServerKind::Apid, ServerKind::KubeApiserver],
            servers: Vec::new(),
            resources: false,
            concurrency: 16,
            timeout: Duration::from_secs(10),
        }
    }
}

/// What a kubeconfig says about a cluster's Kubernetes.
#[derive(Clone, Debug, Default)]
pub struct KubernetesAccess {
    /// URL of the server.
    pub server: Option<String>,
    /// Name for which clients verify the server's certificate.
    pub host: Option<Name>,
    /// Authorities that it trusts.
    pub authorities: Vec<Certificate>,
    /// Client certificate, with what to call its place.
    pub client: Option<(String, Certificate)>,
}

impl KubernetesAccess {
    /// Takes what the current context of a kubeconfig says; certificates in files beside it are left out.
    ///
    /// # Errors
    /// The current context, or what it refers to, does not exist.
    pub fn from_kubeconfig(
        kubeconfig: &Kubeconfig,
    ) -> Result<Self, talos_config::kubeconfig::Error> {
        let access = kubeconfig.access(None)?;
        let inline = |material: &Option<Material>| match material {
            Some(Material::Inline(pem)) => Certificate::many_from_pem(pem).unwrap_or_default(),
            _ => Vec::new(),
        };
        let server_name = access.cluster.tls_server_name.as_deref();
        let server_name = server_name.and_then(|name| Name::parse(name).ok());
        let client = inline(&access.user.certificate).into_iter().next();
        Ok(Self {
            server: Some(access.cluster.server.clone()),
            host: server_name.or_else(|| host_of(&access.cluster.server)),
            authorities: inline(&access.cluster.authority),
            client: client.map(|client| {
                let place = format!("kubeconfig user {:?}", access.user_name);
                (place, client)
            }),
        })
    }
}

/// Asks nodes and probes servers. Without a client the servers are probed all the same; the error then says why nobody is
/// asked.
///
/// A node's own addresses are dialled unless all endpoints are loopback addresses: then the cluster sits behind forwarded
/// ports, and its addresses mean something else here. Servers that cannot be dialled are taken from the node's resources.
pub async fn collect(
    client: Result<&Client, &talos_client::Error>,
    options: &CollectOptions,
) -> Evidence {
    let readings = read_nodes(client, options).await;
    let mut evidence = Evidence {
        kubeconfig_host: options.kubernetes.host.clone(),
        talos_authorities: options.talos_authorities.clone(),
        kubernetes_authorities: options.kubernetes.authorities.clone(),
        ..Evidence::default()
    };
    let talos = options
        .talos_client
        .iter()
        .map(|seen| (seen, Role::TalosClient));
    let kubernetes = options
        .kubernetes
        .client
        .iter()
        .map(|seen| (seen, Role::Client));
    evidence.clients = talos
        .chain(kubernetes)
        .map(|((place, certificate), role)| ClientSeen {
            place: place.clone(),
            certificate: certificate.clone(),
            role,
        })
        .collect();
    evidence.trusted = trusted(options);
    servers::look(&readings, options, &mut evidence).await;
    evidence.endpoint = readings
        .iter()
        .filter_map(|node| node.reading.endpoint.clone())
        .min_by_key(|endpoint| endpoint.source != EndpointSource::MachineConfig)
        .or_else(|| {
            options
                .kubernetes
                .server
                .clone()
                .map(|url| ClusterEndpoint {
                    url,
                    source: EndpointSource::Kubeconfig,
                })
        });
    for node in readings {
        if let Some(why) = node.failure {
            evidence.nodes.push(NodeFacts {
                node: node.name.clone(),
                ..NodeFacts::default()
            });
            evidence.not_checked.push(NotChecked {
                node: node.name,
                kind: None,
                why,
            });
            continue;
        }
        let Reading {
            facts,
            talos_authorities,
            kubernetes_authorities,
            etcd_authorities,
            kept,
            unread,
            ..
        } = node.reading;
        evidence.nodes.push(facts);
        evidence.kept.extend(kept);
        if options.resources {
            for (why, types) in unread {
                evidence.not_checked.push(NotChecked {
                    node: node.name.clone(),
                    kind: None,
                    why: format!("{} cannot be read: {why}", in_words(&types)),
                });
            }
        }
        add(&mut evidence.etcd_authorities, etcd_authorities);
        add(&mut evidence.talos_accepted, talos_authorities.clone());
        add(
            &mut evidence.kubernetes_accepted,
            kubernetes_authorities.clone(),
        );
        if options.talos_authorities.is_empty() {
            add(&mut evidence.talos_authorities, talos_authorities);
        }
        if options.kubernetes.authorities.is_empty() {
            add(&mut evidence.kubernetes_authorities, kubernetes_authorities);
        }
    }
    evidence
}

/// Lists the authorities that the files trust which were given.
fn trusted(options: &CollectOptions) -> Vec<TrustSeen> {
    let talos = options
        .talos_client
        .as_ref()
        .map(|(place, _)| place.clone());
    let talos = talos.unwrap_or_else(|| "talosconfig".to_owned());
    let talos = options
        .talos_authorities
        .iter()
        .map(|certificate| TrustSeen {
            place: talos.clone(),
            kind: ServerKind::Apid,
            certificate: certificate.clone(),
        });
    let kubernetes = options.kubernetes.authorities.iter();
    let kubernetes = kubernetes.map(|certificate| TrustSeen {
        place: "kubeconfig".to_owned(),
        kind: ServerKind::KubeApiserver,
        certificate: certificate.clone(),
    });
    talos.chain(kubernetes).collect()
}

/// One node and what it said.
pub(crate) struct AskedNode {
    pub(crate) name: String,
    pub(crate) reading: Reading,
    /// Why it said nothing.
    pub(crate) failure: Option<String>,
}

async fn read_nodes(
    client: Result<&Client, &talos_client::Error>,
    options: &CollectOptions,
) -> Vec<AskedNode> {
    let client = match client {
        Ok(client) => client,
        Err(error) => {
            let why = sentence(error);
            let nodes = options.nodes.iter();
            return nodes
                .map(|name| AskedNode {
                    name: name.clone(),
                    reading: Reading::default(),
                    failure: Some(why.clone()),
                })
                .collect();
        }
    };
    let answers = client
        .each(&options.nodes, options.concurrency, |node| async move {
            let wanted = Wanted {
                kinds: &options.kinds,
                resources: options.resources,
            };
            facts::read(&node, wanted).await
        })
        .await;
    answers
        .into_iter()
        .map(|(name, answer)| match answer {
            Ok(reading) => AskedNode {
                name,
                reading,
                failure: None,
            },
            Err(error) => AskedNode {
                name,
                reading: Reading::default(),
                failure: Some(sentence(&error)),
            },
        })
        .collect()
}

/// Lists types of resources without what their names have in common.
fn in_words(types: &[&str]) -> String {
    let short = types
        .iter()
        .map(|name| name.split('.').next().unwrap_or(name));
    let mut short: Vec<&str> = short.collect();
    short.dedup();
    short.join(", ")
}

fn add(known: &mut Vec<Certificate>, new: Vec<Certificate>) {
    for certificate in new {
        if !known.contains(&certificate) {
            known.push(certificate);
        }
    }
}
