//! Upgrading the Kubernetes of a Talos cluster: what would be done, and doing it.
//!
//! [`gather`] reads what a cluster looks like, [`plan`] makes a [`Plan`] of it without touching anything, and [`run`]
//! carries the plan out: it pulls the images, changes one component on one node at a time by editing nothing but the
//! image in the node's own machine configuration, waits until Kubernetes shows the change, and brings the bootstrap
//! manifests up to date. What happens is told as [`Event`]s. A run that was interrupted is continued by a new plan.
//!
//! Deliberately absent: draining nodes (containers survive a kubelet's restart), rolling back, upgrading Talos itself,
//! and a lock against a second run.
//!
//! Architecture invariant: [`gather`], [`plan`] and [`preview`] write nothing anywhere, not even an image.

mod config;
mod error;
mod event;
mod facts;
mod gather;
mod image;
mod judge;
mod manifests;
mod plan;
mod removed;
mod request;
pub mod rules;
mod run;
mod timing;

pub use error::{Error, PullFailure};
pub use event::{Event, ObjectChange, Observer, Place, Report, Unready};
pub use facts::{Facts, NodeFacts, TalosFacts};
pub use gather::{Cluster, gather};
pub use image::Image;
pub use manifests::{Preview, preview};
pub use plan::{
    Action, Blocked, ImageStore, ManifestMethod, ManifestPlan, Plan, PlannedNode, Pull, Source,
    Step, Warning, plan,
};
pub use removed::Finding;
pub use request::{InventoryPolicy, ManifestOptions, Request};
pub use run::{RunOptions, run};
pub use timing::{Stop, Timing};
