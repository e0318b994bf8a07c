//! Deleting what left the manifests.

use super::inventory::{self, OWNER, Stored};
use super::live::Live;
use super::object::ObjectId;
use super::{refuse, tell};
use crate::run::Driver;
use crate::{Error, ObjectChange};

/// Deletes the objects of the inventory that no manifest stands for, and takes them off the inventory.
pub(super) async fn prune(
    driver: &Driver<'_>,
    live: &Live<'_>,
    stored: &mut Stored,
    desired: &[ObjectId],
) -> Result<(), Error> {
    let orphans = inventory::orphans(&stored.entries, desired);
    let mut entries = stored.entries.clone();
    for orphan in orphans {
        if let Some(kind) = live.preferred_kind(&orphan).await?
            && let Some(object) = live.get(&kind, &orphan).await?
        {
            let owner = object["metadata"]["annotations"][OWNER].as_str();
            let policy = driver.plan.manifests.options.policy;
            if let Some(problem) = inventory::refusal(policy, owner) {
                return Err(refuse(&orphan, format!("it cannot be pruned: {problem}")));
            }
            live.delete(&kind, &orphan).await?;
            tell(driver, &orphan, ObjectChange::Pruned, Vec::new());
        }
        entries.remove(&inventory::key(&orphan));
    }
    stored.save(driver.cluster.kubernetes, entries).await
}
