//! Objects as they are in Kubernetes, of whatever kind.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::discovery::{self, Scope};
use serde_json::Value;
use talos_kube::Kubernetes;

use super::object::ObjectId;
use super::refuse;
use crate::Error;

/// The name under which changes of the manifests are recorded on objects, as Talos itself does it.
const FIELD_MANAGER: &str = "talos";

/// How objects of a kind are addressed.
pub(super) type Kind = (ApiResource, Scope);

/// Access to objects by their kind, as the API server knows kinds.
pub(crate) struct Live<'a> {
    kubernetes: &'a Kubernetes,
    kinds: Mutex<HashMap<(String, String), Kind>>,
}

/// Whether a request is only tried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The API server says what would happen.
    Try,
    /// It happens.
    Real,
}

impl<'a> Live<'a> {
    pub(crate) fn new(kubernetes: &'a Kubernetes) -> Self {
        Self {
            kubernetes,
            kinds: Mutex::default(),
        }
    }

    /// Looks kinds up anew, after definitions were added.
    pub(super) fn forget_kinds(&self) {
        self.lock().clear();
    }

    /// The kind of a manifest's object; `None` when the API server does not serve it.
    pub(super) async fn kind(&self, object: &Value) -> Result<Option<Kind>, Error> {
        let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
        let key = (text("apiVersion"), text("kind"));
        if let Some(kind) = self.lock().get(&key) {
            return Ok(Some(kind.clone()));
        }
        let (group, version) = key.0.split_once('/').unwrap_or(("", &key.0));
        let gvk = GroupVersionKind::gvk(group, version, &key.1);
        let found = self
            .kubernetes
            .call("look up a kind", |client| {
                let gvk = gvk.clone();
                async move { unless_unknown(discovery::pinned_kind(&client, &gvk).await) }
            })
            .await
            .map_err(failed)?;
        let found = found.map(|(resource, capabilities)| (resource, capabilities.scope));
        if let Some(kind) = &found {
            self.lock().insert(key, kind.clone());
        }
        Ok(found)
    }

    /// The kind of an entry of the inventory, in the version the API server prefers.
    pub(super) async fn preferred_kind(&self, object: &ObjectId) -> Result<Option<Kind>, Error> {
        let found = self
            .kubernetes
            .call("look up a kind", |client| {
                let group = object.group.clone();
                async move { unless_unknown(discovery::group(&client, &group).await) }
            })
            .await
            .map_err(failed)?;
        let found = found.and_then(|group| group.recommended_kind(&object.kind));
        Ok(found.map(|(resource, capabilities)| (resource, capabilities.scope)))
    }

    /// The live object, or `None`.
    pub(super) async fn get(&self, kind: &Kind, id: &ObjectId) -> Result<Option<Value>, Error> {
        let found = self
            .kubernetes
            .call("read an object", |client| {
                let api = api(client, kind, id);
                let name = id.name.clone();
                async move { api.get_opt(&name).await }
            })
            .await
            .map_err(failed)?;
        found.map(|object| value(&object)).transpose()
    }

    /// Applies a manifest on the server's side, over whatever other managers set, and gives the result.
    pub(super) async fn apply(
        &self,
        kind: &Kind,
        id: &ObjectId,
        manifest: &Value,
        mode: Mode,
    ) -> Result<Value, talos_kube::Error> {
        let mut params = PatchParams::apply(FIELD_MANAGER).force();
        params.dry_run = mode == Mode::Try;
        let applied = self
            .kubernetes
            .call("apply an object", |client| {
                let api = api(client, kind, id);
                let (name, params) = (id.name.clone(), params.clone());
                async move { api.patch(&name, &params, &Patch::Apply(manifest)).await }
            })
            .await?;
        Ok(serde_json::to_value(applied).unwrap_or_default())
    }

    /// Creates an object.
    pub(super) async fn create(
        &self,
        kind: &Kind,
        id: &ObjectId,
        manifest: &Value,
    ) -> Result<(), talos_kube::Error> {
        self.kubernetes
            .call("create an object", |client| {
                let api = api(client, kind, id);
                async move {
                    let object = from_value(manifest)?;
                    match api.create(&params(Mode::Real), &object).await {
                        // An attempt whose answer was lost has created it.
                        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
                        created => created.map(drop),
                    }
                }
            })
            .await
    }

    /// Replaces an object as a whole and gives the result; the manifest carries the resource version it is based on.
    pub(super) async fn replace(
        &self,
        kind: &Kind,
        id: &ObjectId,
        manifest: &Value,
        mode: Mode,
    ) -> Result<Value, talos_kube::Error> {
        let replaced = self
            .kubernetes
            .call("replace an object", |client| {
                let api = api(client, kind, id);
                let name = id.name.clone();
                async move {
                    let object = from_value(manifest)?;
                    api.replace(&name, &params(mode), &object).await
                }
            })
            .await?;
        Ok(serde_json::to_value(replaced).unwrap_or_default())
    }

    /// Deletes an object, its dependents in the background; one that is gone already is fine.
    pub(super) async fn delete(&self, kind: &Kind, id: &ObjectId) -> Result<(), Error> {
        self.kubernetes
            .call("delete an object", |client| {
                let api = api(client, kind, id);
                let name = id.name.clone();
                async move {
                    match api.delete(&name, &DeleteParams::background()).await {
                        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                        deleted => deleted.map(drop),
                    }
                }
            })
            .await
            .map_err(|error| rejected(id, error))
    }

    /// Counts the objects of an API resource over all namespaces; one that is not served has none.
    pub(crate) async fn count(&self, resource: &ApiResource) -> Result<u64, Error> {
        let counted = self
            .kubernetes
            .call("list a removed resource", |client| async move {
                let api: Api<DynamicObject> = Api::all_with(client, resource);
                match api.list_metadata(&ListParams::default()).await {
                    Ok(list) => Ok(list.items.len() as u64),
                    Err(kube::Error::Api(status)) if status.code == 404 => Ok(0),
                    Err(error) => Err(error),
                }
            })
            .await;
        counted.map_err(failed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, String), Kind>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A refusal of the API server in its own words; anything else concerns the stage.
pub(super) fn rejected(id: &ObjectId, error: talos_kube::Error) -> Error {
    match error.refusal() {
        Some(status) => refuse(id, status.message.clone()),
        None => failed(error),
    }
}

/// Wraps a failure of Kubernetes that concerns the stage as a whole.
pub(super) fn failed(source: talos_kube::Error) -> Error {
    Error::Kubernetes {
        action: "bring the manifests up to date",
        source: Box::new(source),
    }
}

fn params(mode: Mode) -> PostParams {
    PostParams {
        dry_run: mode == Mode::Try,
        field_manager: Some(FIELD_MANAGER.to_owned()),
    }
}

fn api(client: kube::Client, (resource, scope): &Kind, id: &ObjectId) -> Api<DynamicObject> {
    match scope {
        Scope::Cluster => Api::all_with(client, resource),
        Scope::Namespaced => Api::namespaced_with(client, &id.namespace, resource),
    }
}

fn from_value(manifest: &Value) -> kube::Result<DynamicObject> {
    serde_json::from_value(manifest.clone()).map_err(kube::Error::SerdeError)
}

fn value(object: &DynamicObject) -> Result<Value, Error> {
    serde_json::to_value(object).map_err(|error| {
        failed(talos_kube::Error::Request {
            action: "read an object".to_owned(),
            source: Box::new(kube::Error::SerdeError(error)),
        })
    })
}

/// A group, version or kind that is not served is no failure.
fn unless_unknown<T>(found: kube::Result<T>) -> kube::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(kube::Error::Discovery(_)) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}
