//! What only shows when servers are compared: one name, several certificates.

use crate::evidence::Seen;
use crate::report::{NameSource, Problem, Server};

/// Adds what differs between servers of one kind that answer for the same name; `seen` is where each verdict comes from.
pub(super) fn compare(servers: &mut [Server], seen: &[Seen]) {
    let issuer_of = |index: usize| {
        let leaf = seen.get(index).and_then(|seen| seen.chain.first());
        leaf.and_then(|leaf| leaf.authority_key_id())
    };
    let mut found = Vec::new();
    for (index, server) in servers.iter().enumerate() {
        let others = servers.iter().enumerate();
        let others = others.filter(|(other, of)| *other != index && of.kind == server.kind);
        let others: Vec<(usize, &Server)> = others.collect();
        for name in server.names.iter().filter(|name| is_shared(&name.sources)) {
            let sharing = others.iter().filter_map(|(at, other)| {
                let mut names = other.names.iter();
                let verdict = names.find(|verdict| verdict.name == name.name)?;
                Some((*at, *other, verdict))
            });
            let sharing: Vec<_> = sharing.collect();
            let issuer = issuer_of(index);
            let mut others = sharing.iter();
            let covering = others.find(|(_, _, verdict)| verdict.covered_by.is_some());
            let mut others = sharing.iter();
            let foreign = others.find(|(at, _, _)| {
                let other = issuer_of(*at);
                issuer.is_some() && other.is_some() && other != issuer
            });
            let why = match (covering, foreign) {
                (Some((_, other, _)), _) if name.covered_by.is_none() => format!(
                    "{} is served with a certificate that covers it by {}, and with one that does not by {}",
                    name.name, other.node, server.node
                ),
                (_, Some((_, other, _))) => format!(
                    "{} is served with certificates of different authorities: by {} of {}, by {} of {}",
                    name.name,
                    server.node,
                    server.certificate.issuer,
                    other.node,
                    other.certificate.issuer
                ),
                _ => continue,
            };
            found.push((index, name.name.clone(), why));
        }
    }
    for (index, name, message) in found {
        servers[index].findings.push(Problem {
            code: "served-differently".to_owned(),
            name: Some(name),
            message,
            fix: None,
            advice: Some(
                "clients get the one or the other as it falls: bring the nodes to the same"
                    .to_owned(),
            ),
        });
    }
}

/// Tells whether a name leads to any of several nodes.
fn is_shared(sources: &[NameSource]) -> bool {
    let shared = [
        NameSource::ClusterEndpoint,
        NameSource::VirtualAddress,
        NameSource::KubernetesService,
        NameSource::Kubeconfig,
        NameSource::Expected,
    ];
    sources.iter().any(|source| shared.contains(source))
}
