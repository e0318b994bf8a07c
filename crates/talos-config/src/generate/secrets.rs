//! What a cluster has to keep: authorities, keys and tokens.

mod check;
mod from_config;
mod from_pki;
mod read;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use jiff::Timestamp;
use serde_json::{Value, json};
use talos_pki::{Algorithm, Authority, AuthorityKind, PrivateKey};

pub use from_pki::PkiFiles;

use super::{Contract, Error};
use crate::yaml;

/// Fills a buffer with random bytes.
pub type Random<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<(), talos_pki::Error>;

/// The secrets of a cluster; `Debug` shows none of them.
#[derive(Clone, PartialEq, Eq)]
pub struct Secrets {
    /// Identifies the cluster to the discovery service.
    pub cluster_id: String,
    /// Encrypts what nodes tell the discovery service.
    pub cluster_secret: String,
    /// The token with which kubelets join Kubernetes.
    pub bootstrap_token: String,
    /// The token with which nodes join Talos.
    pub trustd_token: String,
    /// What encrypts Kubernetes secrets in etcd.
    pub encryption: Encryption,
    /// The authority of etcd.
    pub etcd: KeyPair,
    /// The authority of Kubernetes.
    pub kubernetes: KeyPair,
    /// The authority of the front proxy.
    pub aggregator: KeyPair,
    /// The PEM of the key that signs service account tokens.
    pub service_account: String,
    /// The authority of the Talos API.
    pub os: KeyPair,
}

/// Secrets found in a text.
#[derive(Clone, Debug)]
pub struct FoundSecrets {
    /// The secrets.
    pub secrets: Secrets,
    /// What was left out or looks odd.
    pub warnings: Vec<String>,
}

/// What encrypts Kubernetes secrets in etcd, base64.
#[derive(Clone, PartialEq, Eq)]
pub enum Encryption {
    /// Since Talos 1.3.
    Secretbox(String),
    /// Before.
    AesCbc(String),
}

/// A certificate and its private key, both PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeyPair {
    /// The certificate.
    pub crt: String,
    /// The private key.
    pub key: String,
}

impl Secrets {
    /// Makes fresh secrets for a cluster that starts with a release.
    ///
    /// Keys are made by the cryptographic library from its own source of randomness, tokens and the rest from `random`.
    ///
    /// # Errors
    ///
    /// [`Error::Make`].
    pub fn generate(contract: Contract, now: Timestamp, random: Random<'_>) -> Result<Self, Error> {
        let authority = |kind, what| {
            Authority::generate(kind, now)
                .map(|authority| KeyPair::of(&authority))
                .map_err(|source| Error::Make { what, source })
        };
        let algorithm = match contract.has_rsa_service_account() {
            true => Algorithm::Rsa(4096),
            false => Algorithm::EcdsaP256,
        };
        let service_account = PrivateKey::generate(algorithm).map_err(|source| Error::Make {
            what: "the service account key",
            source,
        })?;
        let rest = Rest::generate(contract, random)?;
        Ok(Self {
            cluster_id: rest.cluster_id,
            cluster_secret: rest.cluster_secret,
            bootstrap_token: rest.bootstrap_token,
            trustd_token: rest.trustd_token,
            encryption: rest.encryption,
            etcd: authority(AuthorityKind::Etcd, "the etcd authority")?,
            kubernetes: authority(AuthorityKind::Kubernetes, "the Kubernetes authority")?,
            aggregator: authority(AuthorityKind::Aggregator, "the aggregator authority")?,
            service_account: service_account.pem().to_string(),
            os: authority(AuthorityKind::Talos, "the Talos authority")?,
        })
    }

    /// Writes the bundle that `--with-secrets` reads.
    pub fn text(&self) -> String {
        let encoded = |text: &str| STANDARD.encode(text);
        let pair = |pair: &KeyPair| json!({"crt": encoded(&pair.crt), "key": encoded(&pair.key)});
        let (name, secret) = match &self.encryption {
            Encryption::Secretbox(secret) => ("secretboxencryptionsecret", secret),
            Encryption::AesCbc(secret) => ("aescbcencryptionsecret", secret),
        };
        let bundle: Value = json!({
            "cluster": {"id": self.cluster_id, "secret": self.cluster_secret},
            "secrets": {"bootstraptoken": self.bootstrap_token, name: secret},
            "trustdinfo": {"token": self.trustd_token},
            "certs": {
                "etcd": pair(&self.etcd),
                "k8s": pair(&self.kubernetes),
                "k8saggregator": pair(&self.aggregator),
                "k8sserviceaccount": {"key": encoded(&self.service_account)},
                "os": pair(&self.os),
            },
        });
        yaml::write(&bundle)
    }

    /// Replaces the token with which kubelets join Kubernetes.
    ///
    /// # Errors
    ///
    /// [`Error::Token`] for one that Kubernetes would not take.
    pub fn set_bootstrap_token(&mut self, token: &str) -> Result<(), Error> {
        if !is_token(token) {
            return Err(Error::Token);
        }
        token.clone_into(&mut self.bootstrap_token);
        Ok(())
    }

    /// Refuses a release that has no field for a secret of a control plane.
    pub(super) fn check_places(&self, contract: Contract) -> Result<(), Error> {
        match self.encryption {
            Encryption::Secretbox(_) if !contract.has_secretbox() => Err(Error::NoPlace {
                release: contract.to_string(),
                secret: "secrets.secretboxencryptionsecret",
            }),
            _ => Ok(()),
        }
    }
}

impl KeyPair {
    fn of(authority: &Authority) -> Self {
        Self {
            crt: authority.certificate().pem(),
            key: authority.key().pem().to_string(),
        }
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyPair").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Encryption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Secretbox(_) => "Secretbox",
            Self::AesCbc(_) => "AesCbc",
        })
    }
}

/// The secrets that are no keys.
struct Rest {
    cluster_id: String,
    cluster_secret: String,
    bootstrap_token: String,
    trustd_token: String,
    encryption: Encryption,
}

impl Rest {
    fn generate(contract: Contract, random: Random<'_>) -> Result<Self, Error> {
        let mut fill = |bytes: &mut [u8]| {
            random(bytes).map_err(|source| Error::Make {
                what: "a secret",
                source,
            })
        };
        let mut bytes = [0; 32];
        fill(&mut bytes)?;
        let cluster_id = URL_SAFE.encode(bytes);
        fill(&mut bytes)?;
        let cluster_secret = STANDARD.encode(bytes);
        fill(&mut bytes)?;
        let secret = STANDARD.encode(bytes);
        Ok(Self {
            cluster_id,
            cluster_secret,
            bootstrap_token: token(&mut fill)?,
            trustd_token: token(&mut fill)?,
            encryption: match contract.has_secretbox() {
                true => Encryption::Secretbox(secret),
                false => Encryption::AesCbc(secret),
            },
        })
    }
}

const TOKEN_LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// Makes a token such as `abcdef.0123456789abcdef`, every letter equally likely.
fn token(fill: &mut dyn FnMut(&mut [u8]) -> Result<(), Error>) -> Result<String, Error> {
    // The largest multiple of the number of letters; bytes from there on would favour the first ones.
    const FAIR: u8 = 252;
    let mut text = String::with_capacity(23);
    while text.len() < 23 {
        let mut bytes = [0; 32];
        fill(&mut bytes)?;
        for byte in bytes.into_iter().filter(|byte| *byte < FAIR) {
            match text.len() {
                6 => text.push('.'),
                23 => break,
                _ => {}
            }
            text.push(char::from(TOKEN_LETTERS[usize::from(byte % 36)]));
        }
    }
    Ok(text)
}

fn is_token(text: &str) -> bool {
    let is_part = |part: &str, length| {
        part.len() == length && part.bytes().all(|byte| TOKEN_LETTERS.contains(&byte))
    };
    text.split_once('.')
        .is_some_and(|(id, secret)| is_part(id, 6) && is_part(secret, 16))
}

#[cfg(test)]
mod tests;
