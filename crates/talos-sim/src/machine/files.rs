//! Files of a machine, as far as clients look at them.

use std::collections::BTreeSet;

use futures::stream;
use talos_api::machine::ReadRequest;
use tonic::Status;

use crate::apid::Context;
use crate::machine::logs::{CHUNK, DataStream, data};
use crate::node::NodeState;

/// `Read`: the content of a regular file.
pub(crate) async fn read(context: Context, request: ReadRequest) -> Result<DataStream, Status> {
    let node = &context.node;
    let path = request.path;
    let Some(content) = content(node, &path, context.shared.options.talos_version.tag()) else {
        if directories().contains(path.trim_end_matches('/')) {
            return Err(Status::unknown("path must be a regular file"));
        }
        return Err(Status::not_found(format!(
            "stat {path}: no such file or directory"
        )));
    };
    let pieces: Vec<_> = content
        .chunks(CHUNK)
        .map(|piece| Ok(data(piece.to_vec())))
        .collect();
    Ok(Box::pin(stream::iter(pieces)))
}

/// Files that every machine has.
const FILES: [&str; 4] = [
    "/etc/hostname",
    "/etc/os-release",
    "/proc/sys/kernel/random/boot_id",
    "/proc/version",
];

fn content(node: &NodeState, path: &str, version: &str) -> Option<Vec<u8>> {
    if let Some(content) = node.machine.file(path) {
        return Some(content);
    }
    let text = match path {
        "/etc/hostname" => format!("{}\n", node.name),
        "/etc/os-release" => format!(
            "NAME=\"Talos\"\nID=talos\nVERSION_ID={version}\nPRETTY_NAME=\"Talos ({version})\"\nHOME_URL=\"https://www.talos.dev/\"\n"
        ),
        "/proc/sys/kernel/random/boot_id" => format!("{}\n", node.machine.boot_id()),
        "/proc/version" => {
            "Linux version 6.18.24-talos (simulated) #1 SMP PREEMPT_DYNAMIC\n".to_owned()
        }
        _ => return None,
    };
    Some(text.into_bytes())
}

fn directories() -> BTreeSet<String> {
    let mut found = BTreeSet::from([String::new()]);
    for file in FILES {
        let mut path = file;
        while let Some((parent, _)) = path.rsplit_once('/') {
            found.insert(parent.to_owned());
            path = parent;
        }
    }
    found
}
