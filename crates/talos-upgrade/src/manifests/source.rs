//! The manifests as a node renders them.

use serde_json::Value;

use super::Manifest;
use super::object::ObjectId;
use crate::gather::{ask, spec};
use crate::run::Driver;
use crate::timing::Budget;
use crate::{Cluster, Error, ManifestPlan, Timing};

const NAMESPACE: &str = "controlplane";
const TYPE: &str = "Manifests.kubernetes.talos.dev";

/// Reads the manifests of the node the plan names, once they have the new kube-proxy.
///
/// The node renders them a moment after its configuration changed; without kubelets to upgrade that moment matters.
pub(super) async fn current(driver: &Driver<'_>) -> Result<Vec<Manifest>, Error> {
    let plan = &driver.plan.manifests;
    let timing = &driver.options.timing;
    let mut budget = Budget::new(driver.cluster.kubernetes, timing, timing.manifests);
    loop {
        let manifests = read(driver.cluster, plan, timing).await?;
        let stale = plan.proxy_image.as_ref().filter(|wanted| {
            let image = proxy_image(&manifests);
            image.is_some_and(|image| image != wanted.as_str())
        });
        let Some(image) = stale else {
            return Ok(manifests);
        };
        if budget.is_spent() {
            return Err(Error::ManifestsStale {
                node: plan.read_from.clone().unwrap_or_default(),
                image: image.clone(),
            });
        }
        budget.pause().await;
    }
}

/// Reads the manifests of the node the plan names, in the order of their ids.
pub(super) async fn read(
    cluster: Cluster<'_>,
    plan: &ManifestPlan,
    timing: &Timing,
) -> Result<Vec<Manifest>, Error> {
    let Some(address) = &plan.read_from else {
        return Ok(Vec::new());
    };
    let machine = cluster.talos.node(address.clone());
    let action = "read its manifests";
    let resources = ask(address, action, timing, || machine.list(NAMESPACE, TYPE)).await?;
    let mut manifests = Vec::new();
    for resource in &resources {
        let content = spec(address, resource)?;
        for object in content.as_array().into_iter().flatten() {
            let id = ObjectId::of(object).ok_or_else(|| Error::Resource {
                node: address.clone(),
                resource: format!("Manifests/{}", resource.metadata.id),
                field: "object with kind and name",
            })?;
            manifests.push(Manifest {
                id,
                object: object.clone(),
            });
        }
    }
    Ok(manifests)
}

/// The image in the DaemonSet of kube-proxy, if the manifests have it.
pub(super) fn proxy_image(manifests: &[Manifest]) -> Option<&str> {
    let found = manifests.iter().find(|manifest| is_proxy(&manifest.id));
    found?.object.pointer(PROXY_IMAGE).and_then(Value::as_str)
}

/// Puts an image into the DaemonSet of kube-proxy.
pub(super) fn set_proxy_image(manifests: &mut [Manifest], image: &str) {
    for manifest in manifests
        .iter_mut()
        .filter(|manifest| is_proxy(&manifest.id))
    {
        if let Some(place) = manifest.object.pointer_mut(PROXY_IMAGE) {
            *place = Value::String(image.to_owned());
        }
    }
}

const PROXY_IMAGE: &str = "/spec/template/spec/containers/0/image";

fn is_proxy(id: &ObjectId) -> bool {
    (id.kind.as_str(), id.name.as_str()) == ("DaemonSet", "kube-proxy")
}
