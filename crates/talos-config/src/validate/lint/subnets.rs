//! Subnets of pods and services, which must be apart from each other and from what nodes use.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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

/// A subnet: its first bits.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Subnet {
    bits: u128,
    len: u8,
    v6: bool,
}

impl Subnet {
    fn new(address: IpAddr, len: u8) -> Self {
        let (bits, v6) = match address {
            IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, false),
            IpAddr::V6(address) => (u128::from(address), true),
        };
        Self { bits, len, v6 }
    }

    /// Returns whether one of the two holds the other.
    fn overlaps(self, other: Self) -> bool {
        let len = u32::from(self.len.min(other.len));
        let differing = (self.bits ^ other.bits).leading_zeros();
        self.v6 == other.v6 && differing >= len
    }
}

/// Checks the subnets of pods and services of all documents.
pub(super) fn check(documents: &[Document<'_>], sink: &mut Sink<'_>) {
    let mut known: Vec<(Purpose, Subnet, String)> = Vec::new();
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
fn subnet(
    at: &At<'_>,
    purpose: Purpose,
    known: &mut Vec<(Purpose, Subnet, String)>,
    sink: &mut Sink<'_>,
) {
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
    for (other, of, name) in known.iter() {
        if subnet.overlaps(*of) {
            let message = format!("overlaps {} {name}", other.name());
            sink.warning("overlap", at, message);
        }
    }
    known.push((purpose, subnet, text.into_owned()));
}

/// Checks what nodes use against the subnets of pods and services.
fn nodes(document: &Document<'_>, known: &[(Purpose, Subnet, String)], sink: &mut Sink<'_>) {
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

fn addresses(link: &At<'_>, known: &[(Purpose, Subnet, String)], sink: &mut Sink<'_>) {
    network(&link.field("cidr"), known, sink);
    for address in link.field("addresses").items() {
        network(&address, known, sink);
    }
}

/// Checks the network an address of a node is in.
fn network(at: &At<'_>, known: &[(Purpose, Subnet, String)], sink: &mut Sink<'_>) {
    let Some((address, len)) = value::prefix_or_address(&at.text()) else {
        return;
    };
    let subnet = Subnet::new(address, len);
    for (purpose, other, name) in known {
        if subnet.overlaps(*other) {
            let message = format!("the node's network overlaps {} {name}", purpose.name());
            sink.warning("overlap", at, message);
        }
    }
}

/// Checks that nodes are not looked for among pods or services; a wide subnet that holds those too is usual.
fn inside(list: &At<'_>, known: &[(Purpose, Subnet, String)], sink: &mut Sink<'_>) {
    for item in list.items() {
        let Some((address, len)) = value::prefix_or_address(&item.text()) else {
            continue;
        };
        let subnet = Subnet::new(address, len);
        for (purpose, other, name) in known {
            if subnet.overlaps(*other) && subnet.len >= other.len {
                let message = format!("lies in {} {name}, where no node is", purpose.name());
                sink.warning("overlap", &item, message);
            }
        }
    }
}

/// Checks that the endpoint of the cluster is not an address of a pod or service.
fn endpoint(at: &At<'_>, known: &[(Purpose, Subnet, String)], sink: &mut Sink<'_>) {
    let text = at.text();
    let Ok(url) = value::Url::parse(&text) else {
        return;
    };
    let Some(address) = value::address(&url.plain_host()) else {
        return;
    };
    let subnet = Subnet::new(address, 128);
    for (purpose, other, name) in known {
        if subnet.overlaps(*other) {
            let message = format!("the host lies in {} {name}", purpose.name());
            sink.warning("overlap", at, message);
        }
    }
}
