//! Waiting until changed objects are ready.

use std::time::Duration;

use super::live::Live;
use super::ready::{Readiness, readiness};
use super::{Manifest, refuse};
use crate::run::Driver;
use crate::timing::Budget;
use crate::{Error, Event, Unready};

/// What other objects build on is waited for even if the user does not want to wait.
pub(super) const SHORTEST: Duration = Duration::from_secs(60);

/// Waits until objects are ready; no time at all does not wait.
pub(super) async fn wait(
    driver: &Driver<'_>,
    manifests: &[Manifest],
    limit: Duration,
) -> Result<(), Error> {
    if limit.is_zero() || manifests.is_empty() {
        return Ok(());
    }
    let live = Live::new(driver.cluster.kubernetes);
    let mut budget = Budget::new(driver.cluster.kubernetes, &driver.options.timing, limit);
    let mut said = Vec::new();
    loop {
        let unready = unready(&live, manifests).await?;
        if unready.is_empty() {
            return Ok(());
        }
        if budget.is_spent() {
            return Err(Error::NotReconciled {
                objects: unready,
                waited: budget.used(),
            });
        }
        if unready != said {
            said.clone_from(&unready);
            driver.tell(Event::ManifestsWaiting { objects: unready });
        }
        driver.safe_point("the changed objects were ready")?;
        budget.pause().await;
    }
}

async fn unready(live: &Live<'_>, manifests: &[Manifest]) -> Result<Vec<Unready>, Error> {
    let mut unready = Vec::new();
    for manifest in manifests {
        let id = &manifest.id;
        let kind = live.kind(&manifest.object).await?;
        let object = match &kind {
            Some(kind) => live.get(kind, id).await?,
            None => None,
        };
        let state = match object.as_ref().map(readiness) {
            Some(Readiness::Ready) => continue,
            Some(Readiness::Waiting(state)) => state,
            Some(Readiness::Failed(problem)) => return Err(refuse(id, problem)),
            None => "it does not exist".to_owned(),
        };
        unready.push(Unready {
            object: id.to_string(),
            state,
        });
    }
    Ok(unready)
}
