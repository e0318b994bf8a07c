//! The files by which clients reach a cluster.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use talos_pki::Issued;

use crate::error::Error;
use crate::shared::Shared;

/// A talosconfig with one context.
pub(crate) fn talosconfig(
    shared: &Shared,
    context: &str,
    endpoints: &[String],
    client: &Issued,
) -> String {
    let endpoints = match endpoints {
        [] => " []\n".to_owned(),
        _ => endpoints.iter().fold("\n".to_owned(), |list, endpoint| {
            list + &format!("            - {endpoint}\n")
        }),
    };
    let ca = STANDARD.encode(shared.pki.talos.certificate().pem());
    let crt = STANDARD.encode(client.certificate.pem());
    let key = STANDARD.encode(client.key.pem().as_bytes());
    format!(
        "context: {context}\ncontexts:\n    {context}:\n        endpoints:{endpoints}        ca: {ca}\n        crt: {crt}\n        key: {key}\n"
    )
}

/// An administrator's kubeconfig with a fresh client certificate.
pub(crate) fn kubeconfig(shared: &Shared) -> Result<String, Error> {
    let client = shared
        .pki
        .kube_client("admin", "system:masters", shared.now())?;
    let name = &shared.options.name;
    let server = &shared.endpoint;
    let ca = STANDARD.encode(shared.pki.kubernetes.certificate().pem());
    let crt = STANDARD.encode(client.certificate.pem());
    let key = STANDARD.encode(client.key.pem().as_bytes());
    Ok(format!(
        "apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority-data: {ca}
    server: {server}
  name: {name}
contexts:
- context:
    cluster: {name}
    namespace: default
    user: admin@{name}
  name: admin@{name}
current-context: admin@{name}
users:
- name: admin@{name}
  user:
    client-certificate-data: {crt}
    client-key-data: {key}
"
    ))
}
