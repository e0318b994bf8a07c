//! Server-side apply with an inventory, as Talos 1.13 and newer do it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::compare::changes;
use super::inventory::{self, Change, NAME, OWNER};
use super::live::{Kind, Live, Mode, rejected};
use super::object::ObjectId;
use super::order::{Wave, sort_key, wave};
use super::{Manifest, prune, reconcile, refuse, tell};
use crate::run::Driver;
use crate::timing::Budget;
use crate::{Error, ObjectChange};

/// Applies the manifests, saves the inventory, and prunes what left it. Gives the objects that changed.
pub(super) async fn apply(
    driver: &Driver<'_>,
    manifests: Vec<Manifest>,
) -> Result<Vec<Manifest>, Error> {
    let live = Live::new(driver.cluster.kubernetes);
    let mut manifests = claim(manifests)?;
    default_namespaces(&live, &mut manifests).await?;
    manifests.sort_by_cached_key(|manifest| sort_key(&manifest.id));
    let mut stored = inventory::load(driver.cluster.kubernetes).await?;
    // What others add from here on is theirs to prune.
    let known = stored.entries.clone();
    let mut verdicts = Vec::new();
    for manifest in &manifests {
        driver.safe_point(&format!("applying {}", manifest.id))?;
        verdicts.push(judge(driver, &live, manifest).await?);
    }
    let mut changed = Vec::new();
    let mut handled: BTreeSet<String> = BTreeSet::new();
    let applied = waves(
        driver,
        &live,
        &manifests,
        &verdicts,
        &mut changed,
        &mut handled,
    )
    .await;
    // What was handled belongs to the inventory, whether or not the rest failed.
    let change = Change {
        added: handled,
        ..Change::default()
    };
    let saved = stored.save(driver.cluster.kubernetes, &change).await;
    applied?;
    saved?;
    if driver.plan.manifests.options.prune {
        let desired: Vec<ObjectId> = manifests
            .iter()
            .map(|manifest| manifest.id.clone())
            .collect();
        prune::prune(driver, &live, &mut stored, &known, &desired).await?;
    }
    Ok(changed)
}

/// What is to be done with an object.
struct Verdict {
    change: ObjectChange,
    fields: Vec<String>,
}

/// Puts the mark of the inventory on every object.
pub(super) fn claim(manifests: Vec<Manifest>) -> Result<Vec<Manifest>, Error> {
    let claim = |mut manifest: Manifest| {
        let metadata = &mut manifest.object["metadata"];
        if !metadata["annotations"].is_object() {
            metadata["annotations"] = Value::Object(Map::new());
        }
        let owner = &mut metadata["annotations"][OWNER];
        match owner.as_str() {
            Some(other) if other != NAME => Err(refuse(
                &manifest.id,
                format!("its manifest belongs to the inventory {other}"),
            )),
            _ => {
                *owner = Value::String(NAME.to_owned());
                Ok(manifest)
            }
        }
    };
    manifests.into_iter().map(claim).collect()
}

/// Puts objects that need a namespace and name none into `default`, as the node does.
pub(super) async fn default_namespaces(
    live: &Live<'_>,
    manifests: &mut [Manifest],
) -> Result<(), Error> {
    for manifest in manifests {
        if !manifest.id.namespace.is_empty() {
            continue;
        }
        let kind = live.kind(&manifest.object).await?;
        if kind.is_some_and(|(_, scope)| scope == kube::discovery::Scope::Namespaced) {
            "default".clone_into(&mut manifest.id.namespace);
            manifest.object["metadata"]["namespace"] = Value::String("default".to_owned());
        }
    }
    Ok(())
}

/// Asks the API server what applying an object would do.
async fn judge(
    driver: &Driver<'_>,
    live: &Live<'_>,
    manifest: &Manifest,
) -> Result<Verdict, Error> {
    let created = Verdict {
        change: ObjectChange::Created,
        fields: Vec::new(),
    };
    let options = &driver.plan.manifests.options;
    let id = &manifest.id;
    let Some(kind) = live.kind(&manifest.object).await? else {
        return Ok(created);
    };
    let Some(current) = live.get(&kind, id).await? else {
        return Ok(created);
    };
    let verdict = match live.apply(&kind, id, &manifest.object, Mode::Try).await {
        Ok(next) => Verdict {
            fields: changes(&current, &next),
            change: ObjectChange::Configured,
        },
        Err(error) if options.force && is_immutable(&error) => Verdict {
            fields: Vec::new(),
            change: ObjectChange::Recreated,
        },
        Err(error) => return Err(rejected(id, error)),
    };
    if verdict.change == ObjectChange::Configured && verdict.fields.is_empty() {
        return Ok(Verdict {
            change: ObjectChange::Unchanged,
            ..verdict
        });
    }
    let owner = current["metadata"]["annotations"][OWNER].as_str();
    match inventory::refusal(options.policy, owner) {
        Some(problem) => Err(refuse(id, problem)),
        None => Ok(verdict),
    }
}

async fn waves(
    driver: &Driver<'_>,
    live: &Live<'_>,
    manifests: &[Manifest],
    verdicts: &[Verdict],
    changed: &mut Vec<Manifest>,
    handled: &mut BTreeSet<String>,
) -> Result<(), Error> {
    for current in [Wave::Definitions, Wave::Classes, Wave::Rest] {
        let from = changed.len();
        for (manifest, verdict) in manifests.iter().zip(verdicts) {
            if wave(&manifest.id) != current {
                continue;
            }
            if verdict.change != ObjectChange::Unchanged {
                driver.safe_point(&format!("applying {}", manifest.id))?;
                write(driver, live, manifest, verdict).await?;
                changed.push(manifest.clone());
            }
            handled.insert(inventory::key(&manifest.id));
            tell(driver, &manifest.id, verdict.change, verdict.fields.clone());
        }
        if current != Wave::Rest && changed.len() > from {
            live.forget_kinds();
            let limit = driver.plan.manifests.options.reconcile;
            reconcile::wait(driver, &changed[from..], limit.max(reconcile::SHORTEST)).await?;
        }
    }
    Ok(())
}

async fn write(
    driver: &Driver<'_>,
    live: &Live<'_>,
    manifest: &Manifest,
    verdict: &Verdict,
) -> Result<(), Error> {
    let id = &manifest.id;
    let kind = live.kind(&manifest.object).await?;
    let kind = kind.ok_or_else(|| refuse(id, "the API server does not serve this kind"))?;
    if verdict.change == ObjectChange::Recreated {
        remove(driver, live, &kind, id).await?;
    }
    let applied = live.apply(&kind, id, &manifest.object, Mode::Real).await;
    applied.map(drop).map_err(|error| rejected(id, error))
}

/// Deletes an object and waits until it is gone: while its finalizers run, applying would only change the old one.
async fn remove(
    driver: &Driver<'_>,
    live: &Live<'_>,
    kind: &Kind,
    id: &ObjectId,
) -> Result<(), Error> {
    let Some(old) = live.get(kind, id).await? else {
        return Ok(());
    };
    live.delete(kind, id).await?;
    let limit = driver.plan.manifests.options.reconcile;
    let limit = limit.max(reconcile::SHORTEST);
    let timing = &driver.options.timing;
    let mut budget = Budget::new(driver.cluster.kubernetes, timing, limit);
    while !is_gone(&old, live.get(kind, id).await?.as_ref()) {
        if budget.is_spent() {
            let problem = format!(
                "it was deleted to be recreated, and is not gone after {:.0?}",
                budget.used()
            );
            return Err(refuse(id, problem));
        }
        budget.pause().await;
    }
    Ok(())
}

fn is_gone(old: &Value, now: Option<&Value>) -> bool {
    now.is_none_or(|now| now["metadata"]["uid"] != old["metadata"]["uid"])
}

fn is_immutable(error: &talos_kube::Error) -> bool {
    error.refusal().is_some_and(|status| {
        matches!(status.code, 409 | 422) || status.message.contains("immutable")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_gone_when_it_is_absent_or_another_has_its_name() {
        let object = |uid: &str| json!({"metadata": {"uid": uid, "deletionTimestamp": "x"}});
        assert!(!is_gone(&object("a"), Some(&object("a"))));
        assert!(is_gone(&object("a"), Some(&object("b"))));
        assert!(is_gone(&object("a"), None));
    }
}
