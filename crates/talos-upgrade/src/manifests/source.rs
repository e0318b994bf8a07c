//! The manifests as a node renders them.

use serde_json::Value;

use super::Manifest;
use super::object::ObjectId;
use crate::gather::{Tries, ask, spec};
use crate::run::Driver;
use crate::timing::Budget;
use crate::{Cluster, Error, ManifestPlan};

const NAMESPACE: &str = "controlplane";
const TYPE: &str = "Manifests.kubernetes.talos.dev";

/// Reads the manifests of the node the plan names, once they have the new kube-proxy.
///
/// The node renders them a moment after its configuration changed; without kubelets to upgrade that moment matters. A
/// node that has just started has none or only some, which must not be taken for the will to have no others.
pub(super) async fn current(driver: &Driver<'_>) -> Result<Vec<Manifest>, Error> {
    let plan = &driver.plan.manifests;
    let timing = &driver.options.timing;
    let mut budget = Budget::new(driver.cluster.kubernetes, timing, timing.manifests);
    loop {
        let manifests = read(driver.cluster, plan, Tries::Within(&budget)).await?;
        let Some(problem) = stale(plan, &manifests) else {
            return Ok(manifests);
        };
        driver.safe_point("the manifests")?;
        if budget.is_spent() {
            return Err(problem);
        }
        budget.pause().await;
    }
}

/// Says why a list is not the one to come.
fn stale(plan: &ManifestPlan, manifests: &[Manifest]) -> Option<Error> {
    let node = plan.read_from.clone()?;
    if manifests.is_empty() {
        return Some(Error::ManifestsMissing { node });
    }
    let wanted = plan.proxy_image.as_deref()?;
    (proxy_image(manifests) != Some(wanted)).then(|| Error::ManifestsStale {
        node,
        image: wanted.to_owned(),
    })
}

/// Reads the manifests of the node the plan names, in the order of their ids.
pub(super) async fn read(
    cluster: Cluster<'_>,
    plan: &ManifestPlan,
    tries: Tries<'_>,
) -> Result<Vec<Manifest>, Error> {
    let Some(address) = &plan.read_from else {
        return Ok(Vec::new());
    };
    let machine = cluster.talos.node(address.clone());
    let action = "read its manifests";
    let resources = ask(address, action, tries, || machine.list(NAMESPACE, TYPE)).await?;
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ManifestMethod, ManifestOptions};

    fn manifest(kind: &str, name: &str, image: &str) -> Manifest {
        let object = json!({
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": name},
            "spec": {"template": {"spec": {"containers": [{"image": image}]}}},
        });
        Manifest {
            id: ObjectId::of(&object).unwrap(),
            object,
        }
    }

    fn check(proxy: Option<&str>, manifests: &[Manifest], expected: Option<&str>) {
        let plan = ManifestPlan {
            method: ManifestMethod::ServerSideApply,
            read_from: Some("10.5.0.2".to_owned()),
            proxy_image: proxy.map(str::to_owned),
            options: ManifestOptions::default(),
        };
        let problem = stale(&plan, manifests).map(|error| error.to_string());
        assert_eq!(problem.as_deref(), expected);
    }

    #[test]
    fn a_list_that_is_empty_partial_or_old_is_waited_for() {
        let dns = || manifest("Deployment", "coredns", "coredns:v1");
        let proxy = |image| [dns(), manifest("DaemonSet", "kube-proxy", image)];
        let stale = "node 10.5.0.2: its manifests do not have kube-proxy as p:v2";
        let missing = "node 10.5.0.2 has no manifests";
        check(Some("p:v2"), &proxy("p:v2"), None);
        check(Some("p:v2"), &proxy("p:v1"), Some(stale));
        check(Some("p:v2"), &[dns()], Some(stale));
        check(Some("p:v2"), &[], Some(missing));
        check(None, &[dns()], None);
        check(None, &[], Some(missing));
    }
}
