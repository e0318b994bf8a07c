//! The files by which clients reach a cluster.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::SignedDuration;
use talos_pki::Issued;

use crate::config::Documents;
use crate::error::Error;
use crate::node::NodeState;
use crate::pki::{self, YEAR};
use crate::shared::Shared;
use crate::trust::Trust;

/// A talosconfig with one context.
pub(crate) fn talosconfig(
    trust: &Trust,
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
    let ca = STANDARD.encode(trust.talos.all_pem());
    let crt = STANDARD.encode(client.certificate.pem());
    let key = STANDARD.encode(client.key.pem().as_bytes());
    format!(
        "context: {context}\ncontexts:\n    {context}:\n        endpoints:{endpoints}        ca: {ca}\n        crt: {crt}\n        key: {key}\n"
    )
}

/// An administrator's kubeconfig with a fresh client certificate.
pub(crate) fn kubeconfig(shared: &Shared, node: &NodeState) -> Result<String, Error> {
    let trust = node.trust();
    let no_signer = || Error::NoTrustd {
        node: node.name.clone(),
    };
    let signer = trust.kubernetes.signer.as_ref().ok_or_else(no_signer)?;
    let config = node.documents();
    let lifetime = config
        .as_deref()
        .and_then(Documents::admin_kubeconfig_lifetime)
        .and_then(lifetime)
        .unwrap_or(YEAR);
    let now = node.now(shared);
    let client = pki::kube_client(signer, "admin", "system:masters", lifetime, now)?;
    let name = &shared.options.name;
    let server = &shared.endpoint;
    let ca = STANDARD.encode(trust.kubernetes.all_pem());
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

/// Reads a duration as Go writes it, such as `168h0m0s`; one that is not positive is none.
fn lifetime(text: &str) -> Option<SignedDuration> {
    let mut total = SignedDuration::ZERO;
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, behind) = rest.split_at(digits);
        let unit = behind
            .find(|letter: char| letter.is_ascii_digit() || letter == '.')
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit);
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        let part = number.parse::<f64>().ok()? * seconds;
        total = total.checked_add(SignedDuration::try_from_secs_f64(part).ok()?)?;
        rest = behind;
    }
    (total > SignedDuration::ZERO).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_read_as_go_reads_them() {
        for (text, seconds) in [
            ("168h0m0s", Some(604_800)),
            ("8760h", Some(31_536_000)),
            ("1h30m", Some(5400)),
            ("1.5h", Some(5400)),
            ("+90s", Some(90)),
            ("0s", None),
            ("-1h", None),
            ("7d", None),
            ("90", None),
            ("", None),
        ] {
            assert_eq!(lifetime(text).map(|read| read.as_secs()), seconds, "{text}");
        }
    }
}
