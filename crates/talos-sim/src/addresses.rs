//! Addresses and ports for the nodes of one cluster.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::error::Error;
use crate::net::Port;
use crate::node::MachineType;
use crate::options::Options;
use crate::servers::Server;

/// First address of a cluster that cannot be dialled.
const BEHIND_NAT: Ipv4Addr = Ipv4Addr::new(10, 5, 10, 2);
/// Blocks that are tried before giving up.
const ATTEMPTS: usize = 64;

/// Where one node is.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) address: IpAddr,
    pub(crate) ports: BTreeMap<Server, Port>,
}

/// Finds a place for every node: control planes first, then all others.
pub(crate) fn places(options: &Options) -> Result<Vec<Place>, Error> {
    let count = options.controlplanes + options.workers + options.maintenance;
    if options.nat {
        return (0..count).map(|index| behind_nat(options, index)).collect();
    }
    for _ in 0..ATTEMPTS {
        if let Some(places) = block(options.controlplanes, count) {
            return Ok(places);
        }
    }
    Err(Error::NoAddresses { nodes: count })
}

/// A node whose ports are forwarded from free loopback ports, or from none.
///
/// As with Docker only the two APIs of the first control plane are, unless all are wanted.
fn behind_nat(options: &Options, index: usize) -> Result<Place, Error> {
    let forward = |server| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let port = Port::reserve(address).map_err(|source| Error::Listen { address, source })?;
        Ok((server, port))
    };
    let is_forwarded = |server: &Server| {
        let is_api = matches!(server, Server::Apid | Server::KubeApiServer);
        options.forward_all || index == 0 && is_api
    };
    let servers = servers(options.controlplanes, index);
    Ok(Place {
        address: IpAddr::V4(nth(BEHIND_NAT, index)),
        ports: servers
            .filter(is_forwarded)
            .map(forward)
            .collect::<Result<_, _>>()?,
    })
}

/// Consecutive addresses in 127/8, if the ports of all of them are free.
fn block(controlplanes: usize, count: usize) -> Option<Vec<Place>> {
    let (high, low) = (rand::random_range(1..=250), rand::random::<u8>());
    let first = Ipv4Addr::new(127, high, low, 2);
    let place = |index| {
        let address = IpAddr::V4(nth(first, index));
        let port = |server: Server| {
            let port = Port::reserve(SocketAddr::from((address, server.port()))).ok()?;
            Some((server, port))
        };
        let servers = servers(controlplanes, index);
        Some(Place {
            address,
            ports: servers.map(port).collect::<Option<_>>()?,
        })
    };
    (0..count).map(place).collect()
}

/// The servers that a node may come to run; one in maintenance mode becomes a worker at most.
fn servers(controlplanes: usize, index: usize) -> impl Iterator<Item = Server> {
    let machine_type = if index < controlplanes {
        MachineType::ControlPlane
    } else {
        MachineType::Worker
    };
    let all = Server::ALL.into_iter();
    all.filter(move |server| server.runs_on(machine_type))
}

fn nth(first: Ipv4Addr, index: usize) -> Ipv4Addr {
    let offset = u32::try_from(index).unwrap_or(u32::MAX);
    Ipv4Addr::from(u32::from(first).saturating_add(offset))
}
