//! What a check says: each server, each name, each problem with what repairs it.

use schemars::JsonSchema;
use serde::Serialize;
use talos_pki::Certificate;

use crate::Outcome;

/// Verdict over all servers that were looked at.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Cluster endpoint that kube-apiserver certificates are judged against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<ClusterEndpoint>,
    /// Servers whose certificate was seen.
    pub servers: Vec<Server>,
    /// Client certificates in use.
    pub clients: Vec<Client>,
    /// What could not be looked at.
    pub not_checked: Vec<NotChecked>,
    /// Whether something could not be looked at, so that no finding does not mean no problem.
    pub incomplete: bool,
}

/// Where clients of a cluster's Kubernetes are told to go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterEndpoint {
    /// The endpoint as a URL.
    pub url: String,
    /// Where the endpoint was read.
    pub source: EndpointSource,
}

/// Where a cluster endpoint was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum EndpointSource {
    /// The machine configuration of a node, which only administrators may read.
    MachineConfig,
    /// The first upstream of KubePrism, which every reader may see.
    KubePrismConfigs,
    /// The server of the kubeconfig.
    #[serde(rename = "kubeconfig")]
    Kubeconfig,
}

impl EndpointSource {
    /// Returns the word that stands in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MachineConfig => "MachineConfig",
            Self::KubePrismConfigs => "KubePrismConfigs",
            Self::Kubeconfig => "kubeconfig",
        }
    }
}

/// One server and the verdict on its certificate.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    /// Node as the user named it, or the address that was dialled when it belongs to no known node.
    pub node: String,
    /// Kind of server.
    pub kind: ServerKind,
    /// Where the certificate was seen.
    pub source: Source,
    /// Address that was dialled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// How the connection went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<Outcome>,
    /// The certificate.
    pub certificate: CertificateSummary,
    /// Verdict on each name by which the server is or may be reached.
    pub names: Vec<NameVerdict>,
    /// Problems, none when all is well.
    pub findings: Vec<Problem>,
    /// One patch that adds every missing name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
}

/// A kind of TLS server on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServerKind {
    /// The Talos API, port 50000.
    Apid,
    /// The service that signs certificates of workers, port 50001 of control planes.
    Trustd,
    /// The Kubernetes API, port 6443 of control planes.
    KubeApiserver,
    /// The kubelet's API, port 10250.
    Kubelet,
    /// etcd for its clients, port 2379 of control planes.
    Etcd,
    /// etcd for its other members, port 2380 of control planes.
    EtcdPeer,
    /// The balancer in front of the Kubernetes API, port 7445 of the node's own loopback address.
    #[serde(rename = "kubeprism")]
    KubePrism,
    /// Any other server, dialled because it was asked for.
    Other,
}

impl ServerKind {
    /// Every kind that Talos nodes have.
    pub const OF_NODES: [Self; 7] = [
        Self::Apid,
        Self::Trustd,
        Self::KubeApiserver,
        Self::Kubelet,
        Self::Etcd,
        Self::EtcdPeer,
        Self::KubePrism,
    ];

    /// Returns the word that stands in reports and on command lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apid => "apid",
            Self::Trustd => "trustd",
            Self::KubeApiserver => "kube-apiserver",
            Self::Kubelet => "kubelet",
            Self::Etcd => "etcd",
            Self::EtcdPeer => "etcd-peer",
            Self::KubePrism => "kubeprism",
            Self::Other => "other",
        }
    }
}

/// Where a certificate was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The server presented it.
    Served,
    /// The node's resources hold it; the server cannot be dialled from here.
    Resource,
}

/// What a certificate says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSummary {
    /// Subject, such as `CN=cp-1`.
    pub subject: String,
    /// Issuer, such as `O=talos`.
    pub issuer: String,
    /// Kind of key, such as `Ed25519`.
    pub algorithm: String,
    /// First moment of validity, in RFC 3339.
    pub not_before: String,
    /// Last moment of validity, in RFC 3339.
    pub not_after: String,
    /// SHA-256 of the certificate in hex.
    pub fingerprint: String,
    /// Names and addresses it is valid for.
    pub names: Vec<String>,
}

/// Verdict on one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NameVerdict {
    /// Name or address.
    pub name: String,
    /// Why it is expected.
    pub sources: Vec<NameSource>,
    /// Entry of the certificate that covers it; null when none does.
    pub covered_by: Option<String>,
}

/// Why a name is expected of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NameSource {
    /// The user names the node so.
    Node,
    /// The node has this address.
    NodeAddress,
    /// The node calls itself so.
    Hostname,
    /// It is the host of an endpoint in the talosconfig.
    Talosconfig,
    /// It is the host of the cluster endpoint.
    ClusterEndpoint,
    /// It is the host of the kubeconfig's server.
    Kubeconfig,
    /// It is the host of `--k8s-endpoint`.
    K8sEndpoint,
    /// Control planes share it, as their configuration says.
    VirtualAddress,
    /// Clients on the node go to KubePrism, or to the server of their own node, by it.
    #[serde(rename = "kubeprism")]
    KubePrism,
    /// Clients in the cluster go to the `kubernetes` service by it.
    KubernetesService,
    /// Clients on the same node use it.
    Loopback,
    /// It was asked for.
    Expected,
}

impl NameSource {
    /// Returns the word that stands in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::NodeAddress => "node-address",
            Self::Hostname => "hostname",
            Self::Talosconfig => "talosconfig",
            Self::ClusterEndpoint => "cluster-endpoint",
            Self::Kubeconfig => "kubeconfig",
            Self::K8sEndpoint => "k8s-endpoint",
            Self::VirtualAddress => "virtual-address",
            Self::KubePrism => "kubeprism",
            Self::KubernetesService => "kubernetes-service",
            Self::Loopback => "loopback",
            Self::Expected => "expected",
        }
    }
}

/// One problem of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Kind of problem, a stable word such as `name-missing` or `expired`.
    pub code: String,
    /// Name that is not covered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What repairs it: a patch that adds the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// What to do where no setting repairs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// A change of the machine configuration that adds names to a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fix {
    /// Setting that drives the certificate's names, such as `cluster.apiServer.certSANs`.
    pub setting: String,
    /// Node whose configuration is to be patched; absent when the server belongs to no known node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Strategic merge patch in one line.
    pub patch: String,
    /// What the change costs.
    pub cost: String,
}

/// A client certificate and the verdict on it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Client {
    /// Where the certificate stands, such as `talosconfig context "cluster-1"`.
    pub place: String,
    /// The certificate.
    pub certificate: CertificateSummary,
    /// Problems, none when all is well.
    pub findings: Vec<Problem>,
}

/// Something that could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotChecked {
    /// Node or address.
    pub node: String,
    /// Kind of server; absent when it is the node's own answers that are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ServerKind>,
    /// Why.
    pub why: String,
}

impl CertificateSummary {
    /// Takes what stands in a certificate.
    pub fn of(certificate: &Certificate) -> Self {
        Self {
            subject: certificate.subject().to_owned(),
            issuer: certificate.issuer().to_owned(),
            algorithm: certificate.algorithm().to_string(),
            not_before: certificate.not_before().to_string(),
            not_after: certificate.not_after().to_string(),
            fingerprint: certificate.fingerprint(),
            names: certificate
                .names()
                .iter()
                .map(ToString::to_string)
                .collect(),
        }
    }
}

impl Report {
    /// Tells whether a node or server was to be looked at and could not be.
    ///
    /// KubePrism is out of reach by its nature, and a server that was seen counts even if its issuer is not known.
    pub fn has_failures(&self) -> bool {
        let was_seen = |left_out: &NotChecked, kind: ServerKind| {
            let mut servers = self.servers.iter();
            servers.any(|server| server.node == left_out.node && server.kind == kind)
        };
        self.not_checked.iter().any(|left_out| match left_out.kind {
            None => true,
            Some(ServerKind::KubePrism) => false,
            Some(kind) => !was_seen(left_out, kind),
        })
    }

    /// Tells whether anything was found.
    pub fn has_findings(&self) -> bool {
        let servers = self.servers.iter().map(|server| &server.findings);
        let clients = self.clients.iter().map(|client| &client.findings);
        servers.chain(clients).any(|findings| !findings.is_empty())
    }
}
