//! Machines that wait for their configuration (facts/api-semantics.md §1.4, §5.7).

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::UnixTime;
use rustls::{DigitallySignedStruct, SignatureScheme};
use talos_api::machine::apply_configuration_request::Mode;
use talos_sim::{MachineType, TalosVersion};

use super::*;

/// Trusts anybody, as `--insecure` does.
#[derive(Debug)]
struct Blind;

impl ServerCertVerifier for Blind {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![
            SignatureScheme::ED25519,
            SignatureScheme::ECDSA_NISTP256_SHA256,
        ]
    }
}

fn insecure() -> ClientConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Blind))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

async fn waiting(talos_version: TalosVersion) -> Cluster {
    let options = Options {
        maintenance: 1,
        workers: 1,
        talos_version,
        ..Options::default()
    };
    Cluster::start(options).await.unwrap()
}

#[tokio::test]
async fn everybody_reads_and_nobody_is_forwarded() {
    let cluster = waiting(TalosVersion::V1_13_9).await;
    let node = cluster.nodes().last().unwrap();
    assert_eq!(node.machine_type(), MachineType::Unknown);
    let channel = connect(node.dial().unwrap(), "anything", insecure()).await;
    let mut client = MachineServiceClient::new(channel.clone());
    let version = client
        .version(ask((), &[("node", "")]))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(version.messages[0].features, None);
    let other = cluster.nodes()[0].address().to_string();
    assert_eq!(
        hostname(&channel, &[("nodes", &other)]).await.unwrap(),
        node.name()
    );
    let reboot = client.reboot(machine::RebootRequest::default()).await;
    refused(reboot, Code::PermissionDenied, "not authorized");
    let place = ("secrets", "CertSANs.secrets.talos.dev", "api");
    refused(
        resource(&channel, place, &[]).await,
        Code::PermissionDenied,
        "not authorized",
    );
}

#[tokio::test]
async fn the_certificate_is_a_throw_away_one_with_a_known_fingerprint() {
    let cluster = waiting(TalosVersion::V1_13_9).await;
    let node = cluster.nodes().last().unwrap();
    let connector = TlsConnector::from(Arc::new(insecure()));
    let stream = TcpStream::connect(node.dial().unwrap()).await.unwrap();
    let stream = connector
        .connect(ServerName::from(node.address()), stream)
        .await
        .unwrap();
    let leaf = Certificate::from_der(&stream.get_ref().1.peer_certificates().unwrap()[0]).unwrap();
    assert_eq!(leaf.common_name(), Some("maintenance-service.talos.dev"));
    assert_eq!(
        node.maintenance_fingerprint().unwrap(),
        STANDARD.encode(leaf.spki_sha256())
    );
}

#[tokio::test]
async fn a_complete_configuration_ends_the_wait() {
    let cluster = waiting(TalosVersion::V1_13_9).await;
    let node = cluster.nodes().last().unwrap();
    let channel = connect(node.dial().unwrap(), "anything", insecure()).await;
    let mut client = MachineServiceClient::new(channel);
    let partial = "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: early\n";
    let apply = |data: &str| machine::ApplyConfigurationRequest {
        data: data.as_bytes().to_vec(),
        ..<_>::default()
    };
    let answer = client
        .apply_configuration(apply(partial))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer.messages[0].mode(), Mode::NoReboot);
    assert_eq!(node.machine_type(), MachineType::Unknown);

    let worker = cluster.nodes()[1].machine_config().unwrap();
    let answer = client
        .apply_configuration(apply(&worker))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer.messages[0].mode(), Mode::NoReboot);
    assert_eq!(node.machine_type(), MachineType::Worker);
    // The old connection ends, and the next one wants a client certificate.
    while client.version(()).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let channel = admin(&cluster, node).await;
    assert_eq!(tag(&channel, &[]).await.unwrap(), "v1.13.9");
    let place = ("config", "MachineConfigs.config.talos.dev", "v1alpha1");
    assert!(machine_config(&resource(&channel, place, &[]).await.unwrap()) == worker);
}

#[tokio::test]
async fn talos_1_11_waits_with_few_methods() {
    let cluster = waiting(TalosVersion::V1_11_5).await;
    let node = cluster.nodes().last().unwrap();
    let channel = connect(node.dial().unwrap(), "anything", insecure()).await;
    assert_eq!(
        tag(&channel, &[]).await.unwrap_err().code(),
        Code::Unimplemented
    );
    let place = ("runtime", "MachineStatuses.runtime.talos.dev", "machine");
    let found = resource(&channel, place, &[]).await;
    assert!(found.is_ok() || found.unwrap_err().code() == Code::NotFound);
}
