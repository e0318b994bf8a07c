//! The endpoints of a client, and the connections to them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::dial::{Attempt, Connection, DialError, Dialer};
use crate::{Endpoint, Error};

/// An endpoint that failed is not tried again before the others for this long.
const COOL_DOWN: Duration = Duration::from_secs(5);

pub(crate) struct Pool {
    slots: Vec<Slot>,
    by_host: HashMap<String, usize>,
    favorite: AtomicUsize,
    dialer: Dialer,
    /// Whether a node can only be reached at its own endpoint: nodes in maintenance mode forward nothing.
    own_endpoint_only: bool,
}

struct Slot {
    endpoint: Endpoint,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    live: Option<Arc<Connection>>,
    failed: Option<(Instant, DialError)>,
}

impl Pool {
    pub(crate) fn new(
        endpoints: &[String],
        dialer: Dialer,
        own_endpoint_only: bool,
    ) -> Result<Self, Error> {
        if endpoints.is_empty() {
            return Err(Error::NoEndpoints);
        }
        let mut slots = Vec::with_capacity(endpoints.len());
        let mut by_host = HashMap::new();
        for text in endpoints {
            let endpoint: Endpoint = text.parse().map_err(|source| Error::Endpoint {
                text: text.clone(),
                source,
            })?;
            by_host
                .entry(host_key(&endpoint.host()))
                .or_insert(slots.len());
            by_host.entry(text.clone()).or_insert(slots.len());
            slots.push(Slot {
                endpoint,
                state: Mutex::default(),
            });
        }
        Ok(Self {
            slots,
            by_host,
            favorite: AtomicUsize::new(0),
            dialer,
            own_endpoint_only,
        })
    }

    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.slots.iter().map(|slot| &slot.endpoint)
    }

    pub(crate) fn forwards(&self) -> bool {
        !self.own_endpoint_only
    }

    /// Returns a living connection for a request to a node: to the node's own endpoint if it is one, which saves a hop,
    /// else to the endpoint that answered last, else to the next one that answers. `note` hears of each that does not.
    pub(crate) async fn connection(
        &self,
        node: Option<&str>,
        mut note: impl FnMut(Attempt),
    ) -> Result<Arc<Connection>, Unavailable> {
        let own = node.and_then(|node| self.own_slot(node));
        if self.own_endpoint_only {
            let Some(own) = own.or_else(|| node.is_none().then_some(0)) else {
                return Err(Unavailable::Unknown);
            };
            return self.slots[own]
                .connection(&self.dialer)
                .await
                .map_err(|cause| {
                    note(self.attempt(own, cause));
                    Unavailable::Tried
                });
        }
        let mut postponed = Vec::new();
        let mut seen = vec![false; self.slots.len()];
        let favorite = self.favorite.load(Ordering::Relaxed);
        let order = own.into_iter().chain([favorite]).chain(0..self.slots.len());
        for index in order {
            if std::mem::replace(&mut seen[index], true) {
                continue;
            }
            if self.slots[index].failed_recently().await {
                postponed.push(index);
                continue;
            }
            match self.try_slot(index, own).await {
                Ok(connection) => return Ok(connection),
                Err(cause) => note(self.attempt(index, cause)),
            }
        }
        for index in postponed {
            match self.try_slot(index, own).await {
                Ok(connection) => return Ok(connection),
                Err(cause) => note(self.attempt(index, cause)),
            }
        }
        Err(Unavailable::Tried)
    }

    async fn try_slot(
        &self,
        index: usize,
        own: Option<usize>,
    ) -> Result<Arc<Connection>, DialError> {
        let connection = self.slots[index].connection(&self.dialer).await?;
        if own != Some(index) {
            self.favorite.store(index, Ordering::Relaxed);
        }
        Ok(connection)
    }

    fn attempt(&self, index: usize, cause: DialError) -> Attempt {
        let endpoint = self.slots[index].endpoint.clone();
        tracing::debug!(%endpoint, error = %cause, "endpoint does not answer");
        Attempt { endpoint, cause }
    }

    fn own_slot(&self, node: &str) -> Option<usize> {
        self.by_host
            .get(&host_key(node))
            .or_else(|| self.by_host.get(node))
            .copied()
    }
}

/// Why there is no connection.
pub(crate) enum Unavailable {
    /// Every endpoint that could do was tried in vain.
    Tried,
    /// The node is no endpoint, and only its own would do.
    Unknown,
}

impl Slot {
    /// Returns the living connection, or dials; calls that come meanwhile wait for that and share its outcome.
    async fn connection(&self, dialer: &Dialer) -> Result<Arc<Connection>, DialError> {
        let asked = Instant::now();
        let mut state = self.state.lock().await;
        if let Some(live) = &state.live {
            if !live.is_closed() {
                return Ok(live.clone());
            }
            state.live = None;
        }
        if let Some((at, cause)) = &state.failed
            && *at > asked
        {
            return Err(cause.clone());
        }
        match dialer.dial(&self.endpoint).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.live = Some(connection.clone());
                state.failed = None;
                Ok(connection)
            }
            Err(cause) => {
                state.failed = Some((Instant::now(), cause.clone()));
                Err(cause)
            }
        }
    }

    async fn failed_recently(&self) -> bool {
        let state = self.state.lock().await;
        let Some((at, _)) = &state.failed else {
            return false;
        };
        at.elapsed() < COOL_DOWN
    }
}

fn host_key(host: &str) -> String {
    match host.parse::<IpAddr>() {
        Ok(ip) => ip.to_string(),
        Err(_) => host.to_ascii_lowercase(),
    }
}
