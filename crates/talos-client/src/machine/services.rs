//! The services of a node.

use jiff::Timestamp;
use talos_api::machine::{
    ServiceHealth, ServiceInfo, ServiceRestartRequest, ServiceStartRequest, ServiceStopRequest,
};

use super::{machine, timestamp};
use crate::error::from_metadata;
use crate::nodes::only;
use crate::{Node, Result};

/// A service of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Name of the service, such as `kubelet`.
    pub id: String,
    /// Its state, such as `Running`.
    pub state: String,
    /// What its health check says.
    pub health: Health,
    /// What happened to it lately, oldest first.
    pub events: Vec<ServiceRecord>,
}

/// What the health check of a service says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Whether the service is healthy; none before the first check, or if there is none.
    pub healthy: Option<bool>,
    /// What the last check said.
    pub message: String,
    /// When the health last changed.
    pub changed: Option<Timestamp>,
}

/// Something that happened to a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRecord {
    /// The state it came into.
    pub state: String,
    /// Why.
    pub message: String,
    /// When.
    pub time: Option<Timestamp>,
}

/// What to do with a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceAction {
    /// Start it; one that runs stays as it is.
    Start,
    /// Stop it.
    Stop,
    /// Stop and start it.
    Restart,
}

impl Node {
    /// Lists the services, sorted by name.
    ///
    /// # Errors
    /// The call gave no answer.
    pub async fn services(&self) -> Result<Vec<Service>> {
        let (answer, context) = self
            .unary(None, async |wire| machine(wire).service_list(()).await)
            .await?;
        let message = only(answer.messages, &context)?;
        match from_metadata(message.metadata.as_ref(), &context) {
            Some(error) => Err(error),
            None => Ok(message.services.into_iter().map(Service::from).collect()),
        }
    }

    /// Starts, stops or restarts a service and returns what the node says about it.
    ///
    /// # Errors
    /// There is no such service, it cannot be driven this way, or the call gave no answer.
    pub async fn drive_service(&self, id: &str, action: ServiceAction) -> Result<String> {
        let id = id.to_string();
        let (metadata, said, context) = match action {
            ServiceAction::Start => {
                let request = ServiceStartRequest { id };
                let (answer, context) = self
                    .unary(None, async |wire| {
                        machine(wire).service_start(request).await
                    })
                    .await?;
                let message = only(answer.messages, &context)?;
                (message.metadata, message.resp, context)
            }
            ServiceAction::Stop => {
                let request = ServiceStopRequest { id };
                let (answer, context) = self
                    .unary(None, async |wire| machine(wire).service_stop(request).await)
                    .await?;
                let message = only(answer.messages, &context)?;
                (message.metadata, message.resp, context)
            }
            ServiceAction::Restart => {
                let request = ServiceRestartRequest { id };
                let (answer, context) = self
                    .unary(None, async |wire| {
                        machine(wire).service_restart(request).await
                    })
                    .await?;
                let message = only(answer.messages, &context)?;
                (message.metadata, message.resp, context)
            }
        };
        match from_metadata(metadata.as_ref(), &context) {
            Some(error) => Err(error),
            None => Ok(said),
        }
    }
}

impl From<ServiceInfo> for Service {
    fn from(info: ServiceInfo) -> Self {
        let events = info.events.unwrap_or_default().events;
        Self {
            id: info.id,
            state: info.state,
            health: info.health.map_or_else(Health::default, Health::from),
            events: events
                .into_iter()
                .map(|event| ServiceRecord {
                    state: event.state,
                    message: event.msg,
                    time: event.ts.and_then(timestamp),
                })
                .collect(),
        }
    }
}

impl From<ServiceHealth> for Health {
    fn from(health: ServiceHealth) -> Self {
        Self {
            healthy: (!health.unknown).then_some(health.healthy),
            message: health.last_message,
            changed: health.last_change.and_then(timestamp),
        }
    }
}
