//! Deleting what left the manifests.

use std::collections::BTreeSet;

use super::inventory::{self, Change, OWNER, Stored};
use super::live::Live;
use super::object::ObjectId;
use super::{refuse, tell};
use crate::run::Driver;
use crate::{Error, ObjectChange};

/// Deletes the objects of the inventory that no manifest stands for, and takes them off the inventory.
///
/// `known` is the inventory before anything was applied. An object that cannot be deleted keeps none of the others from
/// being deleted, and stays in the inventory.
pub(super) async fn prune(
    driver: &Driver<'_>,
    live: &Live<'_>,
    stored: &mut Stored,
    known: &BTreeSet<String>,
    desired: &[ObjectId],
) -> Result<(), Error> {
    let mut change = Change::default();
    let mut failures = Vec::new();
    for orphan in inventory::orphans(known, desired) {
        let pruned = match driver.safe_point(&format!("pruning {orphan}")) {
            Ok(()) => one(driver, live, &orphan).await,
            stopped => stopped,
        };
        match pruned {
            Ok(()) => {
                change.removed.insert(inventory::key(&orphan));
            }
            Err(error) => {
                let ends = !matches!(error, Error::Manifest { .. });
                failures.push(error);
                if ends {
                    break;
                }
            }
        }
    }
    let saved = stored.save(driver.cluster.kubernetes, &change).await;
    match failures.len() {
        0 => saved,
        // The last one ended the stage or is the only one.
        _ if failures.len() == 1 || !matches!(failures.last(), Some(Error::Manifest { .. })) => {
            failures.pop().map_or(Ok(()), Err)
        }
        _ => Err(Error::NotPruned { failures }),
    }
}

async fn one(driver: &Driver<'_>, live: &Live<'_>, orphan: &ObjectId) -> Result<(), Error> {
    let Some(kind) = live.preferred_kind(orphan).await? else {
        return Ok(());
    };
    let Some(object) = live.get(&kind, orphan).await? else {
        return Ok(());
    };
    let owner = object["metadata"]["annotations"][OWNER].as_str();
    let policy = driver.plan.manifests.options.policy;
    if let Some(problem) = inventory::refusal(policy, owner) {
        return Err(refuse(orphan, format!("it cannot be pruned: {problem}")));
    }
    live.delete(&kind, orphan).await?;
    tell(driver, orphan, ObjectChange::Pruned, Vec::new());
    Ok(())
}
