//! The steps of one round: each brings one node to where it should be and waits until it is there.

use std::time::Duration;

use talos_client::{ApplyMode, ApplyRequest, Kind, Node};
use talos_config::talosconfig::Identity;
use tokio::time::{Instant, sleep};

use super::guard::undisturbed;
use super::{Keep, RotateEvent, RotateOptions, TalosCredentials, broken};
use crate::rotate::access::{Clients, RotateAccess};
use crate::rotate::config::{self, Change};
use crate::rotate::gather::configuration;
use crate::rotate::verify::{Kubelet, Wanted, kubelet, look, ready};
use crate::rotate::{RotateError, RotateNode, Rotated, Rotation, Round};

/// How often a configuration is tried to be written when somebody else writes too.
const ATTEMPTS: usize = 5;

/// What the steps of one round share.
pub(super) struct Driver<'a> {
    pub(super) rotation: &'a Rotation,
    pub(super) round: Round,
    pub(super) clients: &'a Clients,
    pub(super) options: &'a RotateOptions,
    pub(super) nodes: &'a [&'a RotateNode],
}

impl Driver<'_> {
    pub(super) fn tell(&self, event: RotateEvent) {
        (self.options.observer)(event);
    }

    /// Brings one node to where this round wants it, and waits until it is there; tells whether it was changed.
    pub(super) async fn step(&self, node: &RotateNode) -> Result<bool, RotateError> {
        let authority = self.rotation.authority;
        if self.options.stop.is_requested() {
            return Err(RotateError::Stopped {
                next: format!("{}: {}", node.name, self.round.label()),
            });
        }
        self.tell(RotateEvent::Changing {
            authority,
            round: self.round,
            node: node.name.clone(),
        });
        let before = match authority {
            Rotated::Kubernetes => kubelet(self.clients, &node.name).await.ok(),
            Rotated::Talos => None,
        };
        let changed = self.write(node).await?;
        if let Some(before) = before.filter(|_| changed) {
            self.restarted(node, before).await;
        }
        self.verify(node).await?;
        self.tell(RotateEvent::Verified {
            authority,
            round: self.round,
            node: node.name.clone(),
            changed,
        });
        Ok(changed)
    }

    /// Writes the configuration of a node; tells whether that was needed.
    ///
    /// The node has no condition to attach to a write, so the version is read again just before it.
    async fn write(&self, node: &RotateNode) -> Result<bool, RotateError> {
        let name = node.name.as_str();
        let failed = |source| RotateError::Talos {
            node: name.to_owned(),
            action: "write its machine configuration",
            source: Box::new(source),
        };
        let mut lost = None;
        for _ in 0..ATTEMPTS {
            let (active, pending) = configuration(self.clients, name).await?;
            if pending {
                return Err(RotateError::Pending {
                    node: name.to_owned(),
                });
            }
            undisturbed(&active.text, node, self.rotation, self.round)?;
            let Rotation {
                old,
                new,
                authority,
                ..
            } = self.rotation;
            let change = match self.round {
                Round::AcceptNew => Change::Accept(new.certificate()),
                Round::IssueNew => Change::Issue { new, old },
                Round::DropOld => Change::Drop(old),
            };
            let next = config::write(&active.text, *authority, node.is_control_plane, change)
                .map_err(|source| broken(node, source))?;
            if next == active.text {
                return Ok(lost.is_some());
            }
            let again = self
                .clients
                .ask(name, async |node: Node| node.machine_config().await)
                .await
                .map_err(failed)?;
            if again.version != active.version {
                continue;
            }
            let applied = self
                .clients
                .ask(name, async |node: Node| {
                    let request = ApplyRequest {
                        config: next.clone(),
                        mode: ApplyMode::NoReboot,
                        dry_run: false,
                        try_timeout: None,
                    };
                    node.apply_configuration(request).await
                })
                .await;
            match applied {
                Ok(applied) => {
                    self.tell(RotateEvent::Written {
                        node: name.to_owned(),
                        warnings: applied.warnings,
                    });
                    return Ok(true);
                }
                // Another change is being applied, or the answer was lost: look again.
                Err(error)
                    if error.is_transient()
                        || matches!(error.kind(), Kind::Precondition | Kind::Conflict) =>
                {
                    lost = Some(error);
                }
                Err(error) => return Err(failed(error)),
            }
            sleep(self.options.timing.poll).await;
        }
        Err(match lost {
            Some(source) => failed(source),
            None => RotateError::Contended {
                node: name.to_owned(),
            },
        })
    }

    /// Waits until the kubelet began to restart; one that does not is left to the verification.
    async fn restarted(&self, node: &RotateNode, before: Kubelet) {
        let start = Instant::now();
        let mut pause = self.first_pause();
        while start.elapsed() < self.options.timing.kubelet {
            match kubelet(self.clients, &node.name).await {
                Ok(now) if now.healthy && now.created == before.created => {}
                _ => return,
            }
            self.pause(&mut pause).await;
        }
    }

    /// Waits until a node is where this round wants it.
    async fn verify(&self, node: &RotateNode) -> Result<(), RotateError> {
        let held = config::read(&node.config, self.rotation.authority);
        let held = held.map_err(|source| broken(node, source))?;
        let wanted = Wanted {
            rotation: self.rotation,
            round: self.round,
            is_control_plane: node.is_control_plane,
            issues: held.issuing.is_some(),
        };
        let start = Instant::now();
        let mut pause = self.first_pause();
        let mut said = String::new();
        loop {
            let seen = match look(self.clients, &node.name, &wanted).await {
                Ok(()) => self.ready(node).await,
                Err(state) => Err(state),
            };
            let Err(state) = seen else {
                return Ok(());
            };
            if start.elapsed() >= self.options.timing.node {
                return Err(RotateError::TimedOut {
                    node: node.name.clone(),
                    waited: start.elapsed(),
                    last: state,
                });
            }
            if said != state {
                said.clone_from(&state);
                self.tell(RotateEvent::Waiting {
                    node: node.name.clone(),
                    state,
                });
            }
            self.pause(&mut pause).await;
        }
    }

    /// Looks whether Kubernetes has the node ready, if that can have changed.
    async fn ready(&self, node: &RotateNode) -> Result<(), String> {
        let Some(kubernetes) = &self.options.kubernetes else {
            return Ok(());
        };
        if self.rotation.authority != Rotated::Kubernetes {
            return Ok(());
        }
        let control_planes = self.nodes.iter().filter(|node| node.is_control_plane);
        let control_planes: Vec<&str> = control_planes.map(|node| node.name.as_str()).collect();
        let now = (self.options.now)();
        ready(self.clients, &control_planes, &node.name, kubernetes, now).await
    }

    /// Looks at every node once more: the next round is for a cluster in which all of them are done.
    pub(super) async fn verify_all(&self) -> Result<(), RotateError> {
        for node in self.nodes {
            self.verify(node).await?;
        }
        Ok(())
    }

    pub(super) fn write_talosconfig(
        &self,
        keep: &Keep<'_>,
        access: &RotateAccess,
        identity: Option<Identity>,
    ) -> Result<(), RotateError> {
        let new = self.rotation.new.certificate();
        let old = &self.rotation.old;
        let mut authorities = vec![new.clone()];
        if self.round < Round::DropOld {
            authorities.insert(0, old.clone());
        }
        // What else the talosconfig trusts is its owner's business.
        let others = access.credentials().authorities.into_iter();
        authorities.extend(others.filter(|one| one.der() != old.der() && one.der() != new.der()));
        let credentials = TalosCredentials {
            authorities,
            identity,
        };
        (keep.talosconfig)(&credentials).map_err(|source| RotateError::Keep {
            what: "the talosconfig",
            source,
        })?;
        self.tell(RotateEvent::Credentials { round: self.round });
        Ok(())
    }

    fn first_pause(&self) -> Duration {
        self.options.timing.poll / 32
    }

    async fn pause(&self, pause: &mut Duration) {
        sleep(*pause).await;
        *pause = (*pause * 3 / 2).min(self.options.timing.poll);
    }
}
