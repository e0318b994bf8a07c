//! Rotating the authorities of a running cluster: the Talos CA and the Kubernetes CA.
//!
//! [`gather_rotation`] reads what nodes have, [`plan_rotation`] says what has to be done, and [`rotate`] does it in three
//! rounds over all nodes, control planes first and one at a time: accept the new authority, issue by it, forget the old
//! one. A round begins when every node was verified in the one before, so that at no moment a node trusts an authority
//! less than what others present to it.
//!
//! A [`Journal`] holds the new authority before anything is changed. A run that was killed is continued by another one
//! with the same journal: what is done is seen in the configurations of the nodes, and only verified.

mod access;
mod config;
mod error;
mod gather;
mod journal;
mod plan;
mod run;
mod verify;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talos_pki::AuthorityKind;

pub use access::RotateAccess;
pub use config::ConfigProblem;
pub use error::{KeepError, RotateError};
pub use gather::{RotateFacts, RotateNode, gather_rotation};
pub use journal::{Journal, Rotation};
pub use plan::{RotatePlan, RotateStep, Round, plan_rotation};
pub use run::{
    Keep, RotateClock, RotateEvent, RotateObserver, RotateOptions, RotateReport, RotateTiming,
    TalosCredentials, rotate,
};
pub use verify::RotateKubernetes;

/// The authorities that can be rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rotated {
    /// The authority of apid, trustd and their clients.
    Talos,
    /// The authority of kube-apiserver, kubelets and their clients.
    Kubernetes,
}

impl Rotated {
    /// Names the authority among people.
    pub fn label(self) -> &'static str {
        self.kind().label()
    }

    fn kind(self) -> AuthorityKind {
        match self {
            Self::Talos => AuthorityKind::Talos,
            Self::Kubernetes => AuthorityKind::Kubernetes,
        }
    }
}
