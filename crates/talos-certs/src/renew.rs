//! New client certificates in place of old ones: when one is due, issuing it from an authority, and putting it where the
//! old one was.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use talos_config::yaml::{Node, Stream};
use talos_pki::{Authority, Certificate, Issued, LeafRequest, LeafUsage};

/// What is known about a client certificate that is renewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenewedCertificate {
    /// SHA-256 of it, in hexadecimal digits.
    pub fingerprint: String,
    /// Common name of the subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common_name: Option<String>,
    /// Organizations of the subject: for Talos clients, their roles.
    pub organizations: Vec<String>,
    /// When it becomes valid.
    #[schemars(with = "String")]
    pub not_before: Timestamp,
    /// When it expires.
    #[schemars(with = "String")]
    pub not_after: Timestamp,
}

impl From<&Certificate> for RenewedCertificate {
    fn from(certificate: &Certificate) -> Self {
        Self {
            fingerprint: certificate.fingerprint(),
            common_name: certificate.common_name().map(str::to_owned),
            organizations: certificate.organizations().to_vec(),
            not_before: certificate.not_before(),
            not_after: certificate.not_after(),
        }
    }
}

/// Why a kubeconfig could not be given another certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenewError {
    /// The text is not YAML.
    #[error("the kubeconfig cannot be edited")]
    Syntax {
        /// Where and why.
        source: Box<talos_config::Error>,
    },
    /// An entry is not there.
    #[error("the kubeconfig has no {list} entry {name:?}")]
    NoEntry {
        /// `users` or `clusters`.
        list: &'static str,
        /// The name that was looked for.
        name: String,
    },
}

/// Tells whether a certificate is to be renewed: always without a limit, else if it ends within that time, or is not
/// there.
pub fn is_due(
    certificate: Option<&Certificate>,
    within: Option<SignedDuration>,
    now: Timestamp,
) -> bool {
    match (certificate, within) {
        (Some(certificate), Some(within)) => certificate.not_after().duration_since(now) <= within,
        _ => true,
    }
}

/// Issues the certificate of a client of the Talos API.
///
/// # Errors
/// [`talos_pki::Error::Crypto`] or [`talos_pki::Error::Validity`].
pub fn issue_talos_client(
    authority: &Authority,
    roles: &[String],
    lifetime: SignedDuration,
    now: Timestamp,
) -> Result<Issued, talos_pki::Error> {
    let request = LeafRequest {
        organizations: roles.to_vec(),
        usage: LeafUsage {
            client: true,
            ..LeafUsage::default()
        },
        lifetime,
        ..LeafRequest::default()
    };
    authority.issue(&request, now)
}

/// Issues the certificate of an administrator of Kubernetes, as Talos puts it into a kubeconfig.
///
/// # Errors
/// [`talos_pki::Error::Crypto`] or [`talos_pki::Error::Validity`].
pub fn issue_kubernetes_admin(
    authority: &Authority,
    lifetime: SignedDuration,
    now: Timestamp,
) -> Result<Issued, talos_pki::Error> {
    let request = LeafRequest {
        common_name: Some("admin".to_owned()),
        organizations: vec!["system:masters".to_owned()],
        usage: LeafUsage {
            key_encipherment: true,
            client: true,
            ..LeafUsage::default()
        },
        lifetime,
        backdate: SignedDuration::from_secs(10),
        ..LeafRequest::default()
    };
    authority.issue(&request, now)
}

/// Gives a user of a kubeconfig another certificate and key, both PEM, and a cluster other authorities; every other line
/// stays as it is.
///
/// # Errors
/// The text is not YAML, or there is no such user or cluster.
pub fn put_kubernetes_user(
    kubeconfig: &str,
    user: (&str, &str, &str),
    cluster: Option<(&str, &str)>,
) -> Result<String, RenewError> {
    let syntax = |source| RenewError::Syntax {
        source: Box::new(source),
    };
    let mut stream = Stream::parse(kubeconfig).map_err(syntax)?;
    let (name, certificate, key) = user;
    {
        let user = entry(&mut stream, "users", name, "user")?;
        // Files and tokens would come before the data, or beside it.
        for replaced in ["client-certificate", "client-key", "token", "tokenFile"] {
            user.remove(replaced);
        }
        user.set(
            "client-certificate-data",
            json!(STANDARD.encode(certificate)),
        );
        user.set("client-key-data", json!(STANDARD.encode(key)));
    }
    if let Some((name, authorities)) = cluster {
        let cluster = entry(&mut stream, "clusters", name, "cluster")?;
        cluster.remove("certificate-authority");
        let data = json!(STANDARD.encode(authorities));
        cluster.set("certificate-authority-data", data);
    }
    Ok(stream.to_string())
}

fn entry<'a>(
    stream: &'a mut Stream,
    list: &'static str,
    name: &str,
    key: &str,
) -> Result<&'a mut Node, RenewError> {
    let missing = || RenewError::NoEntry {
        list,
        name: name.to_owned(),
    };
    let root = stream.root_mut(0).ok_or_else(missing)?;
    let entries = root.get_mut(list).ok_or_else(missing)?;
    let is_named = |entry: &Node| entry.get("name").and_then(Node::as_str) == Some(name);
    let index = entries.items().position(is_named).ok_or_else(missing)?;
    let found = entries.item_mut(index);
    found
        .and_then(|entry| entry.get_mut(key))
        .ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use talos_pki::AuthorityKind;

    use super::*;

    fn now() -> Timestamp {
        "2026-11-30T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_certificate_is_due_when_it_ends_within_the_limit() {
        let authority = Authority::generate(AuthorityKind::Talos, now()).unwrap();
        let hours = SignedDuration::from_hours;
        let issued = issue_talos_client(&authority, &[], hours(48), now()).unwrap();
        let check = |within: Option<i64>, due: bool| {
            let certificate = Some(&issued.certificate);
            assert_eq!(
                is_due(certificate, within.map(hours), now()),
                due,
                "{within:?}"
            );
        };
        check(None, true);
        check(Some(47), false);
        check(Some(48), true);
        check(Some(0), false);
        assert!(is_due(None, Some(hours(0)), now()));
    }

    #[test]
    fn certificates_say_what_those_of_talos_say() {
        let hour = SignedDuration::from_hours(1);
        let talos = Authority::generate(AuthorityKind::Talos, now()).unwrap();
        let roles = ["os:reader".to_owned(), "os:etcd:backup".to_owned()];
        let issued = issue_talos_client(&talos, &roles, hour, now()).unwrap();
        let leaf = &issued.certificate;
        assert_eq!(
            (leaf.organizations(), leaf.common_name()),
            (&roles[..], None)
        );
        assert_eq!((leaf.not_before(), leaf.not_after()), (now(), now() + hour));
        let kubernetes = Authority::generate(AuthorityKind::Kubernetes, now()).unwrap();
        let issued = issue_kubernetes_admin(&kubernetes, hour, now()).unwrap();
        let leaf = &issued.certificate;
        assert_eq!(leaf.common_name(), Some("admin"));
        assert_eq!(leaf.organizations(), ["system:masters"]);
        let ten = SignedDuration::from_secs(10);
        assert_eq!(
            (leaf.not_before(), leaf.not_after()),
            (now() - ten, now() + hour)
        );
    }

    const KUBECONFIG: &str = "# mine\napiVersion: v1\nkind: Config\nclusters:\n- name: a # one\n  cluster: {server: \"https://h:6443\", certificate-authority: old.crt}\nusers:\n- name: other\n  user: {token: keep}\n- user:\n    client-certificate: old.crt # a file\n    client-key: old.key\n  name: admin@a\ncurrent-context: x\n";

    #[test]
    fn only_the_user_and_the_cluster_that_are_meant_change() {
        let user = ("admin@a", "CERT", "KEY");
        let written = put_kubernetes_user(KUBECONFIG, user, None).unwrap();
        let (cert, key) = (STANDARD.encode("CERT"), STANDARD.encode("KEY"));
        assert!(written.contains(&format!("    client-certificate-data: {cert}\n")));
        assert!(written.contains(&format!("    client-key-data: {key}\n")));
        assert!(!written.contains("old.key") && written.contains("{token: keep}"));
        for line in [
            "# mine",
            "- name: a # one",
            "certificate-authority: old.crt",
            "current-context: x",
        ] {
            assert!(written.contains(line), "{line}: {written}");
        }
        let written = put_kubernetes_user(KUBECONFIG, user, Some(("a", "CA"))).unwrap();
        assert!(written.contains(&STANDARD.encode("CA")) && !written.contains("old.crt"));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let check = |user: &str, cluster: Option<(&str, &str)>, expected: &str| {
            let error = put_kubernetes_user(KUBECONFIG, (user, "", ""), cluster).unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        check("x", None, "the kubeconfig has no users entry \"x\"");
        check(
            "other",
            Some(("b", "")),
            "the kubeconfig has no clusters entry \"b\"",
        );
    }
}
