//! By which names and addresses a server is or may be reached.

use talos_pki::Name;

use super::{CheckOptions, host_of};
use crate::evidence::{Evidence, NodeFacts, Seen};
use crate::{NameSource, ServerKind};

/// Collects the names by which a server is or may be reached, each once, with all reasons.
pub(super) fn expected_names(
    seen: &Seen,
    facts: Option<&NodeFacts>,
    evidence: &Evidence,
    options: &CheckOptions,
) -> Vec<(Name, Vec<NameSource>)> {
    let mut names = Names::default();
    if let Some(facts) = facts
        && seen.kind != ServerKind::KubePrism
    {
        names.of_node(seen.kind, facts);
    }
    for (name, source) in &seen.reached_as {
        names.add(name, *source);
    }
    match seen.kind {
        ServerKind::KubeApiserver => names.of_kubernetes(facts, evidence),
        // It listens on loopback addresses only.
        ServerKind::KubePrism => names.of_kubeprism(),
        _ => {}
    }
    let expected = options.expected.iter();
    for expected in expected.filter(|expected| expected.is_of(seen)) {
        names.add(&expected.name, NameSource::Expected);
    }
    names.0
}

/// Tells whether a server presents the certificate of kube-apiserver.
pub(super) fn is_kubernetes(kind: ServerKind) -> bool {
    matches!(kind, ServerKind::KubeApiserver | ServerKind::KubePrism)
}

#[derive(Default)]
struct Names(Vec<(Name, Vec<NameSource>)>);

impl Names {
    fn add(&mut self, name: &Name, source: NameSource) {
        let entry = self.0.iter_mut().find(|(known, _)| known == name);
        match entry {
            Some((_, sources)) if sources.contains(&source) => {}
            Some((_, sources)) => sources.push(source),
            None => self.0.push((name.clone(), vec![source])),
        }
    }

    fn add_text(&mut self, name: &str, source: NameSource) {
        if let Ok(name) = Name::parse(name) {
            self.add(&name, source);
        }
    }

    fn of_node(&mut self, kind: ServerKind, facts: &NodeFacts) {
        // Other nodes forward requests to this one under the name the user gave it.
        if let (ServerKind::Apid, Ok(name)) = (kind, Name::parse(&facts.node)) {
            self.add(&name, NameSource::Node);
        }
        // A kubelet that issues its own certificate puts the host name into it and nothing else; kube-apiserver, which
        // is its only caller, does not verify it.
        if kind != ServerKind::Kubelet {
            for address in &facts.addresses {
                self.add(address, NameSource::NodeAddress);
            }
        }
        let most = match kind {
            ServerKind::Kubelet => 1,
            _ => facts.hostnames.len(),
        };
        for hostname in facts.hostnames.iter().take(most) {
            self.add(hostname, NameSource::Hostname);
        }
        if kind == ServerKind::Etcd {
            // kube-apiserver of the same node goes there.
            self.add_text("127.0.0.1", NameSource::Loopback);
        }
    }

    fn of_kubeprism(&mut self) {
        for name in ["127.0.0.1", "localhost"] {
            self.add_text(name, NameSource::KubePrism);
        }
    }

    fn of_kubernetes(&mut self, facts: Option<&NodeFacts>, evidence: &Evidence) {
        let endpoint = evidence.endpoint.as_ref();
        if let Some(host) = endpoint.and_then(|endpoint| host_of(&endpoint.url)) {
            self.add(&host, NameSource::ClusterEndpoint);
        }
        if let Some(host) = &evidence.kubeconfig_host {
            self.add(host, NameSource::Kubeconfig);
        }
        let Some(facts) = facts else { return };
        for address in &facts.virtual_addresses {
            self.add(address, NameSource::VirtualAddress);
        }
        // Components of the node itself go to KubePrism, or to the server on the same node.
        self.of_kubeprism();
        for address in &facts.service_addresses {
            self.add(address, NameSource::KubernetesService);
        }
        let short = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        for name in short {
            self.add_text(name, NameSource::KubernetesService);
        }
        if let Some(domain) = &facts.dns_domain {
            let name = format!("kubernetes.default.svc.{domain}");
            self.add_text(&name, NameSource::KubernetesService);
        }
    }
}
