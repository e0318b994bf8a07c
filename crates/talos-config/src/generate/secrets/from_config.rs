//! Secrets taken out of the machine configuration of a control plane.

use serde_json::Value;

use super::check::{Collector, Found};
use super::{Encryption, Secrets};
use crate::generate::Error;
use crate::machine::{MachineConfig, MachineType};

/// What errors call the configuration.
const WHAT: &str = "the machine configuration";

/// Secrets found in a configuration.
#[derive(Clone, Debug)]
pub struct FromConfig {
    /// The secrets.
    pub secrets: Secrets,
    /// What a bundle cannot hold.
    pub warnings: Vec<String>,
}

impl Secrets {
    /// Takes the secrets out of a control plane's machine configuration, whichever documents hold them.
    ///
    /// # Errors
    ///
    /// [`Error::Syntax`], [`Error::NotControlPlane`], or [`Error::Secrets`] with all that is missing or damaged.
    pub fn from_config(text: &str) -> Result<FromConfig, Error> {
        let config = MachineConfig::parse(text).map_err(|source| Error::Syntax { source })?;
        if config.machine_type() != Some(MachineType::ControlPlane) {
            return Err(Error::NotControlPlane);
        }
        let config = Config(&config);
        let mut collector = Collector::default();
        let mut warnings = Vec::new();
        let mut pair = |path: &str, kind: &str| {
            let (crt, key) = config.pair(&mut collector, path, kind);
            collector.authority(crt, key)
        };
        let (etcd, os) = (pair("/cluster/etcd/ca", ""), pair("/machine/ca", ""));
        let kubernetes = pair("/cluster/ca", "KubeAPIServerCAConfig");
        let aggregator = pair("/cluster/aggregatorCA", "KubeAggregatorCAConfig");
        let service_account =
            match config.document("KubeServiceAccountConfig", "/issuer/privateKey") {
                Some(found) => found,
                None => collector.base64(config.main("/cluster/serviceAccount/key")),
            };
        let identity = |pointer: &str, main: &str| {
            let own = config.document("DiscoveryIdentityConfig", pointer);
            own.unwrap_or_else(|| config.main(main))
        };
        let (secretbox, mut aes_cbc) = config.encryption();
        if secretbox.text.is_some() && aes_cbc.text.take().is_some() {
            warnings.push(format!(
                "{} is left out: a bundle holds one encryption secret, and new values are encrypted with {}",
                aes_cbc.field, secretbox.field
            ));
        }
        let secrets = Self {
            cluster_id: collector.required(identity("/clusterID", "/cluster/id")),
            cluster_secret: collector.required(identity("/clusterSecret", "/cluster/secret")),
            bootstrap_token: collector.required(config.main("/cluster/token")),
            trustd_token: collector.required(config.main("/machine/token")),
            encryption: collector.encryption(secretbox, aes_cbc),
            service_account: collector.key(service_account),
            etcd,
            kubernetes,
            aggregator,
            os,
        };
        match collector.problems.is_empty() {
            true => Ok(FromConfig { secrets, warnings }),
            false => Err(Error::Secrets {
                what: WHAT,
                problems: collector.problems,
            }),
        }
    }
}

struct Config<'a>(&'a MachineConfig);

impl Config<'_> {
    /// Finds a text in the main document.
    fn main(&self, pointer: &str) -> Found {
        found(
            pointer.trim_start_matches('/').replace('/', "."),
            self.0.main().and_then(|main| main.pointer(pointer)),
        )
    }

    /// Finds a text in a document of its own, if the configuration has the document.
    fn document(&self, kind: &str, pointer: &str) -> Option<Found> {
        let document = self.0.document(kind)?;
        let path = pointer.trim_start_matches('/').replace('/', ".");
        Some(found(format!("{kind}: {path}"), document.pointer(pointer)))
    }

    /// Finds an authority: plain PEM in a document of its own, else base64 in the main document.
    fn pair(&self, collector: &mut Collector, path: &str, kind: &str) -> (Found, Found) {
        if let (Some(crt), Some(key)) = (
            self.document(kind, "/issuingCA/cert"),
            self.document(kind, "/issuingCA/key"),
        ) {
            return (crt, key);
        }
        let mut main = |name: &str| collector.base64(self.main(&format!("{path}/{name}")));
        (main("crt"), main("key"))
    }

    /// Finds the two encryption secrets.
    fn encryption(&self) -> (Found, Found) {
        const KIND: &str = "KubeEtcdEncryptionConfig";
        let Some(document) = self.0.document(KIND) else {
            return (
                self.main("/cluster/secretboxEncryptionSecret"),
                self.main("/cluster/aescbcEncryptionSecret"),
            );
        };
        let resources = document.pointer("/config/resources");
        let providers = |name: &str| {
            let secret = resources
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|resource| resource.get("providers")?.as_array())
                .flatten()
                .filter_map(|provider| provider.get(name))
                .find_map(|provider| provider.pointer("/keys/0/secret"));
            found(format!("{KIND}: the {name} key"), secret)
        };
        (providers("secretbox"), providers("aescbc"))
    }
}

fn found(field: String, value: Option<&Value>) -> Found {
    let text = value.and_then(Value::as_str);
    Found {
        field,
        line: None,
        text: text.filter(|text| !text.is_empty()).map(str::to_owned),
    }
}

impl Encryption {
    /// Returns what KubeEtcdEncryptionConfig calls the provider and its key, with the secret.
    pub(in crate::generate) fn provider(&self) -> (&'static str, &'static str, &str) {
        match self {
            Self::Secretbox(secret) => ("secretbox", "key2", secret),
            Self::AesCbc(secret) => ("aescbc", "key1", secret),
        }
    }
}
