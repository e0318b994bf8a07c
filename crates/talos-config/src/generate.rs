//! Machine configurations, secrets and talosconfigs made from nothing but a few parameters.
//!
//! [`Secrets`] is what a cluster has to keep: authorities, keys, tokens. [`Params`] is what its owner chooses, and
//! [`Release`] decides in which form a configuration says it: a Talos reads what its own and older releases write.
//! Everything is a pure function of its arguments; the same secrets, parameters and time give the same texts.
//!
//! Deliberately absent: files, the clock, and configurations of the old machine type `init`.

mod address;
mod contract;
mod documents;
mod endpoint;
mod error;
mod examples;
mod explain;
mod kubernetes;
mod main_document;
mod params;
mod print;
mod secrets;
mod talosconfig;
#[cfg(test)]
mod tests;
mod version;

pub use contract::{Contract, Release};
pub use endpoint::Endpoint;
pub use error::{Error, Problem};
pub use params::{Comments, Params};
pub use secrets::{Encryption, FoundSecrets, KeyPair, PkiFiles, Random, Secrets};
pub use talosconfig::talosconfig;

use crate::machine::MachineType;

/// Writes the machine configuration of a control plane or a worker.
///
/// # Errors
///
/// [`Error::Params`] with everything that is wrong with the parameters, or [`Error::NoPlace`] for a secret that the
/// release has no field for.
pub fn machine_config(
    kind: MachineType,
    params: &Params,
    secrets: &Secrets,
) -> Result<String, Error> {
    params.check()?;
    let contract = params.release.contract();
    if kind == MachineType::ControlPlane {
        secrets.check_places(contract)?;
    }
    let mut made = vec![main_document::main(kind, params, secrets)];
    made.extend(documents::general(params, secrets));
    if contract.has_kubernetes_documents() {
        made.extend(kubernetes::documents(kind, params, secrets));
    }
    Ok(print::stream(&made, params, kind))
}
