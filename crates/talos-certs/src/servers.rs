//! Finding the servers of nodes and seeing their certificates: by dialling them, else in the nodes' resources.

use std::net::SocketAddr;
use std::time::Instant;

use futures::StreamExt as _;
use talos_client::Endpoint;
use talos_kube::Address;
use talos_pki::{Certificate, Name, covers};

use crate::collect::{AskedNode, CollectOptions};
use crate::facts::Held;
use crate::{
    Evidence, Failure, NameSource, NotChecked, Outcome, Probe, ProbeOptions, Seen, ServerKind,
    Source, probe_any,
};

/// Looks at all servers of one kind: those at addresses people gave, then those of nodes that none of these belongs to.
pub(crate) async fn look(
    kind: ServerKind,
    nodes: &[AskedNode],
    options: &CollectOptions,
    evidence: &mut Evidence,
) {
    let mut given = dial_given(kind, options).await;
    let mut open = Vec::new();
    for node in nodes {
        // Whether a node that does not say its type runs a control plane is seen by dialling it.
        let may_run = node.reading.facts.control_plane != Some(false);
        if kind == ServerKind::KubeApiserver && !may_run {
            continue;
        }
        let mine = given.extract_if(.., |dialled| belongs(dialled, node, kind));
        let mine: Vec<Dialled> = mine.collect();
        let reached_as = mine
            .iter()
            .flat_map(|dialled| dialled.reached_as.clone())
            .collect();
        let chosen = mine.into_iter().max_by_key(Dialled::has_chain);
        open.push((node, reached_as, chosen));
    }
    for dialled in given {
        let address = dialled.address.clone();
        match dialled.seen(kind, &address) {
            Ok(seen) => evidence.servers.push(seen),
            Err(failure) => evidence.not_checked.push(NotChecked {
                node: address,
                kind: Some(kind),
                why: failure.to_string(),
            }),
        }
    }
    let looking = futures::stream::iter(open)
        .map(|(node, reached_as, given)| look_at(kind, node, reached_as, given, options))
        .buffered(options.concurrency.max(1));
    for result in looking.collect::<Vec<_>>().await {
        match result {
            Ok(seen) => evidence.servers.push(seen),
            Err((node, _)) if kind == ServerKind::KubeApiserver && node.failure.is_some() => {}
            Err((node, not_checked)) => evidence.not_checked.push(NotChecked {
                why: match &node.reading.unknown_type {
                    Some(unknown) if kind == ServerKind::KubeApiserver => {
                        format!("{}; it may be a control plane: {unknown}", not_checked.why)
                    }
                    _ => not_checked.why,
                },
                ..not_checked
            }),
        }
    }
}

/// One server that was dialled at an address people gave.
struct Dialled {
    host: Name,
    address: String,
    reached_as: Vec<(Name, NameSource)>,
    result: Result<Probe, Failure>,
}

impl Dialled {
    fn has_chain(&self) -> bool {
        !self.chain().is_empty()
    }

    fn chain(&self) -> &[Certificate] {
        match &self.result {
            Ok(probe) => &probe.chain,
            Err(_) => &[],
        }
    }

    /// Turns it into evidence about `node`, or tells why no certificate was seen.
    fn seen(self, kind: ServerKind, node: &str) -> Result<Seen, Failure> {
        let probe = self.result?;
        if probe.chain.is_empty() {
            return Err(match probe.outcome {
                Outcome::Failed(failure) => failure,
                // Without a certificate there is no TLS handshake to complete or to be refused in.
                Outcome::Completed { .. } | Outcome::Refused { .. } => Failure::Closed,
            });
        }
        Ok(Seen {
            node: node.to_owned(),
            kind,
            source: Source::Served,
            address: Some(self.address),
            connection: Some(probe.outcome),
            chain: probe.chain,
            reached_as: self.reached_as,
        })
    }
}

/// Dials the addresses that people gave: endpoints of the talosconfig, `--k8s-endpoint`, the kubeconfig's server.
async fn dial_given(kind: ServerKind, options: &CollectOptions) -> Vec<Dialled> {
    let mut targets: Vec<(Name, u16, NameSource)> = Vec::new();
    match kind {
        ServerKind::Apid => {
            for endpoint in &options.endpoints {
                if let Ok(host) = Name::parse(&endpoint.host()) {
                    targets.push((host, endpoint.port(), NameSource::Talosconfig));
                }
            }
        }
        ServerKind::Trustd
        | ServerKind::Kubelet
        | ServerKind::Etcd
        | ServerKind::EtcdPeer
        | ServerKind::KubePrism
        | ServerKind::Other => {}
        ServerKind::KubeApiserver => {
            if let Some(Address { host, port }) = &options.k8s_endpoint {
                targets.push((host.clone(), *port, NameSource::K8sEndpoint));
            }
            let server = options.kubernetes.server.as_deref();
            let server = server.and_then(|url| Address::from_server(url).ok());
            for Address { host, port } in server.into_iter().flatten() {
                let known = targets
                    .iter()
                    .any(|(known, at, _)| *known == host && *at == port);
                if !known && may_dial(&host, options) {
                    targets.push((host, port, NameSource::Kubeconfig));
                }
            }
        }
    }
    let dialling = futures::stream::iter(targets)
        .map(|(host, port, source)| dial(host, port, Some(source), options))
        .buffered(options.concurrency.max(1));
    dialling.collect().await
}

/// Looks at the server of one node.
async fn look_at<'node>(
    kind: ServerKind,
    node: &'node AskedNode,
    reached_as: Vec<(Name, NameSource)>,
    given: Option<Dialled>,
    options: &CollectOptions,
) -> Result<Seen, (&'node AskedNode, NotChecked)> {
    let dialled = match given {
        Some(given) => Some(given),
        None => match own_address(node, options) {
            Some(host) => Some(dial(host, own_port(kind), None, options).await),
            None => None,
        },
    };
    let failure = match dialled.map(|dialled| dialled.seen(kind, &node.name)) {
        Some(Ok(seen)) => return Ok(Seen { reached_as, ..seen }),
        Some(Err(failure)) => failure.to_string(),
        None => "it has no address that can be dialled from here".to_owned(),
    };
    let Held { chain, refusal } = node.reading.held(kind);
    if chain.is_empty() {
        let refusal = refusal.as_ref().map(|refusal| format!("; {refusal}"));
        let not_checked = NotChecked {
            node: node.name.clone(),
            kind: Some(kind),
            why: failure + refusal.as_deref().unwrap_or_default(),
        };
        return Err((node, not_checked));
    }
    Ok(Seen {
        node: node.name.clone(),
        kind,
        source: Source::Resource,
        address: None,
        connection: None,
        chain: chain.clone(),
        reached_as,
    })
}

/// Tells whether a server that was dialled at an address people gave is this node's: by the address, by the certificate
/// that the node's resources hold, or by the host name in it.
fn belongs(dialled: &Dialled, node: &AskedNode, kind: ServerKind) -> bool {
    let facts = &node.reading.facts;
    let is_address = Name::parse(&node.name).is_ok_and(|name| name == dialled.host)
        || facts.addresses.contains(&dialled.host);
    let held = node.reading.held(kind);
    is_address
        || dialled.chain().first().is_some_and(|leaf| {
            held.chain.first() == Some(leaf)
                || facts
                    .hostnames
                    .iter()
                    .any(|hostname| covers(leaf, hostname))
        })
}

/// Chooses the address at which a node's own ports can be dialled.
fn own_address(node: &AskedNode, options: &CollectOptions) -> Option<Name> {
    let named = Name::parse(&node.name).ok();
    let addresses = node.reading.facts.addresses.iter().cloned();
    let mut candidates = named.into_iter().chain(addresses);
    candidates.find(|candidate| may_dial(candidate, options))
}

/// Behind forwarded loopback ports a cluster's own addresses mean something else, or nothing, from here.
fn may_dial(host: &Name, options: &CollectOptions) -> bool {
    let forwarded = !options.endpoints.is_empty() && options.endpoints.iter().all(is_loopback);
    match host {
        Name::Ip(address) => address.is_loopback() || !forwarded,
        Name::Dns(name) => name == "localhost" || !forwarded,
    }
}

fn is_loopback(endpoint: &Endpoint) -> bool {
    match endpoint.ip() {
        Some(address) => address.is_loopback(),
        None => endpoint.host().eq_ignore_ascii_case("localhost"),
    }
}

fn own_port(kind: ServerKind) -> u16 {
    match kind {
        ServerKind::Apid => talos_client::DEFAULT_PORT,
        ServerKind::Trustd => 50001,
        ServerKind::KubeApiserver | ServerKind::Other => talos_kube::DEFAULT_PORT,
        ServerKind::Kubelet => 10250,
        ServerKind::Etcd => 2379,
        ServerKind::EtcdPeer => 2380,
        ServerKind::KubePrism => 7445,
    }
}

async fn dial(
    host: Name,
    port: u16,
    source: Option<NameSource>,
    options: &CollectOptions,
) -> Dialled {
    let probing = ProbeOptions {
        server_name: Some(host.clone()),
        timeout: options.timeout,
        ..ProbeOptions::default()
    };
    let result = probe_host(&host, port, &probing).await;
    Dialled {
        address: Address {
            host: host.clone(),
            port,
        }
        .to_string(),
        reached_as: source
            .map(|source| (host.clone(), source))
            .into_iter()
            .collect(),
        host,
        result,
    }
}

/// Probes the addresses of a host until one presents a certificate; resolving it counts as part of the timeout.
async fn probe_host(host: &Name, port: u16, options: &ProbeOptions) -> Result<Probe, Failure> {
    let started = Instant::now();
    let resolving = tokio::time::timeout(options.timeout, resolve(host, port)).await;
    let addresses = resolving.map_err(|_| Failure::Unreachable {
        message: "the name was not resolved within the timeout".to_owned(),
    })??;
    let remaining = ProbeOptions {
        timeout: options.timeout.saturating_sub(started.elapsed()),
        ..options.clone()
    };
    let probe = probe_any(&addresses, &remaining).await;
    probe.ok_or_else(|| Failure::Unreachable {
        message: format!("{host} has no address"),
    })
}

async fn resolve(host: &Name, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    match host {
        Name::Ip(address) => Ok(vec![SocketAddr::new(*address, port)]),
        Name::Dns(name) => match tokio::net::lookup_host((name.as_str(), port)).await {
            Ok(found) => Ok(found.collect()),
            Err(error) => Err(Failure::Unreachable {
                message: error.to_string(),
            }),
        },
    }
}
