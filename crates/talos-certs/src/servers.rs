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

/// One server of a node that is still to be looked at.
struct Open<'node> {
    kind: ServerKind,
    node: &'node AskedNode,
    reached_as: Vec<(Name, NameSource)>,
    given: Option<Dialled>,
}

/// Looks at all servers of all kinds: those at addresses people gave, then those of nodes that none of these belongs to.
pub(crate) async fn look(nodes: &[AskedNode], options: &CollectOptions, evidence: &mut Evidence) {
    let mut open = Vec::new();
    for kind in ServerKind::OF_NODES {
        if !options.kinds.contains(&kind) {
            continue;
        }
        let mut given = dial_given(kind, options).await;
        for node in nodes {
            // Whether a node that does not say its type runs a control plane is seen by dialling it.
            let may_run = node.reading.facts.control_plane != Some(false);
            if is_of_control_planes(kind) && !may_run {
                continue;
            }
            let mine = given.extract_if(.., |dialled| belongs(dialled, node, kind));
            let mine: Vec<Dialled> = mine.collect();
            open.push(Open {
                kind,
                node,
                reached_as: mine
                    .iter()
                    .flat_map(|dialled| dialled.reached_as.clone())
                    .collect(),
                given: mine.into_iter().max_by_key(Dialled::has_chain),
            });
        }
        for dialled in given {
            take(evidence, kind, dialled);
        }
    }
    let looking = futures::stream::iter(open.into_iter().enumerate())
        .map(|(index, open)| async move { (index, look_at(open, options).await) })
        .buffer_unordered(options.concurrency.max(1));
    let mut results = looking.collect::<Vec<_>>().await;
    results.sort_by_key(|(index, _)| *index);
    for (_, result) in results {
        match result {
            Ok(seen) => evidence.servers.push(seen),
            Err((kind, node, _)) if is_of_control_planes(kind) && node.failure.is_some() => {}
            Err((kind, node, why)) => evidence.not_checked.push(NotChecked {
                node: node.name.clone(),
                kind: Some(kind),
                why: match &node.reading.unknown_type {
                    Some(unknown) if is_of_control_planes(kind) => {
                        format!("{why}; it may be a control plane: {unknown}")
                    }
                    _ => why,
                },
            }),
        }
    }
    let others = options.servers.iter().cloned();
    let dialling = futures::stream::iter(others)
        .map(|Address { host, port }| dial(ServerKind::Other, host, port, None, options))
        .buffered(options.concurrency.max(1));
    for dialled in dialling.collect::<Vec<_>>().await {
        take(evidence, ServerKind::Other, dialled);
    }
}

/// Takes a server that belongs to no known node.
fn take(evidence: &mut Evidence, kind: ServerKind, dialled: Dialled) {
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

/// Tells whether only control planes run such a server.
fn is_of_control_planes(kind: ServerKind) -> bool {
    matches!(
        kind,
        ServerKind::Trustd | ServerKind::KubeApiserver | ServerKind::Etcd | ServerKind::EtcdPeer
    )
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
        .map(|(host, port, source)| dial(kind, host, port, Some(source), options))
        .buffered(options.concurrency.max(1));
    dialling.collect().await
}

/// Looks at the server of one node.
async fn look_at<'node>(
    open: Open<'node>,
    options: &CollectOptions,
) -> Result<Seen, (ServerKind, &'node AskedNode, String)> {
    let Open {
        kind,
        node,
        reached_as,
        given,
    } = open;
    let host = match kind {
        ServerKind::KubePrism => prism_host(node, options),
        _ => own_address(node, options),
    };
    let dialled = match (given, host) {
        (Some(given), _) => Some(given),
        (None, Some(host)) => Some(dial(kind, host, own_port(kind), None, options).await),
        (None, None) => None,
    };
    let (failure, connection) = match dialled.map(|dialled| dialled.seen(kind, &node.name)) {
        Some(Ok(seen)) => return Ok(Seen { reached_as, ..seen }),
        Some(Err(failure)) => (failure.to_string(), Some(Outcome::Failed(failure))),
        None if kind == ServerKind::KubePrism => {
            ("it listens on the node's loopback only".to_owned(), None)
        }
        None => (
            "it has no address that can be dialled from here".to_owned(),
            None,
        ),
    };
    let Held { chain, refusal } = node.reading.held(kind);
    if chain.is_empty() {
        let refusal = refusal.as_ref().map(|refusal| format!("; {refusal}"));
        let why = failure + refusal.as_deref().unwrap_or_default();
        return Err((kind, node, why));
    }
    Ok(Seen {
        node: node.name.clone(),
        kind,
        source: Source::Resource,
        address: None,
        connection,
        chain: chain.clone(),
        reached_as,
    })
}

/// Chooses where a node's KubePrism can be dialled: on the machine that this program runs on.
fn prism_host(node: &AskedNode, options: &CollectOptions) -> Option<Name> {
    match own_address(node, options)? {
        Name::Ip(address) if address.is_loopback() => Some(Name::Ip(address)),
        // An address can be bound only where it is this machine's.
        Name::Ip(address) => std::net::UdpSocket::bind((address, 0))
            .is_ok()
            .then_some(Name::Ip(std::net::Ipv4Addr::LOCALHOST.into())),
        Name::Dns(name) => (name == "localhost").then_some(Name::Dns(name)),
    }
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
    kind: ServerKind,
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
    let address = Address {
        host: host.clone(),
        port,
    };
    let result = match kind {
        ServerKind::Apid => probe_host(&host, port, &probing).await,
        _ => probe_server(&address, &probing).await,
    };
    Dialled {
        address: address.to_string(),
        reached_as: source
            .map(|source| (host.clone(), source))
            .into_iter()
            .collect(),
        host,
        result,
    }
}

/// Probes a server by its address or name, whichever protocol it speaks inside of TLS; resolving the name counts as part of
/// the timeout.
///
/// # Errors
/// The name leads to no address.
pub async fn probe_server(address: &Address, options: &ProbeOptions) -> Result<Probe, Failure> {
    let started = Instant::now();
    let result = probe_host(&address.host, address.port, options).await;
    // Only apid must speak HTTP/2; others may speak something else.
    if options.http2 && result.as_ref().is_ok_and(lacks_protocol) {
        let again = ProbeOptions {
            http2: false,
            timeout: options.timeout.saturating_sub(started.elapsed()),
            ..options.clone()
        };
        return probe_host(&address.host, address.port, &again).await;
    }
    result
}

/// Tells whether a server ended the handshake because it does not speak the protocol that was offered.
fn lacks_protocol(probe: &Probe) -> bool {
    /// The alert `no_application_protocol`.
    const NO_APPLICATION_PROTOCOL: u8 = 120;
    match &probe.outcome {
        Outcome::Failed(Failure::Alert { alert }) => alert.code() == NO_APPLICATION_PROTOCOL,
        _ => false,
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
