//! What nodes have before their authorities are rotated.

use std::net::IpAddr;

use serde_json::Value;
use talos_client::{MachineConfig, Node};
use talos_config::machine::{self, MachineType};

use super::access::{Clients, RotateAccess};
use super::{Journal, RotateClock, RotateError, Rotated};

/// What nodes have before a rotation.
#[derive(Clone, Debug, Default)]
pub struct RotateFacts {
    /// The nodes that are rotated.
    pub nodes: Vec<RotateNode>,
    /// Members of the cluster that are not among them.
    pub left_out: Vec<String>,
}

/// One node before a rotation.
#[derive(Clone)]
pub struct RotateNode {
    /// As it is called.
    pub name: String,
    /// Whether it is a control plane node.
    pub is_control_plane: bool,
    /// Its active configuration.
    pub config: String,
    /// Whether another one is being tried or staged.
    pub pending: bool,
}

impl std::fmt::Debug for RotateNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RotateNode")
            .field("name", &self.name)
            .field("is_control_plane", &self.is_control_plane)
            .field("pending", &self.pending)
            .finish_non_exhaustive()
    }
}

/// A member of the cluster, as nodes discover each other.
#[derive(Clone, Debug)]
struct Member {
    hostname: String,
    addresses: Vec<String>,
}

impl Member {
    fn is_called(&self, name: &str) -> bool {
        if name.eq_ignore_ascii_case(&self.hostname) {
            return true;
        }
        match name.parse::<IpAddr>() {
            Ok(ip) => self.addresses.iter().any(|text| text.parse() == Ok(ip)),
            Err(_) => false,
        }
    }
}

/// Reads what the nodes have; those that are `named`, else all members that one of `asked` knows.
///
/// # Errors
/// Nobody tells the members and none are named, or a node does not show its configuration.
pub async fn gather_rotation(
    access: &RotateAccess,
    journal: &Journal,
    asked: &[String],
    named: &[String],
    clock: &RotateClock,
) -> Result<RotateFacts, RotateError> {
    let clients = access.clients(journal.of(Rotated::Talos), clock)?;
    let members = members(&clients, asked, named).await?;
    let names: Vec<String> = match named {
        [] => members
            .iter()
            .filter_map(|member| member.addresses.first().cloned())
            .collect(),
        named => named.to_vec(),
    };
    if names.is_empty() {
        return Err(RotateError::NoMembers);
    }
    let left_out = members
        .iter()
        .filter(|member| !names.iter().any(|name| member.is_called(name)));
    let left_out = left_out.map(|member| member.hostname.clone()).collect();
    let mut nodes = Vec::with_capacity(names.len());
    for name in names {
        nodes.push(read(&clients, &name).await?);
    }
    Ok(RotateFacts { nodes, left_out })
}

/// Asks one node after the other who the members are; without discovery nobody knows.
async fn members(
    clients: &Clients,
    asked: &[String],
    named: &[String],
) -> Result<Vec<Member>, RotateError> {
    let mut failure = None;
    for name in asked.iter().chain(named) {
        let list = clients
            .ask(name, async |node: Node| {
                node.list("cluster", "Members.cluster.talos.dev").await
            })
            .await;
        let read = |resource: &talos_client::Resource| {
            let spec = resource.spec().ok()?;
            let addresses = spec.get("addresses").and_then(Value::as_array);
            let addresses = addresses.into_iter().flatten().filter_map(Value::as_str);
            Some(Member {
                hostname: spec.get("hostname")?.as_str()?.to_owned(),
                addresses: addresses.map(str::to_owned).collect(),
            })
        };
        match list {
            Ok(list) => {
                let members: Vec<Member> = list.iter().filter_map(read).collect();
                if !members.is_empty() {
                    return Ok(members);
                }
            }
            Err(source) => {
                failure.get_or_insert(RotateError::Talos {
                    node: name.clone(),
                    action: "list the members of the cluster",
                    source: Box::new(source),
                });
            }
        }
    }
    // Nodes that are named need nobody who tells them.
    match failure {
        Some(error) if named.is_empty() => Err(error),
        _ => Ok(Vec::new()),
    }
}

/// Reads what one node has.
pub(super) async fn read(clients: &Clients, name: &str) -> Result<RotateNode, RotateError> {
    let (active, pending) = configuration(clients, name).await?;
    let parsed = machine::MachineConfig::parse(&active.text);
    let machine = parsed.ok().and_then(|config| config.machine_type());
    Ok(RotateNode {
        name: name.to_owned(),
        is_control_plane: machine == Some(MachineType::ControlPlane),
        config: active.text,
        pending,
    })
}

/// Reads the active configuration of a node, and whether another one is being tried or staged.
pub(super) async fn configuration(
    clients: &Clients,
    name: &str,
) -> Result<(MachineConfig, bool), RotateError> {
    let failed = |source| RotateError::Talos {
        node: name.to_owned(),
        action: "read its machine configuration",
        source: Box::new(source),
    };
    let active = clients.ask(name, async |node: Node| node.machine_config().await);
    let active = active.await.map_err(failed)?;
    let all = clients.ask(name, async |node: Node| node.machine_configs().await);
    let all = all.await.map_err(failed)?;
    let persistent = all
        .iter()
        .find(|config| config.id == MachineConfig::PERSISTENT);
    let pending = persistent.is_some_and(|persistent| {
        !machine::is_same(&active.text, &persistent.text).unwrap_or(false)
    });
    Ok((active, pending))
}
