//! The simulated cluster against recordings of a real one.

mod apply;
mod certificates;
mod faults;
mod machine_services;
mod maintenance;
mod routing;
mod transport;

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper_util::rt::TokioIo;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use talos_api::cosi::resource::state_client::StateClient;
use talos_api::machine::machine_service_client::MachineServiceClient;
use talos_api::{cosi, machine};
use talos_pki::{Authority, Certificate, Issued, PrivateKey};
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
            let line = talosconfig
                .lines()
                .find_map(|line| line.split_once(mark.as_str()));
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
            roots
                .add(CertificateDer::from(authority.der().to_vec()))
                .unwrap();
        }
        let chain = self
            .crt
            .iter()
            .map(|c| CertificateDer::from(c.der().to_vec()))
            .collect();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.pkcs8_der().to_vec()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let mut config = builder
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .unwrap();
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
    Endpoint::from_static("http://apid")
        .connect_with_connector(dialler)
        .await
        .unwrap()
}

pub(super) async fn admin(cluster: &Cluster, node: &Node) -> Channel {
    let config = Credentials::of(cluster, &["os:admin"]).config();
    connect(node.dial().unwrap(), &node.address().to_string(), config).await
}

/// A request with metadata.
pub(super) fn ask<T>(message: T, metadata: &[(&'static str, &str)]) -> Request<T> {
    let mut request = Request::new(message);
    for (key, value) in metadata {
        request.metadata_mut().append(*key, value.parse().unwrap());
    }
    request
}

/// The cluster's own Talos authority, with the key that its machine configuration holds.
fn talos_authority(cluster: &Cluster) -> Authority {
    let config = cluster.nodes()[0].machine_config().unwrap();
    let mut lines = config
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "ca:")
        .skip(1);
    let mut pem = |key: &str| {
        let line = lines.next().unwrap();
        STANDARD
            .decode(line.strip_prefix(key).unwrap().trim())
            .unwrap()
    };
    let (crt, key) = (pem("crt:"), pem("key:"));
    Authority::from_pem(crt, key).unwrap()
}

/// Credentials with another client certificate.
fn with_client(cluster: &Cluster, issued: Issued) -> Credentials {
    Credentials {
        ca: vec![cluster.talos_authority().clone()],
        crt: vec![issued.certificate],
        key: issued.key,
    }
}

/// Asserts a refusal's code and text.
#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Status>, code: Code, text: &str) {
    let status = result.unwrap_err();
    assert_eq!((status.code(), status.message()), (code, text));
}

async fn resource(
    channel: &Channel,
    (namespace, kind, id): (&str, &str, &str),
    metadata: &[(&'static str, &str)],
) -> Result<cosi::resource::Resource, Status> {
    let wanted = cosi::resource::GetRequest {
        namespace: namespace.to_owned(),
        r#type: kind.to_owned(),
        id: id.to_owned(),
        options: None,
    };
    let mut state = StateClient::new(channel.clone());
    let found = state.get(ask(wanted, metadata)).await?;
    Ok(found.into_inner().resource.unwrap())
}

async fn tag(channel: &Channel, metadata: &[(&'static str, &str)]) -> Result<String, Status> {
    let mut client = MachineServiceClient::new(channel.clone());
    let answer = client.version(ask((), metadata)).await?.into_inner();
    Ok(answer.messages[0].version.clone().unwrap().tag)
}

async fn hostname(channel: &Channel, metadata: &[(&'static str, &str)]) -> Result<String, Status> {
    let mut client = MachineServiceClient::new(channel.clone());
    let answer = client.hostname(ask((), metadata)).await?.into_inner();
    Ok(answer.messages[0].hostname.clone())
}

#[tokio::test]
async fn version_and_resources_come_over_mutual_tls() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let node = &cluster.nodes()[0];
    let channel = admin(&cluster, node).await;
    assert_eq!(tag(&channel, &[]).await.unwrap(), "v1.13.9");
    let place = ("config", "MachineConfigs.config.talos.dev", "v1alpha1");
    let found = resource(&channel, place, &[]).await.unwrap();
    let spec = machine_config(&found);
    assert!(spec == node.machine_config().unwrap());
}

/// The exact text of a machine configuration resource.
fn machine_config(found: &cosi::resource::Resource) -> String {
    use prost::Message as _;
    let spec = found.spec.clone().unwrap().proto_spec;
    let spec = talos_api::resource::config::MachineConfigSpec::decode(spec.as_slice()).unwrap();
    String::from_utf8(spec.yaml_marshalled).unwrap()
}

/// A cluster of a size.
async fn cluster(controlplanes: usize, workers: usize) -> Cluster {
    let options = Options {
        controlplanes,
        workers,
        ..Options::default()
    };
    Cluster::start(options).await.unwrap()
}
