//! Documents of which Talos accepts one only, if their names are the same.

use super::documents::{Identity, known};
use crate::yaml::{Node, Stream};

/// Kinds that describe the same thing in different ways.
const RIVALS: [&[&str]; 3] = [
    &[
        "BondConfig",
        "BridgeConfig",
        "DummyLinkConfig",
        "LinkConfig",
        "VLANConfig",
        "VRFConfig",
        "VethConfig",
        "WireguardConfig",
    ],
    &["HCloudVIPConfig", "Layer2VIPConfig"],
    &["ExistingVolumeConfig", "UserVolumeConfig"],
];

/// Returns the document of a configuration that cannot stand beside another of it.
pub(super) fn of(stream: &Stream, identity: &Identity) -> Option<String> {
    let rivals = RIVALS
        .iter()
        .find(|kinds| kinds.contains(&identity.kind.as_str()))?;
    let own = links(stream, identity);
    stream.roots().find_map(|root| {
        let other = known(stream, root).filter(|other| other != identity)?;
        let is_rival = rivals.contains(&other.kind.as_str());
        let there = links(stream, &other);
        (is_rival && own.iter().any(|name| there.contains(name))).then(|| other.label())
    })
}

/// Returns the names that a document claims: its own, and that of the other end of a pair.
fn links(stream: &Stream, identity: &Identity) -> Vec<String> {
    let mut names = vec![identity.name.clone()];
    if identity.kind == "VethConfig" {
        let root = stream
            .roots()
            .find(|root| known(stream, root).as_ref() == Some(identity));
        let peer = root.and_then(|root| root.at(&["peer", "name"]));
        // A pair that does not name its other end claims the empty name.
        names.push(peer.and_then(Node::as_str).unwrap_or_default().to_owned());
    }
    names
}
