//! What Talos checks in the main document.

mod bond;
mod cluster;
mod machine;
mod network;

use super::at::{At, Document};
use super::sink::Sink;
use super::target::Context;
use super::value;

/// Checks the main document.
pub(super) fn check(document: &Document<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    let root = document.root();
    let machine = root.field("machine");
    if !machine.is_set() {
        // Talos looks no further.
        sink.error("missing-field", &machine, "the machine section is missing");
        return;
    }
    let role = Role::of(&machine);
    let persist = root.field("persist");
    if persist.bool() == Some(false) {
        sink.error("bad-value", &persist, "must not be switched off")
            .hint("remove `persist`");
    }
    machine::check(&machine, role, context, sink);
    network::check(&root, role, context, sink);
    cluster::check(&root, role, context, sink);
}

/// What the machine is in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    ControlPlane,
    Worker,
    /// The type is none that Talos knows.
    Unknown,
}

impl Role {
    /// Reads the type of a machine; none is a worker.
    pub(super) fn of(machine: &At<'_>) -> Self {
        match &*machine.field("type").text() {
            "controlplane" | "init" => Self::ControlPlane,
            "worker" | "join" | "" => Self::Worker,
            _ => Self::Unknown,
        }
    }
}

/// Says what is wrong with the URL of an endpoint or manifest: it needs a host, and a port that exists.
fn endpoint(text: &str) -> Option<&'static str> {
    let url = match value::Url::parse(text) {
        Ok(url) => url,
        Err(reason) => return Some(reason),
    };
    if url.host().is_empty() {
        return Some("the URL has no host");
    }
    let port = url.port();
    let known = port.is_empty() || port.parse::<u16>().is_ok_and(|port| port > 0);
    (!known).then_some("the port is not between 1 and 65535")
}
