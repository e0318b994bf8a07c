//! The authorities of a cluster, and the certificates they issue.

use jiff::{SignedDuration, Timestamp};
use talos_pki::{Authority, AuthorityKind, Issued, LeafRequest, LeafUsage, Name};

use crate::error::Error;

const DAY: SignedDuration = SignedDuration::from_hours(24);
const YEAR: SignedDuration = SignedDuration::from_hours(8760);

/// The four authorities of a cluster.
#[derive(Debug)]
pub(crate) struct ClusterPki {
    pub(crate) talos: Authority,
    pub(crate) kubernetes: Authority,
    pub(crate) aggregator: Authority,
    pub(crate) etcd: Authority,
}

impl ClusterPki {
    pub(crate) fn generate(now: Timestamp) -> Result<Self, Error> {
        let authority = |kind, owner: &str| {
            Authority::generate(kind, now).map_err(|source| failed(owner, source))
        };
        Ok(Self {
            talos: authority(AuthorityKind::Talos, "the Talos authority")?,
            kubernetes: authority(AuthorityKind::Kubernetes, "the Kubernetes authority")?,
            aggregator: authority(AuthorityKind::Aggregator, "the aggregator authority")?,
            etcd: authority(AuthorityKind::Etcd, "the etcd authority")?,
        })
    }

    /// A client certificate for apid; its organizations are the caller's roles.
    pub(crate) fn talos_client(
        &self,
        roles: &[&str],
        lifetime: SignedDuration,
        now: Timestamp,
    ) -> Result<Issued, Error> {
        let request = LeafRequest {
            common_name: None,
            organizations: roles.iter().map(|&role| role.to_owned()).collect(),
            names: Vec::new(),
            usage: LeafUsage {
                key_encipherment: false,
                server: false,
                client: true,
            },
            lifetime,
            backdate: SignedDuration::ZERO,
        };
        self.talos
            .issue(&request, now)
            .map_err(|source| failed("a client", source))
    }

    /// The certificate that a node's apid presents.
    pub(crate) fn apid_server(
        &self,
        host: &str,
        names: Vec<Name>,
        now: Timestamp,
    ) -> Result<Issued, Error> {
        let request = server_request(host, Vec::new(), names, false, DAY);
        self.talos
            .issue(&request, now)
            .map_err(|source| failed(host, source))
    }

    /// The certificate that a kube-apiserver presents.
    pub(crate) fn kube_server(&self, names: Vec<Name>, now: Timestamp) -> Result<Issued, Error> {
        let organizations = vec!["kube-master".to_owned()];
        let request = server_request("kube-apiserver", organizations, names, true, YEAR);
        self.kubernetes
            .issue(&request, now)
            .map_err(|source| failed("kube-apiserver", source))
    }

    /// A client certificate for kube-apiserver.
    pub(crate) fn kube_client(
        &self,
        common_name: &str,
        organization: &str,
        now: Timestamp,
    ) -> Result<Issued, Error> {
        let request = LeafRequest {
            common_name: Some(common_name.to_owned()),
            organizations: vec![organization.to_owned()],
            names: Vec::new(),
            usage: LeafUsage {
                key_encipherment: true,
                server: false,
                client: true,
            },
            lifetime: YEAR,
            backdate: SignedDuration::from_secs(10),
        };
        self.kubernetes
            .issue(&request, now)
            .map_err(|source| failed(common_name, source))
    }
}

fn server_request(
    common_name: &str,
    organizations: Vec<String>,
    names: Vec<Name>,
    key_encipherment: bool,
    lifetime: SignedDuration,
) -> LeafRequest {
    LeafRequest {
        common_name: Some(common_name.to_owned()),
        organizations,
        names,
        usage: LeafUsage {
            key_encipherment,
            server: true,
            client: false,
        },
        lifetime,
        backdate: SignedDuration::ZERO,
    }
}

fn failed(owner: &str, source: talos_pki::Error) -> Error {
    Error::Certificate {
        owner: owner.to_owned(),
        source,
    }
}
