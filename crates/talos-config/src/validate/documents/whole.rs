//! What Talos 1.14 checks in a configuration as a whole, whichever document says it.

use std::collections::HashMap;

use super::items;
use crate::facts::CONTROL_PLANE_ONLY;
use crate::validate::Mode;
use crate::validate::at::{At, Document};
use crate::validate::sink::Sink;
use crate::validate::target::Context;

/// The label of nodes that are control planes.
const ROLE: &str = "node-role.kubernetes.io/control-plane";

/// A configuration whose documents are told apart.
struct Whole<'a> {
    documents: &'a [Document<'a>],
    main: Option<&'a Document<'a>>,
    /// Where something is reported that no document says.
    first: &'a Document<'a>,
}

/// Checks a configuration as a whole.
pub(super) fn check(documents: &[Document<'_>], context: &Context<'_>, sink: &mut Sink<'_>) {
    let main = documents.iter().find(|document| document.is_main());
    let Some(first) = main.or(documents.first()) else {
        return;
    };
    let whole = Whole {
        documents,
        main,
        first,
    };
    whole.host_dns(context.mode, sink);
    whole.discovery(sink);
    whole.machine_type(sink);
    whole.dependencies(sink);
}

impl<'a> Whole<'a> {
    fn document(&self, kind: &str) -> Option<&'a Document<'a>> {
        self.documents.iter().find(|document| document.kind == kind)
    }

    /// Returns whether the main document has a value.
    fn has(&self, path: &[&str]) -> bool {
        self.main.is_some_and(|main| {
            let root = main.root();
            root.fields(path).is_set()
        })
    }

    /// Returns whether the main document has a text.
    fn says(&self, path: &[&str]) -> bool {
        self.main.is_some_and(|main| {
            let root = main.root();
            !root.fields(path).is_blank()
        })
    }

    /// Returns whether the main document has a `true`.
    fn is_true(&self, path: &[&str]) -> bool {
        self.main.is_some_and(|main| {
            let root = main.root();
            root.fields(path).is_true()
        })
    }

    fn host_dns(&self, mode: Mode, sink: &mut Sink<'_>) {
        let resolver = self.document("ResolverConfig");
        let own = resolver.is_some_and(|document| {
            let root = document.root();
            root.fields(&["hostDNS", "enabled"]).is_true()
        });
        let legacy = ["machine", "features", "hostDNS"];
        let on = own || self.is_true(&["machine", "features", "hostDNS", "enabled"]);
        if mode == Mode::Container {
            let forwards = match (own, resolver) {
                (true, Some(document)) => {
                    let root = document.root();
                    root.fields(&["hostDNS", "forwardKubeDNSToHost"]).is_true()
                }
                _ => self.is_true(&["machine", "features", "hostDNS", "forwardKubeDNSToHost"]),
            };
            let mut needs = |document: &Document<'_>, path: &[&str]| {
                let root = document.root();
                let finding = sink.error(
                    "missing-field",
                    &root.fields(path),
                    "it must be on in a container",
                );
                finding.hint("hostDNS: {enabled: true, forwardKubeDNSToHost: true}");
            };
            let (document, prefix): (_, &[&str]) = match (resolver, self.has(&legacy)) {
                (Some(document), false) => (document, &["hostDNS"]),
                _ => (self.first, &legacy),
            };
            for (key, good) in [("enabled", on), ("forwardKubeDNSToHost", forwards)] {
                if !good {
                    needs(document, &[prefix, &[key]].concat());
                }
            }
        }
        let Some(document) = resolver.filter(|_| !on) else {
            return;
        };
        let root = document.root();
        let servers = root.field("nameservers");
        for server in items(&servers) {
            let protocol = server.field("protocol");
            if !matches!(&*protocol.text().to_ascii_lowercase(), "" | "do53") {
                let finding = sink.error(
                    "conflict",
                    &protocol,
                    "encrypted DNS needs the resolver of the host",
                );
                finding.hint("hostDNS: {enabled: true}");
            }
        }
    }

    fn discovery(&self, sink: &mut Sink<'_>) {
        let cluster = ["cluster", "discovery"];
        let registry = ["cluster", "discovery", "registries", "service", "disabled"];
        let legacy = self.is_true(&["cluster", "discovery", "enabled"]) && !self.is_true(&registry);
        let document = self.document("DiscoveryServiceConfig");
        if !legacy && document.is_none() {
            return self.kubespan(sink);
        }
        let (says, path): (_, &[&str]) = match document {
            Some(document) if !legacy => (document, &[]),
            _ => (self.first, &cluster),
        };
        let main = self.says(&["cluster", "id"]) || self.says(&["cluster", "secret"]);
        let identity = self.document("DiscoveryIdentityConfig").filter(|_| !main);
        for (key, own, main) in [
            ("id", "clusterID", ["cluster", "id"]),
            ("secret", "clusterSecret", ["cluster", "secret"]),
        ] {
            let own = identity.is_some_and(|document| {
                let root = document.root();
                !root.field(own).is_blank()
            });
            if !own && !self.says(&main) {
                let root = says.root();
                let finding = sink.error(
                    "missing-field",
                    &root.fields(path),
                    format!("discovery needs the {key} of the cluster"),
                );
                finding.hint("a document of kind DiscoveryIdentityConfig has id and secret");
            }
        }
    }

    /// Checks KubeSpan where there is no discovery.
    fn kubespan(&self, sink: &mut Sink<'_>) {
        let legacy = ["machine", "network", "kubespan", "enabled"];
        let (document, path): (_, &[&str]) = match self.document("KubeSpanConfig") {
            Some(document) => (document, &["enabled"]),
            None => (self.first, &legacy),
        };
        let root = document.root();
        let at = root.fields(path);
        if at.is_true() {
            let finding = sink.error(
                "conflict",
                &at,
                "KubeSpan needs discovery of the members of the cluster",
            );
            finding.hint("add a document of kind DiscoveryServiceConfig");
        }
    }

    fn machine_type(&self, sink: &mut Sink<'_>) {
        let kind = self.main.map_or_else(String::new, |main| {
            let root = main.root();
            root.fields(&["machine", "type"]).text().into_owned()
        });
        let control_plane = matches!(&*kind, "init" | "controlplane");
        let ca = self.document("KubeAPIServerCAConfig");
        let kubernetes =
            ca.is_some() || self.has(&["cluster", "ca"]) || self.has(&["cluster", "acceptedCAs"]);
        let root = ca.unwrap_or(self.first).root();
        let keys: &[&str] = if ca.is_some() { &[] } else { &["cluster"] };
        let at = root.fields(keys);
        let endpoint = self.document("KubeClusterConfig").is_some()
            || self.says(&["cluster", "controlPlane", "endpoint"]);
        if kubernetes && !endpoint {
            let finding = sink.error(
                "missing-field",
                &at,
                "Kubernetes needs a name and an endpoint of the cluster",
            );
            finding.hint("a document of kind KubeClusterConfig has both");
        }
        if !control_plane {
            let documents = self.documents.iter();
            for document in documents.filter(|document| CONTROL_PLANE_ONLY.contains(&document.kind))
            {
                sink.error(
                    "control-plane-only",
                    &document.root(),
                    "only a machine of type controlplane can have it",
                );
            }
            return;
        }
        let encrypted = self.says(&["cluster", "secretboxEncryptionSecret"])
            || self.says(&["cluster", "aescbcEncryptionSecret"])
            || self.document("KubeEtcdEncryptionConfig").is_some();
        if kubernetes && !encrypted {
            let finding = sink.error("missing-field", &at, "it is not said how etcd is encrypted");
            finding.hint("a document of kind KubeEtcdEncryptionConfig says it");
        }
        if let Some(document) = self.document("KubeNodeConfig") {
            node_label(&document.root(), sink);
        }
    }

    /// Checks that containers wait for others that exist, and not in a circle.
    fn dependencies(&self, sink: &mut Sink<'_>) {
        let containers: Vec<&Document<'_>> = self
            .documents
            .iter()
            .filter(|document| document.kind == "ContainerConfig")
            .collect();
        let positions: HashMap<&str, usize> = containers
            .iter()
            .enumerate()
            .map(|(index, document)| (document.name, index))
            .collect();
        let waits: Vec<Vec<usize>> = containers
            .iter()
            .map(|document| {
                let root = document.root();
                let list = root.fields(&["dependsOn", "containers"]);
                let mut found = Vec::new();
                for item in items(&list).filter(|item| !item.is_blank()) {
                    let name = item.text();
                    match positions.get(&*name) {
                        Some(other) => found.push(*other),
                        None => {
                            sink.error("bad-value", &item, format!("there is no container {name}"));
                        }
                    }
                }
                found
            })
            .collect();
        for (index, document) in containers.iter().enumerate() {
            // A container that waits for itself is reported with its document.
            if !waits[index].contains(&index) && reaches(index, &waits) {
                let root = document.root();
                let at = root.fields(&["dependsOn", "containers"]);
                sink.error(
                    "conflict",
                    &at,
                    "the containers wait for each other in a circle",
                );
            }
        }
    }
}

/// Returns whether the containers that one waits for wait for it.
fn reaches(start: usize, waits: &[Vec<usize>]) -> bool {
    let mut seen = vec![false; waits.len()];
    let mut open = waits[start].clone();
    while let Some(next) = open.pop() {
        if next == start {
            return true;
        }
        if !std::mem::replace(&mut seen[next], true) {
            open.extend(&waits[next]);
        }
    }
    false
}

fn node_label(root: &At<'_>, sink: &mut Sink<'_>) {
    let labels = root.field("labels");
    if labels.entries().any(|(key, _)| key == ROLE) || root.field("skipNodeRegistration").is_true()
    {
        return;
    }
    let finding = sink.warning(
        "missing-field",
        &labels,
        format!("a control plane should have the label {ROLE}"),
    );
    finding.hint("labels and taints of a KubeNodeConfig are all there is: Talos adds none to them");
}
