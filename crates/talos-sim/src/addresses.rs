//! Addresses and ports for the nodes of one cluster.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::error::Error;
use crate::net::Port;
use crate::options::Options;

/// Port of apid.
const APID: u16 = 50_000;
/// Port of kube-apiserver.
const KUBERNETES: u16 = 6443;
/// First address of a cluster that cannot be dialled.
const BEHIND_NAT: Ipv4Addr = Ipv4Addr::new(10, 5, 10, 2);
/// Blocks that are tried before giving up.
const ATTEMPTS: usize = 64;

/// Where one node is.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) address: IpAddr,
    pub(crate) apid: Option<Port>,
    pub(crate) kubernetes: Option<Port>,
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
fn behind_nat(options: &Options, index: usize) -> Result<Place, Error> {
    let forward = || {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Port::reserve(address).map_err(|source| Error::Listen { address, source })
    };
    let is_forwarded = index == 0 || options.forward_all;
    let is_control_plane = index < options.controlplanes;
    Ok(Place {
        address: IpAddr::V4(nth(BEHIND_NAT, index)),
        apid: is_forwarded.then(forward).transpose()?,
        kubernetes: (is_forwarded && is_control_plane)
            .then(forward)
            .transpose()?,
    })
}

/// Consecutive addresses in 127/8, if the ports of all of them are free.
fn block(controlplanes: usize, count: usize) -> Option<Vec<Place>> {
    let (high, low) = (rand::random_range(1..=250), rand::random::<u8>());
    let first = Ipv4Addr::new(127, high, low, 2);
    let place = |index| {
        let address = IpAddr::V4(nth(first, index));
        let port = |number| Port::reserve(SocketAddr::from((address, number))).ok();
        let kubernetes = if index < controlplanes {
            Some(port(KUBERNETES)?)
        } else {
            None
        };
        Some(Place {
            address,
            apid: Some(port(APID)?),
            kubernetes,
        })
    };
    (0..count).map(place).collect()
}

fn nth(first: Ipv4Addr, index: usize) -> Ipv4Addr {
    let offset = u32::try_from(index).unwrap_or(u32::MAX);
    Ipv4Addr::from(u32::from(first).saturating_add(offset))
}
