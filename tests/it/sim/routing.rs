//! Which node answers, by the request's metadata (facts/api-semantics.md §3, recorded/upgrade/f-errors).

use super::*;

const NO_ROUTE: &str = "connection error: desc = \"transport: Error while dialing: dial tcp 10.5.0.99:50000: connect: no route to host\"";

#[tokio::test]
async fn one_node_answers_as_itself() {
    let cluster = cluster(1, 1).await;
    let [first, worker] = cluster.nodes() else {
        panic!()
    };
    let channel = admin(&cluster, first).await;
    let address = worker.address().to_string();
    assert_eq!(
        hostname(&channel, &[]).await.unwrap(),
        "cluster-1-controlplane-1"
    );
    assert_eq!(
        hostname(&channel, &[("node", &address)]).await.unwrap(),
        "cluster-1-worker-1"
    );
    assert_eq!(
        hostname(&channel, &[("node", worker.name())])
            .await
            .unwrap(),
        "cluster-1-worker-1"
    );
    let own = first.address().to_string();
    assert_eq!(
        hostname(&channel, &[("node", &own)]).await.unwrap(),
        "cluster-1-controlplane-1"
    );
    let metadata = [("node", address.as_str()), ("proxyfrom", "elsewhere")];
    assert_eq!(
        hostname(&channel, &metadata).await.unwrap(),
        "cluster-1-controlplane-1"
    );

    let mut client = MachineServiceClient::new(channel);
    let answer = client
        .hostname(ask((), &[("node", &address)]))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer.messages[0].metadata, None);
}

#[tokio::test]
async fn targets_are_refused_in_the_machine_s_words() {
    let cluster = cluster(1, 1).await;
    let channel = admin(&cluster, &cluster.nodes()[0]).await;
    let first = cluster.nodes()[0].address().to_string();
    let check = async |metadata: &[(&'static str, &str)], code, text: &str| {
        refused(tag(&channel, metadata).await, code, text);
    };
    let two = [("node", first.as_str()), ("node", first.as_str())];
    check(
        &two,
        Code::InvalidArgument,
        "node metadata must be single-valued",
    )
    .await;
    check(
        &[("node", "10.5.0.2:50000")],
        Code::Internal,
        "invalid target \"10.5.0.2:50000\"",
    )
    .await;
    check(&[("node", "")], Code::Internal, "invalid target \"\"").await;
    check(&[("node", "10.5.0.99")], Code::Unavailable, NO_ROUTE).await;

    let place = ("config", "MachineConfigs.config.talos.dev", "v1alpha1");
    let found = resource(&channel, place, &[("nodes", &first)]).await;
    let text = "one-2-many proxying is not supported for method /cosi.resource.State/Get";
    refused(found, Code::InvalidArgument, text);
}

#[tokio::test]
async fn a_worker_answers_for_itself_and_forwards_nothing() {
    let cluster = cluster(1, 1).await;
    let [first, worker] = cluster.nodes() else {
        panic!()
    };
    let channel = admin(&cluster, worker).await;
    let own = worker.address().to_string();
    for metadata in [
        vec![],
        vec![("node", own.as_str())],
        vec![("node", worker.name())],
        vec![("nodes", own.as_str())],
    ] {
        assert_eq!(hostname(&channel, &metadata).await.unwrap(), worker.name());
    }
    let other = first.address().to_string();
    for key in ["node", "nodes"] {
        let denied = hostname(&channel, &[(key, other.as_str())]).await;
        assert_eq!(denied.unwrap_err().code(), Code::PermissionDenied);
    }
}

#[tokio::test]
async fn several_nodes_answer_in_one_message_with_failures_inside() {
    let cluster = cluster(1, 2).await;
    let channel = admin(&cluster, &cluster.nodes()[0]).await;
    let addresses: Vec<String> = cluster
        .nodes()
        .iter()
        .map(|node| node.address().to_string())
        .collect();
    let mut metadata: Vec<(&'static str, &str)> = addresses
        .iter()
        .map(|address| ("nodes", address.as_str()))
        .collect();
    metadata.push(("nodes", "10.5.0.99"));
    let mut client = MachineServiceClient::new(channel);
    let answer = client
        .hostname(ask((), &metadata))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer.messages.len(), 4);
    for entry in &answer.messages {
        let metadata = entry.metadata.as_ref().unwrap();
        match cluster
            .nodes()
            .iter()
            .find(|node| node.address().to_string() == metadata.hostname)
        {
            Some(node) => {
                assert_eq!(entry.hostname, node.name());
                assert_eq!((metadata.error.as_str(), &metadata.status), ("", &None));
            }
            None => {
                assert_eq!(metadata.hostname, "10.5.0.99");
                assert_eq!(
                    metadata.error,
                    format!("rpc error: code = Unavailable desc = {NO_ROUTE}")
                );
                let status = metadata.status.as_ref().unwrap();
                assert_eq!((status.code, status.message.as_str()), (14, NO_ROUTE));
            }
        }
    }
}

#[tokio::test]
async fn a_role_that_is_too_low_is_a_failure_of_each_node() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let address = node.address().to_string();
    let config = Credentials::of(&cluster, &["os:reader"]).config();
    let channel = connect(node.dial().unwrap(), &address, config).await;
    let mut client = MachineServiceClient::new(channel);
    let request = machine::RebootRequest::default();
    let answer = client
        .reboot(ask(request, &[("nodes", &address)]))
        .await
        .unwrap()
        .into_inner();
    let metadata = answer.messages[0].metadata.as_ref().unwrap();
    assert_eq!(
        metadata.error,
        "rpc error: code = PermissionDenied desc = not authorized"
    );
}

#[tokio::test]
async fn streams_of_several_nodes_are_labelled_and_end_well() {
    let cluster = cluster(1, 1).await;
    let [first, worker] = cluster.nodes() else {
        panic!()
    };
    for node in [first, worker] {
        node.write_file("/name", node.name().as_bytes());
    }
    let channel = admin(&cluster, first).await;
    let mut client = MachineServiceClient::new(channel);
    let addresses = [first.address().to_string(), worker.address().to_string()];
    let metadata = [
        ("nodes", addresses[0].as_str()),
        ("nodes", addresses[1].as_str()),
        ("nodes", "10.5.0.99"),
    ];
    let request = machine::ReadRequest {
        path: "/name".to_owned(),
    };
    let mut stream = client
        .read(ask(request, &metadata))
        .await
        .unwrap()
        .into_inner();
    let mut found = Vec::new();
    while let Some(part) = stream.message().await.unwrap() {
        let metadata = part.metadata.unwrap();
        let code = metadata.status.map(|status| status.code);
        found.push((
            metadata.hostname,
            String::from_utf8(part.bytes).unwrap(),
            code,
        ));
    }
    found.sort();
    let mut expected = vec![
        ("10.5.0.99".to_owned(), String::new(), Some(14)),
        (addresses[0].clone(), first.name().to_owned(), None),
        (addresses[1].clone(), worker.name().to_owned(), None),
    ];
    expected.sort();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn what_arrived_is_recorded_with_its_metadata() {
    let cluster = cluster(1, 1).await;
    let [first, worker] = cluster.nodes() else {
        panic!()
    };
    let channel = admin(&cluster, first).await;
    let address = worker.address().to_string();
    tag(
        &channel,
        &[("node", &address), ("runtime", "Talos"), ("context", "c")],
    )
    .await
    .unwrap();
    let calls = cluster.calls();
    let call = calls.last().unwrap();
    assert_eq!(
        (call.node.as_str(), call.via.as_str()),
        (worker.name(), first.name())
    );
    assert_eq!(call.method, "/machine.MachineService/Version");
    assert_eq!(call.values("runtime"), ["Talos"]);
    assert_eq!(call.values("context"), ["c"]);
    assert_eq!(call.values("node"), [address.as_str()]);
    assert_eq!(call.roles, ["os:admin"]);
    assert!(!call.mutating);

    cluster.clear_calls();
    let mut client = MachineServiceClient::new(channel);
    let data = worker.machine_config().unwrap().into_bytes();
    for dry_run in [true, false] {
        let data = data.clone();
        let request = machine::ApplyConfigurationRequest {
            data,
            dry_run,
            mode: 1,
            ..<_>::default()
        };
        client
            .apply_configuration(ask(request, &[("node", &address)]))
            .await
            .unwrap();
    }
    let mutating: Vec<bool> = cluster.calls().iter().map(|call| call.mutating).collect();
    assert_eq!(mutating, [false, true]);
}

#[tokio::test]
async fn behind_nat_only_forwarded_ports_can_be_dialled() {
    let options = Options {
        nat: true,
        ..Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let [first, worker] = cluster.nodes() else {
        panic!()
    };
    assert_eq!(
        (first.address().to_string(), worker.address().to_string()),
        ("10.5.10.2".to_owned(), "10.5.10.3".to_owned())
    );
    assert_eq!(cluster.endpoint(), "https://10.5.10.2:6443");
    assert!(
        first.dial().unwrap().ip().is_loopback() && first.kube_dial().unwrap().ip().is_loopback()
    );
    assert_eq!(worker.dial(), None);
    let config = Credentials::of(&cluster, &["os:admin"]).config();
    let channel = connect(first.dial().unwrap(), "127.0.0.1", config).await;
    assert_eq!(
        hostname(&channel, &[("node", "10.5.10.3")]).await.unwrap(),
        worker.name()
    );
}
