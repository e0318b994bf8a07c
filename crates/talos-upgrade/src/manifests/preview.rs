//! What the last stage would change, found out by reading alone.

use schemars::JsonSchema;
use serde::Serialize;

use super::apply::{claim, default_namespaces};
use super::compare::missing;
use super::live::Live;
use super::object::ObjectId;
use super::order::sort_key;
use super::{inventory, source};
use crate::gather::Tries;
use crate::{Cluster, Error, ManifestMethod, ObjectChange, Plan, Timing};

/// An object of the manifests and what would be done with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// The object as `Kind/namespace/name`.
    pub object: String,
    /// What would be done with it.
    pub change: ObjectChange,
    /// The fields that differ, secrets without their values.
    pub fields: Vec<String>,
}

/// Predicts what the manifests would change after the upgrade: the list has the new kube-proxy already.
///
/// Not even a request that the API server only tries out is sent; the comparison is made here, so defaults that the
/// server would fill in are not known.
///
/// # Errors
/// [`Error::Talos`] or [`Error::Kubernetes`].
pub async fn preview(
    cluster: Cluster<'_>,
    plan: &Plan,
    timing: &Timing,
) -> Result<Vec<Preview>, Error> {
    let mut manifests = source::read(cluster, &plan.manifests, Tries::Few(timing)).await?;
    if let Some(image) = &plan.manifests.proxy_image {
        source::set_proxy_image(&mut manifests, image);
    }
    let live = Live::new(cluster.kubernetes);
    let applies = plan.manifests.method == ManifestMethod::ServerSideApply;
    if applies {
        manifests = claim(manifests)?;
        manifests.sort_by_cached_key(|manifest| sort_key(&manifest.id));
    }
    default_namespaces(&live, &mut manifests).await?;
    let mut previews = Vec::new();
    for manifest in &manifests {
        let current = match live.kind(&manifest.object).await? {
            Some(kind) => live.get(&kind, &manifest.id).await?,
            None => None,
        };
        let (change, fields) = match current {
            None => (ObjectChange::Created, Vec::new()),
            Some(current) => match missing(&current, &manifest.object) {
                fields if fields.is_empty() => (ObjectChange::Unchanged, fields),
                fields => (ObjectChange::Configured, fields),
            },
        };
        previews.push(Preview {
            object: manifest.id.to_string(),
            change,
            fields,
        });
    }
    if applies && plan.manifests.options.prune {
        let desired: Vec<ObjectId> = manifests
            .iter()
            .map(|manifest| manifest.id.clone())
            .collect();
        let stored = inventory::load(cluster.kubernetes).await?;
        for orphan in inventory::orphans(&stored.entries, &desired) {
            let live = match live.preferred_kind(&orphan).await? {
                Some(kind) => live.get(&kind, &orphan).await?,
                None => None,
            };
            if live.is_some() {
                previews.push(Preview {
                    object: orphan.to_string(),
                    change: ObjectChange::Pruned,
                    fields: Vec::new(),
                });
            }
        }
    }
    Ok(previews)
}
