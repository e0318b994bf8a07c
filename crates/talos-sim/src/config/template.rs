//! The machine configurations that a simulated cluster starts with.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::RngExt as _;
use talos_pki::{Algorithm, Authority, PrivateKey};

use super::Given;
use crate::error::Error;
use crate::options::{Options, TalosVersion};
use crate::pki::ClusterPki;

const CONTROL_PLANE: &str = include_str!("../../data/machineconfig-controlplane.yaml");
const WORKER: &str = include_str!("../../data/machineconfig-worker.yaml");

/// Feature switches that configurations had before Talos 1.12.
const OLD_FEATURES: &str =
    "        rbac: true\n        stableHostname: true\n        apidCheckExtKeyUsage: true\n";
/// How host names were set before Talos 1.12.
const OLD_NETWORK: &str = "    network:\n        hostname: {{host}}\n";
/// How host names are set since Talos 1.12.
const HOSTNAME_DOCUMENT: &str = "---\n# The host name is fixed, so that nodes can be told apart.\napiVersion: v1alpha1\nkind: HostnameConfig\nauto: \"off\"\nhostname: {{host}}\n";

/// Fills configurations of the machines of one cluster; secrets are made once.
pub(crate) struct Template {
    /// `cluster.id`.
    pub(crate) cluster_id: String,
    /// `machine.token`.
    pub(crate) machine_token: String,
    control_plane: String,
    worker: String,
    /// Whether somebody else made the texts, which are not filled in then.
    is_given: bool,
}

impl Template {
    pub(crate) fn new(options: &Options, endpoint: &str, pki: &ClusterPki) -> Result<Self, Error> {
        let is_old = options.talos_version < TalosVersion::V1_13_9;
        let (features, network, documents) = if is_old {
            (OLD_FEATURES, OLD_NETWORK, "")
        } else {
            ("", "", HOSTNAME_DOCUMENT)
        };
        let service_account =
            PrivateKey::generate(Algorithm::EcdsaP256).map_err(|source| Error::Certificate {
                owner: "service accounts".to_owned(),
                source,
            })?;
        let certificate = |authority: &Authority| STANDARD.encode(authority.certificate().pem());
        let key = |authority: &Authority| STANDARD.encode(authority.key().pem().as_bytes());
        let (cluster_id, machine_token) = (secret(), token());
        let values = [
            // Parts first: they hold further marks.
            ("features", features.to_owned()),
            ("network", network.to_owned()),
            ("documents", documents.to_owned()),
            ("machine-token", machine_token.clone()),
            ("bootstrap-token", token()),
            ("cluster-id", cluster_id.clone()),
            ("cluster-secret", secret()),
            ("encryption-secret", secret()),
            ("talos-ca-crt", certificate(&pki.talos)),
            ("talos-ca-key", key(&pki.talos)),
            ("kubernetes-ca-crt", certificate(&pki.kubernetes)),
            ("kubernetes-ca-key", key(&pki.kubernetes)),
            ("aggregator-ca-crt", certificate(&pki.aggregator)),
            ("aggregator-ca-key", key(&pki.aggregator)),
            ("etcd-ca-crt", certificate(&pki.etcd)),
            ("etcd-ca-key", key(&pki.etcd)),
            (
                "service-account-key",
                STANDARD.encode(service_account.pem().as_bytes()),
            ),
            ("endpoint", endpoint.to_owned()),
            ("name", options.name.clone()),
            ("kubernetes", options.kubernetes_version.clone()),
            ("talos", options.talos_version.tag().to_owned()),
            ("machine-cert-sans", list(&options.machine_cert_sans, 8)),
            (
                "api-server-cert-sans",
                list(&options.api_server_cert_sans, 12),
            ),
        ];
        let fill = |text: &str| {
            let mut text = text.trim_end().to_owned() + "\n";
            for (mark, value) in &values {
                text = text.replace(&format!("{{{{{mark}}}}}"), value);
            }
            text
        };
        Ok(Self {
            control_plane: fill(CONTROL_PLANE),
            worker: fill(WORKER),
            cluster_id,
            machine_token,
            is_given: false,
        })
    }

    /// Takes configurations that somebody else made.
    pub(crate) fn given(given: &Given<'_>) -> Self {
        let (control_plane, worker) = given.texts();
        Self {
            cluster_id: given.cluster_id().unwrap_or_default().to_owned(),
            machine_token: given.machine_token().unwrap_or_default().to_owned(),
            control_plane,
            worker,
            is_given: true,
        }
    }

    /// The configuration of one machine.
    pub(crate) fn of(&self, is_control_plane: bool, host: &str) -> String {
        let text = if is_control_plane {
            &self.control_plane
        } else {
            &self.worker
        };
        if self.is_given {
            return text.clone();
        }
        text.replace("{{host}}", host).trim_end().to_owned() + "\n"
    }
}

/// A token of the form `abcdef.0123456789abcdef`.
fn token() -> String {
    let alphabet = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut random = rand::rng();
    let mut letters = |count: usize| -> String {
        (0..count)
            .map(|_| char::from(alphabet[random.random_range(0..alphabet.len())]))
            .collect()
    };
    format!("{}.{}", letters(6), letters(16))
}

/// 32 random bytes.
fn secret() -> String {
    STANDARD.encode(rand::random::<[u8; 32]>())
}

/// A YAML list below a key, its items indented by `indent` spaces.
fn list(items: &[String], indent: usize) -> String {
    if items.is_empty() {
        return "[]".to_owned();
    }
    let pad = " ".repeat(indent);
    items
        .iter()
        .map(|item| format!("\n{pad}- {}", quoted(item)))
        .collect()
}

/// Quotes what plain YAML would not read as a string, such as an IPv6 address.
fn quoted(item: &str) -> String {
    let is_plain = item
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    if is_plain {
        item.to_owned()
    } else {
        format!("{item:?}")
    }
}
