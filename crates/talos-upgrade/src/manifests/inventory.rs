//! The list of objects that came from the manifests, kept in a ConfigMap.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use talos_kube::Kubernetes;

use super::live::failed;
use super::object::ObjectId;
use crate::{Error, InventoryPolicy};

/// The name of the ConfigMap, and the value of the annotation on every object in it.
pub(crate) const NAME: &str = "talos-bootstrap-manifests-inventory";
/// The namespace of the ConfigMap.
pub(crate) const NAMESPACE: &str = "kube-system";
/// How often saving is tried when somebody else writes it too.
const ATTEMPTS: u32 = 5;
/// The annotation that says which inventory an object belongs to.
pub(crate) const OWNER: &str = "config.k8s.io/owning-inventory";

/// Writes the key of an object: `<namespace>_<name>_<group>_<Kind>`.
pub(crate) fn key(object: &ObjectId) -> String {
    let name = if is_rbac(&object.group) {
        // Keys of a ConfigMap may not contain a colon, names of roles may.
        object.name.replace(':', "__")
    } else {
        object.name.clone()
    };
    format!(
        "{}_{name}_{}_{}",
        object.namespace, object.group, object.kind
    )
}

/// Reads a key back; `None` when it has another form.
pub(crate) fn parse(key: &str) -> Option<ObjectId> {
    let (namespace, rest) = key.split_once('_')?;
    let (rest, kind) = rest.rsplit_once('_')?;
    let (name, group) = rest.rsplit_once('_')?;
    if name.is_empty() || kind.is_empty() {
        return None;
    }
    let name = if is_rbac(group) {
        name.replace("__", ":")
    } else {
        name.to_owned()
    };
    Some(ObjectId {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name,
    })
}

/// The entries that no desired object stands for any more; without any desired object there are none, since no cluster
/// wants to lose everything.
pub(crate) fn orphans(entries: &BTreeSet<String>, desired: &[ObjectId]) -> Vec<ObjectId> {
    if desired.is_empty() {
        return Vec::new();
    }
    let parsed = entries.iter().filter_map(|key| parse(key));
    parsed
        .filter(|entry| !desired.iter().any(|object| object.fits(entry)))
        .collect()
}

/// Says why a live object may not be taken over, by the inventory its annotation names.
pub(crate) fn refusal(policy: InventoryPolicy, owner: Option<&str>) -> Option<String> {
    match owner {
        Some(NAME) => None,
        Some(other) => Some(format!("it belongs to the inventory {other}")),
        None if policy == InventoryPolicy::MustMatch => {
            Some("it belongs to no inventory, which the policy MustMatch forbids".to_owned())
        }
        None => None,
    }
}

/// The inventory as Kubernetes has it.
pub(crate) struct Stored {
    /// The keys of its objects.
    pub(crate) entries: BTreeSet<String>,
    found: Option<ConfigMap>,
}

/// Reads the inventory; one that does not exist is empty and stays so until something is saved.
pub(crate) async fn load(kubernetes: &Kubernetes) -> Result<Stored, Error> {
    let found = kubernetes
        .call("read the inventory of the manifests", |client| async move {
            Api::<ConfigMap>::namespaced(client, NAMESPACE)
                .get_opt(NAME)
                .await
        })
        .await
        .map_err(failed)?;
    let data = found.as_ref().and_then(|map| map.data.as_ref());
    Ok(Stored {
        entries: data
            .into_iter()
            .flat_map(|data| data.keys().cloned())
            .collect(),
        found,
    })
}

/// What is to become of the inventory, whatever it holds by then.
#[derive(Debug, Default)]
pub(crate) struct Change {
    /// Keys to add.
    pub(crate) added: BTreeSet<String>,
    /// Keys to take away.
    pub(crate) removed: BTreeSet<String>,
}

impl Change {
    fn on(&self, entries: &BTreeSet<String>) -> BTreeSet<String> {
        let kept = entries.difference(&self.removed);
        kept.chain(&self.added).cloned().collect()
    }
}

impl Stored {
    /// Saves a change; nothing is written when it changes nothing.
    ///
    /// The resource version goes along, so that a change somebody else made meanwhile is noticed and kept; the nodes
    /// write it too.
    pub(crate) async fn save(
        &mut self,
        kubernetes: &Kubernetes,
        change: &Change,
    ) -> Result<(), Error> {
        for attempt in 1.. {
            let entries = change.on(&self.entries);
            if self.entries == entries && (self.found.is_some() || entries.is_empty()) {
                return Ok(());
            }
            match self.put(kubernetes, &entries).await {
                Ok(saved) => {
                    self.found = Some(saved);
                    self.entries = entries;
                    return Ok(());
                }
                Err(error) if error.status() == Some(409) && attempt < ATTEMPTS => {
                    *self = load(kubernetes).await?;
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    async fn put(
        &self,
        kubernetes: &Kubernetes,
        entries: &BTreeSet<String>,
    ) -> Result<ConfigMap, talos_kube::Error> {
        let mut map = self.found.clone().unwrap_or_default();
        map.metadata.name = Some(NAME.to_owned());
        map.metadata.namespace = Some(NAMESPACE.to_owned());
        let mut old = map.data.take().unwrap_or_default();
        let data: BTreeMap<String, String> = entries
            .iter()
            .map(|key| (key.clone(), old.remove(key).unwrap_or_default()))
            .collect();
        map.data = Some(data);
        let exists = self.found.is_some();
        kubernetes
            .call("save the inventory of the manifests", |client| {
                let map = map.clone();
                async move {
                    let api = Api::<ConfigMap>::namespaced(client, NAMESPACE);
                    let params = PostParams::default();
                    if exists {
                        api.replace(NAME, &params, &map).await
                    } else {
                        api.create(&params, &map).await
                    }
                }
            })
            .await
    }
}

fn is_rbac(group: &str) -> bool {
    group == "rbac.authorization.k8s.io"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(key_text: &str, shown: &str) {
        let object = parse(key_text).unwrap();
        assert_eq!(object.to_string(), shown);
        assert_eq!(key(&object), key_text);
    }

    #[test]
    fn keys_are_written_as_talos_writes_them() {
        check(
            "kube-system_coredns__ConfigMap",
            "ConfigMap/kube-system/coredns",
        );
        check(
            "kube-system_kube-proxy_apps_DaemonSet",
            "DaemonSet/kube-system/kube-proxy",
        );
        check(
            "_system__coredns_rbac.authorization.k8s.io_ClusterRole",
            "ClusterRole/system:coredns",
        );
        assert_eq!(parse("nothing"), None);
        assert_eq!(parse("a_b"), None);
        assert_eq!(parse("___"), None);
    }

    proptest! {
        #[test]
        fn any_key_that_is_read_is_written_as_it_was(text in "[a-zA-Z0-9_.-]{0,40}") {
            if let Some(object) = parse(&text) {
                prop_assert_eq!(parse(&key(&object)), Some(object));
            }
        }
    }

    #[test]
    fn only_what_left_the_manifests_is_an_orphan() {
        let entries = ["kube-system_old__ConfigMap", "_kept__ServiceAccount"];
        let entries = entries.into_iter().map(str::to_owned).collect();
        let kept = parse("kube-system_kept__ServiceAccount").unwrap();
        let orphans = orphans(&entries, &[kept]);
        assert_eq!(orphans.len(), 1);
        assert_eq!(orphans[0].to_string(), "ConfigMap/kube-system/old");
        assert_eq!(super::orphans(&entries, &[]), []);
    }

    #[test]
    fn what_others_put_into_the_inventory_meanwhile_stays() {
        let set = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        let change = Change {
            added: set(&["mine"]),
            removed: set(&["old"]),
        };
        let reloaded: BTreeSet<String> = set(&["kept", "old", "theirs"]);
        assert_eq!(change.on(&reloaded), set(&["kept", "mine", "theirs"]));
    }

    #[test]
    fn objects_of_another_inventory_are_never_taken_over() {
        use InventoryPolicy::{AdoptAll, AdoptIfNoInventory, MustMatch};
        for (policy, owner, refused) in [
            (MustMatch, Some(NAME), false),
            (MustMatch, None, true),
            (MustMatch, Some("other"), true),
            (AdoptIfNoInventory, None, false),
            (AdoptIfNoInventory, Some("other"), true),
            (AdoptAll, None, false),
            (AdoptAll, Some("other"), true),
        ] {
            assert_eq!(
                refusal(policy, owner).is_some(),
                refused,
                "{policy:?} {owner:?}"
            );
        }
    }
}
