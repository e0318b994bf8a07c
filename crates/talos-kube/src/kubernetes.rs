//! A Kubernetes API that was reached, used with patience.

use std::fmt;
use std::future::Future;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use talos_pki::Name;

use crate::patience::innermost;
use crate::{Address, Error, Patience, Progress, Watcher, is_transient};

/// A client of one cluster's Kubernetes API.
pub struct Kubernetes {
    pub(crate) client: kube::Client,
    pub(crate) address: Address,
    pub(crate) verified: Name,
    pub(crate) version: String,
    pub(crate) patience: Patience,
    pub(crate) watcher: Watcher,
    pub(crate) outages: Mutex<Outages>,
}

/// The count of outages so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outages {
    count: u32,
    total: Duration,
}

impl Kubernetes {
    /// The underlying client, for requests that shall not be repeated.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// The address that answered.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The name under which its certificate was trusted.
    pub fn verified_name(&self) -> &Name {
        &self.verified
    }

    /// The version of the API server that answered, as it writes it (`v1.34.0`).
    pub fn version(&self) -> &str {
        &self.version
    }

    /// How often the API was away during calls so far.
    pub fn outages(&self) -> u32 {
        self.lock().count
    }

    /// How long the API was away during calls so far.
    ///
    /// A step that waits for something to happen in the cluster takes this off its own time.
    pub fn away(&self) -> Duration {
        self.lock().total
    }

    /// Carries out a request, again and again while the API is away.
    ///
    /// `action` completes "failed to ..." in errors. The request must be safe to repeat.
    ///
    /// # Errors
    /// [`Error::Request`] for a failure that does not pass by itself, [`Error::Outage`] when the API stays away longer
    /// than [`Patience::outage`].
    pub async fn call<T, F, Fut>(&self, action: &str, request: F) -> Result<T, Error>
    where
        F: Fn(kube::Client) -> Fut,
        Fut: Future<Output = kube::Result<T>>,
    {
        let address = self.address.to_string();
        let mut away_since: Option<Instant> = None;
        let mut attempts = 0;
        loop {
            let asked = Instant::now();
            let outcome =
                tokio::time::timeout(self.patience.request, request(self.client.clone())).await;
            let failure = match outcome {
                Ok(Ok(value)) => {
                    self.came_back(&address, away_since, attempts);
                    return Ok(value);
                }
                Ok(Err(error)) if !is_transient(&error) => {
                    self.came_back(&address, away_since, attempts);
                    return Err(Error::Request {
                        action: action.to_owned(),
                        source: Box::new(error),
                    });
                }
                Ok(Err(error)) => Some(error),
                Err(_) => None,
            };
            // A request that timed out was away while it was waited for.
            let since = *away_since.get_or_insert(asked);
            attempts += 1;
            (self.watcher)(Progress::Away {
                address: address.clone(),
                cause: failure
                    .as_ref()
                    .map_or_else(|| "timed out".to_owned(), innermost),
                attempts,
                away_ms: millis(since.elapsed()),
            });
            if since.elapsed() >= self.patience.outage {
                self.count(since.elapsed());
                return Err(Error::Outage {
                    action: action.to_owned(),
                    address,
                    lasted: since.elapsed(),
                    attempts,
                    source: failure.map(Box::new),
                });
            }
            tokio::time::sleep(self.patience.pause_after(attempts - 1)).await;
        }
    }

    fn came_back(&self, address: &str, away_since: Option<Instant>, attempts: u32) {
        let Some(since) = away_since else {
            return;
        };
        let away = since.elapsed();
        self.count(away);
        (self.watcher)(Progress::Back {
            address: address.to_owned(),
            attempts,
            away_ms: millis(away),
        });
    }

    fn count(&self, away: Duration) {
        let mut outages = self.lock();
        outages.count += 1;
        outages.total += away;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Outages> {
        self.outages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Kubernetes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Kubernetes")
            .field("address", &self.address)
            .field("verified", &self.verified)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
