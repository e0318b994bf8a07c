//! Nodes without a configuration: no client certificate, a server known by its fingerprint or not at all.

use jiff::Timestamp;
use talos_client::{
    ApplyMode, ApplyRequest, Client, Error, Fingerprint, Kind, Security, TlsRefusal,
};
use talos_sim::Options;

use super::{address, start};

async fn waiting() -> talos_sim::Cluster {
    start(Options {
        controlplanes: 1,
        workers: 0,
        maintenance: 2,
        ..Default::default()
    })
    .await
}

fn client(nodes: Vec<String>, fingerprints: Vec<Fingerprint>) -> Client {
    let security = Security::Maintenance { fingerprints };
    Client::new(talos_client::Options::new(
        nodes,
        security,
        Timestamp::now(),
    ))
    .unwrap()
}

#[tokio::test]
async fn each_node_is_dialled_itself_and_no_node_is_named() {
    let cluster = waiting().await;
    let nodes = vec![address(&cluster, 1), address(&cluster, 2)];
    let client = client(nodes.clone(), Vec::new());
    let outcomes = client
        .each(&nodes, 2, async |node| node.version().await)
        .await;
    assert!(
        outcomes.iter().all(|(_, outcome)| outcome.is_ok()),
        "{outcomes:?}"
    );
    let mut calls = cluster.calls();
    calls.sort_by(|a, b| a.node.cmp(&b.node));
    let via: Vec<&str> = calls.iter().map(|call| call.via.as_str()).collect();
    let mut names = vec![cluster.nodes()[1].name(), cluster.nodes()[2].name()];
    names.sort_unstable();
    assert_eq!(via, names);
    assert!(
        calls.iter().all(|call| call.values("node").is_empty()),
        "{calls:?}"
    );
    assert_eq!(outcomes[0].1.as_ref().unwrap().rbac, None);
}

#[tokio::test]
async fn a_fingerprint_decides_who_is_talked_to() {
    let cluster = waiting().await;
    let nodes = vec![address(&cluster, 1)];
    let own: Fingerprint = cluster.nodes()[1]
        .maintenance_fingerprint()
        .unwrap()
        .parse()
        .unwrap();
    let other: Fingerprint = cluster.nodes()[2]
        .maintenance_fingerprint()
        .unwrap()
        .parse()
        .unwrap();
    for accepted in [vec![own], vec![other, own]] {
        let client = client(nodes.clone(), accepted);
        client.node(&nodes[0]).version().await.unwrap();
    }
    let client = client(nodes.clone(), vec![other]);
    let error = client.node(&nodes[0]).version().await.unwrap_err();
    assert_eq!(error.kind(), Kind::Tls);
    let Error::Tls {
        refusal: TlsRefusal::Fingerprint { found },
        ..
    } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!(found, own);
}

#[tokio::test]
async fn a_reader_is_all_one_is_there() {
    let cluster = waiting().await;
    let nodes = vec![address(&cluster, 1)];
    let client = client(nodes.clone(), Vec::new());
    let node = client.node(&nodes[0]);
    let error = node.read("/etc/os-release").collect().await.unwrap_err();
    let Error::NotAllowed { held, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(held, &["os:reader"]);
}

#[tokio::test]
async fn a_configured_node_does_not_take_a_client_without_certificate() {
    let cluster = waiting().await;
    let nodes = vec![address(&cluster, 0)];
    let client = client(nodes.clone(), Vec::new());
    let error = client.node(&nodes[0]).version().await.unwrap_err();
    let refused = matches!(
        &error,
        Error::Tls {
            refusal: TlsRefusal::ClientRefused { .. },
            ..
        }
    );
    assert!(refused, "{error:?}");
}

#[tokio::test]
async fn a_configuration_is_delivered_and_the_node_leaves_maintenance() {
    let cluster = waiting().await;
    let config = cluster.nodes()[0].machine_config().unwrap();
    let nodes = vec![address(&cluster, 1)];
    let insecure = client(nodes.clone(), Vec::new());
    let request = ApplyRequest {
        config,
        mode: ApplyMode::Auto,
        dry_run: false,
        try_timeout: None,
    };
    let applied = insecure
        .node(&nodes[0])
        .apply_configuration(request)
        .await
        .unwrap();
    assert_eq!(applied.mode, Some(ApplyMode::NoReboot));
}

#[tokio::test]
async fn a_node_that_is_no_endpoint_is_not_looked_for_elsewhere() {
    let cluster = waiting().await;
    let client = client(vec![address(&cluster, 1)], Vec::new());
    let error = client
        .node(address(&cluster, 2))
        .version()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), Kind::Input);
    assert_eq!(cluster.calls(), []);
}
