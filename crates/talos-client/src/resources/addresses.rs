//! The addresses of a node.

use std::net::IpAddr;

use serde_json::Value;

use crate::{Node, Result};

const TYPE: &str = "NodeAddresses.net.talos.dev";

/// Sets of addresses, the best first: those without pods and services exist once a node is part of a cluster.
const PREFERRED: [&str; 3] = ["current-no-k8s", "current", "default"];

impl Node {
    /// Reads the addresses at which the node can be reached now, without those of pods and services and without
    /// link-local ones.
    ///
    /// Its certificates cover more: all addresses since it booted, `accumulative-no-k8s`. An address that it no longer
    /// has may belong to somebody else by now, so nobody should be dialed or trusted by it, and a certificate that does
    /// not cover it lacks nothing.
    ///
    /// # Errors
    /// The node does not answer, or does not let us read.
    pub async fn addresses(&self) -> Result<Vec<IpAddr>> {
        let resources = self.list("network", TYPE).await?;
        let spec_of = |wanted: &&str| {
            let found = resources.iter().find(|found| found.metadata.id == **wanted);
            found.and_then(|found| found.spec().ok())
        };
        let spec = PREFERRED.iter().find_map(spec_of);
        Ok(spec.as_ref().map(addresses).unwrap_or_default())
    }
}

/// Takes the addresses out of prefixes such as `10.5.0.2/24`.
fn addresses(spec: &Value) -> Vec<IpAddr> {
    let prefixes = spec.get("addresses").and_then(Value::as_array);
    prefixes
        .into_iter()
        .flatten()
        .filter_map(|prefix| prefix.as_str()?.split('/').next()?.parse::<IpAddr>().ok())
        .map(|address| address.to_canonical())
        .filter(|address| !is_link_local(*address))
        .collect()
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn addresses_are_read_from_prefixes_without_link_local_ones() {
        let spec = json!({"addresses": ["10.5.0.2/24", "fe80::1/64", "169.254.1.1/16", "fd00::2/64", "x", 7]});
        let expected: [IpAddr; 2] = ["10.5.0.2".parse().unwrap(), "fd00::2".parse().unwrap()];
        assert_eq!(addresses(&spec), expected);
        assert!(addresses(&json!({})).is_empty());
    }

    proptest! {
        #[test]
        fn what_a_node_says_never_makes_the_reader_panic(text in ".{0,40}") {
            let spec = json!({"addresses": [text]});
            prop_assert!(addresses(&spec).len() <= 1);
        }
    }
}
