//! Names of kube-apiserver's certificate: what a changed list of them brings about.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use talos_pki::{Certificate, Name, covers};
use talos_sim::{ChangeKind, Cluster, Options, Resource};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::order::apply;

/// Types whose events are compared, with what is shown of them.
const TYPES: [(&str, &str); 8] = [
    ("controlplane", "APIServerConfigs.kubernetes.talos.dev"),
    ("controlplane", "ConfigStatuses.kubernetes.talos.dev"),
    ("controlplane", "SecretStatuses.kubernetes.talos.dev"),
    ("k8s", "StaticPods.kubernetes.talos.dev"),
    ("secrets", "ApiCertificates.secrets.talos.dev"),
    ("secrets", "CertSANs.secrets.talos.dev"),
    ("secrets", "KubernetesDynamicCerts.secrets.talos.dev"),
    ("secrets", "TrustdCertificates.secrets.talos.dev"),
];

#[tokio::test]
async fn new_names_of_the_api_server_are_issued_served_and_restart_the_control_plane() {
    let (cluster, rows) = with_names(
        "        certSANs: []",
        "        certSANs:\n            - 172.30.0.11",
    )
    .await;
    // facts/real-upgrade.md §4
    assert_eq!(
        rows,
        [
            "CertSANs/k8s v2 +172.30.0.11",
            "KubernetesDynamicCerts/k8s-dynamic-certs v2",
            "KubernetesDynamicCerts/k8s-dynamic-certs v3 +172.30.0.11",
            "SecretStatuses/static-pods v2",
            "StaticPods/kube-controller-manager v2 config=1 secrets=2",
            "StaticPods/kube-scheduler v2 config=1 secrets=2",
            "StaticPods/kube-apiserver v2 config=1 secrets=2",
        ]
    );
    let node = &cluster.nodes()[0];
    let dynamic = node.store().get(
        "secrets",
        "KubernetesDynamicCerts.secrets.talos.dev",
        "k8s-dynamic-certs",
    );
    let shown = certificate(&dynamic.unwrap().spec.value()["apiServer"]["crt"]);
    let served = verified(&cluster, node.kube_dial().unwrap(), "172.30.0.11").await;
    assert_eq!(served.fingerprint(), shown.fingerprint());
    assert_eq!(served.common_name(), Some("kube-apiserver"));
    let removed = [
        "kubernetes.default.svc.cluster.local",
        "localhost",
        "127.0.0.1",
        "10.96.0.1",
        node.name(),
    ];
    for name in removed {
        assert!(covers(&served, &name.parse::<Name>().unwrap()), "{name}");
    }
}

#[tokio::test]
async fn new_names_of_the_machine_leave_kubernetes_alone() {
    let (_cluster, rows) = with_names(
        "    certSANs: []\n    kubelet",
        "    certSANs:\n        - 172.30.0.11\n    kubelet",
    )
    .await;
    let mut rows = rows;
    rows.sort();
    assert_eq!(
        rows,
        [
            "ApiCertificates/api v2 +172.30.0.11",
            "ApiCertificates/api v3 +172.30.0.11",
            "CertSANs/api v2 +172.30.0.11",
            "TrustdCertificates/trustd v2 +172.30.0.11",
            "TrustdCertificates/trustd v3 +172.30.0.11",
        ]
    );
}

/// Replaces a piece of the configuration and returns what happened until the machine came to rest.
async fn with_names(from: &str, to: &str) -> (Cluster, Vec<String>) {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let node = &cluster.nodes()[0];
    let store = node.store();
    let mut streams = TYPES.map(|(namespace, kind)| store.changes(namespace, kind));
    let mut certificates = store.changes("secrets", "TrustdCertificates.secrets.talos.dev");
    let mut statuses = store.changes("runtime", "MachineStatuses.runtime.talos.dev");
    let text = node.machine_config().unwrap();
    assert!(text.contains(from), "{from:?} is not in the configuration");
    apply(&cluster, node, text.replacen(from, to, 1)).await;
    // A control plane that restarts is ready at last; otherwise trustd is the last to change.
    let ready = |resource: &Resource| resource.spec.value()["status"]["ready"] == true;
    loop {
        tokio::select! {
            change = statuses.next() => if ready(&change.unwrap().resource) { break },
            change = certificates.next() => if change.unwrap().resource.metadata.version == 3 { break },
        }
    }
    let mut rows = Vec::new();
    for stream in &mut streams {
        while let Some(change) = stream.try_next().unwrap() {
            assert_eq!(change.kind, ChangeKind::Updated);
            rows.push((change.resource.metadata.updated, row(&change.resource)));
        }
    }
    rows.sort_by_key(|(at, _)| *at);
    (cluster, rows.into_iter().map(|(_, row)| row).collect())
}

fn row(resource: &Resource) -> String {
    let metadata = &resource.metadata;
    let spec = resource.spec.value();
    let short = metadata.kind.split('.').next().unwrap();
    let name = Name::parse("172.30.0.11").unwrap();
    let covered = match short {
        "CertSANs" => spec["ips"]
            .as_array()
            .unwrap()
            .iter()
            .any(|ip| ip == "172.30.0.11"),
        "KubernetesDynamicCerts" => covers(&certificate(&spec["apiServer"]["crt"]), &name),
        "ApiCertificates" | "TrustdCertificates" => {
            covers(&certificate(&spec["server"]["crt"]), &name)
        }
        _ => false,
    };
    let detail = match short {
        "StaticPods" => {
            let annotations = &spec["metadata"]["annotations"];
            let text = |name: &str| annotations[name].as_str().unwrap().to_owned();
            format!(
                " config={} secrets={}",
                text("talos.dev/config-version"),
                text("talos.dev/secrets-version")
            )
        }
        _ if covered => " +172.30.0.11".to_owned(),
        _ => String::new(),
    };
    format!("{short}/{} v{}{detail}", metadata.id, metadata.version)
}

/// Shakes hands with a kube-apiserver as a name and returns the certificate that was accepted.
async fn verified(cluster: &Cluster, dial: SocketAddr, name: &str) -> Certificate {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from(
            cluster.kubernetes_authority().der().to_vec(),
        ))
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(dial).await.unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap();
    let chain = stream.get_ref().1.peer_certificates().unwrap();
    Certificate::from_der(&chain[0]).unwrap()
}

fn certificate(value: &Value) -> Certificate {
    let pem = STANDARD.decode(value.as_str().unwrap()).unwrap();
    Certificate::many_from_pem(pem).unwrap().remove(0)
}
