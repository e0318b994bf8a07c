//! The certificates of one node, the resources that show them, and what re-issues them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::SignedDuration;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use serde_json::{Value, json};
use talos_pki::{Authority, AuthorityKind, Certificate, Issued, LeafRequest, LeafUsage, Name};

use crate::apid::tls::{self, Pool};
use crate::config::{self, Documents};
use crate::error::Error;
use crate::faults::ServedCertificate;
use crate::node::NodeState;
use crate::options::{Options, TalosVersion};
use crate::shared::Shared;
use crate::store::Draft;

/// Namespace of everything in here.
const SECRETS: &str = "secrets";
/// Lifetime of what apid presents.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// What a node presents, and whom it accepts.
#[derive(Debug)]
pub(crate) struct Certificates {
    apid: tls::Identity,
    issued: Mutex<Arc<Issued>>,
    pool: Arc<Pool>,
    maintenance: OnceLock<(Arc<CertifiedKey>, String)>,
    provider: Arc<CryptoProvider>,
}

impl Certificates {
    pub(crate) fn new(
        issued: Issued,
        accepted: &[Certificate],
        clock_offset: SignedDuration,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, rustls::Error> {
        let pool = Pool::new(accepted, clock_offset.as_secs(), provider)?;
        Ok(Self {
            apid: tls::Identity::new(&issued)?,
            issued: Mutex::new(Arc::new(issued)),
            pool: Arc::new(pool),
            maintenance: OnceLock::new(),
            provider: provider.clone(),
        })
    }
}

impl NodeState {
    /// How the next connection to apid is secured.
    pub(crate) fn tls_config(
        &self,
        shared: &Shared,
        in_maintenance: bool,
    ) -> Result<ServerConfig, Error> {
        let tls_failed = |source| Error::Tls {
            owner: self.name.clone(),
            source,
        };
        let certificates = &self.certificates;
        let pool = (!in_maintenance).then(|| certificates.pool.clone());
        let identity = match self.faults.served() {
            ServedCertificate::Own if in_maintenance => self.maintenance_identity(shared)?.0,
            ServedCertificate::Own => certificates.apid.current(),
            wrong => tls::certified(&self.wrong_certificate(shared, wrong)?).map_err(tls_failed)?,
        };
        tls::server_config(identity, pool, &certificates.provider).map_err(tls_failed)
    }

    /// `machine.certSANs` of the active configuration.
    pub(crate) fn cert_sans(&self) -> Vec<String> {
        self.documents()
            .map(|config| config.machine_cert_sans())
            .unwrap_or_default()
    }

    /// The names and addresses that apid's certificate has to cover.
    fn apid_names(&self, options: &Options) -> Vec<Name> {
        apid_names(
            options.talos_version,
            &self.name,
            self.address,
            &self.cert_sans(),
        )
    }

    /// What `--cert-fingerprint` takes for this machine.
    pub(crate) fn maintenance_fingerprint(&self, shared: &Shared) -> Option<String> {
        Some(self.maintenance_identity(shared).ok()?.1)
    }

    /// The throw-away certificate of maintenance mode, and the fingerprint of its public key.
    fn maintenance_identity(&self, shared: &Shared) -> Result<(Arc<CertifiedKey>, String), Error> {
        if let Some(identity) = self.certificates.maintenance.get() {
            return Ok(identity.clone());
        }
        let failed = |source| Error::Certificate {
            owner: self.name.clone(),
            source,
        };
        let now = shared.now();
        let authority = Authority::generate(AuthorityKind::Talos, now).map_err(failed)?;
        let names = vec![
            Name::Dns(self.name.clone()),
            Name::Ip(self.address),
            Name::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            Name::Ip(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        ];
        let request = server_request("maintenance-service.talos.dev", names);
        let issued = authority.issue(&request, now).map_err(failed)?;
        let tls_failed = |source| Error::Tls {
            owner: self.name.clone(),
            source,
        };
        let fingerprint = STANDARD.encode(issued.certificate.spki_sha256());
        let identity = (tls::certified(&issued).map_err(tls_failed)?, fingerprint);
        Ok(self
            .certificates
            .maintenance
            .get_or_init(|| identity)
            .clone())
    }

    fn wrong_certificate(&self, shared: &Shared, kind: ServedCertificate) -> Result<Issued, Error> {
        let failed = |source| Error::Certificate {
            owner: self.name.clone(),
            source,
        };
        let names = self.apid_names(&shared.options);
        let mut request = server_request(&self.name, names);
        let mut now = shared.now();
        match kind {
            ServedCertificate::Own => {}
            ServedCertificate::Expired => now -= DAY * 2,
            ServedCertificate::OtherNames => {
                request.names = vec![Name::Dns("elsewhere.example.com".to_owned())];
            }
            ServedCertificate::ForeignAuthority => {
                let foreign = Authority::generate(AuthorityKind::Talos, now).map_err(failed)?;
                return foreign.issue(&request, now).map_err(failed);
            }
        }
        shared.pki.talos.issue(&request, now).map_err(failed)
    }
}

/// Issues a node's apid certificate for its active configuration, and writes the resources.
pub(crate) fn issue(shared: &Shared, node: &NodeState) -> Result<(), Error> {
    let names = node.apid_names(&shared.options);
    let issued = shared.pki.apid_server(&node.name, names, shared.now())?;
    let tls_failed = |source| Error::Tls {
        owner: node.name.clone(),
        source,
    };
    node.certificates
        .apid
        .replace(&issued)
        .map_err(tls_failed)?;
    *node
        .certificates
        .issued
        .lock()
        .unwrap_or_else(PoisonError::into_inner) = Arc::new(issued);
    write_certificates(shared, node)
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

/// Reacts to a changed configuration: new names are written, and certificates issued twice for
/// them, as a real machine does (facts/real-upgrade.md §4).
pub(crate) fn config_applied(shared: &Arc<Shared>, node: &Arc<NodeState>, new: &Documents) {
    // A pool that cannot be built leaves the old one, as a failing controller would.
    let _kept = node
        .certificates
        .pool
        .replace(&accepted_authorities(shared, new));
    if !write_names(shared, node, &new.machine_cert_sans()) {
        return;
    }
    let (shared, node) = (shared.clone(), node.clone());
    shared.clone().spawn(async move {
        for _ in 0..2 {
            tokio::time::sleep(shared.options.delays.certificate).await;
            // Issuing for parsed names fails only if the random source does.
            let _issued = issue(&shared, &node);
        }
    });
}

/// Writes `CertSANs/api`; tells whether that changed anything.
pub(crate) fn write_names(shared: &Shared, node: &NodeState, configured: &[String]) -> bool {
    let version = shared.options.talos_version;
    let names = apid_names(version, &node.name, node.address, configured);
    let spec = names_spec(&names, &node.name);
    let kind = "CertSANs.secrets.talos.dev";
    let before = node
        .store
        .get(SECRETS, kind, "api")
        .map(|resource| resource.metadata.version);
    let draft = Draft::new(SECRETS, kind, "api", "secrets.APICertSANsController", spec);
    Some(node.store.put(draft, shared.now()).metadata.version) != before
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

/// Writes the resources that hold what apid and trustd present.
pub(crate) fn write_certificates(shared: &Shared, node: &NodeState) -> Result<(), Error> {
    let now = shared.now();
    let server = node
        .certificates
        .issued
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let accepted = json!([{ "crt": STANDARD.encode(shared.pki.talos.certificate().pem()) }]);
    let mut spec = json!({ "acceptedCAs": accepted });
    if node.is_control_plane() {
        spec["client"] = pair(&shared.pki.talos_client(&["os:impersonator"], DAY, now)?);
    }
    spec["server"] = pair(&server);
    spec["skipVerifyingClientCert"] = json!(false);
    let kind = "ApiCertificates.secrets.talos.dev";
    node.store.put(
        Draft::new(SECRETS, kind, "api", "secrets.APIController", spec),
        now,
    );
    if node.is_control_plane() {
        let spec = json!({ "acceptedCAs": accepted, "server": pair(&server) });
        let kind = "TrustdCertificates.secrets.talos.dev";
        let draft = Draft::new(SECRETS, kind, "trustd", "secrets.TrustdController", spec);
        node.store.put(draft, now);
    }
    Ok(())
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

/// The cluster's authority and those that a configuration accepts besides.
fn accepted_authorities(shared: &Shared, config: &Documents) -> Vec<Certificate> {
    let mut accepted = vec![shared.pki.talos.certificate().clone()];
    accepted.extend(config::accepted(config));
    accepted
}

fn server_request(common_name: &str, names: Vec<Name>) -> LeafRequest {
    LeafRequest {
        common_name: Some(common_name.to_owned()),
        organizations: Vec::new(),
        names,
        usage: LeafUsage {
            key_encipherment: false,
            server: true,
            client: false,
        },
        lifetime: DAY,
        backdate: SignedDuration::ZERO,
    }
}
