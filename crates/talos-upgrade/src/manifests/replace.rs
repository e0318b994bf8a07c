//! Replacing whole objects, as Talos before 1.13 does it: no inventory, no pruning.

use serde_json::Value;

use super::apply::default_namespaces;
use super::compare::changes;
use super::live::{Live, Mode, rejected};
use super::{Manifest, refuse, tell};
use crate::run::Driver;
use crate::{Error, ObjectChange};

/// How often an object is replaced when somebody else writes it too.
const ATTEMPTS: usize = 5;

/// Creates or replaces each object in the order of the list. Gives the workloads that changed.
pub(super) async fn replace(
    driver: &Driver<'_>,
    mut manifests: Vec<Manifest>,
) -> Result<Vec<Manifest>, Error> {
    let live = Live::new(driver.cluster.kubernetes);
    default_namespaces(&live, &mut manifests).await?;
    let mut changed = Vec::new();
    for manifest in manifests {
        driver.safe_point(&format!("replacing {}", manifest.id))?;
        let (change, fields) = one(&live, &manifest).await?;
        tell(driver, &manifest.id, change, fields);
        let waits = matches!(manifest.id.kind.as_str(), "Deployment" | "DaemonSet");
        if change != ObjectChange::Unchanged && waits {
            changed.push(manifest);
        }
    }
    Ok(changed)
}

async fn one(live: &Live<'_>, manifest: &Manifest) -> Result<(ObjectChange, Vec<String>), Error> {
    let id = &manifest.id;
    let kind = live.kind(&manifest.object).await?;
    let kind = kind.ok_or_else(|| refuse(id, "the API server does not serve this kind"))?;
    for _ in 0..ATTEMPTS {
        let Some(current) = live.get(&kind, id).await? else {
            let created = live.create(&kind, id, &manifest.object).await;
            created.map_err(|error| rejected(id, error))?;
            return Ok((ObjectChange::Created, Vec::new()));
        };
        let mut next = manifest.object.clone();
        let version = current["metadata"]["resourceVersion"].clone();
        next["metadata"]["resourceVersion"] = version;
        let tried = match live.replace(&kind, id, &next, Mode::Try).await {
            Err(error) if error.status() == Some(409) => continue,
            tried => tried.map_err(|error| rejected(id, error))?,
        };
        let fields = changes(&own(&current), &own(&tried));
        if fields.is_empty() {
            return Ok((ObjectChange::Unchanged, fields));
        }
        match live.replace(&kind, id, &next, Mode::Real).await {
            Err(error) if error.status() == Some(409) => {}
            Err(error) => return Err(rejected(id, error)),
            Ok(_) => return Ok((ObjectChange::Configured, fields)),
        }
    }
    Err(refuse(id, "somebody else keeps changing it"))
}

/// An object without what controllers add to it.
fn own(object: &Value) -> Value {
    let mut object = object.clone();
    let annotations = object.pointer_mut("/metadata/annotations");
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !key.contains("kubernetes.io/"));
    }
    if object["kind"] == "ServiceAccount"
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("secrets");
    }
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_controllers_add_makes_no_difference() {
        let live = json!({
            "kind": "ServiceAccount",
            "metadata": {"annotations": {"deployment.kubernetes.io/revision": "2", "mine": "x"}},
            "secrets": [{"name": "token"}],
        });
        let next = json!({"kind": "ServiceAccount", "metadata": {"annotations": {"mine": "x"}}});
        assert!(changes(&own(&live), &own(&next)).is_empty());
    }
}
