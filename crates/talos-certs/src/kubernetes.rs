//! Certificates that Kubernetes holds: TLS Secrets, signing requests, and the authorities of its own components.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::ListParams;
use talos_kube::Kubernetes;
use talos_pki::{Certificate, SigningRequest};

use crate::error::sentence;
use crate::evidence::{Kept, Place, RequestSeen, RequestState};
use crate::files::certificates;
use crate::{Evidence, NotChecked};

/// Objects of one page: a cluster with many Secrets is never in memory at once.
const PAGE: u32 = 250;
/// Pages that are read at most; what is left then is said.
const MOST_PAGES: usize = 400;
/// What results call the place.
const KUBERNETES: &str = "kubernetes";

/// Adds what Kubernetes holds; whatever cannot be read is noted and ends nothing.
pub async fn collect_kubernetes(kubernetes: &Kubernetes, evidence: &mut Evidence) {
    secrets(kubernetes, evidence).await;
    requests(kubernetes, evidence).await;
    for (name, keys) in [
        (
            "extension-apiserver-authentication",
            &[
                ("client-ca-file", "CA of Kubernetes' clients"),
                ("requestheader-client-ca-file", "aggregator CA"),
            ][..],
        ),
        (
            "kube-root-ca.crt",
            &[("ca.crt", "CA given to service accounts")],
        ),
    ] {
        config_map(kubernetes, evidence, name, keys).await;
    }
}

async fn secrets(kubernetes: &Kubernetes, evidence: &mut Evidence) {
    let mut token = None;
    for _ in 0..MOST_PAGES {
        let params = page("type=kubernetes.io/tls", token.take());
        let listing = kubernetes
            .call("list TLS Secrets", |client| {
                let params = params.clone();
                async move { Api::<Secret>::all(client).list(&params).await }
            })
            .await;
        let list = match listing {
            Ok(list) => list,
            Err(error) => return left_out(evidence, "TLS Secrets", &error),
        };
        for secret in list.items {
            if secret.type_.as_deref() == Some("kubernetes.io/tls") {
                take_secret(evidence, secret);
            }
        }
        token = list.metadata.continue_.filter(|token| !token.is_empty());
        if token.is_none() {
            return;
        }
    }
    too_many(evidence, "TLS Secrets");
}

/// Takes the certificates of a Secret; its key is dropped unread.
fn take_secret(evidence: &mut Evidence, secret: Secret) {
    let manager = secret.metadata.annotations.as_ref().and_then(manager);
    let namespace = secret.metadata.namespace.unwrap_or_default();
    let name = secret.metadata.name.unwrap_or_default();
    let data = secret.data.unwrap_or_default();
    for (key, purpose) in [("tls.crt", "TLS Secret"), ("ca.crt", "CA of a TLS Secret")] {
        let Some(bytes) = data.get(key).filter(|bytes| !bytes.0.is_empty()) else {
            continue;
        };
        let text = String::from_utf8_lossy(&bytes.0);
        let place = Place::Kubernetes {
            kind: "Secret".to_owned(),
            namespace: namespace.clone(),
            name: name.clone(),
            field: key.to_owned(),
        };
        take(
            evidence,
            &place,
            &text,
            |certificate| match key {
                "tls.crt" if certificate.is_ca() => "CA of a TLS Secret".to_owned(),
                _ => purpose.to_owned(),
            },
            manager.as_deref(),
        );
    }
}

/// Tells who renews a Secret's certificate, by its annotations.
fn manager(annotations: &BTreeMap<String, String>) -> Option<String> {
    let cert_manager = annotations.get("cert-manager.io/certificate-name");
    cert_manager.map(|name| format!("cert-manager (Certificate {name})"))
}

async fn requests(kubernetes: &Kubernetes, evidence: &mut Evidence) {
    let mut token = None;
    for _ in 0..MOST_PAGES {
        let params = page("", token.take());
        let listing = kubernetes
            .call("list certificate signing requests", |client| {
                let params = params.clone();
                async move {
                    Api::<CertificateSigningRequest>::all(client)
                        .list(&params)
                        .await
                }
            })
            .await;
        let list = match listing {
            Ok(list) => list,
            Err(error) => return left_out(evidence, "certificate signing requests", &error),
        };
        for request in list.items {
            take_request(evidence, request);
        }
        token = list.metadata.continue_.filter(|token| !token.is_empty());
        if token.is_none() {
            return;
        }
    }
    too_many(evidence, "certificate signing requests");
}

fn take_request(evidence: &mut Evidence, request: CertificateSigningRequest) {
    let state = state(&request);
    let name = request.metadata.name.unwrap_or_default();
    let asked = SigningRequest::from_pem(&request.spec.request.0)
        .or_else(|_| SigningRequest::from_der(&request.spec.request.0));
    let (subject, names) = match &asked {
        Ok(asked) => {
            let common_name = asked.common_name().map(|name| format!("CN={name}"));
            let organizations = asked.organizations().iter();
            let organizations = organizations.map(|organization| format!("O={organization}"));
            let parts: Vec<String> = common_name.into_iter().chain(organizations).collect();
            (parts.join(", "), asked.names().to_vec())
        }
        Err(error) => {
            evidence.not_checked.push(NotChecked {
                node: KUBERNETES.to_owned(),
                kind: None,
                why: format!("CertificateSigningRequest {name}: {}", sentence(error)),
            });
            (String::new(), Vec::new())
        }
    };
    if let Some(issued) = request.status.and_then(|status| status.certificate) {
        let place = Place::Kubernetes {
            kind: "CertificateSigningRequest".to_owned(),
            namespace: String::new(),
            name: name.clone(),
            field: "status.certificate".to_owned(),
        };
        let purpose = match request.spec.signer_name.as_str() {
            "kubernetes.io/kubelet-serving" => "kubelet",
            "kubernetes.io/kube-apiserver-client-kubelet" => "kubelet's client",
            "kubernetes.io/kube-apiserver-client" => "client of kube-apiserver",
            _ => "issued by Kubernetes",
        };
        let text = String::from_utf8_lossy(&issued.0);
        take(evidence, &place, &text, |_| purpose.to_owned(), None);
    }
    evidence.requests.push(RequestSeen {
        name,
        signer: request.spec.signer_name,
        requester: request.spec.username.unwrap_or_default(),
        subject,
        names,
        state,
        created: request
            .metadata
            .creation_timestamp
            .and_then(|time| Timestamp::from_nanosecond(time.0.as_nanosecond()).ok()),
    });
}

fn state(request: &CertificateSigningRequest) -> RequestState {
    let Some(status) = &request.status else {
        return RequestState::Pending;
    };
    let is = |kind: &str| {
        let conditions = status.conditions.iter().flatten();
        conditions
            .clone()
            .any(|condition| condition.type_ == kind && condition.status == "True")
    };
    let issued = status
        .certificate
        .as_ref()
        .is_some_and(|certificate| !certificate.0.is_empty());
    match () {
        () if is("Denied") => RequestState::Denied,
        () if is("Failed") => RequestState::Failed,
        () if issued => RequestState::Issued,
        () if is("Approved") => RequestState::Approved,
        () => RequestState::Pending,
    }
}

async fn config_map(
    kubernetes: &Kubernetes,
    evidence: &mut Evidence,
    name: &str,
    keys: &[(&str, &str)],
) {
    let reading = kubernetes
        .call("read a ConfigMap of kube-system", |client| async move {
            Api::<ConfigMap>::namespaced(client, "kube-system")
                .get_opt(name)
                .await
        })
        .await;
    let data = match reading {
        Ok(Some(map)) => map.data.unwrap_or_default(),
        Ok(None) => {
            evidence.not_checked.push(NotChecked {
                node: KUBERNETES.to_owned(),
                kind: None,
                why: format!("there is no ConfigMap kube-system/{name}"),
            });
            return;
        }
        Err(error) => return left_out(evidence, &format!("ConfigMap kube-system/{name}"), &error),
    };
    for (key, purpose) in keys {
        let Some(text) = data.get(*key) else { continue };
        let place = Place::Kubernetes {
            kind: "ConfigMap".to_owned(),
            namespace: "kube-system".to_owned(),
            name: name.to_owned(),
            field: (*key).to_owned(),
        };
        take(evidence, &place, text, |_| (*purpose).to_owned(), None);
    }
}

fn take(
    evidence: &mut Evidence,
    place: &Place,
    text: &str,
    purpose: impl Fn(&Certificate) -> String,
    manager: Option<&str>,
) {
    let results = certificates(text);
    if results.is_empty() {
        evidence.not_checked.push(NotChecked {
            node: KUBERNETES.to_owned(),
            kind: None,
            why: format!("{place} holds no certificate"),
        });
    }
    for result in results {
        match result {
            Ok(certificate) => evidence.kept.push(Kept {
                node: None,
                place: place.clone(),
                purpose: purpose(&certificate),
                certificate,
                manager: manager.map(str::to_owned),
            }),
            Err(damaged) => evidence.not_checked.push(NotChecked {
                node: KUBERNETES.to_owned(),
                kind: None,
                why: format!("{place}: {}", damaged.why),
            }),
        }
    }
}

fn page(fields: &str, token: Option<String>) -> ListParams {
    let params = ListParams::default().limit(PAGE);
    let params = match fields {
        "" => params,
        fields => params.fields(fields),
    };
    match token {
        Some(token) => params.continue_token(&token),
        None => params,
    }
}

fn left_out(evidence: &mut Evidence, what: &str, error: &dyn std::error::Error) {
    evidence.not_checked.push(NotChecked {
        node: KUBERNETES.to_owned(),
        kind: None,
        why: format!("{what} cannot be read: {}", sentence(error)),
    });
}

fn too_many(evidence: &mut Evidence, what: &str) {
    evidence.not_checked.push(NotChecked {
        node: KUBERNETES.to_owned(),
        kind: None,
        why: format!("only the first {} {what} were read", MOST_PAGES * 250),
    });
}
