//! Certificates that are kept in Kubernetes, for tests that look for them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use talos_pki::{Algorithm, Certificate, Name, PrivateKey, SigningRequest};

use super::objects::seconds;
use crate::cluster::Cluster;

/// What became of a request for a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KubeRequestState {
    /// Nobody has decided.
    Pending,
    /// An administrator said no.
    Denied,
    /// It is approved, and nothing has been issued.
    Approved,
    /// The cluster's authority signed it.
    Issued,
}

impl Cluster {
    /// Stores a Secret of type `kubernetes.io/tls` with a chain, leaf first, and a key.
    pub fn put_tls_secret(
        &self,
        namespace: &str,
        name: &str,
        chain: &[Certificate],
        key: &PrivateKey,
    ) -> Arc<Value> {
        let chain: String = chain.iter().map(Certificate::pem).collect();
        self.put_kube_object(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": name, "namespace": namespace },
            "type": "kubernetes.io/tls",
            "data": {
                "tls.crt": STANDARD.encode(chain),
                "tls.key": STANDARD.encode(key.pem().as_bytes()),
            },
        }))
    }

    /// Stores a CertificateSigningRequest of a kubelet for its serving certificate, whose names are those of a node.
    pub fn put_signing_request(
        &self,
        name: &str,
        node: &str,
        state: KubeRequestState,
    ) -> Arc<Value> {
        let key = PrivateKey::generate(Algorithm::EcdsaP256).expect("a key can be made");
        let organizations = ["system:nodes".to_owned()];
        let names = [Name::Dns(node.to_owned())];
        let csr = SigningRequest::write_pem(&key, &organizations, &names);
        let csr = csr.expect("a key in memory signs");
        let now = seconds(self.shared.now());
        let condition = |kind: &str, reason: &str, message: &str| {
            json!([{
                "type": kind,
                "status": "True",
                "reason": reason,
                "message": message,
                "lastUpdateTime": now,
                "lastTransitionTime": now,
            }])
        };
        let approved = || {
            let message = "This CSR was approved by kubectl certificate approve.";
            condition("Approved", "KubectlApprove", message)
        };
        let mut status = json!({});
        match state {
            KubeRequestState::Pending => {}
            KubeRequestState::Denied => {
                let message = "This CSR was denied by kubectl certificate deny.";
                status["conditions"] = condition("Denied", "KubectlDeny", message);
            }
            KubeRequestState::Approved => status["conditions"] = approved(),
            KubeRequestState::Issued => {
                status["conditions"] = approved();
                status["certificate"] = json!(STANDARD.encode(self.sign_kubelet(&key, node)));
            }
        }
        self.put_kube_object(json!({
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": { "name": name },
            "spec": {
                "request": STANDARD.encode(csr),
                "signerName": "kubernetes.io/kubelet-serving",
                "usages": ["digital signature", "server auth"],
                "username": format!("system:node:{node}"),
                "groups": ["system:nodes", "system:authenticated"],
            },
            "status": status,
        }))
    }

    fn sign_kubelet(&self, key: &PrivateKey, node: &str) -> String {
        let trust = self.shared.current_trust();
        let signer = trust.kubernetes.signer.as_ref();
        let signer = signer.expect("a control plane has the key of its authority");
        let mut request = crate::pki::kubelet_server(node, std::net::Ipv4Addr::LOCALHOST.into());
        request.names = vec![Name::Dns(node.to_owned())];
        let signed = signer.sign_leaf(&request, key.public_key_info(), self.shared.now());
        signed.expect("a key in memory signs").pem()
    }
}
