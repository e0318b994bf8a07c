//! What the nodes of a cluster hold before anything happens.

use crate::certificates;
use crate::cosi::{MACHINE_CONFIGS, Machine, Seeds, Site, machine_config};
use crate::error::Error;
use crate::node::NodeState;
use crate::shared::Shared;

/// Types whose resources follow from what the simulator makes itself, not from recordings.
const OWN_TYPES: [&str; 4] = [
    MACHINE_CONFIGS,
    "ApiCertificates.secrets.talos.dev",
    "CertSANs.secrets.talos.dev",
    "TrustdCertificates.secrets.talos.dev",
];

/// Fills the stores of all nodes.
pub(crate) fn fill(shared: &Shared) -> Result<(), Error> {
    let seeds = Seeds::new(site(shared), shared.now());
    // The configurations are known, so that a thousand of them need not be read here.
    let configured = &shared.options.machine_cert_sans;
    shared.nodes.iter().try_for_each(|node| boot(shared, &seeds, node, configured))
}

/// Fills the empty store of a node that boots.
pub(crate) fn boot(
    shared: &Shared,
    seeds: &Seeds,
    node: &NodeState,
    cert_sans: &[String],
) -> Result<(), Error> {
    seeds.install(&node.store, &machine(node), &OWN_TYPES);
    write_configs(shared, node);
    if node.configs.in_maintenance() {
        return Ok(());
    }
    certificates::write_names(shared, node, cert_sans);
    certificates::write_certificates(shared, node)
}

/// Writes the active and the persistent configuration; each write counts, whatever it changes.
pub(crate) fn write_configs(shared: &Shared, node: &NodeState) {
    let (version, now) = (shared.options.talos_version, shared.now());
    let configs = &node.configs;
    let kept = [("persistent", configs.persistent_config()), ("v1alpha1", configs.active_config())];
    for (id, config) in kept {
        if let Some(config) = config {
            node.store.put_forced(machine_config(id, &config.text, version), now);
        }
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
    Machine { name: node.name.clone(), address: node.address, kind: node.machine_type() }
}
