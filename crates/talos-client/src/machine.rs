//! The machine API: typed calls of one node.

mod bytes;
mod configuration;
mod credentials;
mod events;
mod images;
mod kubeconfig;
mod power;
mod services;
mod time;
mod version;

pub use bytes::{ByteStream, LogRequest, LogSource};
pub use configuration::{Applied, ApplyMode, ApplyRequest};
pub use credentials::ClientConfiguration;
pub use events::{Event, EventStream, Events, Payload, Tail};
pub use images::{Image, ImageScope, LayerStatus, PullProgress};
pub use power::RebootMode;
pub use services::{Health, Service, ServiceAction, ServiceRecord};
pub use version::{NodeVersion, Platform};

use jiff::Timestamp;
use talos_api::machine::machine_service_client::MachineServiceClient;

use crate::nodes::MESSAGE_LIMIT;
use crate::wire::Wire;

/// A generated client with the message limits of Talos.
fn machine(wire: Wire) -> MachineServiceClient<Wire> {
    MachineServiceClient::new(wire)
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT)
}

/// Reads a protobuf time; what lies outside of what a [`Timestamp`] holds is no time.
pub(crate) fn timestamp(time: prost_types::Timestamp) -> Option<Timestamp> {
    Timestamp::new(time.seconds, time.nanos).ok()
}
