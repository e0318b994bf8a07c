//! The authorities of a cluster, and the certificates they issue.

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use talos_pki::{Authority, AuthorityKind, Issued, LeafRequest, LeafUsage, Name};

use crate::error::Error;

/// Lifetime of what apid and trustd present.
pub(crate) const DAY: SignedDuration = SignedDuration::from_hours(24);
/// Lifetime of most other certificates.
pub(crate) const YEAR: SignedDuration = SignedDuration::from_hours(8760);

const CLIENT: LeafUsage = LeafUsage {
    key_encipherment: false,
    server: false,
    client: true,
};
const KUBERNETES_CLIENT: LeafUsage = LeafUsage {
    key_encipherment: true,
    ..CLIENT
};
const KUBERNETES_SERVER: LeafUsage = LeafUsage {
    key_encipherment: true,
    server: true,
    client: false,
};

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
}

/// A client certificate for apid; its organizations are the caller's roles.
pub(crate) fn talos_client(
    authority: &Authority,
    common_name: Option<&str>,
    roles: &[&str],
    lifetime: SignedDuration,
    now: Timestamp,
) -> Result<Issued, Error> {
    let request = LeafRequest {
        common_name: common_name.map(str::to_owned),
        organizations: roles.iter().map(|&role| role.to_owned()).collect(),
        usage: CLIENT,
        lifetime,
        ..LeafRequest::default()
    };
    let issued = authority.issue(&request, now);
    issued.map_err(|source| failed("a client", source))
}

/// What apid's certificate says.
pub(crate) fn apid_server(host: &str, names: Vec<Name>) -> LeafRequest {
    LeafRequest {
        common_name: Some(host.to_owned()),
        names,
        usage: LeafUsage {
            server: true,
            ..LeafUsage::default()
        },
        lifetime: DAY,
        ..LeafRequest::default()
    }
}

/// What trustd's certificate says.
pub(crate) fn trustd_server(host: &str, names: Vec<Name>) -> LeafRequest {
    let mut request = apid_server(host, names);
    request.usage.key_encipherment = true;
    request
}

/// What kube-apiserver's certificate says.
pub(crate) fn kube_server(names: Vec<Name>) -> LeafRequest {
    LeafRequest {
        common_name: Some("kube-apiserver".to_owned()),
        organizations: vec!["kube-master".to_owned()],
        names,
        usage: KUBERNETES_SERVER,
        lifetime: YEAR,
        ..LeafRequest::default()
    }
}

/// What the certificate of a kubelet says that the cluster's authority signed.
pub(crate) fn kubelet_server(host: &str, address: IpAddr) -> LeafRequest {
    LeafRequest {
        common_name: Some(format!("system:node:{host}")),
        organizations: vec!["system:nodes".to_owned()],
        names: vec![Name::Dns(host.to_owned()), Name::Ip(address)],
        usage: KUBERNETES_SERVER,
        lifetime: YEAR,
        ..LeafRequest::default()
    }
}

/// What the certificates of etcd for clients and for peers say.
pub(crate) fn etcd_server(host: &str, names: Vec<Name>) -> LeafRequest {
    LeafRequest {
        common_name: Some(host.to_owned()),
        names,
        usage: LeafUsage {
            client: true,
            ..KUBERNETES_SERVER
        },
        lifetime: Authority::LIFETIME,
        ..LeafRequest::default()
    }
}

/// What the certificate of a client of etcd says.
pub(crate) fn etcd_client(common_name: &str) -> LeafRequest {
    LeafRequest {
        common_name: Some(common_name.to_owned()),
        usage: KUBERNETES_CLIENT,
        lifetime: Authority::LIFETIME,
        ..LeafRequest::default()
    }
}

/// A client certificate for kube-apiserver.
pub(crate) fn kube_client(
    authority: &Authority,
    common_name: &str,
    organization: &str,
    lifetime: SignedDuration,
    now: Timestamp,
) -> Result<Issued, Error> {
    let request = LeafRequest {
        common_name: Some(common_name.to_owned()),
        organizations: vec![organization.to_owned()],
        usage: KUBERNETES_CLIENT,
        lifetime,
        backdate: SignedDuration::from_secs(10),
        ..LeafRequest::default()
    };
    let issued = authority.issue(&request, now);
    issued.map_err(|source| failed(common_name, source))
}

/// The client certificate of the front proxy.
pub(crate) fn front_proxy(authority: &Authority, now: Timestamp) -> Result<Issued, Error> {
    let request = LeafRequest {
        common_name: Some("front-proxy-client".to_owned()),
        usage: KUBERNETES_CLIENT,
        lifetime: YEAR,
        ..LeafRequest::default()
    };
    let issued = authority.issue(&request, now);
    issued.map_err(|source| failed("front-proxy-client", source))
}

/// A failure to make somebody's certificate.
pub(crate) fn failed(owner: &str, source: talos_pki::Error) -> Error {
    Error::Certificate {
        owner: owner.to_owned(),
        source,
    }
}
