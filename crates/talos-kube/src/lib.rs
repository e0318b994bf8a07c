//! Reaching the Kubernetes of a Talos cluster, and what an upgrade or a health check needs to see there.
//!
//! [`reach`] finds the address that answers and the name under which its certificate may be trusted. [`Kubernetes`] is
//! the result: a `kube` client that is patient with an API server while it restarts and says when it is away.
//! [`nodes`](Kubernetes::nodes) and [`component_pods`](Kubernetes::component_pods) read what Talos tools look at.
//!
//! Deliberately absent: files, `$KUBECONFIG` and contexts of the user (they come in as text), exec and OIDC plugins,
//! and every kind of write; callers write through [`Kubernetes::call`].
//!
//! Architecture invariant: the name a certificate is verified for comes from the caller, never from the certificate.

mod access;
mod address;
mod connect;
mod error;
mod kubernetes;
mod nodes;
mod patience;
mod pods;
mod reach;
mod through;
mod verify;

pub use access::Access;
pub use address::{Address, DEFAULT_PORT};
pub use error::{Attempt, Cause, Error};
pub use kubernetes::Kubernetes;
pub use nodes::{CONTROL_PLANE_LABEL, Node};
pub use patience::{Patience, Progress, Watcher, is_transient};
pub use pods::{COMPONENT_LABEL, Component, ComponentPod};
pub use reach::{Options, reach};
pub use through::reach_through;
