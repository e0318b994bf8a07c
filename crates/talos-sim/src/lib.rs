//! Simulated Talos clusters: real gRPC over real mutual TLS on loopback sockets, with knobs and gauges.
//!
//! [`Cluster::start`] brings up control planes and workers as [`Options`] says. Each node has an
//! apid of its own with its own certificate, a resource store that answers as a real machine does,
//! and a machine configuration that can be read, applied, tried and staged. Control planes also
//! serve a Kubernetes API that holds what an upgrade looks at.
//!
//! Tests turn knobs through [`Faults`] and read what arrived through [`Cluster::calls`] and
//! [`Cluster::kube_requests`]. Dropping the cluster stops everything it started.
//!
//! Deliberately absent: `talos-client` and `talos-config`. The double must not share bugs with its
//! subject, so this crate reads machine configurations on its own.

mod addresses;
mod apid;
mod calls;
mod certificates;
mod clients;
mod cluster;
mod config;
mod cosi;
mod delays;
mod error;
mod faults;
mod foreign_keys;
mod grpc;
mod kubernetes;
mod machine;
mod net;
mod node;
mod options;
mod pki;
mod seeding;
mod servers;
mod shared;
mod store;
mod trust;

pub use calls::Call;
pub use cluster::Cluster;
pub use delays::Delays;
pub use error::Error;
pub use faults::{Behavior, Faults, Reach, ServedCertificate};
pub use kubernetes::{KubeChange, KubeFaults, KubeRequest, KubeRequestState};
pub use node::{MachineType, Node};
pub use options::{BootConfigs, Options, Platform, TalosVersion};
pub use servers::Server;
pub use store::{Change, ChangeKind, Changes, Draft, Lost, Metadata, Phase, Resource, Spec, Store};
