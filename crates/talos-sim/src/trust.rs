//! Which authorities a node works with, as its configuration has them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use talos_pki::{Authority, Certificate};

use crate::config::Documents;
use crate::pki::ClusterPki;

/// The authorities for one purpose.
#[derive(Clone, Debug)]
pub(crate) struct Roots {
    /// The one that issues; workers of Talos 1.14 know only accepted ones.
    issuing: Option<Certificate>,
    /// The same with its key, which only control planes have.
    pub(crate) signer: Option<Authority>,
    /// Those that are accepted besides, in the order of the configuration.
    accepted: Vec<Certificate>,
}

/// All authorities that a node knows.
#[derive(Clone, Debug)]
pub(crate) struct Trust {
    /// For apid and trustd.
    pub(crate) talos: Roots,
    /// For kube-apiserver and the kubelet.
    pub(crate) kubernetes: Roots,
    /// For the front proxy; control planes only.
    pub(crate) aggregator: Option<Authority>,
    /// For etcd; control planes only.
    pub(crate) etcd: Option<Authority>,
    /// `machine.token`, by which trustd knows workers.
    pub(crate) token: String,
}

impl Roots {
    fn of(authority: &Authority, is_control_plane: bool) -> Self {
        Self {
            issuing: Some(authority.certificate().clone()),
            signer: is_control_plane.then(|| authority.clone()),
            accepted: Vec::new(),
        }
    }

    /// All accepted authorities, the issuing one last, as Talos lists them.
    pub(crate) fn all(&self) -> Vec<Certificate> {
        let mut all: Vec<Certificate> = Vec::new();
        for certificate in self.accepted.iter().chain(&self.issuing) {
            if !all.iter().any(|known| known.der() == certificate.der()) {
                all.push(certificate.clone());
            }
        }
        all
    }

    /// All accepted authorities in one PEM text.
    pub(crate) fn all_pem(&self) -> String {
        self.all().iter().map(Certificate::pem).collect()
    }

    /// All accepted authorities as resources list them.
    pub(crate) fn accepted_spec(&self) -> Value {
        let all = self.all();
        let listed = all
            .iter()
            .map(|authority| json!({ "crt": STANDARD.encode(authority.pem()) }));
        listed.collect()
    }

    /// The issuing authority as resources hold it; null without its key.
    pub(crate) fn issuing_spec(&self) -> Value {
        self.signer.as_ref().map_or(Value::Null, authority_spec)
    }

    /// Whether one of the accepted authorities issued a certificate, by its key identifier.
    pub(crate) fn accepts(&self, leaf: &Certificate) -> bool {
        let issuer = leaf.authority_key_id();
        let all = self.all();
        issuer.is_some()
            && all
                .iter()
                .any(|authority| authority.subject_key_id() == issuer)
    }
}

impl Trust {
    /// What a node has whose configuration was made from the cluster's authorities.
    pub(crate) fn booted(pki: &ClusterPki, token: &str, is_control_plane: bool) -> Self {
        let own = |authority: &Authority| is_control_plane.then(|| authority.clone());
        Self {
            talos: Roots::of(&pki.talos, is_control_plane),
            kubernetes: Roots::of(&pki.kubernetes, is_control_plane),
            aggregator: own(&pki.aggregator),
            etcd: own(&pki.etcd),
            token: token.to_owned(),
        }
    }

    /// What a configuration says; what it has no readable authority for stays as `before`.
    pub(crate) fn read(config: &Documents, before: &Self) -> Self {
        let talos = Held::main(config, "/machine/ca", "/machine/acceptedCAs");
        let kubernetes = Held::document(config, "KubeAPIServerCAConfig")
            .unwrap_or_else(|| Held::main(config, "/cluster/ca", "/cluster/acceptedCAs"));
        let aggregator = Held::document(config, "KubeAggregatorCAConfig")
            .unwrap_or_else(|| Held::main(config, "/cluster/aggregatorCA", ""));
        let etcd = Held::main(config, "/cluster/etcd/ca", "");
        let token = config.at("/machine/token").and_then(Value::as_str);
        Self {
            talos: talos.roots(&before.talos),
            kubernetes: kubernetes.roots(&before.kubernetes),
            aggregator: aggregator.signer.or_else(|| before.aggregator.clone()),
            etcd: etcd.signer.or_else(|| before.etcd.clone()),
            token: token.unwrap_or_default().to_owned(),
        }
    }
}

/// What a configuration holds for one purpose.
#[derive(Default)]
struct Held {
    issuing: Option<Certificate>,
    signer: Option<Authority>,
    accepted: Vec<Certificate>,
}

impl Held {
    /// Authorities in the main document, as base64 of PEM.
    fn main(config: &Documents, issuing: &str, accepted: &str) -> Self {
        let pair = config.at(issuing);
        let field = |key: &str| encoded(pair?.get(key)?);
        let listed = config.at(accepted).and_then(Value::as_array);
        let listed = listed.into_iter().flatten();
        Self::new(
            field("crt"),
            field("key"),
            listed.filter_map(|entry| encoded(entry.get("crt")?)),
        )
    }

    /// Authorities in a document of their own, as PEM.
    fn document(config: &Documents, kind: &str) -> Option<Self> {
        let document = config.of_kind(kind)?;
        let field = |key: &str| plain(document.get("issuingCA")?.get(key)?);
        let listed = document.get("acceptedCAs").and_then(Value::as_array);
        let listed = listed.into_iter().flatten();
        let listed = listed.filter_map(plain);
        Some(Self::new(field("cert"), field("key"), listed))
    }

    fn new(
        certificate: Option<Vec<u8>>,
        key: Option<Vec<u8>>,
        accepted: impl Iterator<Item = Vec<u8>>,
    ) -> Self {
        let read = |pem: Vec<u8>| Certificate::many_from_pem(pem).ok();
        let signer = certificate
            .as_ref()
            .zip(key.filter(|key| !key.is_empty()))
            .and_then(|(certificate, key)| Authority::from_pem(certificate, key).ok());
        Self {
            issuing: certificate
                .and_then(read)
                .and_then(|list| list.into_iter().next()),
            signer,
            accepted: accepted.filter_map(read).flatten().collect(),
        }
    }

    fn roots(self, before: &Roots) -> Roots {
        if self.issuing.is_none() && self.accepted.is_empty() {
            return before.clone();
        }
        Roots {
            issuing: self.issuing,
            signer: self.signer,
            accepted: self.accepted,
        }
    }
}

/// An authority with its key, as resources hold it.
pub(crate) fn authority_spec(authority: &Authority) -> Value {
    json!({
        "crt": STANDARD.encode(authority.certificate().pem()),
        "key": STANDARD.encode(authority.key().pem().as_bytes()),
    })
}

fn plain(value: &Value) -> Option<Vec<u8>> {
    Some(value.as_str()?.as_bytes().to_vec())
}

fn encoded(value: &Value) -> Option<Vec<u8>> {
    STANDARD.decode(value.as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use talos_pki::AuthorityKind;

    use super::*;

    #[test]
    fn both_styles_of_configuration_hold_authorities() {
        let now = Timestamp::now();
        let before = Trust::booted(&ClusterPki::generate(now).unwrap(), "a.b", true);
        let make = || Authority::generate(AuthorityKind::Kubernetes, now).unwrap();
        let (new, old) = (make(), make());
        let encoded = |text: &str| STANDARD.encode(text);
        let (crt, other) = (new.certificate().pem(), old.certificate().pem());
        let main = format!(
            "machine: {{type: controlplane, token: c.d}}\ncluster:\n  ca: {{crt: {}, key: {}}}\n  acceptedCAs: [{{crt: {}}}]\n",
            encoded(&crt),
            encoded(&new.key().pem()),
            encoded(&other),
        );
        let json = |text: &str| Value::from(text).to_string();
        let documents = format!(
            "machine: {{type: controlplane, token: c.d}}\n---\napiVersion: v1alpha1\nkind: KubeAPIServerCAConfig\nissuingCA: {{cert: {}, key: {}}}\nacceptedCAs: [{}]\n",
            json(&crt),
            json(&new.key().pem()),
            json(&other),
        );
        for text in [main, documents] {
            let read = Trust::read(&Documents::read(&text).unwrap(), &before);
            assert_eq!(read.kubernetes.all_pem(), format!("{other}{crt}"));
            let signer = read.kubernetes.signer.as_ref().unwrap();
            assert_eq!(signer.certificate(), new.certificate());
            assert_eq!(read.token, "c.d");
            // What a configuration does not have stays.
            assert_eq!(read.talos.all_pem(), before.talos.all_pem());
        }
        // A worker of Talos 1.14 knows accepted authorities only.
        let worker = format!(
            "machine: {{type: worker}}\n---\napiVersion: v1alpha1\nkind: KubeAPIServerCAConfig\nacceptedCAs: [{}]\n",
            json(&crt)
        );
        let read = Trust::read(&Documents::read(&worker).unwrap(), &before);
        assert_eq!(read.kubernetes.all_pem(), crt);
        assert!(read.kubernetes.signer.is_none());
    }
}
