//! A running simulated cluster.

use std::net::SocketAddr;
use std::sync::Arc;

use talos_pki::Certificate;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::addresses::{self, Place};
use crate::apid::{self, tls};
use crate::calls::Call;
use crate::certificates::{Certificates, apid_names};
use crate::clients;
use crate::config::{ConfigText, Configs, Given, Template};
use crate::error::Error;
use crate::kubernetes::{self, KubeRequest};
use crate::machine::MachineState;
use crate::node::{MachineType, Node, NodeState};
use crate::options::Options;
use crate::pki::{self, ClusterPki, YEAR};
use crate::seeding;
use crate::servers::{self, Server};
use crate::shared::{self, Shared};
use crate::trust::Trust;

/// A running simulated cluster; dropping it stops all of it.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) shared: Arc<Shared>,
    nodes: Vec<Node>,
}

impl Cluster {
    /// Starts a cluster and returns when all of its servers listen.
    ///
    /// # Errors
    /// Options that make no cluster, or no free addresses.
    pub async fn start(mut options: Options) -> Result<Self, Error> {
        let configs = options.configs.clone();
        let given = configs
            .as_ref()
            .map(|configs| Given::read(configs, &options))
            .transpose()?;
        if let Some(given) = &given {
            adopt(&mut options, given);
        }
        check(&options)?;
        let places = addresses::places(&options)?;
        let endpoint = options
            .endpoint
            .clone()
            .unwrap_or_else(|| format!("https://{}:6443", places[0].address));
        let (pki, template) = match &given {
            Some(given) => (given.pki()?, Template::given(given)),
            None => {
                let pki = ClusterPki::generate(shared::now(&options))?;
                let template = Template::new(&options, &endpoint, &pki)?;
                (pki, template)
            }
        };
        let nodes = machines(&options, &template, &pki, places)?;
        let listeners = nodes
            .iter()
            .map(|node| listen(node))
            .collect::<Result<Vec<_>, _>>()?;
        let shared = Arc::new(Shared {
            options,
            endpoint,
            cluster_id: template.cluster_id,
            pki,
            nodes,
            calls: <_>::default(),
            kubernetes: <_>::default(),
            stop: CancellationToken::new(),
        });
        seeding::fill(&shared)?;
        for (node, listener) in shared.nodes.iter().zip(listeners) {
            if let Some(listener) = listener {
                shared.spawn(apid::serve(shared.clone(), node.clone(), listener));
            }
        }
        let nodes = (0..shared.nodes.len()).map(|index| Node {
            shared: shared.clone(),
            index,
        });
        // From here on a failure stops what runs, through the drop of this value.
        let cluster = Self {
            nodes: nodes.collect(),
            shared,
        };
        kubernetes::start(&cluster.shared).await?;
        for node in &cluster.shared.nodes {
            servers::start(&cluster.shared, node)?;
        }
        Ok(cluster)
    }

    /// All machines: control planes, then workers, then those in maintenance mode.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A talosconfig whose client certificate has these roles, of the authorities that the first control plane has now.
    pub fn talosconfig(&self, roles: &[&str]) -> String {
        let endpoints: Vec<String> = self.endpoints().collect();
        let trust = self.shared.current_trust();
        let signer = trust.talos.signer.as_ref();
        let signer = signer.expect("a control plane has the key of its authority");
        let issued = pki::talos_client(signer, None, roles, YEAR, self.shared.now());
        let issued = issued.expect("a key in memory signs");
        clients::talosconfig(&trust, &self.shared.options.name, &endpoints, &issued)
    }

    /// An administrator's kubeconfig whose server is the cluster endpoint.
    pub fn kubeconfig(&self) -> String {
        let first = self.shared.control_planes().next();
        let first = first.unwrap_or(&self.shared.nodes[0]);
        clients::kubeconfig(&self.shared, first).expect("a key in memory signs")
    }

    /// The cluster's name.
    pub fn name(&self) -> &str {
        &self.shared.options.name
    }

    /// The Kubernetes version that the cluster started with, without a leading `v`.
    pub fn kubernetes_version(&self) -> &str {
        &self.shared.options.kubernetes_version
    }

    /// The cluster endpoint, such as `https://10.5.10.2:6443`.
    pub fn endpoint(&self) -> &str {
        &self.shared.endpoint
    }

    /// The authority that signed what apid presents when the cluster started.
    pub fn talos_authority(&self) -> &Certificate {
        self.shared.pki.talos.certificate()
    }

    /// The authority that signed what kube-apiserver presents when the cluster started.
    pub fn kubernetes_authority(&self) -> &Certificate {
        self.shared.pki.kubernetes.certificate()
    }

    /// Calls that nodes handled so far.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.calls.all()
    }

    /// Forgets the calls so far.
    pub fn clear_calls(&self) {
        self.shared.calls.clear();
    }

    /// Requests that kube-apiservers received so far.
    pub fn kube_requests(&self) -> Vec<KubeRequest> {
        self.shared.kubernetes.requests()
    }

    /// What a talosconfig lists as endpoints: the control planes that can be dialled.
    fn endpoints(&self) -> impl Iterator<Item = String> {
        let dialled = self
            .shared
            .control_planes()
            .filter_map(|node| node.ports.get(&Server::Apid));
        dialled.map(|port| match port.address() {
            address if address.port() == Server::Apid.port() => address.ip().to_string(),
            address => address.to_string(),
        })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

/// Lets options say what the configurations say that the cluster boots with.
fn adopt(options: &mut Options, given: &Given<'_>) {
    if let Some(name) = given.cluster_name() {
        name.clone_into(&mut options.name);
    }
    if let Some(version) = given.kubernetes_version() {
        version.clone_into(&mut options.kubernetes_version);
    }
    options.endpoint = given.endpoint().map(str::to_owned);
}

fn check(options: &Options) -> Result<(), Error> {
    if options.controlplanes == 0 {
        return Err(Error::NoControlPlane);
    }
    let version = &options.kubernetes_version;
    if semver::Version::parse(version).is_err() {
        return Err(Error::KubernetesVersion {
            version: version.clone(),
        });
    }
    Ok(())
}

fn machines(
    options: &Options,
    template: &Template,
    pki: &ClusterPki,
    places: Vec<Place>,
) -> Result<Vec<Arc<NodeState>>, Error> {
    let provider = tls::provider();
    let now = shared::now(options);
    let booted = [true, false]
        .map(|control_plane| Arc::new(Trust::booted(pki, &template.machine_token, control_plane)));
    let machine = |(index, place): (usize, Place)| {
        let (machine_type, name) = identity(options, index);
        let configs = match machine_type {
            MachineType::Unknown => Configs::default(),
            _ => {
                let text = template.of(machine_type == MachineType::ControlPlane, &name);
                Configs::booted(ConfigText::generated(text, machine_type))
            }
        };
        let mut trust = booted[usize::from(machine_type != MachineType::ControlPlane)].clone();
        let configured = match configs.active().filter(|_| options.configs.is_some()) {
            Some(documents) => {
                trust = Arc::new(Trust::read(&documents, &trust));
                documents.machine_cert_sans()
            }
            None if machine_type == MachineType::Unknown => Vec::new(),
            None => options.machine_cert_sans.clone(),
        };
        let names = apid_names(options.talos_version, &name, place.address, &configured);
        let issued = pki.talos.issue(&pki::apid_server(&name, names), now);
        let issued = issued.map_err(|source| pki::failed(&name, source))?;
        let certificates = Certificates::new(trust, issued, options.clock_offset, &provider)
            .map_err(|source| Error::Tls {
                owner: name.clone(),
                source,
            })?;
        let node = NodeState {
            index,
            address: place.address,
            ports: place.ports,
            configs,
            store: <_>::default(),
            faults: <_>::default(),
            certificates,
            identities: <_>::default(),
            clock_offset: <_>::default(),
            machine: MachineState::new(options.bootstrapped),
            name,
        };
        Ok(Arc::new(node))
    };
    places.into_iter().enumerate().map(machine).collect()
}

/// Type and host name of a node by its position.
fn identity(options: &Options, index: usize) -> (MachineType, String) {
    let name = &options.name;
    let Some(worker) = index.checked_sub(options.controlplanes) else {
        return (
            MachineType::ControlPlane,
            format!("{name}-controlplane-{}", index + 1),
        );
    };
    match worker.checked_sub(options.workers) {
        None => (MachineType::Worker, format!("{name}-worker-{}", worker + 1)),
        Some(fresh) => (MachineType::Unknown, format!("{name}-new-{}", fresh + 1)),
    }
}

fn listen(node: &NodeState) -> Result<Option<TcpListener>, Error> {
    let Some(port) = node.ports.get(&Server::Apid) else {
        return Ok(None);
    };
    let address: SocketAddr = port.address();
    let listener = port
        .listen()
        .map_err(|source| Error::Listen { address, source })?;
    Ok(Some(listener))
}
