//! Reaching nodes while authorities change: with the credentials there were, and with new ones.

use jiff::SignedDuration;
use talos_client::{Client, Kind, Node, Options, Security};
use talos_config::talosconfig::{Credentials, Identity};
use talos_pki::{Certificate, LeafRequest, LeafUsage};

use super::{RotateClock, RotateError, Rotation, Round};

/// How long the certificate of a client lives that a rotation issues.
const YEAR: SignedDuration = SignedDuration::from_hours(8760);

/// By how much its start lies before now: clocks of nodes may be behind.
const BACKDATE: SignedDuration = SignedDuration::from_secs(10);

/// How nodes are reached: the options of a client, with the credentials that the talosconfig has now.
#[derive(Clone, Debug)]
pub struct RotateAccess {
    /// Endpoints, credentials, timeouts.
    pub options: Options,
}

/// Clients with the old and with the new credentials; both trust both authorities.
pub(super) struct Clients {
    /// With the client certificate that there was.
    pub(super) old: Client,
    /// With one that the new authority issued.
    pub(super) new: Option<Renewed>,
    /// Whether every node accepts the new ones, and the old ones may be refused by some.
    prefers_new: bool,
}

/// What a client is that the new authority knows.
pub(super) struct Renewed {
    pub(super) client: Client,
    pub(super) identity: Identity,
    options: Options,
    clock: RotateClock,
}

impl RotateAccess {
    /// Makes clients; `rotation` is that of the Talos authority, if one was begun.
    pub(super) fn clients(
        &self,
        rotation: Option<&Rotation>,
        clock: &RotateClock,
    ) -> Result<Clients, RotateError> {
        let now = clock();
        let own = Options {
            now,
            ..self.options.clone()
        };
        let client = |options: &Options| {
            Client::new(options.clone()).map_err(|source| RotateError::Client {
                source: Box::new(source),
            })
        };
        let Some(rotation) = rotation else {
            return Ok(Clients {
                old: client(&own)?,
                new: None,
                prefers_new: false,
            });
        };
        let mut options = own;
        let Credentials {
            mut authorities,
            identity,
        } = self.credentials();
        for one in [&rotation.old, rotation.new.certificate()] {
            if !authorities.iter().any(|known| known.der() == one.der()) {
                authorities.push(one.clone());
            }
        }
        let with = |identity: Option<Identity>| {
            Security::Mutual(Credentials {
                authorities: authorities.clone(),
                identity,
            })
        };
        options.security = with(identity.clone());
        let old = client(&options);
        let roles = identity
            .as_ref()
            .and_then(|identity| identity.chain.first())
            .map(|leaf| leaf.organizations().to_vec());
        let request = LeafRequest {
            organizations: roles.unwrap_or_default(),
            usage: LeafUsage {
                client: true,
                ..LeafUsage::default()
            },
            lifetime: YEAR,
            backdate: BACKDATE,
            ..LeafRequest::default()
        };
        let issued = rotation
            .new
            .issue(&request, now)
            .map_err(|source| RotateError::Make { source })?;
        let identity = Identity {
            chain: vec![issued.certificate],
            key: issued.key,
        };
        options.security = with(Some(identity.clone()));
        let client = client(&options)?;
        let prefers_new = rotation.round >= Round::DropOld;
        Ok(Clients {
            // What the old credentials are worth by then does not matter.
            old: match old {
                Err(_) if prefers_new => client.clone(),
                old => old?,
            },
            new: Some(Renewed {
                client,
                identity,
                options,
                clock: clock.clone(),
            }),
            prefers_new,
        })
    }

    /// The credentials that the talosconfig has now.
    pub(super) fn credentials(&self) -> Credentials {
        match &self.options.security {
            Security::Mutual(credentials) => credentials.clone(),
            Security::Maintenance { .. } => Credentials::default(),
        }
    }
}

impl Clients {
    /// The client that every node answers, as far as is known.
    pub(super) fn preferred(&self) -> &Client {
        match &self.new {
            Some(renewed) if self.prefers_new => &renewed.client,
            _ => &self.old,
        }
    }

    /// Asks a node, with the other credentials where some are refused.
    pub(super) async fn ask<T>(
        &self,
        node: &str,
        call: impl AsyncFn(Node) -> talos_client::Result<T>,
    ) -> talos_client::Result<T> {
        let renewed = self.new.as_ref().map(|renewed| &renewed.client);
        let (first, second) = match renewed {
            Some(renewed) if self.prefers_new => (renewed, Some(&self.old)),
            renewed => (&self.old, renewed),
        };
        let failure = match call(first.node(node)).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        // What the node itself answered would be answered again.
        let refused = matches!(
            failure.kind(),
            Kind::Tls | Kind::ClientCertificate | Kind::NotReachable | Kind::NodeNotReachable
        );
        match second.filter(|_| refused) {
            Some(second) => call(second.node(node)).await,
            None => Err(failure),
        }
    }
}

impl Renewed {
    /// A client that dials only the node itself and trusts only the new authority; none where the node is no endpoint.
    pub(super) fn strict(&self, node: &str, new: &Certificate) -> Option<Client> {
        Client::new(self.strict_options(node, new)?).ok()
    }

    fn strict_options(&self, node: &str, new: &Certificate) -> Option<Options> {
        let own = self.options.endpoints.iter().find(|text| {
            text.parse::<talos_client::Endpoint>()
                .is_ok_and(|endpoint| endpoint.is_host(node))
        })?;
        Some(Options {
            endpoints: vec![own.clone()],
            security: Security::Mutual(Credentials {
                authorities: vec![new.clone()],
                identity: Some(self.identity.clone()),
            }),
            // What the node presents may have been issued a moment ago.
            now: (self.clock)(),
            ..self.options.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use jiff::Timestamp;
    use talos_pki::{Authority, AuthorityKind};

    use super::*;
    use crate::rotate::Rotated;

    #[test]
    fn each_look_at_a_node_judges_at_the_time_of_the_look() {
        let began: Timestamp = "2026-11-30T00:00:00Z".parse().unwrap();
        let authority = || Authority::generate(AuthorityKind::Talos, began).unwrap();
        let (old, new) = (authority(), authority());
        let rotation = Rotation {
            authority: Rotated::Talos,
            old: old.certificate().clone(),
            new,
            round: Round::IssueNew,
            finished: false,
        };
        let minutes = Arc::new(AtomicI64::new(0));
        let passed = minutes.clone();
        let clock: RotateClock =
            Arc::new(move || began + SignedDuration::from_mins(passed.load(Ordering::SeqCst)));
        let security = Security::Mutual(Credentials {
            authorities: vec![old.certificate().clone()],
            identity: None,
        });
        let access = RotateAccess {
            options: Options::new(vec!["10.5.0.2".to_owned()], security, began),
        };
        let clients = access.clients(Some(&rotation), &clock).unwrap();
        let renewed = clients.new.unwrap();
        for later in [5, 90] {
            minutes.store(later, Ordering::SeqCst);
            let options = renewed.strict_options("10.5.0.2", rotation.new.certificate());
            let at = options.unwrap().now.duration_since(began);
            assert_eq!(at, SignedDuration::from_mins(later));
        }
    }
}
