//! Subnets of pods and services, which must be apart from each other and from what nodes use.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Bound;

use crate::validate::at::{At, Document};
use crate::validate::sink::Sink;
use crate::validate::value;

/// What a subnet is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Pods,
    Services,
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Pods => "the pod subnet",
            Self::Services => "the service subnet",
        }
    }
}

/// A subnet: its first bits. A subnet sorts right before those inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Subnet {
    v6: bool,
    bits: u128,
    len: u8,
}

impl Subnet {
    fn new(address: IpAddr, len: u8) -> Self {
        let (bits, v6) = match address {
            IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, false),
            IpAddr::V6(address) => (u128::from(address), true),
        };
        Self { v6, bits, len }
    }

    /// Returns whether one of the two holds the other.
    fn overlaps(self, other: Self) -> bool {
        let len = u32::from(self.len.min(other.len));
        let differing = (self.bits ^ other.bits).leading_zeros();
        self.v6 == other.v6 && differing >= len
    }

    /// Returns the subnet of a shorter length around this one.
    fn shortened(self, len: u8) -> Self {
        let bits = self.bits & !rest(len);
        Self { bits, len, ..self }
    }
}

/// Returns the bits after the first ones.
fn rest(len: u8) -> u128 {
    u128::MAX.checked_shr(len.into()).unwrap_or(0)
}

/// How many overlaps of one value are reported.
const MOST: usize = 8;

/// The subnets of pods and services, found by what they overlap.
#[derive(Default)]
struct Known {
    subnets: BTreeMap<Subnet, Vec<(Purpose, String)>>,
    lengths: BTreeSet<(bool, u8)>,
}

impl Known {
    fn add(&mut self, subnet: Subnet, purpose: Purpose, text: String) {
        let network = subnet.shortened(subnet.len);
        self.lengths.insert((subnet.v6, subnet.len));
        let same = self.subnets.entry(network).or_default();
        same.push((purpose, text));
    }

    /// Returns the subnets that hold all of this one.
    fn around(&self, subnet: Subnet) -> impl Iterator<Item = &(Purpose, String)> {
        self.lengths
            .range((subnet.v6, 0)..=(subnet.v6, subnet.len))
            .filter_map(move |(_, len)| self.subnets.get(&subnet.shortened(*len)))
            .flatten()
    }

    /// Returns the subnets that are a part of this one.
    fn within(&self, subnet: Subnet) -> impl Iterator<Item = &(Purpose, String)> {
        let first = subnet.shortened(subnet.len);
        let last = Subnet {
            bits: first.bits | rest(subnet.len),
            len: u8::MAX,
            ..first
        };
        self.subnets
            .range((Bound::Excluded(first), Bound::Included(last)))
            .flat_map(|(_, same)| same)
    }

    fn overlapping(&self, subnet: Subnet) -> impl Iterator<Item = &(Purpose, String)> {
        self.around(subnet).chain(self.within(subnet))
    }
}

/// Warns of what a value overlaps, in words made of each subnet's purpose and text.
fn warn<'k>(
    at: &At<'_>,
    overlapped: impl Iterator<Item = &'k (Purpose, String)>,
    sink: &mut Sink<'_>,
    words: impl Fn(&str, &str) -> String,
) {
    for (purpose, name) in overlapped.take(MOST) {
        if sink.is_full() {
            return;
        }
        sink.warning("overlap", at, words(purpose.name(), name));
    }
}

/// Checks the subnets of pods and services of all documents.
pub(super) fn check(documents: &[Document<'_>], sink: &mut Sink<'_>) {
    let mut known = Known::default();
    for document in documents {
        let root = document.root();
        let lists = match document.kind {
            _ if document.is_main() => [
                (
                    Purpose::Pods,
                    root.fields(&["cluster", "network", "podSubnets"]),
                ),
                (
                    Purpose::Services,
                    root.fields(&["cluster", "network", "serviceSubnets"]),
                ),
            ],
            "KubeNetworkConfig" => [
                (Purpose::Pods, root.field("podSubnets")),
                (Purpose::Services, root.field("serviceSubnets")),
            ],
            _ => continue,
        };
        for (purpose, list) in lists {
            for item in list.items() {
                subnet(&item, purpose, &mut known, sink);
            }
        }
    }
    for document in documents {
        nodes(document, &known, sink);
    }
}

/// Checks a subnet of pods or services, against those before it too.
fn subnet(at: &At<'_>, purpose: Purpose, known: &mut Known, sink: &mut Sink<'_>) {
    let text = at.text();
    let Some((address, len)) = value::prefix(&text) else {
        sink.warning("bad-subnet", at, "is not a subnet such as `10.244.0.0/16`");
        return;
    };
    let subnet = Subnet::new(address, len);
    if len == 0 {
        sink.warning("bad-subnet", at, "holds every address there is");
        return;
    }
    let loopbacks = [
        Subnet::new(Ipv4Addr::LOCALHOST.into(), 8),
        Subnet::new(Ipv6Addr::LOCALHOST.into(), 128),
    ];
    if loopbacks.iter().any(|loopback| subnet.overlaps(*loopback)) {
        sink.warning(
            "overlap",
            at,
            "overlaps the loopback addresses of each node",
        );
    }
    warn(at, known.overlapping(subnet), sink, |other, name| {
        format!("overlaps {other} {name}")
    });
    known.add(subnet, purpose, text.into_owned());
}

/// Checks what nodes use against the subnets of pods and services.
fn nodes(document: &Document<'_>, known: &Known, sink: &mut Sink<'_>) {
    let root = document.root();
    if document.is_main() {
        for interface in root.fields(&["machine", "network", "interfaces"]).items() {
            addresses(&interface, known, sink);
            for vlan in interface.field("vlans").items() {
                addresses(&vlan, known, sink);
            }
        }
        let valid = root.fields(&["machine", "kubelet", "nodeIP", "validSubnets"]);
        inside(&valid, known, sink);
        inside(
            &root.fields(&["cluster", "etcd", "advertisedSubnets"]),
            known,
            sink,
        );
        endpoint(
            &root.fields(&["cluster", "controlPlane", "endpoint"]),
            known,
            sink,
        );
        return;
    }
    for address in root.field("addresses").items() {
        network(&address.field("address"), known, sink);
    }
    match document.kind {
        "KubeNodeConfig" => inside(&root.fields(&["nodeIP", "validSubnets"]), known, sink),
        "KubeClusterConfig" => endpoint(&root.field("endpoint"), known, sink),
        _ => {}
    }
}

fn addresses(link: &At<'_>, known: &Known, sink: &mut Sink<'_>) {
    network(&link.field("cidr"), known, sink);
    for address in link.field("addresses").items() {
        network(&address, known, sink);
    }
}

/// Checks the network an address of a node is in.
fn network(at: &At<'_>, known: &Known, sink: &mut Sink<'_>) {
    let Some((address, len)) = value::prefix_or_address(&at.text()) else {
        return;
    };
    let subnet = Subnet::new(address, len);
    warn(at, known.overlapping(subnet), sink, |purpose, name| {
        format!("the node's network overlaps {purpose} {name}")
    });
}

/// Checks that nodes are not looked for among pods or services; a wide subnet that holds those too is usual.
fn inside(list: &At<'_>, known: &Known, sink: &mut Sink<'_>) {
    for item in list.items() {
        let Some((address, len)) = value::prefix_or_address(&item.text()) else {
            continue;
        };
        let subnet = Subnet::new(address, len);
        warn(&item, known.around(subnet), sink, |purpose, name| {
            format!("lies in {purpose} {name}, where no node is")
        });
    }
}

/// Checks that the endpoint of the cluster is not an address of a pod or service.
fn endpoint(at: &At<'_>, known: &Known, sink: &mut Sink<'_>) {
    let text = at.text();
    let Ok(url) = value::Url::parse(&text) else {
        return;
    };
    let Some(address) = value::address(&url.plain_host()) else {
        return;
    };
    let subnet = Subnet::new(address, 128);
    warn(at, known.around(subnet), sink, |purpose, name| {
        format!("the host lies in {purpose} {name}")
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns subnets that often overlap, of both families.
    fn subnets() -> impl Strategy<Value = Vec<Subnet>> {
        let subnet = (any::<bool>(), 0_u32..8, 1_u8..=32).prop_map(|(v6, number, len)| {
            let number = number.rotate_right(3) | (number << 3);
            let address = match v6 {
                true => IpAddr::V6(Ipv6Addr::from(u128::from(number) << 96)),
                false => IpAddr::V4(number.into()),
            };
            Subnet::new(address, len)
        });
        proptest::collection::vec(subnet, 1..40)
    }

    proptest! {
        #[test]
        fn overlapping_subnets_are_those_that_overlap_in_a_comparison_of_all(all in subnets()) {
            let mut known = Known::default();
            for (index, subnet) in all.iter().enumerate() {
                known.add(*subnet, Purpose::Pods, index.to_string());
            }
            for &asked in &all {
                let compare = |keep: &dyn Fn(&Subnet) -> bool| -> Vec<usize> {
                    let kept = all.iter().enumerate().filter(|(_, subnet)| keep(subnet));
                    kept.map(|(index, _)| index).collect()
                };
                let looked_up = |found: &mut dyn Iterator<Item = &(Purpose, String)>| {
                    let mut found: Vec<usize> = found.map(|(_, text)| text.parse().unwrap()).collect();
                    found.sort_unstable();
                    found
                };
                prop_assert_eq!(
                    looked_up(&mut known.overlapping(asked)),
                    compare(&|other| asked.overlaps(*other))
                );
                prop_assert_eq!(
                    looked_up(&mut known.around(asked)),
                    compare(&|other| asked.overlaps(*other) && asked.len >= other.len)
                );
            }
        }
    }
}
