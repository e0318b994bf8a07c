//! Certificates in files: which kind of file it is, and every certificate in it with what it is for.
//!
//! Everything is a function of a path and bytes; finding and reading files is the caller's.

mod material;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use talos_config::yaml;
use talos_pki::{Certificate, Inspection, Purpose};

use crate::error::sentence;
use crate::evidence::{Kept, Place};

pub(crate) use material::{Damaged, certificates, walk};

/// What kind of file holds certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// Contexts of Talos clusters.
    Talosconfig,
    /// Users and clusters of Kubernetes.
    Kubeconfig,
    /// The configuration of a machine, or documents of one.
    MachineConfig,
    /// The secrets that a cluster is generated from.
    SecretsBundle,
    /// Objects of Kubernetes.
    Manifest,
    /// Other YAML or JSON.
    Yaml,
    /// PEM blocks.
    Pem,
    /// One certificate in DER.
    Der,
}

impl FileKind {
    /// Returns the words for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Talosconfig => "talosconfig",
            Self::Kubeconfig => "kubeconfig",
            Self::MachineConfig => "machine configuration",
            Self::SecretsBundle => "secrets bundle",
            Self::Manifest => "Kubernetes manifest",
            Self::Yaml => "YAML",
            Self::Pem => "PEM",
            Self::Der => "DER",
        }
    }
}

/// What a file holds.
#[derive(Clone, Debug)]
pub struct FileContents {
    /// Kind of file; absent for one that holds nothing of the kinds that are known.
    pub kind: Option<FileKind>,
    /// Its certificates, in their order.
    pub kept: Vec<Kept>,
    /// What in it cannot be read, with the part it is about.
    pub problems: Vec<FileProblem>,
    /// Files beside it that hold the rest, as a kubeconfig may name them.
    pub references: Vec<Reference>,
}

/// Something in a file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// Part of the file; empty for the whole.
    pub part: String,
    /// What is wrong.
    pub why: String,
    /// What stands in the place of a certificate that is damaged; empty where nothing can be decoded.
    pub der: Vec<u8>,
}

/// A file that another file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its path, relative to the file that names it.
    pub path: String,
    /// Part that names it.
    pub part: String,
    /// What its certificate is for.
    pub purpose: String,
}

/// Reads every certificate of a file, whatever kind of file it is; `path` is how it is called in the results.
pub fn read_file(path: &str, bytes: &[u8]) -> FileContents {
    let text = std::str::from_utf8(bytes).ok();
    let first = text.and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
    let is_pem = first.is_some_and(|line| line.trim_start().starts_with("-----BEGIN "));
    if let Some(text) = text.filter(|_| !is_pem)
        && let Ok(documents) = yaml::read_documents(text)
        && documents.iter().any(Value::is_object)
    {
        return of_documents(path, &documents);
    }
    let mut contents = FileContents {
        kind: None,
        kept: Vec::new(),
        problems: Vec::new(),
        references: Vec::new(),
    };
    let lossy = String::from_utf8_lossy(bytes);
    let results = if lossy.contains("-----BEGIN ") {
        contents.kind = Some(FileKind::Pem);
        certificates(&lossy)
    } else {
        match Certificate::from_der(bytes) {
            Ok(certificate) => {
                contents.kind = Some(FileKind::Der);
                vec![Ok(certificate)]
            }
            // What begins like a sequence in DER is meant to be one.
            Err(error) if bytes.starts_with(&[0x30]) && text.is_none_or(|text| text.len() < 64) => {
                contents.kind = Some(FileKind::Der);
                vec![Err(Damaged {
                    why: sentence(&error),
                    der: bytes.to_vec(),
                })]
            }
            Err(_) => Vec::new(),
        }
    };
    for result in results {
        contents.add(path, String::new(), result, |certificate| {
            generic(certificate).to_owned()
        });
    }
    if contents.kept.is_empty() && contents.problems.is_empty() {
        contents.problem(String::new(), "it holds no certificate".to_owned());
    }
    contents
}

fn of_documents(path: &str, documents: &[Value]) -> FileContents {
    let kind = documents.iter().find_map(kind_of).unwrap_or(FileKind::Yaml);
    let mut contents = FileContents {
        kind: Some(kind),
        kept: Vec::new(),
        problems: Vec::new(),
        references: Vec::new(),
    };
    for document in documents {
        for found in walk(document) {
            let steps: Vec<&str> = found.path.iter().map(String::as_str).collect();
            contents.add(
                path,
                part(kind, document, &steps),
                found.result,
                |certificate| purpose(kind, document, &steps, certificate),
            );
        }
        if kind == FileKind::Kubeconfig {
            contents.references.extend(references(document));
        }
    }
    if contents.kept.is_empty() && contents.problems.is_empty() && contents.references.is_empty() {
        contents.problem(String::new(), "it holds no certificate".to_owned());
    }
    contents
}

impl FileContents {
    fn add(
        &mut self,
        path: &str,
        part: String,
        result: Result<Certificate, Damaged>,
        purpose: impl FnOnce(&Certificate) -> String,
    ) {
        match result {
            Ok(certificate) => self.kept.push(Kept {
                node: None,
                place: Place::File {
                    path: path.to_owned(),
                    part,
                },
                purpose: purpose(&certificate),
                certificate,
                manager: None,
            }),
            Err(Damaged { why, der }) if der.is_empty() => self.problem(part, why),
            Err(Damaged { why, der }) => match Inspection::certificate_part(&der) {
                Some(shown) => self.problems.push(FileProblem {
                    part,
                    why,
                    der: shown.to_vec(),
                }),
                None => {
                    let shape = "it has not the shape of a certificate, so nothing of it is shown";
                    self.problem(part, format!("{why}; {shape}"));
                }
            },
        }
    }

    fn problem(&mut self, part: String, why: String) {
        self.problems.push(FileProblem {
            part,
            why,
            der: Vec::new(),
        });
    }
}

fn kind_of(document: &Value) -> Option<FileKind> {
    let has = |key: &str| document.get(key).is_some();
    let text = |key: &str| document.get(key).and_then(Value::as_str);
    // Other tools write the keys of a bundle with capitals.
    let certs = document.get("certs").or_else(|| document.get("Certs"));
    if certs.is_some_and(|certs| certs.get("os").is_some() || certs.get("OS").is_some()) {
        return Some(FileKind::SecretsBundle);
    }
    if document.get("contexts").is_some_and(Value::is_object) {
        return Some(FileKind::Talosconfig);
    }
    if has("clusters") && has("users") {
        return Some(FileKind::Kubeconfig);
    }
    if (has("machine") || has("cluster")) && !has("kind") {
        return Some(FileKind::MachineConfig);
    }
    match (text("kind"), text("apiVersion")) {
        (Some(_), Some("v1alpha1")) => Some(FileKind::MachineConfig),
        (Some(_), Some(_)) => Some(FileKind::Manifest),
        _ => None,
    }
}

/// Names the part of a file by the words that people know it by.
fn part(kind: FileKind, document: &Value, path: &[&str]) -> String {
    match (kind, path) {
        (FileKind::Talosconfig, ["contexts", name, ..]) => format!("context {name:?}"),
        (FileKind::Kubeconfig, ["clusters", name, ..]) => format!("cluster {name:?}"),
        (FileKind::Kubeconfig, ["users", name, ..]) => format!("user {name:?}"),
        _ => {
            let shown = match path {
                [rest @ .., "crt" | "cert"] => rest.join("."),
                _ => path.join("."),
            };
            let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str);
            let name = text("/name").or_else(|| text("/metadata/name"));
            match (text("/kind"), name) {
                (Some(kind), Some(name)) => format!("{kind} {name:?}: {shown}"),
                (Some(kind), None) => format!("{kind}: {shown}"),
                (None, _) => shown,
            }
        }
    }
}

fn purpose(kind: FileKind, document: &Value, path: &[&str], certificate: &Certificate) -> String {
    let known = match (kind, path) {
        (FileKind::Talosconfig, [.., "ca"]) => "Talos CA",
        (FileKind::Talosconfig, [.., "crt"]) => {
            return format!(
                "client of apid ({})",
                certificate.organizations().join(", ")
            );
        }
        (FileKind::Kubeconfig, ["clusters", ..]) => "Kubernetes CA",
        (FileKind::Kubeconfig, ["users", ..]) => "client of kube-apiserver",
        (FileKind::MachineConfig, ["machine", "ca", ..]) => "Talos CA",
        (FileKind::MachineConfig, ["machine", "acceptedCAs", ..]) => "accepted Talos CA",
        (FileKind::MachineConfig, ["cluster", "ca", ..]) => "Kubernetes CA",
        (FileKind::MachineConfig, ["cluster", "acceptedCAs", ..]) => "accepted Kubernetes CA",
        (FileKind::MachineConfig, ["cluster", "aggregatorCA", ..]) => "aggregator CA",
        (FileKind::MachineConfig, ["cluster", "etcd", "ca", ..]) => "etcd CA",
        (FileKind::MachineConfig, ["certificates"]) if document["kind"] == "TrustedRootsConfig" => {
            "trusted root"
        }
        (FileKind::MachineConfig, [key, ..]) if document["kind"] == "KubeAPIServerCAConfig" => {
            match *key {
                "acceptedCAs" => "accepted Kubernetes CA",
                _ => "Kubernetes CA",
            }
        }
        (FileKind::MachineConfig, [key, ..]) if document["kind"] == "KubeAggregatorCAConfig" => {
            match *key {
                "acceptedCAs" => "accepted aggregator CA",
                _ => "aggregator CA",
            }
        }
        (FileKind::SecretsBundle, [_, name, ..]) => match name.to_lowercase().as_str() {
            "os" => "Talos CA",
            "k8s" => "Kubernetes CA",
            "k8saggregator" => "aggregator CA",
            "etcd" => "etcd CA",
            _ => generic(certificate),
        },
        (FileKind::Manifest, [.., "tls.crt"]) => "TLS Secret",
        _ => generic(certificate),
    };
    known.to_owned()
}

/// Says what a certificate is for by what it says itself.
pub(crate) fn generic(certificate: &Certificate) -> &'static str {
    if certificate.is_ca() {
        return "certificate authority";
    }
    let purposes = certificate.extended_key_usage().unwrap_or_default();
    let serves = purposes.contains(&Purpose::ServerAuth);
    let calls = purposes.contains(&Purpose::ClientAuth);
    match (serves, calls) {
        (true, true) => "server and client",
        (true, false) => "server",
        (false, true) => "client",
        (false, false) => "certificate",
    }
}

/// Lists the files that a kubeconfig names.
fn references(document: &Value) -> Vec<Reference> {
    let lists = [
        (
            "clusters",
            "cluster",
            "certificate-authority",
            "Kubernetes CA",
        ),
        (
            "users",
            "user",
            "client-certificate",
            "client of kube-apiserver",
        ),
    ];
    let mut references = Vec::new();
    for (list, word, key, purpose) in lists {
        let entries = document.get(list).and_then(Value::as_array);
        for entry in entries.into_iter().flatten() {
            let name = entry.get("name").and_then(Value::as_str);
            let path = entry.pointer(&format!("/{word}/{key}"));
            if let Some(path) = path.and_then(Value::as_str).filter(|path| !path.is_empty()) {
                references.push(Reference {
                    path: path.to_owned(),
                    part: format!("{word} {:?}", name.unwrap_or_default()),
                    purpose: purpose.to_owned(),
                });
            }
        }
    }
    references
}

#[cfg(test)]
mod tests;
