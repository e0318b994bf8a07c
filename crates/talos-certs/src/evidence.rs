//! Everything that was gathered in one run: what nodes say, what servers present, what is kept.

use std::fmt;

use jiff::Timestamp;
use talos_pki::{Certificate, Name, Role};

use crate::report::NameSource;
use crate::{ClusterEndpoint, NotChecked, Outcome, ServerKind, Source};

/// Everything that was seen of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// What nodes say about themselves.
    pub nodes: Vec<NodeFacts>,
    /// Certificates of servers.
    pub servers: Vec<Seen>,
    /// Cluster endpoint.
    pub endpoint: Option<ClusterEndpoint>,
    /// Host of the kubeconfig's server.
    pub kubeconfig_host: Option<Name>,
    /// Authorities that should have issued what apid presents; empty when they are not known.
    pub talos_authorities: Vec<Certificate>,
    /// Authorities that should have issued what kube-apiserver presents; empty when they are not known.
    pub kubernetes_authorities: Vec<Certificate>,
    /// Authorities that should have issued what etcd presents; empty when they are not known.
    pub etcd_authorities: Vec<Certificate>,
    /// Authorities that nodes accept for the Talos API, as they say themselves; empty when they do not tell.
    pub talos_accepted: Vec<Certificate>,
    /// Authorities that nodes accept for Kubernetes, as they say themselves; empty when they do not tell.
    pub kubernetes_accepted: Vec<Certificate>,
    /// Authorities that files trust which people hold.
    pub trusted: Vec<TrustSeen>,
    /// Client certificates.
    pub clients: Vec<ClientSeen>,
    /// Certificates that are kept somewhere and not seen on a server.
    pub kept: Vec<Kept>,
    /// Requests for certificates that Kubernetes holds.
    pub requests: Vec<RequestSeen>,
    /// What could not be looked at.
    pub not_checked: Vec<NotChecked>,
}

/// What a node says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// Node as the user named it.
    pub node: String,
    /// Host name, and the fully qualified one where it differs.
    pub hostnames: Vec<Name>,
    /// Addresses outside of pod and service networks.
    pub addresses: Vec<Name>,
    /// Whether it runs a kube-apiserver; absent when it does not tell.
    pub control_plane: Option<bool>,
    /// Whether its configuration has the KubeAPIServerConfig document of Talos 1.14.
    pub has_apiserver_document: bool,
    /// Names that the node puts into certificates, as its `CertSANs` resources say; empty when they cannot be read.
    pub wanted_names: Vec<WantedNames>,
    /// Names that its machine configuration adds to certificates; empty when it cannot be read.
    pub configured_names: Vec<WantedNames>,
    /// Addresses that control planes share, as its configuration says.
    pub virtual_addresses: Vec<Name>,
    /// Addresses of the `kubernetes` service: the first of each service network.
    pub service_addresses: Vec<Name>,
    /// Domain of Kubernetes' services, such as `cluster.local`.
    pub dns_domain: Option<String>,
    /// What its clock says.
    pub clock: Option<ClockSeen>,
}

/// What the clock of a node said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSeen {
    /// Time on the node.
    pub there: Timestamp,
    /// Time of the clock here when the question was sent.
    pub asked: Timestamp,
    /// Time of the clock here when the answer had come.
    pub answered: Timestamp,
}

/// Names that a node puts into the certificate of one kind of server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedNames {
    /// Kind of server: apid, which stands for trustd too, or kube-apiserver.
    pub kind: ServerKind,
    /// Names and addresses.
    pub names: Vec<Name>,
    /// Since when they are these.
    pub since: Option<Timestamp>,
}

/// The certificate of one server.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Node as the user named it, or the address that was dialled.
    pub node: String,
    /// Kind of server.
    pub kind: ServerKind,
    /// Where the certificate was seen.
    pub source: Source,
    /// Address that was dialled.
    pub address: Option<String>,
    /// How the connection went.
    pub connection: Option<Outcome>,
    /// The chain, leaf first.
    pub chain: Vec<Certificate>,
    /// Names by which exactly this server was reached.
    pub reached_as: Vec<(Name, NameSource)>,
}

/// A client certificate in a file that people hold.
#[derive(Clone, Debug)]
pub struct ClientSeen {
    /// Where it stands, such as `talosconfig context "cluster-1"`.
    pub place: String,
    /// The certificate.
    pub certificate: Certificate,
    /// Which kind of client it is for.
    pub role: Role,
}

/// An authority that a file trusts which people hold.
#[derive(Clone, Debug)]
pub struct TrustSeen {
    /// Where it stands, such as `talosconfig context "cluster-1"`.
    pub place: String,
    /// What it is to have issued: apid's certificates or those of kube-apiserver.
    pub kind: ServerKind,
    /// The certificate.
    pub certificate: Certificate,
}

/// A certificate that is kept in a resource, in a file or in Kubernetes.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Node that keeps it, as the user named it; absent when it belongs to no node.
    pub node: Option<String>,
    /// Where it is kept.
    pub place: Place,
    /// What it is for, such as `Talos CA` or `client of kube-apiserver`.
    pub purpose: String,
    /// The certificate.
    pub certificate: Certificate,
    /// Who renews it, where the place itself says so, such as `cert-manager`.
    pub manager: Option<String>,
}

/// A request for a certificate that Kubernetes holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestSeen {
    /// Name of the object.
    pub name: String,
    /// Who is to sign it, such as `kubernetes.io/kubelet-serving`.
    pub signer: String,
    /// Who asked.
    pub requester: String,
    /// Common name and organizations that were asked for, such as `CN=system:node:cp-1, O=system:nodes`.
    pub subject: String,
    /// Names that were asked for.
    pub names: Vec<Name>,
    /// What came of it.
    pub state: RequestState,
    /// When it was made.
    pub created: Option<Timestamp>,
}

/// What came of a request for a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestState {
    /// Nobody has decided yet.
    Pending,
    /// It is approved, and no certificate is there yet.
    Approved,
    /// It was denied.
    Denied,
    /// The signer could not sign it.
    Failed,
    /// The certificate is there.
    Issued,
}

impl RequestState {
    /// Returns the word that stands in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Failed => "failed",
            Self::Issued => "issued",
        }
    }
}

/// Where a certificate is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A resource of a node.
    Resource {
        /// Type, such as `ApiCertificates.secrets.talos.dev`.
        kind: String,
        /// Identifier, such as `api`.
        id: String,
        /// Field, such as `/server/crt`.
        field: String,
    },
    /// A file.
    File {
        /// Path as it was given.
        path: String,
        /// Part of it, such as `context "lab"` or `machine.ca`; empty for a file that is nothing but certificates.
        part: String,
    },
    /// An object in Kubernetes.
    Kubernetes {
        /// Kind, such as `Secret`.
        kind: String,
        /// Namespace; empty for objects of the whole cluster.
        namespace: String,
        /// Name.
        name: String,
        /// Field, such as `tls.crt`.
        field: String,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource { kind, id, field } => write!(out, "{kind} {id} {field}"),
            Self::File { path, part } if part.is_empty() => out.write_str(path),
            Self::File { path, part } => write!(out, "{path} {part}"),
            Self::Kubernetes {
                kind,
                namespace,
                name,
                field,
            } => {
                let slash = if namespace.is_empty() { "" } else { "/" };
                write!(out, "{kind} {namespace}{slash}{name} {field}")
            }
        }
    }
}
