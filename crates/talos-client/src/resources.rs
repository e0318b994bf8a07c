//! The state of a node as resources: get, list and watch.

mod addresses;
mod columns;
mod definitions;
mod machine_config;
mod watch;

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde_json::Value;
use talos_api::cosi::resource as wire;
use talos_api::cosi::resource::state_client::StateClient;

pub use columns::columns;
pub use definitions::{Column, Definition, near_names, resolve};
pub use machine_config::{MachineConfig, TYPE as MACHINE_CONFIG_TYPE};
pub use watch::{Backoff, Watch, WatchEvent, WatchOptions};

use crate::error::Context;
use crate::machine::timestamp;
use crate::nodes::MESSAGE_LIMIT;
use crate::wire::Wire;
use crate::{Node, Result};

/// A resource of a node.
#[derive(Clone, PartialEq)]
pub struct Resource {
    /// What is said about it.
    pub metadata: Metadata,
    /// Its content in YAML; every type has it.
    pub yaml_spec: String,
    /// Its content in protobuf; the message depends on the type, and some have none.
    pub proto_spec: Vec<u8>,
}

/// What is said about a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// The namespace.
    pub namespace: String,
    /// The type, such as `Members.cluster.talos.dev`.
    pub resource_type: String,
    /// The id, unique among the resources of the type and namespace.
    pub id: String,
    /// A decimal number that grows by one a change, or `undefined` for what is gone.
    pub version: String,
    /// The controller that owns it.
    pub owner: String,
    /// `running` or `tearingDown`.
    pub phase: String,
    /// When it came into being.
    pub created: Option<Timestamp>,
    /// When it last changed.
    pub updated: Option<Timestamp>,
    /// Who has to agree to its end.
    pub finalizers: Vec<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

impl Resource {
    /// Returns the content as a value; that of a machine configuration is its text.
    ///
    /// # Errors
    /// The content is not YAML.
    pub fn spec(&self) -> Result<Value, talos_config::Error> {
        if self.metadata.resource_type == MACHINE_CONFIG_TYPE {
            return Ok(self
                .machine_config_text()
                .map_or(Value::Null, Value::String));
        }
        talos_config::yaml::read(&self.yaml_spec)
    }

    /// Returns whether this only tells that there is no such resource.
    pub fn is_tombstone(&self) -> bool {
        self.metadata.version == "undefined"
    }
}

impl fmt::Debug for Resource {
    /// Leaves the content out: it can hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource")
            .field("metadata", &self.metadata)
            .finish_non_exhaustive()
    }
}

impl Node {
    /// Reads one resource.
    ///
    /// # Errors
    /// It does not exist, nor does its type or namespace ([`Error::NotFound`](crate::Error::NotFound)), or the call gave
    /// no answer.
    pub async fn get(&self, namespace: &str, resource_type: &str, id: &str) -> Result<Resource> {
        let request = wire::GetRequest {
            namespace: namespace.to_string(),
            r#type: resource_type.to_string(),
            id: id.to_string(),
            options: None,
        };
        let (answer, context) = self
            .unary(Some(resource_type), async |wire| {
                state(wire).get(request).await
            })
            .await?;
        read(answer.resource, &context)
    }

    /// Reads all resources of a type, sorted by id.
    ///
    /// # Errors
    /// The type or namespace does not exist, or the call gave no answer.
    pub async fn list(&self, namespace: &str, resource_type: &str) -> Result<Vec<Resource>> {
        let request = wire::ListRequest {
            namespace: namespace.to_string(),
            r#type: resource_type.to_string(),
            options: None,
        };
        let patience = Some(self.request_timeout());
        let mut messages = self
            .stream(Some(resource_type), patience, async |wire| {
                state(wire).list(request).await
            })
            .await?;
        let mut list = Vec::new();
        while let Some(message) = messages.next().await? {
            list.push(read(message.resource, &messages.context)?);
        }
        Ok(list)
    }
}

fn state(wire: Wire) -> StateClient<Wire> {
    StateClient::new(wire)
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT)
}

fn read(resource: Option<wire::Resource>, context: &Context) -> Result<Resource> {
    let resource = resource.ok_or_else(|| context.answer("holds no resource"))?;
    let metadata = resource
        .metadata
        .ok_or_else(|| context.answer("holds a resource without metadata"))?;
    let spec = resource.spec.unwrap_or_default();
    Ok(Resource {
        metadata: Metadata {
            namespace: metadata.namespace,
            resource_type: metadata.r#type,
            id: metadata.id,
            version: metadata.version,
            owner: metadata.owner,
            phase: metadata.phase,
            created: metadata.created.and_then(timestamp),
            updated: metadata.updated.and_then(timestamp),
            finalizers: metadata.finalizers,
            labels: metadata.labels.into_iter().collect(),
            annotations: metadata.annotations.into_iter().collect(),
        },
        yaml_spec: spec.yaml_spec,
        proto_spec: spec.proto_spec,
    })
}
