//! The knobs do what they say.

use std::time::Duration;

use rustls::CertificateError;
use talos_sim::{Reach, ServedCertificate};

use super::*;

#[tokio::test]
async fn a_node_that_is_down_refuses_and_comes_back_on_the_same_port() {
    for nat in [false, true] {
        let options = Options {
            nat,
            forward_all: true,
            ..Options::default()
        };
        let cluster = Cluster::start(options).await.unwrap();
        let [first, worker] = cluster.nodes() else {
            panic!()
        };
        let dial = worker.dial().unwrap();
        let config = Credentials::of(&cluster, &["os:admin"]).config();
        let channel = connect(first.dial().unwrap(), "127.0.0.1", config.clone()).await;
        let direct = connect(dial, "127.0.0.1", config.clone()).await;
        tag(&direct, &[]).await.unwrap();

        worker.faults().set_reach(Reach::Refusing);
        assert!(tag(&direct, &[]).await.is_err());
        while TcpStream::connect(dial).await.is_ok() {
            tokio::task::yield_now().await;
        }
        let address = worker.address().to_string();
        let text = format!(
            "connection error: desc = \"transport: Error while dialing: dial tcp {address}:50000: connect: connection refused\""
        );
        refused(
            tag(&channel, &[("node", &address)]).await,
            Code::Unavailable,
            &text,
        );

        worker.faults().set_reach(Reach::Up);
        tag(&channel, &[("node", &address)]).await.unwrap();
        while TcpStream::connect(dial).await.is_err() {
            tokio::task::yield_now().await;
        }
        let direct = connect(dial, "127.0.0.1", config).await;
        tag(&direct, &[]).await.unwrap();
    }
}

#[tokio::test]
async fn a_silent_node_never_answers() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    node.faults().set_reach(Reach::Silent);
    let config = Credentials::of(&cluster, &["os:admin"]).config();
    let connector = TlsConnector::from(Arc::new(config));
    let stream = TcpStream::connect(node.dial().unwrap()).await.unwrap();
    let handshake = connector.connect(ServerName::from(node.address()), stream);
    assert!(
        tokio::time::timeout(Duration::from_millis(50), handshake)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn methods_can_fail_and_be_slow() {
    let cluster = cluster(1, 1).await;
    let [first, worker] = cluster.nodes() else {
        panic!()
    };
    let method = "/machine.MachineService/Version";
    let channel = admin(&cluster, first).await;
    worker.faults().fail(method, Code::Internal, "broken");
    let address = worker.address().to_string();
    refused(
        tag(&channel, &[("node", &address)]).await,
        Code::Internal,
        "broken",
    );
    tag(&channel, &[]).await.unwrap();
    worker.faults().restore(method);
    worker.faults().delay(method, Duration::from_secs(3600));
    let metadata = [("node", address.as_str())];
    let slow = tag(&channel, &metadata);
    assert!(
        tokio::time::timeout(Duration::from_millis(50), slow)
            .await
            .is_err()
    );
    worker.faults().restore(method);
    tag(&channel, &[("node", &address)]).await.unwrap();
}

#[tokio::test]
async fn wrong_server_certificates_are_wrong_in_their_own_way() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let outcome = async |served| {
        node.faults().serve_certificate(served);
        let config = Credentials::of(&cluster, &["os:admin"]).config();
        let connector = TlsConnector::from(Arc::new(config));
        let stream = TcpStream::connect(node.dial().unwrap()).await.unwrap();
        let error = connector
            .connect(ServerName::from(node.address()), stream)
            .await
            .err()?;
        match error.get_ref()?.downcast_ref::<rustls::Error>()? {
            rustls::Error::InvalidCertificate(error) => Some(error.clone()),
            other => panic!("{other}"),
        }
    };
    assert!(matches!(
        outcome(ServedCertificate::Expired).await,
        Some(CertificateError::ExpiredContext { .. })
    ));
    let names = outcome(ServedCertificate::OtherNames).await;
    assert!(
        matches!(names, Some(CertificateError::NotValidForNameContext { .. })),
        "{names:?}"
    );
    assert!(outcome(ServedCertificate::ForeignAuthority).await.is_some());
    assert_eq!(outcome(ServedCertificate::Own).await, None);
}

#[tokio::test]
async fn a_stream_from_a_node_that_goes_away_ends_with_unavailable() {
    let cluster = cluster(1, 1).await;
    let [first, worker] = cluster.nodes() else {
        panic!()
    };
    let mut client = MachineServiceClient::new(admin(&cluster, first).await);
    let address = worker.address().to_string();
    let request = ask(machine::EventsRequest::default(), &[("node", &address)]);
    let mut events = client.events(request).await.unwrap().into_inner();
    events.message().await.unwrap().unwrap();
    worker.faults().set_reach(Reach::Refusing);
    assert_eq!(
        events.message().await.unwrap_err().code(),
        Code::Unavailable
    );
}

#[tokio::test]
async fn dropping_the_cluster_stops_its_servers() {
    let cluster = cluster(1, 1).await;
    let node = &cluster.nodes()[0];
    let (dial, kube) = (node.dial().unwrap(), node.kube_dial().unwrap());
    let channel = admin(&cluster, node).await;
    drop(cluster);
    assert!(tag(&channel, &[]).await.is_err());
    for address in [dial, kube] {
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }
}
