//! The endpoints of a client, and the connections to them.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::Mutex;

use crate::dial::{Attempt, Connection, DialError, Dialer};
use crate::{Endpoint, Error};

/// An endpoint that failed is not tried again before the others for this long.
const COOL_DOWN: Duration = Duration::from_secs(5);

/// An endpoint that has not answered after this long gets company: the next one is dialled beside it.
const HEAD_START: Duration = Duration::from_millis(500);

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
        let favorite = self.favorite.load(Ordering::Relaxed);
        let rest = (0..self.slots.len()).filter(move |index| *index != favorite);
        let others = std::iter::once(favorite).chain(rest);
        let others = others.filter(move |index| Some(*index) != own);
        let mut order = own.into_iter().chain(others);
        let mut postponed = VecDeque::new();
        let mut dials = FuturesUnordered::new();
        loop {
            let candidate = order.by_ref().find(|index| {
                let failed = self.slots[*index].failed_recently();
                postponed.extend(failed.then_some(*index));
                !failed
            });
            let candidate = candidate.or_else(|| postponed.pop_front());
            dials.extend(candidate.map(|index| self.try_slot(index, own)));
            let head_start = tokio::time::sleep(HEAD_START);
            tokio::select! {
                biased;
                outcome = dials.next() => match outcome {
                    None => return Err(Unavailable::Tried),
                    Some(Ok(connection)) => return Ok(connection),
                    Some(Err((index, cause))) => note(self.attempt(index, cause)),
                },
                () = head_start, if candidate.is_some() => {}
            }
        }
    }

    async fn try_slot(
        &self,
        index: usize,
        own: Option<usize>,
    ) -> Result<Arc<Connection>, (usize, DialError)> {
        let connection = self.slots[index].connection(&self.dialer).await;
        let connection = connection.map_err(|cause| (index, cause))?;
        if own != Some(index) {
            self.favorite.store(index, Ordering::Relaxed);
        }
        Ok(connection)
    }

    fn attempt(&self, index: usize, cause: DialError) -> Attempt {
        let endpoint = self.slots[index].endpoint.clone();
        let attempt = Attempt { endpoint, cause };
        tracing::debug!(%attempt, "endpoint does not answer");
        attempt
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

    fn failed_recently(&self) -> bool {
        // Whoever holds the lock is dialling right now.
        let Ok(state) = self.state.try_lock() else {
            return false;
        };
        match &state.failed {
            Some((at, _)) => at.elapsed() < COOL_DOWN,
            None => false,
        }
    }
}

fn host_key(host: &str) -> String {
    match host.parse::<IpAddr>() {
        Ok(ip) => ip.to_string(),
        Err(_) => host.to_ascii_lowercase(),
    }
}
