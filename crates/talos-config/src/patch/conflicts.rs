//! Documents of which Talos accepts one only, if their names are the same.

use std::collections::HashMap;

use super::documents::{Identity, known};
use crate::facts::RIVALS;
use crate::yaml::{Node, Stream};

/// The names that documents of a configuration claim.
pub(super) struct Claims {
    /// By the group of rivals and the name: the documents that claim it, with their positions.
    claimed: HashMap<(usize, String), Vec<(usize, Identity)>>,
    /// What the other ends of pairs are called.
    peers: HashMap<Identity, String>,
}

impl Claims {
    pub(super) fn new(stream: &Stream) -> Self {
        let mut claims = Self {
            claimed: HashMap::new(),
            peers: HashMap::new(),
        };
        for (index, root) in stream.roots().enumerate() {
            let Some(identity) = known(stream, root) else {
                continue;
            };
            let Some(group) = group(&identity) else {
                continue;
            };
            if identity.kind == "VethConfig" {
                // A pair that does not name its other end claims the empty name.
                let peer = root.at(&["peer", "name"]).and_then(Node::as_str);
                let peer = peer.unwrap_or_default().to_owned();
                claims.peers.entry(identity.clone()).or_insert(peer);
            }
            for name in claims.names(&identity) {
                let claimed = claims.claimed.entry((group, name)).or_default();
                claimed.push((index, identity.clone()));
            }
        }
        claims
    }

    /// Returns the first document that cannot stand beside another.
    pub(super) fn against(&self, identity: &Identity) -> Option<String> {
        let group = group(identity)?;
        let names = self.names(identity).into_iter();
        let first = names.filter_map(|name| {
            let claimed = self.claimed.get(&(group, name))?;
            claimed.iter().find(|(_, other)| other != identity)
        });
        let first = first.min_by_key(|(index, _)| *index);
        first.map(|(_, other)| other.label())
    }

    /// Returns the names that a document claims: its own, and that of the other end of a pair.
    fn names(&self, identity: &Identity) -> Vec<String> {
        let peer = self.peers.get(identity).cloned();
        let mut names = vec![identity.name.clone()];
        names.extend(peer.filter(|peer| *peer != identity.name));
        names
    }
}

/// Returns the position of the kinds that a document's is among.
fn group(identity: &Identity) -> Option<usize> {
    RIVALS
        .iter()
        .position(|kinds| kinds.contains(&identity.kind.as_str()))
}
