//! The certificates of apid and trustd of one node, the resources that show them, and what re-issues them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::SignedDuration;
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use serde_json::{Value, json};
use talos_pki::{Authority, AuthorityKind, Issued, Name, PrivateKey};

use crate::apid::tls::{self, Pool};
use crate::config::Documents;
use crate::error::Error;
use crate::faults::{Behavior, Reach};
use crate::node::NodeState;
use crate::options::{Options, TalosVersion};
use crate::pki::{self, DAY, failed};
use crate::servers::Server;
use crate::shared::Shared;
use crate::store::Draft;
use crate::trust::{Trust, authority_spec};

/// Namespace of everything in here.
const SECRETS: &str = "secrets";
/// Type of the names that certificates have to cover.
const CERT_SANS: &str = "CertSANs.secrets.talos.dev";
/// How often a worker asks for a certificate before it gives up.
const ATTEMPTS: usize = 500;

/// What a node's apid and trustd present, and whom apid accepts.
#[derive(Debug)]
pub(crate) struct Certificates {
    trust: RwLock<Arc<Trust>>,
    apid: tls::Identity,
    issued: Mutex<Arc<Issued>>,
    /// What apid shows to the apid of another node; control planes only.
    client: Mutex<Option<Arc<Issued>>>,
    /// What trustd presents; control planes only.
    trustd: Mutex<Option<Arc<Issued>>>,
    pool: Arc<Pool>,
    maintenance: OnceLock<Maintenance>,
}

/// The throw-away certificate of maintenance mode.
#[derive(Clone, Debug)]
struct Maintenance {
    authority: Authority,
    identity: Arc<CertifiedKey>,
    /// What `--cert-fingerprint` takes.
    fingerprint: String,
}

impl Certificates {
    pub(crate) fn new(
        trust: Arc<Trust>,
        issued: Issued,
        clock_offset: SignedDuration,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, rustls::Error> {
        let pool = Pool::new(&trust.talos.all(), clock_offset.as_secs(), true, provider)?;
        Ok(Self {
            trust: RwLock::new(trust),
            apid: tls::Identity::new(&issued, &[])?,
            issued: Mutex::new(Arc::new(issued)),
            client: Mutex::default(),
            trustd: Mutex::default(),
            pool: Arc::new(pool),
            maintenance: OnceLock::new(),
        })
    }

    /// Whose clients apid accepts.
    pub(crate) fn clients(&self) -> Arc<Pool> {
        self.pool.clone()
    }
}

impl NodeState {
    /// The authorities that the machine works with.
    pub(crate) fn trust(&self) -> Arc<Trust> {
        let trust = self.certificates.trust.read();
        trust.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the authorities from a configuration that becomes active.
    pub(crate) fn adopt(&self, config: &Documents) {
        let new = Arc::new(Trust::read(config, &self.trust()));
        // A pool that cannot be built leaves the old one, as a failing controller would.
        let _kept = self.certificates.pool.replace(&new.talos.all());
        let mut trust = self
            .certificates
            .trust
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *trust = new;
    }

    /// What apid presents when nothing is wrong with it.
    pub(crate) fn apid_identity(&self, shared: &Shared) -> Result<Arc<CertifiedKey>, Error> {
        if self.configs.in_maintenance() {
            return Ok(self.maintenance(shared)?.identity);
        }
        Ok(self.certificates.apid.current())
    }

    /// What trustd presents when nothing is wrong with it.
    pub(crate) fn trustd_certificate(&self) -> Option<Arc<Issued>> {
        lock(&self.certificates.trustd).clone()
    }

    /// Whether apid of this machine and that of a target accept each other, so that calls can be handed on.
    pub(crate) fn check_peer(&self, target: &Self) -> Result<(), &'static str> {
        let server = lock(&target.certificates.issued).clone();
        if !self.trust().talos.accepts(&server.certificate) {
            return Err(
                "transport: authentication handshake failed: tls: failed to verify certificate: \
                x509: certificate signed by unknown authority",
            );
        }
        let client = lock(&self.certificates.client).clone();
        let known = client.is_none_or(|client| target.trust().talos.accepts(&client.certificate));
        match known {
            true => Ok(()),
            false => Err("error reading server preface: remote error: tls: bad certificate"),
        }
    }

    /// `machine.certSANs` of the active configuration.
    pub(crate) fn cert_sans(&self) -> Vec<String> {
        self.documents()
            .map(|config| config.machine_cert_sans())
            .unwrap_or_default()
    }

    /// The names and addresses that the certificates of apid and trustd have to cover.
    pub(crate) fn apid_names(&self, options: &Options) -> Vec<Name> {
        apid_names(
            options.talos_version,
            &self.name,
            self.address,
            &self.cert_sans(),
        )
    }

    /// What `--cert-fingerprint` takes for this machine.
    pub(crate) fn maintenance_fingerprint(&self, shared: &Shared) -> Option<String> {
        Some(self.maintenance(shared).ok()?.fingerprint)
    }

    /// The throw-away certificate of maintenance mode.
    fn maintenance(&self, shared: &Shared) -> Result<Maintenance, Error> {
        if let Some(made) = self.certificates.maintenance.get() {
            return Ok(made.clone());
        }
        let failed = |source| failed(&self.name, source);
        let now = self.now(shared);
        let organization = AuthorityKind::Talos.organization();
        let algorithm = AuthorityKind::Talos.algorithm();
        let authority =
            Authority::generate_with(algorithm, organization, DAY, now).map_err(failed)?;
        let names = maintenance_names(self);
        let request = pki::apid_server("maintenance-service.talos.dev", names);
        let issued = authority.issue(&request, now).map_err(failed)?;
        let identity = tls::certified(&issued, &[]).map_err(|source| Error::Tls {
            owner: self.name.clone(),
            source,
        })?;
        let made = Maintenance {
            authority,
            identity,
            fingerprint: STANDARD.encode(issued.certificate.spki_sha256()),
        };
        let made = self.certificates.maintenance.get_or_init(|| made);
        Ok(made.clone())
    }
}

/// Issues the certificates of a node's apid and trustd for its active configuration, and writes the resources.
pub(crate) fn issue(shared: &Shared, node: &NodeState) -> Result<(), Error> {
    let names = node.apid_names(&shared.options);
    let trust = node.trust();
    let issued = match &trust.talos.signer {
        Some(signer) => signer
            .issue(&pki::apid_server(&node.name, names), node.now(shared))
            .map_err(|source| failed(&node.name, source))?,
        None => ask_trustd(shared, node, &names)?,
    };
    let tls_failed = |source| Error::Tls {
        owner: node.name.clone(),
        source,
    };
    let certificates = &node.certificates;
    certificates
        .apid
        .replace(&issued, &[])
        .map_err(tls_failed)?;
    *lock(&certificates.issued) = Arc::new(issued);
    write_certificates(shared, node, &node.cert_sans())
}

/// Has a worker's certificate signed by the first control plane whose trustd answers and is trusted.
fn ask_trustd(shared: &Shared, node: &NodeState, names: &[Name]) -> Result<Issued, Error> {
    let trust = node.trust();
    let answers = |control_plane: &&Arc<NodeState>| {
        control_plane.faults.reach() == Reach::Up
            && control_plane.faults.behavior(Server::Trustd) == Behavior::Normal
            && control_plane.trust().token == trust.token
            && control_plane
                .trustd_certificate()
                .is_some_and(|server| trust.talos.accepts(&server.certificate))
    };
    let found = shared.control_planes().find(answers);
    let no_trustd = || Error::NoTrustd {
        node: node.name.clone(),
    };
    let found = found.ok_or_else(no_trustd)?;
    let theirs = found.trust();
    let signer = theirs.talos.signer.as_ref().ok_or_else(no_trustd)?;
    let failed = |source| failed(&node.name, source);
    let key = PrivateKey::generate(AuthorityKind::Talos.algorithm()).map_err(failed)?;
    let mut request = pki::apid_server(&node.name, names.to_vec());
    request.organizations.clear();
    let certificate = signer
        .sign_leaf(&request, key.public_key_info(), found.now(shared))
        .map_err(failed)?;
    Ok(Issued { certificate, key })
}

/// What apid's certificate covers on a node of this name and address.
pub(crate) fn apid_names(
    version: TalosVersion,
    host: &str,
    address: IpAddr,
    configured: &[String],
) -> Vec<Name> {
    let mut names: BTreeSet<Name> = configured.iter().filter_map(|name| parse(name)).collect();
    names.insert(Name::Ip(address));
    names.insert(Name::Dns(host.to_owned()));
    if version >= TalosVersion::V1_13_9 {
        names.insert(Name::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    }
    names.into_iter().collect()
}

/// Reacts to a changed configuration: new roots and names are written, and certificates issued twice for
/// them, as a real machine does (facts/real-upgrade.md §4).
pub(crate) fn config_applied(shared: &Arc<Shared>, node: &Arc<NodeState>, new: &Documents) {
    node.adopt(new);
    let configured = new.machine_cert_sans();
    let other_roots = write_roots(shared, node, &configured);
    let other_names = write_names(shared, node, &configured);
    if !other_roots && !other_names {
        return;
    }
    let (shared, node) = (shared.clone(), node.clone());
    let active = node.configs.active_config();
    shared.clone().spawn(async move {
        let mut left = 2;
        for _ in 0..ATTEMPTS {
            tokio::time::sleep(shared.options.delays.certificate).await;
            let now_active = node.configs.active_config();
            let superseded = match (&active, &now_active) {
                (Some(then), Some(now)) => !Arc::ptr_eq(then, now),
                _ => true,
            };
            // What follows issues for itself; a worker without a trustd that it trusts tries again.
            if issue(&shared, &node).is_ok() {
                left -= 1;
            }
            if left == 0 || superseded {
                return;
            }
        }
    });
}

/// Writes `OSRootSecrets`; tells whether that changed anything.
pub(crate) fn write_roots(shared: &Shared, node: &NodeState, configured: &[String]) -> bool {
    let trust = node.trust();
    let names = configured.iter().filter_map(|name| parse(name));
    let (mut addresses, mut dns) = (Vec::new(), Vec::new());
    for name in names {
        match name {
            Name::Ip(address) => addresses.push(address.to_string()),
            Name::Dns(name) => dns.push(name),
        }
    }
    let spec = json!({
        "issuingCA": trust.talos.issuing_spec(),
        "acceptedCAs": trust.talos.accepted_spec(),
        "certSANIPs": addresses,
        "certSANDNSNames": dns,
        "token": trust.token,
    });
    let kind = "OSRootSecrets.secrets.talos.dev";
    changes(shared, node, kind, "os", "secrets.RootOSController", spec)
}

/// Writes `CertSANs/api`; tells whether that changed anything.
pub(crate) fn write_names(shared: &Shared, node: &NodeState, configured: &[String]) -> bool {
    let version = shared.options.talos_version;
    let names = apid_names(version, &node.name, node.address, configured);
    let spec = names_spec(&names, &node.name);
    let owner = "secrets.APICertSANsController";
    changes(shared, node, CERT_SANS, "api", owner, spec)
}

/// Writes what a machine keeps of maintenance mode: its throw-away authority and the names for it.
pub(crate) fn write_maintenance(shared: &Shared, node: &NodeState) -> Result<(), Error> {
    let made = node.maintenance(shared)?;
    let spec = json!({ "ca": authority_spec(&made.authority) });
    let kind = "MaintenanceRootSecrets.secrets.talos.dev";
    let owner = "secrets.MaintenanceRootController";
    changes(shared, node, kind, "maintenance", owner, spec);
    let spec = names_spec(&maintenance_names(node), "maintenance-service.talos.dev");
    let owner = "secrets.MaintenanceCertSANsController";
    changes(shared, node, CERT_SANS, "maintenance", owner, spec);
    Ok(())
}

fn maintenance_names(node: &NodeState) -> Vec<Name> {
    vec![
        Name::Dns(node.name.clone()),
        Name::Ip(node.address),
        Name::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        Name::Ip(IpAddr::V6(Ipv6Addr::LOCALHOST)),
    ]
}

/// The spec of a `CertSANs` resource.
pub(crate) fn names_spec(names: &[Name], fqdn: &str) -> Value {
    let mut addresses = BTreeSet::new();
    let mut dns = BTreeSet::new();
    for name in names {
        match name {
            Name::Ip(address) => _ = addresses.insert(*address),
            Name::Dns(name) => _ = dns.insert(name.trim_end_matches('.').to_owned()),
        }
    }
    let addresses: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    json!({ "ips": addresses, "dnsNames": dns, "fqdn": fqdn })
}

/// Writes the resources that hold what apid and trustd present; what depends on apid's is made anew.
pub(crate) fn write_certificates(
    shared: &Shared,
    node: &NodeState,
    configured: &[String],
) -> Result<(), Error> {
    let now = node.now(shared);
    let server = lock(&node.certificates.issued).clone();
    let trust = node.trust();
    let accepted = trust.talos.accepted_spec();
    let mut spec = json!({ "acceptedCAs": accepted });
    spec["client"] = match &trust.talos.signer {
        Some(signer) => {
            let roles = ["os:impersonator"];
            let client = pki::talos_client(signer, Some(&node.name), &roles, DAY, now)?;
            let written = pair(&client);
            *lock(&node.certificates.client) = Some(Arc::new(client));
            written
        }
        None => Value::Null,
    };
    spec["server"] = pair(&server);
    spec["skipVerifyingClientCert"] = json!(false);
    let kind = "ApiCertificates.secrets.talos.dev";
    changes(shared, node, kind, "api", "secrets.APIController", spec);
    if let Some(signer) = &trust.talos.signer {
        let version = shared.options.talos_version;
        let names = apid_names(version, &node.name, node.address, configured);
        let request = pki::trustd_server(&node.name, names);
        let server = signer
            .issue(&request, now)
            .map_err(|source| failed(&node.name, source))?;
        let spec = json!({ "acceptedCAs": accepted, "server": pair(&server) });
        *lock(&node.certificates.trustd) = Some(Arc::new(server));
        let kind = "TrustdCertificates.secrets.talos.dev";
        changes(
            shared,
            node,
            kind,
            "trustd",
            "secrets.TrustdController",
            spec,
        );
    }
    Ok(())
}

/// Writes a secret; tells whether that changed anything.
pub(crate) fn changes(
    shared: &Shared,
    node: &NodeState,
    kind: &str,
    id: &str,
    owner: &str,
    spec: Value,
) -> bool {
    let before = node.store.get(SECRETS, kind, id);
    let draft = Draft::new(SECRETS, kind, id, owner, spec);
    let after = node.store.put(draft, node.now(shared));
    before.is_none_or(|before| before.metadata.version != after.metadata.version)
}

/// A certificate and its key as resources and configurations hold them.
pub(crate) fn pair(issued: &Issued) -> Value {
    json!({
        "crt": STANDARD.encode(issued.certificate.pem()),
        "key": STANDARD.encode(issued.key.pem().as_bytes()),
    })
}

/// Reads a name as `certSANs` hold it.
pub(crate) fn parse(text: &str) -> Option<Name> {
    text.parse().ok()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
