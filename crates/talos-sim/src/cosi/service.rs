//! The State service over one node's store, as machined serves it: read-only for everyone.

mod access;
mod query;
mod watching;

use std::pin::Pin;

use futures::Stream;
use futures::stream;
use prost_types::Timestamp;
use talos_api::cosi::resource as api;
use talos_api::cosi::resource::state_server::State;
use tonic::{Request, Response, Status};

use crate::store::{Resource, Store};

use query::Query;

/// The caller's roles; put into the request's extensions by whoever checked the certificate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roles(pub(crate) Vec<String>);

/// `cosi.resource.State` of one node.
#[derive(Clone)]
pub(crate) struct StateService {
    store: Store,
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl StateService {
    /// Serves a store; [`super::Seeds`] must have filled it with definitions and namespaces.
    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }
}

#[tonic::async_trait]
impl State for StateService {
    type ListStream = Answers<api::ListResponse>;
    type WatchStream = Answers<api::WatchResponse>;

    async fn get(
        &self,
        request: Request<api::GetRequest>,
    ) -> Result<Response<api::GetResponse>, Status> {
        let roles = roles(&request);
        let wanted = request.into_inner();
        access::check(&self.store, &roles, &wanted.namespace, &wanted.r#type)?;
        let found = self
            .store
            .get(&wanted.namespace, &wanted.r#type, &wanted.id)
            .ok_or_else(|| {
                Status::not_found(format!(
                    "resource {}({}/{}@undefined) doesn't exist",
                    wanted.r#type, wanted.namespace, wanted.id
                ))
            })?;
        Ok(Response::new(api::GetResponse {
            resource: Some(encode(&found)),
        }))
    }

    async fn list(
        &self,
        request: Request<api::ListRequest>,
    ) -> Result<Response<Self::ListStream>, Status> {
        let roles = roles(&request);
        let wanted = request.into_inner();
        access::check(&self.store, &roles, &wanted.namespace, &wanted.r#type)?;
        let options = wanted.options.unwrap_or_default();
        let query = Query::new(options.label_query, options.id_query)?;
        let found = self.store.list(&wanted.namespace, &wanted.r#type);
        let answers = found
            .into_iter()
            .filter(move |resource| query.matches(resource))
            .map(|resource| {
                Ok(api::ListResponse {
                    resource: Some(encode(&resource)),
                })
            });
        Ok(Response::new(Box::pin(stream::iter(answers))))
    }

    async fn watch(
        &self,
        request: Request<api::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let roles = roles(&request);
        let wanted = request.into_inner();
        access::check(&self.store, &roles, &wanted.namespace, &wanted.r#type)?;
        let answers = watching::start(&self.store, wanted)?;
        Ok(Response::new(Box::pin(answers)))
    }

    async fn create(
        &self,
        _: Request<api::CreateRequest>,
    ) -> Result<Response<api::CreateResponse>, Status> {
        Err(access::read_only())
    }

    async fn update(
        &self,
        _: Request<api::UpdateRequest>,
    ) -> Result<Response<api::UpdateResponse>, Status> {
        Err(access::read_only())
    }

    async fn destroy(
        &self,
        _: Request<api::DestroyRequest>,
    ) -> Result<Response<api::DestroyResponse>, Status> {
        Err(access::read_only())
    }

    async fn teardown(
        &self,
        _: Request<api::TeardownRequest>,
    ) -> Result<Response<api::TeardownResponse>, Status> {
        Err(access::read_only())
    }

    async fn teardown_and_destroy(
        &self,
        _: Request<api::TeardownAndDestroyRequest>,
    ) -> Result<Response<api::TeardownAndDestroyResponse>, Status> {
        Err(access::read_only())
    }
}

/// Encodes a resource for the wire, both forms of the spec filled.
pub(super) fn encode(resource: &Resource) -> api::Resource {
    let metadata = &resource.metadata;
    api::Resource {
        metadata: Some(api::Metadata {
            namespace: metadata.namespace.to_string(),
            r#type: metadata.kind.to_string(),
            id: metadata.id.to_string(),
            version: metadata.version.to_string(),
            owner: metadata.owner.to_string(),
            phase: metadata.phase.as_str().to_owned(),
            created: Some(timestamp(metadata.created)),
            updated: Some(timestamp(metadata.updated)),
            finalizers: metadata.finalizers.clone(),
            annotations: metadata.annotations.clone().into_iter().collect(),
            labels: metadata.labels.clone().into_iter().collect(),
        }),
        spec: Some(api::Spec {
            proto_spec: resource.spec.proto(&metadata.kind).to_vec(),
            yaml_spec: resource.spec.yaml().to_owned(),
        }),
    }
}

fn timestamp(at: jiff::Timestamp) -> Timestamp {
    let nanos = at.as_nanosecond();
    Timestamp {
        seconds: nanos.div_euclid(1_000_000_000) as i64,
        nanos: nanos.rem_euclid(1_000_000_000) as i32,
    }
}

fn roles<T>(request: &Request<T>) -> Roles {
    request.extensions().get().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests;
