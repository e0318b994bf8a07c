//! COSI on a simulated node: the resource types, what a fresh node holds, and the State service.

mod definitions;
mod machine_config;
pub(crate) mod proto;
mod seeds;
mod service;
pub(crate) mod yaml;

pub(crate) use machine_config::{MACHINE_CONFIGS, machine_config};
pub(crate) use seeds::{Machine, Seeds, Site};
pub(crate) use service::{Roles, StateService};

/// The type of the resources that describe resource types.
pub(crate) const DEFINITIONS: &str = "ResourceDefinitions.meta.cosi.dev";
/// The type of the resources that describe namespaces.
pub(crate) const NAMESPACES: &str = "Namespaces.meta.cosi.dev";
