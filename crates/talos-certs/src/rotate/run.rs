//! Carrying out a rotation.

mod guard;
mod step;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use talos_config::talosconfig::Identity;
use talos_pki::{Authority, Certificate};

use self::step::Driver;
use super::access::RotateAccess;
use super::config;
use super::plan::ordered;
use super::verify::RotateKubernetes;
use super::{
    Journal, KeepError, RotateError, RotateFacts, RotateNode, Rotated, Rotation, Round,
    plan_rotation,
};
use crate::Stop;

/// Pauses and budgets of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RotateTiming {
    /// Longest pause between two looks; the first ones are shorter.
    pub poll: Duration,
    /// For a node to get where it should.
    pub node: Duration,
    /// For a kubelet that was told of other authorities to begin its restart.
    pub kubelet: Duration,
}

impl Default for RotateTiming {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(2),
            node: Duration::from_secs(180),
            kubelet: Duration::from_secs(10),
        }
    }
}

/// Tells the time.
pub type RotateClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What happens in a rotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    rename_all_fields = "camelCase",
    tag = "event"
)]
#[non_exhaustive]
pub enum RotateEvent {
    /// The new authority was made and is kept.
    Made {
        /// Which authority.
        authority: Rotated,
        /// SHA-256 of its certificate.
        fingerprint: String,
    },
    /// A node is about to be changed.
    Changing {
        /// Which authority.
        authority: Rotated,
        /// The round.
        round: Round,
        /// The node.
        node: String,
    },
    /// A node took another configuration.
    Written {
        /// The node.
        node: String,
        /// What the node warns of.
        warnings: Vec<String>,
    },
    /// A node is not yet where it should be.
    Waiting {
        /// The node.
        node: String,
        /// What is missing.
        state: String,
    },
    /// A node is where it should be.
    Verified {
        /// Which authority.
        authority: Rotated,
        /// The round.
        round: Round,
        /// The node.
        node: String,
        /// Whether it had to be changed in this run.
        changed: bool,
    },
    /// The talosconfig was written.
    Credentials {
        /// The round that made it possible.
        round: Round,
    },
    /// Every node was verified in a round.
    RoundDone {
        /// Which authority.
        authority: Rotated,
        /// The round.
        round: Round,
    },
}

/// Told what happens.
pub type RotateObserver = Arc<dyn Fn(RotateEvent) + Send + Sync>;

/// What a talosconfig has to say from now on.
#[derive(Clone, Debug)]
pub struct TalosCredentials {
    /// Whom to trust: several authorities while both are in use.
    pub authorities: Vec<Certificate>,
    /// The client's certificate and key; none leaves what there is.
    pub identity: Option<Identity>,
}

/// Where a rotation keeps what must survive it.
pub struct Keep<'a> {
    /// Writes the text of the journal, so that it survives a crash; the text holds private keys.
    pub journal: &'a dyn Fn(&str) -> Result<(), KeepError>,
    /// Writes the talosconfig.
    pub talosconfig: &'a dyn Fn(&TalosCredentials) -> Result<(), KeepError>,
}

/// How a rotation is carried out.
#[derive(Clone)]
pub struct RotateOptions {
    /// Pauses and budgets.
    pub timing: RotateTiming,
    /// Tells the time: a rotation takes a while, and what it meets was issued meanwhile.
    pub now: RotateClock,
    /// Asks for a stop between two steps.
    pub stop: Stop,
    /// Told what happens.
    pub observer: RotateObserver,
    /// Where nodes are seen ready when the Kubernetes authority changed; none leaves that out.
    pub kubernetes: Option<RotateKubernetes>,
}

/// What a rotation came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RotateReport {
    /// Which authority.
    pub authority: Rotated,
    /// The certificate of the old authority, PEM.
    pub old: String,
    /// The certificate of the new authority, PEM.
    pub new: String,
    /// How many configurations were written in this run.
    pub written: usize,
}

/// Rotates one authority on all nodes of the facts, going on where the journal says that an earlier run stopped.
///
/// # Errors
/// [`RotateError::Blocked`] before anything is changed, [`RotateError::Stopped`] between two steps, else the failure of
/// the step that names its node. The same call with the same journal goes on.
pub async fn rotate(
    authority: Rotated,
    facts: &RotateFacts,
    journal: &mut Journal,
    access: &RotateAccess,
    keep: &Keep<'_>,
    options: &RotateOptions,
) -> Result<RotateReport, RotateError> {
    let plan = plan_rotation(authority, facts, journal.of(authority))?;
    if plan.is_blocked() {
        return Err(RotateError::Blocked {
            reasons: plan.blocked,
        });
    }
    if journal.of(authority).is_none() {
        let rotation = begin(authority, facts, options)?;
        let fingerprint = rotation.new.certificate().fingerprint();
        journal.rotations.push(rotation);
        kept(keep, journal)?;
        (options.observer)(RotateEvent::Made {
            authority,
            fingerprint,
        });
    }
    let clients = access.clients(journal.of(Rotated::Talos), &options.now)?;
    let nodes = ordered(facts);
    let mut written = 0;
    for round in Round::ALL {
        let rotation = match journal.of(authority) {
            Some(rotation) if !rotation.finished && rotation.round <= round => rotation.clone(),
            _ => continue,
        };
        let driver = Driver {
            rotation: &rotation,
            round,
            clients: &clients,
            options,
            nodes: &nodes,
        };
        for node in &nodes {
            written += usize::from(driver.step(node).await?);
        }
        driver.verify_all().await?;
        if authority == Rotated::Talos {
            let identity = match round {
                Round::AcceptNew => None,
                _ => clients.new.as_ref().map(|renewed| renewed.identity.clone()),
            };
            driver.write_talosconfig(keep, access, identity)?;
        }
        if let Some(rotation) = journal.of_mut(authority) {
            match round {
                Round::AcceptNew => rotation.round = Round::IssueNew,
                Round::IssueNew => rotation.round = Round::DropOld,
                Round::DropOld => rotation.finished = true,
            }
        }
        kept(keep, journal)?;
        driver.tell(RotateEvent::RoundDone { authority, round });
    }
    let rotation = journal.of(authority);
    let pem = |of: fn(&Rotation) -> String| rotation.map(of).unwrap_or_default();
    Ok(RotateReport {
        authority,
        old: pem(|rotation| rotation.old.pem()),
        new: pem(|rotation| rotation.new.certificate().pem()),
        written,
    })
}

/// Makes the new authority.
fn begin(
    authority: Rotated,
    facts: &RotateFacts,
    options: &RotateOptions,
) -> Result<Rotation, RotateError> {
    let mut old = None;
    for node in ordered(facts) {
        let held = config::read(&node.config, authority).map_err(|source| broken(node, source))?;
        old = old.or(held.issuing.filter(|_| node.is_control_plane));
    }
    let old = old.ok_or_else(|| RotateError::Blocked {
        reasons: vec!["no control plane node has an issuing authority".to_owned()],
    })?;
    let new = Authority::generate(authority.kind(), (options.now)())
        .map_err(|source| RotateError::Make { source })?;
    Ok(Rotation {
        authority,
        old,
        new,
        round: Round::AcceptNew,
        finished: false,
    })
}

fn kept(keep: &Keep<'_>, journal: &Journal) -> Result<(), RotateError> {
    (keep.journal)(&journal.text()).map_err(|source| RotateError::Keep {
        what: "the state of the rotation",
        source,
    })
}

fn broken(node: &RotateNode, source: config::ConfigProblem) -> RotateError {
    RotateError::Config {
        node: node.name.clone(),
        source: Box::new(source),
    }
}
