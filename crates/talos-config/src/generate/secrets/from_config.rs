//! Secrets taken out of the machine configuration of a control plane.

use super::check::{Collector, Found, Held};
use super::{Encryption, FoundSecrets, Secrets};
use crate::facts::is_main;
use crate::generate::Error;
use crate::yaml::{Node, Step, Stream};

/// What errors call the configuration.
const WHAT: &str = "the machine configuration";

impl Secrets {
    /// Takes the secrets out of a control plane's machine configuration, whichever documents hold them.
    ///
    /// # Errors
    ///
    /// [`Error::Syntax`], [`Error::NotControlPlane`], or [`Error::Secrets`] with all that is missing or damaged.
    pub fn from_config(text: &str) -> Result<FoundSecrets, Error> {
        let stream = Stream::parse(text).map_err(|source| Error::Syntax { source })?;
        let config = Config(&stream);
        let machine_type = config.main("/machine/type").held;
        if !matches!(machine_type, Held::Text(kind) if kind == "controlplane" || kind == "init") {
            return Err(Error::NotControlPlane);
        }
        let mut collector = Collector::default();
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
        if !matches!(secretbox.held, Held::Nothing) && !matches!(aes_cbc.held, Held::Nothing) {
            let reason = format!(
                "is left out: a bundle holds one encryption secret, and new values are encrypted with {}",
                secretbox.field
            );
            collector.warn(&aes_cbc, &reason);
            aes_cbc.held = Held::Nothing;
        }
        let secrets = Self {
            cluster_id: collector.cluster_id(identity("/clusterID", "/cluster/id")),
            cluster_secret: collector.cluster_secret(identity("/clusterSecret", "/cluster/secret")),
            bootstrap_token: collector.bootstrap_token(config.main("/cluster/token")),
            trustd_token: collector.trustd_token(config.main("/machine/token")),
            encryption: collector.encryption(secretbox, aes_cbc),
            service_account: collector.key(service_account),
            etcd,
            kubernetes,
            aggregator,
            os,
        };
        let warnings = collector.finish(WHAT)?;
        Ok(FoundSecrets { secrets, warnings })
    }
}

struct Config<'a>(&'a Stream);

impl Config<'_> {
    /// Finds a text in the main document.
    fn main(&self, pointer: &str) -> Found {
        let main = self.0.roots().position(is_main);
        self.found(main, "", pointer)
    }

    /// Finds a text in a document of its own, if the configuration has the document.
    fn document(&self, kind: &str, pointer: &str) -> Option<Found> {
        let index = self.position(kind)?;
        Some(self.found(Some(index), &format!("{kind}: "), pointer))
    }

    fn position(&self, kind: &str) -> Option<usize> {
        let is_kind = |root: &Node| root.get("kind").and_then(Node::as_str) == Some(kind);
        self.0.roots().position(is_kind)
    }

    fn found(&self, index: Option<usize>, document: &str, pointer: &str) -> Found {
        let keys: Vec<&str> = pointer.split('/').filter(|key| !key.is_empty()).collect();
        let node = index
            .and_then(|index| self.0.root(index))
            .and_then(|root| root.at(&keys));
        let steps: Vec<Step> = keys.iter().map(|key| Step::from(*key)).collect();
        Found {
            field: format!("{document}{}", keys.join(".")),
            line: index.and_then(|index| self.0.line(index, &steps)),
            held: Held::of(self.0, node),
        }
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
        let Some(index) = self.position(KIND) else {
            return (
                self.main("/cluster/secretboxEncryptionSecret"),
                self.main("/cluster/aescbcEncryptionSecret"),
            );
        };
        let resources = self
            .0
            .root(index)
            .and_then(|root| root.at(&["config", "resources"]));
        let provider = |name: &str| {
            let secret = resources
                .into_iter()
                .flat_map(Node::items)
                .filter_map(|resource| resource.get("providers"))
                .flat_map(Node::items)
                .filter_map(|provider| provider.at(&[name, "keys"]))
                .find_map(|keys| keys.item(0)?.get("secret"));
            Found {
                field: format!("{KIND}: the {name} key"),
                line: self.0.line(index, &["config".into(), "resources".into()]),
                held: Held::of(self.0, secret),
            }
        };
        (provider("secretbox"), provider("aescbc"))
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
