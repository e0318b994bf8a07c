//! What the nodes of a cluster hold before anything happens.

use std::sync::Arc;

use crate::certificates;
use crate::config::ConfigText;
use crate::cosi::{MACHINE_CONFIGS, Machine, Seeds, Site, machine_config};
use crate::error::Error;
use crate::kubernetes;
use crate::machine;
use crate::node::NodeState;
use crate::servers;
use crate::shared::Shared;

/// Types whose resources follow from what the simulator makes itself, not from recordings.
const OWN_TYPES: [&str; 8] = [
    MACHINE_CONFIGS,
    "ApiCertificates.secrets.talos.dev",
    "CertSANs.secrets.talos.dev",
    "EtcdRootSecrets.secrets.talos.dev",
    "EtcdSecrets.secrets.talos.dev",
    "MaintenanceRootSecrets.secrets.talos.dev",
    "OSRootSecrets.secrets.talos.dev",
    "TrustdCertificates.secrets.talos.dev",
];

/// Fills the stores of all nodes.
pub(crate) fn fill(shared: &Shared) -> Result<(), Error> {
    let seeds = Seeds::new(site(shared), shared.now());
    shared.nodes.iter().try_for_each(|node| {
        let configured = match shared.options.configs {
            Some(_) => node.cert_sans(),
            // The configurations are known, so that a thousand of them need not be read here.
            None => shared.options.machine_cert_sans.clone(),
        };
        boot(shared, &seeds, node, &configured)?;
        machine::tell_boot(shared, node);
        Ok(())
    })
}

/// Fills the empty store of a node that boots.
pub(crate) fn boot(
    shared: &Shared,
    seeds: &Seeds,
    node: &NodeState,
    cert_sans: &[String],
) -> Result<(), Error> {
    let own = [&OWN_TYPES, kubernetes::PROVIDED].concat();
    seeds.install(&node.store, &machine(node), &own);
    write_persistent(shared, node);
    write_active(shared, node);
    if node.configs.in_maintenance() {
        return Ok(());
    }
    certificates::write_roots(shared, node, cert_sans);
    certificates::write_names(shared, node, cert_sans);
    certificates::write_certificates(shared, node, cert_sans)?;
    certificates::write_maintenance(shared, node)?;
    servers::issue_etcd(shared, node)
}

/// Writes the persistent configuration; each write counts, whatever it changes.
pub(crate) fn write_persistent(shared: &Shared, node: &NodeState) {
    write(shared, node, "persistent", node.configs.persistent_config());
}

/// Writes the active configuration; each write counts, whatever it changes.
pub(crate) fn write_active(shared: &Shared, node: &NodeState) {
    write(shared, node, "v1alpha1", node.configs.active_config());
}

fn write(shared: &Shared, node: &NodeState, id: &str, config: Option<Arc<ConfigText>>) {
    if let Some(config) = config {
        let draft = machine_config(id, &config.text, shared.options.talos_version);
        node.store.put_forced(draft, shared.now());
    }
}

/// What resources say about the cluster.
pub(crate) fn site(shared: &Shared) -> Site {
    Site {
        cluster_name: shared.options.name.clone(),
        cluster_id: shared.cluster_id.clone(),
        endpoint: shared.endpoint.clone(),
        talos_version: shared.options.talos_version,
        kubernetes_version: shared.options.kubernetes_version.clone(),
        platform: shared.options.platform,
        machines: shared.nodes.iter().map(|node| machine(node)).collect(),
    }
}

fn machine(node: &NodeState) -> Machine {
    Machine {
        name: node.name.clone(),
        address: node.address,
        kind: node.machine_type(),
    }
}
