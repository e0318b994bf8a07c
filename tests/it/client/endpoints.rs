//! Endpoints: forms, fail-over, and which node a request goes to.

use std::time::Duration;

use talos_client::{BasicAuth, Client, DialError, Error, Kind};
use talos_config::talosconfig::Hidden;
use talos_sim::{Options, Reach};

use super::{address, client, cluster, node, options, start};

const VERSION: &str = "/machine.MachineService/Version";

#[tokio::test]
async fn every_form_of_an_endpoint_reaches_the_node() {
    let cluster = cluster(1, 0).await;
    let host = address(&cluster, 0);
    for form in [
        host.clone(),
        format!("{host}:50000"),
        format!("https://{host}:50000"),
        format!("https://{host}:50000/"),
        format!("talos://{host}"),
    ] {
        let mut options = options(&cluster, &["os:reader"]);
        options.endpoints = vec![form.clone()];
        let client = Client::new(options).unwrap();
        let version = client.node(&host).version().await;
        assert_eq!(version.unwrap().tag, "v1.13.9", "{form}");
    }
}

#[tokio::test]
async fn a_scheme_without_port_means_443_and_a_bare_host_never_does() {
    let cluster = cluster(1, 0).await;
    let mut options = options(&cluster, &["os:reader"]);
    options.endpoints = vec!["https://127.0.0.1".to_string(), "127.0.0.1".to_string()];
    let client = Client::new(options).unwrap();
    let endpoints: Vec<String> = client.endpoints().iter().map(ToString::to_string).collect();
    assert_eq!(endpoints, ["127.0.0.1:443", "127.0.0.1:50000"]);
}

#[tokio::test]
async fn a_request_names_one_node_and_the_cluster() {
    let cluster = cluster(1, 1).await;
    let mut options = options(&cluster, &["os:reader"]);
    options.cluster = Some("lab".to_string());
    options.basic = Some(BasicAuth {
        username: "u".to_string(),
        password: Hidden::new("p"),
    });
    let client = Client::new(options).unwrap();
    node(&client, &cluster, 1).version().await.unwrap();
    client.endpoint().version().await.unwrap();

    let calls = cluster.calls();
    let [call, local] = calls.as_slice() else {
        panic!("{calls:?}");
    };
    assert_eq!(
        (call.method.as_str(), call.node.as_str()),
        (VERSION, cluster.nodes()[1].name())
    );
    assert_eq!(call.values("node"), [address(&cluster, 1)]);
    assert_eq!(call.values("nodes"), [""; 0]);
    assert_eq!(call.values("runtime"), ["Talos"]);
    assert_eq!(call.values("context"), ["lab"]);
    assert_eq!(call.values("authorization"), ["Basic dTpw"]);
    assert_eq!(
        (local.node.as_str(), local.values("node").len()),
        (cluster.nodes()[0].name(), 0)
    );
}

#[tokio::test]
async fn a_request_goes_to_the_nodes_own_endpoint_if_there_is_one() {
    let cluster = cluster(3, 1).await;
    let client = client(&cluster);
    for index in [2, 0, 1] {
        node(&client, &cluster, index).version().await.unwrap();
    }
    node(&client, &cluster, 3).version().await.unwrap();
    let calls = cluster.calls();
    let ways: Vec<(&str, &str)> = calls
        .iter()
        .map(|call| (call.via.as_str(), call.node.as_str()))
        .collect();
    let names: Vec<&str> = cluster.nodes().iter().map(talos_sim::Node::name).collect();
    assert_eq!(
        ways[..3],
        [
            (names[2], names[2]),
            (names[0], names[0]),
            (names[1], names[1])
        ]
    );
    // A worker is no endpoint, so a control plane passes the request on.
    assert_eq!(ways[3], (names[0], names[3]));
}

#[tokio::test]
async fn the_next_endpoint_is_tried_when_one_does_not_answer() {
    let cluster = cluster(3, 1).await;
    cluster.nodes()[0].faults().set_reach(Reach::Refusing);
    cluster.nodes()[1].faults().set_reach(Reach::Silent);
    let mut options = options(&cluster, &["os:reader"]);
    options.connect_timeout = Duration::from_millis(300);
    let client = Client::new(options).unwrap();
    for _ in 0..3 {
        node(&client, &cluster, 3).version().await.unwrap();
    }
    let via: Vec<String> = cluster.calls().into_iter().map(|call| call.via).collect();
    assert_eq!(via, [cluster.nodes()[2].name(); 3]);

    cluster.nodes()[2].faults().set_reach(Reach::Refusing);
    let error = loop {
        match node(&client, &cluster, 3).version().await.unwrap_err() {
            // The call that notices the break of the open connection.
            Error::ConnectionLost { .. } => {}
            error => break error,
        }
    };
    assert_eq!(error.kind(), Kind::NotReachable);
    let mut tried: Vec<String> = error
        .attempts()
        .iter()
        .map(|attempt| attempt.endpoint.host())
        .collect();
    tried.sort();
    let mut all: Vec<String> = (0..3).map(|index| address(&cluster, index)).collect();
    all.sort();
    assert_eq!(tried, all);
    let silent = error
        .attempts()
        .iter()
        .find(|attempt| attempt.endpoint.host() == address(&cluster, 1))
        .unwrap();
    assert!(
        matches!(silent.cause, DialError::TimedOut { .. }),
        "{silent}"
    );
    for host in all {
        assert!(error.to_string().contains(&host), "{error}");
    }
}

#[tokio::test]
async fn one_node_down_among_ten_is_one_error() {
    let cluster = cluster(10, 0).await;
    cluster.nodes()[4].faults().set_reach(Reach::Refusing);
    let client = client(&cluster);
    let nodes: Vec<String> = (0..10).map(|index| address(&cluster, index)).collect();
    let outcomes = client
        .each(&nodes, 4, async |node| node.version().await)
        .await;
    let names: Vec<&String> = outcomes.iter().map(|(name, _)| name).collect();
    assert_eq!(names, nodes.iter().collect::<Vec<_>>());
    for (index, (name, outcome)) in outcomes.iter().enumerate() {
        match outcome {
            Ok(version) => assert_eq!((version.tag.as_str(), index == 4), ("v1.13.9", false)),
            // Its own endpoint is down, and another one cannot reach it either.
            Err(error) => {
                assert_eq!(
                    (error.kind(), index),
                    (Kind::NodeNotReachable, 4),
                    "{error}"
                );
                assert_eq!(error.call().unwrap().node.as_ref(), Some(name));
                assert_eq!(&error.attempts()[0].endpoint.host(), name);
            }
        }
    }
}

#[tokio::test]
async fn a_connection_is_reused_and_made_again_when_it_broke() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    node.version().await.unwrap();
    cluster.nodes()[0].faults().drop_connections();
    // Whether the break was noticed before or during the next call, nothing was lost: it only reads.
    for _ in 0..20 {
        match node.version().await {
            Ok(_) => return,
            Err(Error::ConnectionLost { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the connection was not made again");
}

#[tokio::test]
async fn a_forwarded_port_leads_to_nodes_behind_nat() {
    let cluster = start(Options {
        nat: true,
        controlplanes: 1,
        workers: 1,
        machine_cert_sans: vec!["127.0.0.1".to_string()],
        ..Default::default()
    })
    .await;
    let client = client(&cluster);
    for index in [0, 1] {
        let version = node(&client, &cluster, index).version().await;
        assert_eq!(version.unwrap().tag, "v1.13.9");
    }
}

#[tokio::test]
async fn what_cannot_be_sent_or_dialled_is_said_before_anything_is_dialled() {
    let cluster = cluster(1, 0).await;
    let mut none = options(&cluster, &["os:admin"]);
    none.endpoints = Vec::new();
    let error = Client::new(none).unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.kind()),
        ("no endpoint is given", Kind::Input)
    );

    let mut wrong = options(&cluster, &["os:admin"]);
    wrong.endpoints = vec!["https://host/path".to_string()];
    let error = Client::new(wrong).unwrap_err();
    assert_eq!(
        super::text(&error),
        "\"https://host/path\" is not an endpoint: it has more than a scheme, a host and a port"
    );

    for name in ["", "a\nb"] {
        let error = client(&cluster).node(name).version().await.unwrap_err();
        assert_eq!(error.kind(), Kind::Input, "{error}");
    }
    assert_eq!(cluster.calls(), []);
}

#[tokio::test]
async fn a_name_leads_to_its_addresses() {
    let cluster = start(Options {
        nat: true,
        controlplanes: 1,
        workers: 0,
        machine_cert_sans: vec!["localhost".to_string()],
        ..Default::default()
    })
    .await;
    let port = cluster.nodes()[0].dial().unwrap().port();
    let mut options = options(&cluster, &["os:reader"]);
    options.endpoints = vec![format!("localhost:{port}")];
    let client = Client::new(options).unwrap();
    node(&client, &cluster, 0).version().await.unwrap();
}
