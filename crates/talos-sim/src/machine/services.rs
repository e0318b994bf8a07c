//! The services of a machine: their states, and starting, stopping and restarting them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::json;
use talos_api::machine;
use talos_api::machine::service_state_event::Action;
use tonic::Status;

use crate::apid::Context;
use crate::kubernetes;
use crate::machine::status;
use crate::node::{MachineType, NodeState};
use crate::shared::Shared;
use crate::store::Draft;

/// Resource type that shows which services run.
const SERVICES: &str = "Services.v1alpha1.talos.dev";
/// State changes that a service remembers.
const REMEMBERED: usize = 64;
/// What the kubelet waits for.
const KUBELET_NEEDS: &str = "Waiting for volumes /var/lib, /var/lib/kubelet, /var/log, \
    /var/log/audit, /var/log/containers, /var/log/pods, /var/lib/kubelet/seccomp, \
    /var/lib/kubelet/seccomp/profiles, /var/log/audit/kube, /var/mnt to be mounted, \
    service \"cri\" to be \"up\", time sync, network";

/// The services of one machine; made when first asked for.
#[derive(Debug, Default)]
pub(crate) struct Services(Mutex<Option<BTreeMap<String, Service>>>);

#[derive(Clone, Debug)]
struct Service {
    state: &'static str,
    events: Vec<machine::ServiceEvent>,
    health: machine::ServiceHealth,
}

/// What a user may do to a service through the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Start,
    Stop,
    Restart,
}

impl Operation {
    fn verb(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
        }
    }

    /// Only the kubelet and extensions can be driven from outside.
    fn is_allowed(self, id: &str) -> bool {
        id.starts_with("ext-") || id == "kubelet" && self != Self::Stop
    }
}

impl Services {
    pub(crate) fn reboot(&self) {
        *self.lock() = None;
    }

    fn with<T>(
        &self,
        machine_type: MachineType,
        now: Timestamp,
        act: impl FnOnce(&mut BTreeMap<String, Service>) -> T,
    ) -> T {
        act(self
            .lock()
            .get_or_insert_with(|| running(machine_type, now)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<BTreeMap<String, Service>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `ServiceList`: all services, sorted by id.
pub(crate) async fn list(context: Context) -> Result<machine::ServiceListResponse, Status> {
    let Context { shared, node, .. } = context;
    let info = |(id, service): (&String, &Service)| machine::ServiceInfo {
        id: id.clone(),
        state: service.state.to_owned(),
        events: Some(machine::ServiceEvents {
            events: service.events.clone(),
        }),
        health: Some(service.health.clone()),
    };
    let services = node
        .machine
        .services
        .with(node.machine_type(), node.now(&shared), |services| {
            services.iter().map(info).collect()
        });
    let entry = machine::ServiceList {
        metadata: None,
        services,
    };
    Ok(machine::ServiceListResponse {
        messages: vec![entry],
    })
}

/// Does to a service what a user asks for, and tells what was done.
pub(crate) fn operate(context: &Context, id: &str, operation: Operation) -> Result<String, Status> {
    let Context { shared, node, .. } = context;
    let state = node
        .machine
        .services
        .with(node.machine_type(), node.now(shared), |services| {
            services.get(id).map(|service| service.state)
        });
    let Some(state) = state else {
        return Err(Status::unknown(format!("service {id:?} not defined")));
    };
    let verb = operation.verb();
    if !operation.is_allowed(id) {
        let text = format!("service {id:?} doesn't support {verb} operation via API");
        return Err(Status::unknown(text));
    }
    let (shared, node, service) = (shared.clone(), node.clone(), id.to_owned());
    let is_running = state == "Running";
    match operation {
        Operation::Start if is_running => {}
        Operation::Stop if !is_running => {}
        Operation::Start => shared
            .clone()
            .spawn(async move { start(&shared, &node, &service).await }),
        Operation::Stop => stop(&shared, &node, &service),
        Operation::Restart => {
            stop(&shared, &node, &service);
            shared
                .clone()
                .spawn(async move { start(&shared, &node, &service).await });
        }
    }
    let done = if operation == Operation::Stop {
        "stopped"
    } else {
        verb_past(verb)
    };
    Ok(format!("Service {id:?} {done}"))
}

/// Restarts the kubelet, with the events and resources of a real machine; ends when it is healthy.
pub(crate) async fn restart_kubelet(shared: &Shared, node: &NodeState) {
    stop(shared, node, "kubelet");
    start(shared, node, "kubelet").await;
}

fn stop(shared: &Shared, node: &NodeState, id: &str) {
    let text = format!("Sending SIGTERM to task {id} (PID 3640, container {id})");
    let unknown = machine::ServiceHealth {
        unknown: true,
        ..<_>::default()
    };
    change(shared, node, id, Action::Stopping, &text, Some(unknown));
    node.store.destroy("runtime", SERVICES, id);
    let reason = format!("{id} not running");
    status::publish(shared, node, &[("services", &reason)]);
    change(
        shared,
        node,
        id,
        Action::Finished,
        "Service finished successfully",
        None,
    );
}

async fn start(shared: &Shared, node: &NodeState, id: &str) {
    let delays = &shared.options.delays;
    change(shared, node, id, Action::Starting, "Starting service", None);
    if id == "kubelet" {
        change(shared, node, id, Action::Waiting, KUBELET_NEEDS, None);
    }
    tokio::time::sleep(delays.kubelet_restart).await;
    change(
        shared,
        node,
        id,
        Action::Preparing,
        "Running pre state",
        None,
    );
    let image = (id == "kubelet").then(|| kubernetes::kubelet_image(node));
    if image
        .flatten()
        .is_some_and(|image| node.faults.is_missing(&image))
    {
        // Pulling is tried again and again, which comes to nothing.
        return;
    }
    change(
        shared,
        node,
        id,
        Action::Preparing,
        "Creating service runner",
        None,
    );
    let started = format!("Started task {id} (PID 6581) for container {id}");
    change(shared, node, id, Action::Running, &started, None);
    show(shared, node, id, false, true);
    status::publish(shared, node, &[]);
    if id == "kubelet" {
        let failed = "Health check failed: Get \"http://127.0.0.1:10248/healthz\": dial tcp \
            127.0.0.1:10248: connect: connection refused";
        let health = machine::ServiceHealth {
            last_message: failed
                .trim_start_matches("Health check failed: ")
                .to_owned(),
            last_change: Some(at(node.now(shared))),
            ..<_>::default()
        };
        change(shared, node, id, Action::Running, failed, Some(health));
        show(shared, node, id, false, false);
        status::publish(shared, node, &[("services", "kubelet not healthy")]);
    }
    tokio::time::sleep(delays.kubelet_healthy).await;
    let health = healthy(node.now(shared));
    change(
        shared,
        node,
        id,
        Action::Running,
        "Health check successful",
        Some(health),
    );
    show(shared, node, id, true, false);
    status::publish(shared, node, &[]);
}

/// Moves a service into a state: remembered, published and logged.
fn change(
    shared: &Shared,
    node: &NodeState,
    id: &str,
    action: Action,
    text: &str,
    health: Option<machine::ServiceHealth>,
) {
    let now = node.now(shared);
    let health = node
        .machine
        .services
        .with(node.machine_type(), now, |services| {
            let service = services.entry(id.to_owned()).or_insert_with(|| Service {
                state: "Initialized",
                events: Vec::new(),
                health: <_>::default(),
            });
            service.state = state_name(action);
            service.events.push(event(service.state, text, now));
            if service.events.len() > REMEMBERED {
                service.events.remove(0);
            }
            if let Some(health) = health {
                service.health = health;
            }
            service.health.clone()
        });
    let payload = machine::ServiceStateEvent {
        service: id.to_owned(),
        action: action.into(),
        message: text.to_owned(),
        health: Some(health),
    };
    node.machine
        .events
        .publish("ServiceStateEvent", &payload, "", now);
    node.machine.logs.append(
        node,
        "machined",
        &format!(
            "{now:.9} [talos] service[{id}]({}): {text}\n",
            state_name(action)
        ),
    );
}

/// Writes the resource of a running service.
fn show(shared: &Shared, node: &NodeState, id: &str, healthy: bool, unknown: bool) {
    let spec = json!({ "running": true, "healthy": healthy, "unknown": unknown });
    let draft = Draft::new("runtime", SERVICES, id, "v1alpha1.ServiceController", spec);
    node.store.put(draft, node.now(shared));
}

/// The services of a machine that has booted, with the events that brought them up.
fn running(machine_type: MachineType, now: Timestamp) -> BTreeMap<String, Service> {
    let ids: &[&str] = match machine_type {
        MachineType::ControlPlane => &[
            "apid",
            "containerd",
            "cri",
            "etcd",
            "kubelet",
            "machined",
            "trustd",
        ],
        MachineType::Worker => &["apid", "containerd", "cri", "kubelet", "machined"],
        MachineType::Unknown => &["apid", "containerd", "machined"],
    };
    let service = |&id: &&str| {
        let started = match id {
            "machined" => "Service started as goroutine".to_owned(),
            "containerd" | "cri" => {
                "Process Process([\"/bin/containerd\"]) started with PID 15".to_owned()
            }
            _ => format!("Started task {id} (PID 118) for container {id}"),
        };
        let events = vec![
            event("Starting", "Starting service", now),
            event("Preparing", "Running pre state", now),
            event("Preparing", "Creating service runner", now),
            event("Running", &started, now),
            event("Running", "Health check successful", now),
        ];
        (
            id.to_owned(),
            Service {
                state: "Running",
                events,
                health: healthy(now),
            },
        )
    };
    ids.iter().map(service).collect()
}

fn healthy(now: Timestamp) -> machine::ServiceHealth {
    machine::ServiceHealth {
        healthy: true,
        last_change: Some(at(now)),
        ..<_>::default()
    }
}

fn event(state: &str, text: &str, now: Timestamp) -> machine::ServiceEvent {
    machine::ServiceEvent {
        msg: text.to_owned(),
        state: state.to_owned(),
        ts: Some(at(now)),
    }
}

pub(crate) fn at(now: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: now.as_second(),
        nanos: now.subsec_nanosecond(),
    }
}

fn state_name(action: Action) -> &'static str {
    match action {
        Action::Initialized => "Initialized",
        Action::Preparing => "Preparing",
        Action::Waiting => "Waiting",
        Action::Running => "Running",
        Action::Stopping => "Stopping",
        Action::Finished => "Finished",
        Action::Failed => "Failed",
        Action::Skipped => "Skipped",
        Action::Starting => "Starting",
    }
}

fn verb_past(verb: &str) -> &'static str {
    if verb == "start" {
        "started"
    } else {
        "restarted"
    }
}
