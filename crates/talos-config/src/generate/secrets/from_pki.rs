//! Secrets of a cluster that another tool made, from its folder of keys and certificates.

use std::collections::BTreeMap;

use jiff::Timestamp;
use talos_pki::{Authority, AuthorityKind};

use super::check::{Collector, Found, Held};
use super::{KeyPair, Random, Rest, Secrets};
use crate::generate::{Contract, Error};

/// What errors call the folder.
const WHAT: &str = "the folder of keys and certificates";

/// The texts of a folder of keys and certificates, by the names that kubeadm gives its files; `Debug` shows the names.
#[derive(Clone, Default)]
pub struct PkiFiles(BTreeMap<&'static str, String>);

impl PkiFiles {
    /// Adds a file, or replaces its text.
    pub fn insert(&mut self, name: &'static str, text: String) {
        self.0.insert(name, text);
    }
}

impl std::fmt::Debug for PkiFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Secrets {
    /// The files that are read, relative to the folder.
    pub const PKI_FILES: [&'static str; 7] = [
        "ca.crt",
        "ca.key",
        "etcd/ca.crt",
        "etcd/ca.key",
        "front-proxy-ca.crt",
        "front-proxy-ca.key",
        "sa.key",
    ];

    /// Takes the authorities of Kubernetes and etcd from files, and makes the rest anew.
    ///
    /// # Errors
    ///
    /// [`Error::Secrets`] with all files that are missing or damaged, or [`Error::Make`].
    pub fn from_pki(
        files: &PkiFiles,
        contract: Contract,
        now: Timestamp,
        random: Random<'_>,
    ) -> Result<Self, Error> {
        let mut collector = Collector::default();
        let file = |name: &str| Found {
            field: name.to_owned(),
            line: None,
            held: match files.0.get(name) {
                Some(text) if !text.is_empty() => Held::Text(text.clone()),
                _ => Held::Nothing,
            },
        };
        let mut pair = |name: &str| {
            collector.authority(file(&format!("{name}.crt")), file(&format!("{name}.key")))
        };
        let kubernetes = pair("ca");
        let etcd = pair("etcd/ca");
        let aggregator = pair("front-proxy-ca");
        let service_account = collector.key(file("sa.key"));
        collector.finish(WHAT)?;
        let os = Authority::generate(AuthorityKind::Talos, now).map_err(|source| Error::Make {
            what: "the Talos authority",
            source,
        })?;
        let rest = Rest::generate(contract, random)?;
        Ok(Self {
            cluster_id: rest.cluster_id,
            cluster_secret: rest.cluster_secret,
            bootstrap_token: rest.bootstrap_token,
            trustd_token: rest.trustd_token,
            encryption: rest.encryption,
            etcd,
            kubernetes,
            aggregator,
            service_account,
            os: KeyPair::of(&os),
        })
    }
}
