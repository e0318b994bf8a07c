//! The logs of a machine's services.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{Stream, stream};
use talos_api::common::Data;
use talos_api::machine;
use talos_api::machine::LogsRequest;
use tokio::sync::watch;
use tonic::Status;

use crate::apid::Context;
use crate::node::{MachineType, NodeState};

/// Largest piece of a log that one message carries, in bytes; pieces do not follow lines.
pub(crate) const CHUNK: usize = 1024;
/// What is kept of one log, in bytes.
const KEPT: usize = 1 << 20;

/// A stream of pieces of bytes.
pub(crate) type DataStream = Pin<Box<dyn Stream<Item = Result<Data, Status>> + Send>>;

/// The logs of one machine; made when first asked for.
#[derive(Debug, Default)]
pub(crate) struct Logs(Mutex<BTreeMap<String, Arc<Log>>>);

#[derive(Debug, Default)]
struct Log {
    content: Mutex<Content>,
    grown: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    /// Bytes that are no longer kept.
    dropped: usize,
    closed: bool,
}

impl Logs {
    /// Adds text to a log.
    pub(crate) fn append(&self, node: &NodeState, id: &str, text: &str) {
        let log = self.keep(node, id);
        let mut content = log.lock();
        content.bytes.extend_from_slice(text.as_bytes());
        let excess = content.bytes.len().saturating_sub(KEPT);
        content.bytes.drain(..excess);
        content.dropped += excess;
        drop(content);
        log.grown.send_modify(|count| *count += 1);
    }

    /// Starts all logs anew, which ends the streams that follow them.
    pub(crate) fn reboot(&self) {
        for log in std::mem::take(&mut *self.lock()).into_values() {
            log.lock().closed = true;
            log.grown.send_modify(|count| *count += 1);
        }
    }

    fn find(&self, node: &NodeState, id: &str) -> Option<Arc<Log>> {
        let is_known = ids(node.machine_type()).contains(&id) || self.lock().contains_key(id);
        is_known.then(|| self.keep(node, id))
    }

    fn keep(&self, node: &NodeState, id: &str) -> Arc<Log> {
        let mut logs = self.lock();
        let log = logs.entry(id.to_owned()).or_insert_with(|| first(node, id));
        log.clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Log>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    /// Position of the first byte of the last `lines` lines; negative means all.
    fn tail(&self, lines: i32) -> usize {
        let Ok(lines) = usize::try_from(lines) else {
            return self.dropped;
        };
        let end = self.dropped + self.bytes.len();
        if lines == 0 {
            return end;
        }
        let body = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        let mut breaks = body
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, byte)| **byte == b'\n');
        breaks
            .nth(lines - 1)
            .map_or(self.dropped, |(index, _)| self.dropped + index + 1)
    }
}

/// `Logs`: the log of a service, and what is added to it if wanted.
pub(crate) async fn logs(context: Context, wanted: LogsRequest) -> Result<DataStream, Status> {
    let node = &context.node;
    let is_service = wanted.namespace == "system" || wanted.id == "kubelet";
    if !is_service && !is_container(node, &wanted.id) {
        return Err(Status::unknown(format!(
            "container {:?} not found",
            wanted.id
        )));
    }
    let log = match is_service {
        true => node.machine.logs.find(node, &wanted.id),
        false => Some(node.machine.logs.keep(node, &wanted.id)),
    };
    let Some(log) = log else {
        return Err(Status::unknown(format!(
            "log {:?} was not registered",
            wanted.id
        )));
    };
    let grown = log.grown.subscribe();
    let position = log.lock().tail(wanted.tail_lines);
    let follow = wanted.follow;
    let pieces = stream::unfold((position, grown), move |(position, mut grown)| {
        let log = log.clone();
        async move {
            loop {
                if let Some((piece, next)) = log.piece(position) {
                    return Some((Ok(data(piece)), (next, grown)));
                }
                if !follow || log.lock().closed {
                    return None;
                }
                grown.changed().await.ok()?;
            }
        }
    });
    Ok(Box::pin(pieces))
}

impl Log {
    /// The next piece after a position, and the position behind it.
    fn piece(&self, position: usize) -> Option<(Vec<u8>, usize)> {
        let content = self.lock();
        let start = position.saturating_sub(content.dropped);
        let rest = content.bytes.get(start..).filter(|rest| !rest.is_empty())?;
        let piece = rest[..rest.len().min(CHUNK)].to_vec();
        let next = content.dropped + start + piece.len();
        Some((piece, next))
    }
}

/// `LogsContainers`: the ids of all service logs.
pub(crate) async fn containers(
    context: Context,
) -> Result<machine::LogsContainersResponse, Status> {
    let ids = ids(context.node.machine_type())
        .iter()
        .map(|&id| id.to_owned())
        .collect();
    let entry = machine::LogsContainer {
        metadata: None,
        ids,
    };
    Ok(machine::LogsContainersResponse {
        messages: vec![entry],
    })
}

/// One message of a stream of bytes.
pub(crate) fn data(bytes: Vec<u8>) -> Data {
    Data {
        metadata: None,
        bytes,
    }
}

/// Whether a machine runs a container, such as `kube-system/kube-scheduler-NODE:kube-scheduler`.
fn is_container(node: &NodeState, id: &str) -> bool {
    let components = [
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
    ];
    let pods = components.map(|name| format!("kube-system/{name}-{}:{name}", node.name));
    node.is_control_plane() && pods.iter().any(|pod| id.starts_with(pod.as_str()))
}

fn ids(machine_type: MachineType) -> &'static [&'static str] {
    match machine_type {
        MachineType::ControlPlane => &[
            "controller-runtime",
            "etcd",
            "apid",
            "containerd",
            "early-startup",
            "machined",
            "cri",
            "kubelet",
            "trustd",
            "dns-resolve-cache",
        ],
        MachineType::Worker => &[
            "controller-runtime",
            "apid",
            "containerd",
            "early-startup",
            "machined",
            "cri",
            "kubelet",
            "dns-resolve-cache",
        ],
        MachineType::Unknown => &[
            "controller-runtime",
            "apid",
            "containerd",
            "early-startup",
            "machined",
        ],
    }
}

/// What a log says when nobody has looked at it yet.
fn first(node: &NodeState, id: &str) -> Arc<Log> {
    let name = &node.name;
    let lines: String = (1..=20)
        .map(|line| match id {
            "kubelet" => format!("{{\"ts\":{line},\"caller\":\"kubelet/kubelet.go:3501\",\"msg\":\"simulated line {line} of {name}\"}}\n"),
            _ => format!("{id} of {name}: simulated line {line}\n"),
        })
        .collect();
    let log = Log::default();
    log.lock().bytes = lines.into_bytes();
    Arc::new(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_count_lines_from_the_end() {
        let content = Content {
            bytes: b"one\ntwo\nthree\n".to_vec(),
            dropped: 10,
            closed: false,
        };
        let check = |lines, expected| assert_eq!(content.tail(lines), expected, "{lines} lines");
        check(-1, 10);
        check(0, 24);
        check(1, 18);
        check(2, 14);
        check(3, 10);
        check(9, 10);
    }
}
