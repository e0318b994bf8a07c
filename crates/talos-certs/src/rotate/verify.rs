//! Whether a node is where it should be: asked with old and new credentials, and seen in its resources.

use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;
use talos_client::{Client, Node, ProxyRules, SystemRoots};
use talos_kube::{Node as KubeNode, Options, Patience, reach_through};
use talos_pki::{Certificate, is_issued_by};

use super::access::Clients;
use super::{Rotated, Rotation, Round};
use crate::error::sentence;

/// What is looked for on a node.
pub(super) struct Wanted<'a> {
    pub(super) rotation: &'a Rotation,
    pub(super) round: Round,
    pub(super) is_control_plane: bool,
    /// Whether the configuration of this node names an issuing authority.
    pub(super) issues: bool,
}

/// A secret of a node, by namespace `secrets`.
type Secret = (&'static str, &'static str);

const API: Secret = ("ApiCertificates.secrets.talos.dev", "api");
const TRUSTD: Secret = ("TrustdCertificates.secrets.talos.dev", "trustd");
const KUBELET: Secret = ("KubeletSecrets.secrets.talos.dev", "kubelet");
const KUBERNETES_ROOT: Secret = ("KubernetesRootSecrets.secrets.talos.dev", "k8s");
const DYNAMIC: Secret = (
    "KubernetesDynamicCerts.secrets.talos.dev",
    "k8s-dynamic-certs",
);

/// Looks at a node once; an error says what is missing still.
pub(super) async fn look(clients: &Clients, node: &str, wanted: &Wanted<'_>) -> Result<(), String> {
    match wanted.rotation.authority {
        Rotated::Talos => talos(clients, node, wanted).await,
        Rotated::Kubernetes => kubernetes(clients, node, wanted).await,
    }
}

async fn talos(clients: &Clients, node: &str, wanted: &Wanted<'_>) -> Result<(), String> {
    let new = wanted.rotation.new.certificate();
    let api = secret(clients, node, API).await?;
    accepted(&api, wanted)?;
    let issued = wanted.round >= Round::IssueNew;
    if issued {
        is_new(&api, "/server/crt", "apid's certificate", new)?;
        if wanted.is_control_plane {
            is_new(&api, "/client/crt", "apid's client certificate", new)?;
            let trustd = secret(clients, node, TRUSTD).await?;
            is_new(&trustd, "/server/crt", "trustd's certificate", new)?;
        }
    }
    if wanted.round < Round::DropOld {
        answers(&clients.old, node, "the old credentials").await?;
    }
    let Some(renewed) = &clients.new else {
        return Ok(());
    };
    answers(&renewed.client, node, "the new credentials").await?;
    match renewed.strict(node, new).filter(|_| issued) {
        Some(strict) => answers(&strict, node, "the new authority alone").await,
        None => Ok(()),
    }
}

async fn answers(client: &Client, node: &str, with: &str) -> Result<(), String> {
    match client.node(node).version().await {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("no answer with {with}: {}", sentence(&error))),
    }
}

async fn kubernetes(clients: &Clients, node: &str, wanted: &Wanted<'_>) -> Result<(), String> {
    accepted(&secret(clients, node, KUBELET).await?, wanted)?;
    if wanted.is_control_plane {
        accepted(&secret(clients, node, KUBERNETES_ROOT).await?, wanted)?;
        if wanted.round >= Round::IssueNew {
            let new = wanted.rotation.new.certificate();
            let dynamic = secret(clients, node, DYNAMIC).await?;
            is_new(
                &dynamic,
                "/apiServer/crt",
                "kube-apiserver's certificate",
                new,
            )?;
            let kubelet = "/apiServerKubeletClient/crt";
            is_new(
                &dynamic,
                kubelet,
                "kube-apiserver's client certificate",
                new,
            )?;
        }
    }
    match kubelet(clients, node).await?.healthy {
        true => Ok(()),
        false => Err("the kubelet is not healthy".to_owned()),
    }
}

/// How the Kubernetes API is reached, to see nodes ready there.
#[derive(Clone)]
pub struct RotateKubernetes {
    /// The only address to dial; else what the kubeconfig says.
    pub endpoint: Option<String>,
    /// Which proxy to dial through.
    pub proxy: ProxyRules,
    /// How patient to be.
    pub patience: Patience,
    /// Who vouches for a proxy that is spoken to over TLS.
    pub system_roots: SystemRoots,
}

/// Looks whether Kubernetes has a node ready, by way of the first control plane that answers; an error says why not.
pub(super) async fn ready(
    clients: &Clients,
    control_planes: &[&str],
    node: &str,
    kubernetes: &RotateKubernetes,
    now: Timestamp,
) -> Result<(), String> {
    let mut failure = "there is no control plane to ask".to_owned();
    for name in control_planes {
        let client = clients.preferred();
        let through = client.node(*name);
        let kubeconfig = match through.kubeconfig().await {
            Ok(kubeconfig) => kubeconfig,
            Err(error) => {
                failure = format!("no kubeconfig from {name}: {}", sentence(&error));
                continue;
            }
        };
        let options = Options {
            endpoint: kubernetes.endpoint.clone(),
            proxy: kubernetes.proxy.clone(),
            patience: kubernetes.patience,
            system_roots: kubernetes.system_roots,
            search: Duration::ZERO,
            ..Options::new(now)
        };
        let seen = match reach_through(&through, &kubeconfig, options).await {
            Ok(api) => api.nodes().await,
            Err(error) => Err(error),
        };
        match seen {
            Ok(nodes) => {
                let found = nodes.iter().find(|one| is_called(one, node));
                return match found {
                    Some(found) if found.ready => Ok(()),
                    Some(_) => Err("it is not ready in Kubernetes".to_owned()),
                    None => Err("Kubernetes does not know it".to_owned()),
                };
            }
            Err(error) => failure = format!("Kubernetes does not answer: {}", sentence(&error)),
        }
    }
    Err(failure)
}

fn is_called(node: &KubeNode, name: &str) -> bool {
    let mut names = node.addresses.iter().chain([&node.name]);
    let ip = name.parse::<IpAddr>();
    names.any(|one| match (&ip, one.parse::<IpAddr>()) {
        (Ok(ip), Ok(one)) => *ip == one,
        _ => one.eq_ignore_ascii_case(name),
    })
}

/// The kubelet of a node, as a service of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kubelet {
    /// Whether it runs and is healthy.
    pub(super) healthy: bool,
    /// When it was started.
    pub(super) created: Option<Timestamp>,
}

pub(super) async fn kubelet(clients: &Clients, node: &str) -> Result<Kubelet, String> {
    let service = clients
        .ask(node, async |node: Node| {
            node.get("runtime", "Services.v1alpha1.talos.dev", "kubelet")
                .await
        })
        .await
        .map_err(|error| format!("the kubelet is not seen: {}", sentence(&error)))?;
    let spec = service.spec().map_err(|error| sentence(&error))?;
    let is = |key: &str| spec.get(key) == Some(&Value::Bool(true));
    Ok(Kubelet {
        healthy: is("running") && is("healthy"),
        created: service.metadata.created,
    })
}

async fn secret(clients: &Clients, node: &str, (kind, id): Secret) -> Result<Value, String> {
    let found = clients.ask(node, async |node: Node| node.get("secrets", kind, id).await);
    let found = found
        .await
        .map_err(|error| format!("{kind} is not seen: {}", sentence(&error)))?;
    found.spec().map_err(|error| sentence(&error))
}

/// Holds the accepted authorities of a secret against what they should be.
fn accepted(secret: &Value, wanted: &Wanted<'_>) -> Result<(), String> {
    let list = secret.get("acceptedCAs").and_then(Value::as_array);
    let list: Vec<Certificate> = list
        .into_iter()
        .flatten()
        .filter_map(|entry| certificate(entry.get("crt")))
        .collect();
    let has = |one: &Certificate| list.iter().any(|known| known.der() == one.der());
    let Wanted { rotation, .. } = wanted;
    if !has(rotation.new.certificate()) {
        return Err("the new authority is not accepted yet".to_owned());
    }
    match (wanted.round, has(&rotation.old)) {
        (Round::DropOld, true) => Err("the old authority is accepted still".to_owned()),
        (Round::AcceptNew | Round::IssueNew, false) if wanted.issues => {
            Err("the old authority is not accepted any more".to_owned())
        }
        _ => Ok(()),
    }
}

fn is_new(secret: &Value, pointer: &str, what: &str, new: &Certificate) -> Result<(), String> {
    match certificate(secret.pointer(pointer)) {
        Some(leaf) if is_issued_by(&leaf, new) => Ok(()),
        Some(_) => Err(format!("{what} is not of the new authority yet")),
        None => Err(format!("{what} is not there")),
    }
}

fn certificate(value: Option<&Value>) -> Option<Certificate> {
    let pem = STANDARD.decode(value?.as_str()?).ok()?;
    Some(Certificate::many_from_pem(pem).ok()?.swap_remove(0))
}
