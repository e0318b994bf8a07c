//! What each server of a node presents, and whose clients it accepts.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use jiff::SignedDuration;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::CertifiedKey;
use serde_json::json;
use talos_pki::{
    Algorithm, Authority, AuthorityKind, Certificate, Issued, LeafRequest, LeafUsage, Name,
    PrivateKey,
};

use super::Server;
use crate::apid::tls::{self, Pool, provider};
use crate::certificates::{changes, pair};
use crate::error::Error;
use crate::faults::{Served, ServedCertificate};
use crate::kubernetes::{Gate, User};
use crate::node::NodeState;
use crate::options::TalosVersion;
use crate::pki::{self, DAY, YEAR, failed};
use crate::shared::Shared;
use crate::trust::authority_spec;

/// What the servers of a node present, besides apid, trustd and kube-apiserver.
#[derive(Debug, Default)]
pub(crate) struct Identities {
    running: Mutex<BTreeSet<Server>>,
    /// With whether the cluster's authority signed it.
    kubelet: Mutex<Option<(bool, Arc<CertifiedKey>)>>,
    etcd: Mutex<Option<Arc<Etcd>>>,
    /// Whose clients kube-apiserver and the kubelet accept.
    gate: OnceLock<Arc<Gate>>,
}

/// The certificates of etcd on one node.
#[derive(Debug)]
struct Etcd {
    server: Issued,
    peer: Issued,
}

/// The keys of certificates that kubelets make themselves; all share them, since RSA keys take long to make.
static KUBELET_KEYS: LazyLock<Result<[PrivateKey; 2], talos_pki::Error>> = LazyLock::new(|| {
    let key = || PrivateKey::generate(Algorithm::Rsa(2048));
    Ok([key()?, key()?])
});

impl Identities {
    /// Notes that a server runs from now on; tells whether it did not before.
    pub(crate) fn begin(&self, server: Server) -> bool {
        lock(&self.running).insert(server)
    }
}

impl NodeState {
    /// What a server presents to the next client.
    pub(crate) fn presented(&self, shared: &Shared, server: Server) -> Option<Arc<CertifiedKey>> {
        match self.faults.served(server) {
            Served::Given(given) => Some(given),
            Served::Made(ServedCertificate::Own) => self.own(shared, server).ok()?,
            Served::Made(wrong) => self.wrong(shared, server, wrong).ok()?,
        }
    }

    fn own(&self, shared: &Shared, server: Server) -> Result<Option<Arc<CertifiedKey>>, Error> {
        let present = |issued: &Issued| {
            let certified = tls::certified(issued, &[]);
            certified
                .map(Some)
                .map_err(|source| self.tls_failed(source))
        };
        let etcd = || lock(&self.identities.etcd).clone();
        match server {
            Server::Apid => self.apid_identity(shared).map(Some),
            Server::Trustd => match self.trustd_certificate() {
                Some(issued) => present(&issued),
                None => Ok(None),
            },
            Server::KubeApiServer => Ok(shared.kubernetes.presented(self.index)),
            Server::Kubelet => self.kubelet(shared).map(Some),
            Server::EtcdClient => etcd().map_or(Ok(None), |etcd| present(&etcd.server)),
            Server::EtcdPeer => etcd().map_or(Ok(None), |etcd| present(&etcd.peer)),
            Server::KubePrism => Ok(None),
        }
    }

    /// A certificate with something wrong.
    fn wrong(
        &self,
        shared: &Shared,
        server: Server,
        kind: ServedCertificate,
    ) -> Result<Option<Arc<CertifiedKey>>, Error> {
        let Some((mut request, mut authority)) = self.right(shared, server) else {
            return Ok(None);
        };
        let mut now = self.now(shared);
        match kind {
            ServedCertificate::Own => {}
            ServedCertificate::Expired => now -= request.lifetime + DAY,
            ServedCertificate::NotYetValid => now += DAY,
            ServedCertificate::OtherNames => {
                request.names = vec![Name::Dns("elsewhere.example.com".to_owned())];
            }
            ServedCertificate::CommonNameOnly => {
                request.common_name = Some(self.name.clone());
                request.names.clear();
            }
            ServedCertificate::ClientOnly => {
                request.usage = LeafUsage {
                    client: true,
                    server: false,
                    ..request.usage
                };
            }
            ServedCertificate::ForeignAuthority => {
                let kind = match server {
                    Server::Apid | Server::Trustd => AuthorityKind::Talos,
                    Server::EtcdClient | Server::EtcdPeer => AuthorityKind::Etcd,
                    _ => AuthorityKind::Kubernetes,
                };
                authority =
                    Authority::generate(kind, now).map_err(|source| failed(&self.name, source))?;
            }
            ServedCertificate::OtherAuthority => {
                let trust = shared.signing_trust(self);
                let other = match server {
                    Server::KubeApiServer | Server::Kubelet => &trust.talos,
                    _ => &trust.kubernetes,
                };
                authority = other.signer.clone().unwrap_or(authority);
            }
        }
        let issued = authority
            .issue(&request, now)
            .map_err(|source| failed(&self.name, source))?;
        let certified = tls::certified(&issued, &[]).map_err(|source| self.tls_failed(source))?;
        Ok(Some(certified))
    }

    /// What a server's certificate should say, and who should issue it.
    fn right(&self, shared: &Shared, server: Server) -> Option<(LeafRequest, Authority)> {
        let trust = shared.signing_trust(self);
        let names = || self.apid_names(&shared.options);
        let (request, authority) = match server {
            Server::Apid => (
                pki::apid_server(&self.name, names()),
                trust.talos.signer.clone(),
            ),
            Server::Trustd => (
                pki::trustd_server(&self.name, names()),
                trust.talos.signer.clone(),
            ),
            Server::KubeApiServer => {
                let names = shared.kubernetes.covered(self.index);
                (pki::kube_server(names), trust.kubernetes.signer.clone())
            }
            Server::Kubelet => {
                let request = pki::kubelet_server(&self.name, self.address);
                (request, trust.kubernetes.signer.clone())
            }
            Server::EtcdClient => (self.etcd_server(), trust.etcd.clone()),
            Server::EtcdPeer => (self.etcd_peer(), trust.etcd.clone()),
            Server::KubePrism => return None,
        };
        Some((request, authority?))
    }

    fn etcd_server(&self) -> LeafRequest {
        let names = vec![
            Name::Dns(self.name.clone()),
            Name::Dns("localhost".to_owned()),
            Name::Ip(self.address),
            Name::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            Name::Ip(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        ];
        pki::etcd_server(&self.name, names)
    }

    fn etcd_peer(&self) -> LeafRequest {
        let names = vec![Name::Dns(self.name.clone()), Name::Ip(self.address)];
        pki::etcd_server(&self.name, names)
    }

    /// What the kubelet presents: a certificate of its own making, or one of the cluster's authority if the
    /// configuration asks for it.
    fn kubelet(&self, shared: &Shared) -> Result<Arc<CertifiedKey>, Error> {
        let rotates = self
            .documents()
            .is_some_and(|config| config.rotates_kubelet_server_certificate());
        if let Some((signed, made)) = &*lock(&self.identities.kubelet)
            && *signed == rotates
        {
            return Ok(made.clone());
        }
        let (issued, chain) = match rotates {
            true => self.kubelet_signed(shared)?,
            false => self.kubelet_self_signed(shared)?,
        };
        let certified =
            tls::certified(&issued, &chain).map_err(|source| self.tls_failed(source))?;
        *lock(&self.identities.kubelet) = Some((rotates, certified.clone()));
        Ok(certified)
    }

    fn kubelet_signed(&self, shared: &Shared) -> Result<(Issued, Vec<Certificate>), Error> {
        let trust = shared.signing_trust(self);
        let no_authority = || Error::NoTrustd {
            node: self.name.clone(),
        };
        let signer = trust.kubernetes.signer.as_ref().ok_or_else(no_authority)?;
        let request = pki::kubelet_server(&self.name, self.address);
        let issued = signer.issue(&request, self.now(shared));
        let issued = issued.map_err(|source| failed(&self.name, source))?;
        Ok((issued, Vec::new()))
    }

    /// As the kubelet makes it when it finds no certificate: valid for a year from an hour ago, with its own authority.
    fn kubelet_self_signed(&self, shared: &Shared) -> Result<(Issued, Vec<Certificate>), Error> {
        let made = || {
            let [ca_key, key] = KUBELET_KEYS
                .as_ref()
                .map_err(|_| talos_pki::Error::Crypto {
                    what: "make the key of a kubelet",
                })?;
            let now = self.now(shared);
            let start = now - SignedDuration::from_hours(1);
            let stamp = now.as_second();
            let name = format!("{}-ca@{stamp}", self.name);
            let authority = Authority::self_signed(ca_key.clone(), &name, YEAR, start)?;
            let request = LeafRequest {
                common_name: Some(format!("{}@{stamp}", self.name)),
                names: vec![Name::Dns(self.name.clone())],
                ..pki::kubelet_server(&self.name, self.address)
            };
            let request = LeafRequest {
                organizations: Vec::new(),
                ..request
            };
            let certificate = authority.sign_leaf(&request, key.public_key_info(), start)?;
            let issued = Issued {
                certificate,
                key: key.clone(),
            };
            Ok((issued, vec![authority.certificate().clone()]))
        };
        made().map_err(|source| failed(&self.name, source))
    }

    /// Whose clients kube-apiserver and the kubelet accept.
    pub(crate) fn kubernetes_gate(&self) -> Option<Arc<Gate>> {
        if let Some(gate) = self.identities.gate.get() {
            return Some(gate.clone());
        }
        let gate = Gate::new(&self.trust().kubernetes.all(), &provider()).ok()?;
        Some(self.identities.gate.get_or_init(|| Arc::new(gate)).clone())
    }

    /// Lets kube-apiserver and the kubelet accept the clients of the authorities that are configured now.
    pub(crate) fn reopen_kubernetes_gate(&self) {
        if let Some(gate) = self.kubernetes_gate() {
            // Authorities that cannot be used leave the old ones.
            let _kept = gate.replace(&self.trust().kubernetes.all(), &provider());
        }
    }

    /// Who a client of Kubernetes is, if an accepted authority vouches for it.
    pub(crate) fn kubernetes_user(
        &self,
        shared: &Shared,
        chain: &[CertificateDer<'_>],
    ) -> Option<User> {
        self.kubernetes_gate()?.user(chain, self.now(shared))
    }

    /// Whose clients etcd accepts.
    pub(crate) fn etcd_clients(
        &self,
        shared: &Shared,
        provider: &Arc<CryptoProvider>,
    ) -> Option<Arc<dyn ClientCertVerifier>> {
        let trust = self.trust();
        let accepted = [trust.etcd.as_ref()?.certificate().clone()];
        let offset = self.now(shared).as_second() - jiff::Timestamp::now().as_second();
        let pool = Pool::new(&accepted, offset, false, provider).ok()?;
        Some(Arc::new(pool))
    }

    fn tls_failed(&self, source: rustls::Error) -> Error {
        Error::Tls {
            owner: self.name.clone(),
            source,
        }
    }
}

/// Issues the certificates of etcd on a control plane, and writes the resources that hold them.
pub(crate) fn issue_etcd(shared: &Shared, node: &NodeState) -> Result<(), Error> {
    let trust = node.trust();
    let Some(authority) = &trust.etcd else {
        return Ok(());
    };
    let spec = json!({ "etcdCA": authority_spec(authority) });
    let kind = "EtcdRootSecrets.secrets.talos.dev";
    let other_root = changes(
        shared,
        node,
        kind,
        "etcd",
        "secrets.RootEtcdController",
        spec,
    );
    if !other_root && lock(&node.identities.etcd).is_some() {
        return Ok(());
    }
    let issue = |request: &LeafRequest| {
        let issued = authority.issue(request, node.now(shared));
        issued.map_err(|source| failed(&node.name, source))
    };
    let etcd = Etcd {
        server: issue(&node.etcd_server())?,
        peer: issue(&node.etcd_peer())?,
    };
    let spec = json!({
        "etcd": pair(&etcd.server),
        "etcdPeer": pair(&etcd.peer),
        "etcdAdmin": pair(&issue(&pki::etcd_client("talos"))?),
        "etcdAPIServer": pair(&issue(&pki::etcd_client("kube-apiserver"))?),
    });
    *lock(&node.identities.etcd) = Some(Arc::new(etcd));
    let kind = "EtcdSecrets.secrets.talos.dev";
    changes(shared, node, kind, "etcd", "secrets.EtcdController", spec);
    Ok(())
}

/// What follows kube-apiserver's leaf: since Talos 1.14 the file holds the authority too.
pub(crate) fn kube_chain(shared: &Shared, node: &NodeState) -> Vec<Certificate> {
    let trust = node.trust();
    let full = shared.options.talos_version >= TalosVersion::V1_14;
    let signer = trust.kubernetes.signer.as_ref().filter(|_| full);
    let chain = signer.map(|signer| signer.certificate().clone());
    chain.into_iter().collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
