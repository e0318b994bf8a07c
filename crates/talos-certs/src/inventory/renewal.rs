//! Who renews a certificate, and when.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use talos_pki::Certificate;

use super::IssuedBy;
use crate::evidence::{ClientSeen, Kept, Place, Seen};
use crate::{ServerKind, Source};

/// Who renews a certificate, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Renewal {
    /// Who renews it: `Talos`, `kubelet`, `cert-manager`, `nobody` or `unknown`.
    pub by: String,
    /// When it is due, in RFC 3339; absent when no timer does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// What else there is to know: what renews it without a timer, or which command does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// One use of a certificate.
pub(super) enum Use<'a> {
    /// A server presents it, at this position of its chain.
    Served(&'a Seen, usize),
    /// It is kept somewhere.
    Kept(&'a Kept),
    /// People hold it in a file.
    Client(&'a ClientSeen),
}

impl Use<'_> {
    /// Orders uses: those that tell most about a certificate come first.
    pub(super) fn rank(&self) -> usize {
        match self {
            Self::Served(seen, 0) => match (seen.source, seen.kind) {
                // KubePrism only passes on what kube-apiserver presents.
                (_, ServerKind::KubePrism) => 1,
                (Source::Served, _) => 0,
                (Source::Resource, _) => 1,
            },
            Self::Kept(kept) if kept.purpose.starts_with("accepted ") => 5,
            Self::Kept(kept) => match kept.place {
                Place::Resource { .. } => 2,
                Place::Kubernetes { .. } => 4,
                Place::File { .. } => 3,
            },
            Self::Client(_) => 3,
            Self::Served(_, _) => 6,
        }
    }

    /// Says what the certificate is for there.
    pub(super) fn purpose(&self) -> String {
        match self {
            Self::Served(seen, 0) => seen.kind.as_str().to_owned(),
            Self::Served(seen, position) => {
                let is_ca = seen.chain.get(*position).is_some_and(Certificate::is_ca);
                let what = if is_ca { "CA" } else { "certificate" };
                format!("{what} sent by {}", seen.kind.as_str())
            }
            Self::Kept(kept) => kept.purpose.clone(),
            Self::Client(_) => "client".to_owned(),
        }
    }
}

/// Tells who renews a certificate by its uses, the most telling coming first.
pub(super) fn renewal(
    certificate: &Certificate,
    uses: &[Use<'_>],
    issued_by: Option<&IssuedBy>,
) -> Renewal {
    let manager = uses.iter().find_map(|used| match used {
        Use::Kept(kept) => kept.manager.as_deref(),
        _ => None,
    });
    if let Some(manager) = manager {
        return told(manager, None, "by default when a third of its life is left");
    }
    if certificate.is_ca() && !is_own_server(certificate, uses) {
        return of_authority(uses);
    }
    let half = || part_of_life(certificate, 1, 2);
    match uses.first() {
        Some(Use::Served(seen, 0)) => match seen.kind {
            ServerKind::Apid
            | ServerKind::Trustd
            | ServerKind::KubeApiserver
            | ServerKind::KubePrism => timed("Talos", half()),
            ServerKind::Etcd | ServerKind::EtcdPeer => etcd(),
            ServerKind::Kubelet
                if issued_by.is_some_and(|issuer| issuer.name != "itself")
                    && !is_own_authority(seen) =>
            {
                kubelet(certificate)
            }
            ServerKind::Kubelet => told(
                "nobody",
                None,
                "the kubelet makes a new one when it starts without one",
            ),
            ServerKind::Other => told("unknown", None, "whoever runs the server"),
        },
        Some(Use::Served(_, _)) => told("unknown", None, "whoever runs the server"),
        Some(Use::Kept(kept)) => match &kept.place {
            Place::Resource { kind, .. } if kind.starts_with("EtcdSecrets.") => etcd(),
            Place::Resource { .. } => timed("Talos", half()),
            Place::Kubernetes { kind, .. } if kind == "CertificateSigningRequest" => {
                match kept.purpose.as_str() {
                    "kubelet" | "kubelet's client" => kubelet(certificate),
                    _ => told("nobody", None, "whoever asked for it asks again"),
                }
            }
            Place::Kubernetes { .. } => told("nobody", None, "nothing in the object says who does"),
            Place::File { .. } if kept.purpose.starts_with("client of ") => by_command(),
            Place::File { .. } => told("nobody", None, "it is a file"),
        },
        Some(Use::Client(_)) => by_command(),
        None => told("unknown", None, ""),
    }
}

/// A kubelet's own certificate may say that it is an authority.
fn is_own_server(certificate: &Certificate, uses: &[Use<'_>]) -> bool {
    matches!(uses.first(), Some(Use::Served(seen, 0)) if seen.chain.first() == Some(certificate))
}

/// Tells whether a kubelet sends the authority that it made for itself.
fn is_own_authority(seen: &Seen) -> bool {
    seen.chain.get(1).is_some_and(Certificate::is_ca)
        || seen.chain.first().is_some_and(Certificate::is_self_issued)
}

fn of_authority(uses: &[Use<'_>]) -> Renewal {
    let is_about = |words: &str| uses.iter().any(|used| used.purpose().ends_with(words));
    match is_about("Talos CA") || is_about("Kubernetes CA") {
        true => told("nobody", None, "`ichor certs rotate-ca` replaces it"),
        false => told("nobody", None, ""),
    }
}

fn etcd() -> Renewal {
    told(
        "Talos",
        None,
        "when the node starts, or its names change; there is no timer",
    )
}

fn kubelet(certificate: &Certificate) -> Renewal {
    Renewal {
        note: Some("it asks for a new one at 70 to 90 % of its life".to_owned()),
        ..timed("kubelet", part_of_life(certificate, 7, 10))
    }
}

fn by_command() -> Renewal {
    told("nobody", None, "`ichor certs renew` gets a new one")
}

fn timed(by: &str, at: Option<Timestamp>) -> Renewal {
    told(by, at, "")
}

fn told(by: &str, at: Option<Timestamp>, note: &str) -> Renewal {
    Renewal {
        by: by.to_owned(),
        at: at.map(|at| at.to_string()),
        note: (!note.is_empty()).then(|| note.to_owned()),
    }
}

/// Returns the moment at which a part of a certificate's life is over.
fn part_of_life(certificate: &Certificate, part: i64, of: i64) -> Option<Timestamp> {
    let begin = certificate.not_before().as_second();
    let life = certificate.not_after().as_second().checked_sub(begin)?;
    Timestamp::from_second(begin.checked_add(life.checked_mul(part)? / of)?).ok()
}
