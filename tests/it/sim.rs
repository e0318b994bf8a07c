//! The simulated cluster against recordings of a real one.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper_util::rt::TokioIo;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use talos_api::cosi::resource::state_client::StateClient;
use talos_api::machine::machine_service_client::MachineServiceClient;
use talos_api::{common, cosi, machine};
use talos_pki::{Certificate, PrivateKey};
use talos_sim::{Cluster, Node, Options};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

/// A client certificate and the authority it trusts, as a talosconfig holds them.
struct Credentials {
    ca: Vec<Certificate>,
    crt: Vec<Certificate>,
    key: PrivateKey,
}

impl Credentials {
    fn of(cluster: &Cluster, roles: &[&str]) -> Self {
        Self::read(&cluster.talosconfig(roles))
    }

    fn read(talosconfig: &str) -> Self {
        let pem = |key: &str| {
            let mark = format!(" {key}: ");
            let line = talosconfig.lines().find_map(|line| line.split_once(mark.as_str()));
            STANDARD.decode(line.unwrap().1).unwrap()
        };
        Self {
            ca: Certificate::many_from_pem(pem("ca")).unwrap(),
            crt: Certificate::many_from_pem(pem("crt")).unwrap(),
            key: PrivateKey::from_pem(pem("key")).unwrap(),
        }
    }

    fn config(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        for authority in &self.ca {
            roots.add(CertificateDer::from(authority.der().to_vec())).unwrap();
        }
        let chain = self.crt.iter().map(|c| CertificateDer::from(c.der().to_vec())).collect();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.pkcs8_der().to_vec()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let mut config =
            builder.with_root_certificates(roots).with_client_auth_cert(chain, key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        config
    }
}

async fn connect(dial: SocketAddr, name: &str, config: ClientConfig) -> Channel {
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let dialler = tower::service_fn(move |_| {
        let (connector, name) = (connector.clone(), name.clone());
        async move {
            let stream = TcpStream::connect(dial).await?;
            Ok::<_, std::io::Error>(TokioIo::new(connector.connect(name, stream).await?))
        }
    });
    Endpoint::from_static("http://apid").connect_with_connector(dialler).await.unwrap()
}

async fn admin(cluster: &Cluster, node: &Node) -> Channel {
    let config = Credentials::of(cluster, &["os:admin"]).config();
    connect(node.dial().unwrap(), &node.address().to_string(), config).await
}

/// A request with metadata.
fn ask<T>(message: T, metadata: &[(&'static str, &str)]) -> Request<T> {
    let mut request = Request::new(message);
    for (key, value) in metadata {
        request.metadata_mut().append(*key, value.parse().unwrap());
    }
    request
}

#[tokio::test]
async fn version_and_resources_come_over_mutual_tls() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let node = &cluster.nodes()[0];
    let channel = admin(&cluster, node).await;
    let mut machine = MachineServiceClient::new(channel.clone());
    let version = machine.version(()).await.unwrap().into_inner();
    assert_eq!(version.messages[0].version.as_ref().unwrap().tag, "v1.13.9");

    let mut state = StateClient::new(channel);
    let wanted = cosi::resource::GetRequest {
        namespace: "config".to_owned(),
        r#type: "MachineConfigs.config.talos.dev".to_owned(),
        id: "v1alpha1".to_owned(),
        options: None,
    };
    let found = state.get(wanted).await.unwrap().into_inner().resource.unwrap();
    let spec = found.spec.unwrap().proto_spec;
    assert!(String::from_utf8_lossy(&spec).contains(&node.machine_config().unwrap()));
}
