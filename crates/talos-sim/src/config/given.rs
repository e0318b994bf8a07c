//! Machine configurations that somebody else made, and what a cluster takes from them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use talos_pki::Authority;

use super::{Documents, decode, validate};
use crate::error::Error;
use crate::node::MachineType;
use crate::options::{BootConfigs, Options};
use crate::pki::ClusterPki;

/// Configurations that a cluster boots with, read and found to be good.
pub(crate) struct Given<'a> {
    texts: &'a BootConfigs,
    control_plane: Documents,
}

const CONTROL_PLANES: &str = "control planes";
const WORKERS: &str = "workers";

impl<'a> Given<'a> {
    /// Reads the configurations as the machines would.
    pub(crate) fn read(texts: &'a BootConfigs, options: &Options) -> Result<Self, Error> {
        let control_plane = boot(CONTROL_PLANES, &texts.control_plane, options)?;
        if control_plane.machine_type() != MachineType::ControlPlane {
            return Err(refuse(
                CONTROL_PLANES,
                "its machine type is not controlplane",
            ));
        }
        let given = Self {
            texts,
            control_plane,
        };
        match &texts.worker {
            Some(text) => given.check_worker(&boot(WORKERS, text, options)?)?,
            None if options.workers > 0 => return Err(refuse(WORKERS, "there is none")),
            None => {}
        }
        Ok(given)
    }

    fn check_worker(&self, worker: &Documents) -> Result<(), Error> {
        if worker.machine_type() != MachineType::Worker {
            return Err(refuse(WORKERS, "its machine type is not worker"));
        }
        let certificate = |documents: &Documents| {
            let crt = documents.at("/machine/ca/crt").and_then(Value::as_str);
            crt.map(str::to_owned)
        };
        match certificate(worker) == certificate(&self.control_plane) {
            true => Ok(()),
            false => Err(refuse(
                WORKERS,
                "its machine.ca is not that of the control planes: it belongs to another cluster",
            )),
        }
    }

    /// The authorities, with the keys that control planes have.
    pub(crate) fn pki(&self) -> Result<ClusterPki, Error> {
        Ok(ClusterPki {
            talos: self.authority("", "/machine/ca")?,
            kubernetes: self.authority("KubeAPIServerCAConfig", "/cluster/ca")?,
            aggregator: self.authority("KubeAggregatorCAConfig", "/cluster/aggregatorCA")?,
            etcd: self.authority("", "/cluster/etcd/ca")?,
        })
    }

    /// The name of the cluster.
    pub(crate) fn cluster_name(&self) -> Option<&str> {
        let own = self.control_plane.of_kind("KubeClusterConfig");
        let own = own.and_then(|document| document.get("clusterName"));
        own.or_else(|| self.control_plane.at("/cluster/clusterName"))?
            .as_str()
    }

    /// What identifies the cluster to the discovery service.
    pub(crate) fn cluster_id(&self) -> Option<&str> {
        let own = self.control_plane.of_kind("DiscoveryIdentityConfig");
        let own = own.and_then(|document| document.get("clusterID"));
        own.or_else(|| self.control_plane.at("/cluster/id"))?
            .as_str()
    }

    /// The token by which trustd knows workers.
    pub(crate) fn machine_token(&self) -> Option<&str> {
        self.control_plane.at("/machine/token")?.as_str()
    }

    /// The URL of the Kubernetes API.
    pub(crate) fn endpoint(&self) -> Option<&str> {
        self.control_plane.endpoint()
    }

    /// The version of Kubernetes that kube-apiserver's image names.
    pub(crate) fn kubernetes_version(&self) -> Option<&str> {
        let image = self.control_plane.image("apiServer")?;
        let (_, tag) = image.split('@').next()?.rsplit_once(':')?;
        tag.strip_prefix('v')
    }

    /// The texts of a control plane and of a worker.
    pub(crate) fn texts(&self) -> (String, String) {
        let worker = self.texts.worker.clone();
        (self.texts.control_plane.clone(), worker.unwrap_or_default())
    }

    /// An authority in a document of its own, as PEM, or in the main document, as base64 of PEM.
    fn authority(&self, kind: &str, pointer: &str) -> Result<Authority, Error> {
        let own = self.control_plane.of_kind(kind);
        let own = own.and_then(|document| document.get("issuingCA"));
        let (crt, key) = match own {
            Some(pair) => (plain(pair, "cert"), plain(pair, "key")),
            None => {
                let pair = self.control_plane.at(pointer).unwrap_or(&Value::Null);
                (encoded(pair, "crt"), encoded(pair, "key"))
            }
        };
        let place = match own {
            Some(_) => format!("{kind} issuingCA"),
            None => pointer.trim_start_matches('/').replace('/', "."),
        };
        let (Some(crt), Some(key)) = (crt, key) else {
            let problem = format!("{place} has no certificate or no key");
            return Err(refuse(CONTROL_PLANES, problem));
        };
        Authority::from_pem(crt, key)
            .map_err(|error| refuse(CONTROL_PLANES, format!("{place}: {error}")))
    }
}

/// Reads a configuration and applies the machine's rules.
fn boot(machines: &'static str, text: &str, options: &Options) -> Result<Documents, Error> {
    let documents =
        decode(text, options.talos_version).map_err(|problem| refuse(machines, problem))?;
    let findings = validate(&documents, options.platform);
    match &findings.errors[..] {
        [] => Ok(documents),
        errors => Err(refuse(machines, errors.join("; "))),
    }
}

fn plain(pair: &Value, key: &str) -> Option<Vec<u8>> {
    Some(pair.get(key)?.as_str()?.as_bytes().to_vec())
}

fn encoded(pair: &Value, key: &str) -> Option<Vec<u8>> {
    STANDARD.decode(pair.get(key)?.as_str()?).ok()
}

fn refuse(machines: &'static str, problem: impl Into<String>) -> Error {
    Error::Config {
        machines,
        problem: problem.into(),
    }
}
