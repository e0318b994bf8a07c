//! What nodes refuse, as typed errors.

use std::time::Duration;

use talos_client::{
    ApplyMode, ApplyRequest, Client, Error, Kind, LogRequest, LogSource, RebootMode, ServiceAction,
};
use talos_sim::{Options, Platform, Reach};

use super::{address, client, client_as, cluster, node, options, start, text};

fn apply(config: &str) -> ApplyRequest {
    ApplyRequest {
        config: config.to_string(),
        mode: ApplyMode::NoReboot,
        dry_run: true,
        try_timeout: None,
    }
}

#[tokio::test]
async fn a_role_that_does_not_suffice_names_those_that_would() {
    let cluster = cluster(1, 0).await;
    let client = client_as(&cluster, &["os:reader"]);
    let node = node(&client, &cluster, 0);
    let check = |error: Error, expected: &[&str]| {
        let Error::NotAllowed {
            roles,
            held,
            source,
            ..
        } = &error
        else {
            panic!("{error:?}");
        };
        assert_eq!(
            (*roles, held.as_slice()),
            (
                &expected.iter().map(ToString::to_string).collect::<Vec<_>>()[..],
                &["os:reader".to_string()][..]
            )
        );
        assert_eq!(
            (error.kind(), source.0.as_str()),
            (Kind::NotAllowed, "not authorized")
        );
    };
    check(
        node.apply_configuration(apply("{}")).await.unwrap_err(),
        &["os:admin"],
    );
    check(
        node.reboot(RebootMode::Default).await.unwrap_err(),
        &["os:admin", "os:operator"],
    );
    check(node.machine_config().await.unwrap_err(), &["os:admin"]);
    check(
        node.read("/etc/os-release").collect().await.unwrap_err(),
        &["os:admin"],
    );
    let error = node.kubeconfig().await.unwrap_err();
    let host = address(&cluster, 0);
    assert_eq!(
        error.to_string(),
        format!(
            "MachineService/Kubeconfig on {host} is not allowed with the role os:reader: it takes os:admin"
        )
    );
}

#[tokio::test]
async fn a_control_plane_call_on_a_worker_is_not_implemented() {
    let cluster = cluster(1, 1).await;
    let client = client(&cluster);
    let error = node(&client, &cluster, 1).kubeconfig().await.unwrap_err();
    assert_eq!(error.kind(), Kind::NotImplemented);
    let host = address(&cluster, 1);
    assert_eq!(
        text(&error),
        format!(
            "MachineService/Kubeconfig on {host}: not implemented by this node: kubeconfig is only available on control plane nodes"
        )
    );
}

#[tokio::test]
async fn what_does_not_exist_is_not_found() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    for error in [
        node.get("k8s", "Nodenames.kubernetes.talos.dev", "nope")
            .await
            .unwrap_err(),
        // Real nodes answer "permission denied" for these two, to an administrator as well.
        node.get("k8s", "Nopes.kubernetes.talos.dev", "nope")
            .await
            .unwrap_err(),
        node.list("nope", "Nodenames.kubernetes.talos.dev")
            .await
            .unwrap_err(),
        node.read("/nope").collect().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), Kind::NotFound, "{error:?}");
    }
}

#[tokio::test]
async fn a_config_that_the_node_refuses_lists_its_problems() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    let error = node
        .apply_configuration(apply("machine: {bogus: 1}\n"))
        .await
        .unwrap_err();
    let Error::Invalid { problems, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(problems[0].contains("bogus"), "{problems:?}");
    let error = node
        .apply_configuration(apply("machine: {}\n"))
        .await
        .unwrap_err();
    let Error::Invalid { problems, .. } = &error else {
        panic!("{error:?}");
    };
    assert!(problems.len() > 1, "{problems:?}");
    assert!(
        problems
            .iter()
            .all(|problem| !problem.contains("occurred:") && !problem.starts_with('*')),
        "{problems:?}"
    );
}

#[tokio::test]
async fn a_state_that_does_not_fit_and_a_conflict_are_told_apart() {
    let cluster = start(Options {
        platform: Platform::Container,
        ..Default::default()
    })
    .await;
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    let error = node.reboot(RebootMode::Default).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Precondition, "{error:?}");
    let error = node.bootstrap().await.unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict, "{error:?}");
    assert!(
        text(&error).ends_with("etcd data directory is not empty"),
        "{}",
        text(&error)
    );
}

#[tokio::test]
async fn what_has_no_kind_of_its_own_keeps_its_code_and_words() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    let error = node
        .drive_service("nope", ServiceAction::Restart)
        .await
        .unwrap_err();
    let Error::Failed { code, source, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(
        (*code, source.0.as_str()),
        ("Unknown", "service \"nope\" not defined")
    );
    let request = LogRequest {
        source: LogSource::System,
        id: "nope".to_string(),
        follow: true,
        tail: None,
    };
    let error = node.logs(request).collect().await.unwrap_err();
    assert_eq!(error.kind(), Kind::Failed, "{error:?}");
}

#[tokio::test]
async fn an_answer_that_does_not_come_in_time_is_given_up() {
    let cluster = cluster(1, 0).await;
    cluster.nodes()[0]
        .faults()
        .delay("/machine.MachineService/Version", Duration::from_secs(3600));
    let mut options = options(&cluster, &["os:admin"]);
    options.request_timeout = Duration::from_millis(200);
    let client = Client::new(options).unwrap();
    let error = node(&client, &cluster, 0).version().await.unwrap_err();
    assert_eq!(error.kind(), Kind::TimedOut);
    let host = address(&cluster, 0);
    assert_eq!(
        error.to_string(),
        format!("MachineService/Version on {host}: no answer within 200ms")
    );
    // The connection is still good for other calls.
    node(&client, &cluster, 0).services().await.unwrap();
}

#[tokio::test]
async fn a_node_that_the_endpoint_cannot_reach_is_told_from_the_endpoint() {
    let cluster = cluster(1, 1).await;
    let client = client(&cluster);
    cluster.nodes()[1].faults().set_reach(Reach::Refusing);
    let error = node(&client, &cluster, 1).version().await.unwrap_err();
    assert_eq!(error.kind(), Kind::NodeNotReachable, "{error:?}");
    let call = error.call().unwrap();
    assert_eq!(call.node, Some(address(&cluster, 1)));
    assert_eq!(call.endpoint, format!("{}:50000", address(&cluster, 0)));
    assert!(error.is_transient());
}

#[tokio::test]
async fn a_connection_that_breaks_during_a_call_says_so() {
    let cluster = cluster(1, 0).await;
    let faults = cluster.nodes()[0].faults();
    faults.delay("/machine.MachineService/Version", Duration::from_secs(3600));
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    // Open the connection first, so that the break hits the call and not the dialling.
    node.services().await.unwrap();
    let call = node.version();
    let cut = async {
        while !cluster
            .calls()
            .iter()
            .any(|call| call.method.ends_with("/Version"))
        {
            tokio::task::yield_now().await;
        }
        faults.drop_connections();
    };
    let (outcome, ()) = tokio::join!(call, cut);
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::ConnectionLost { .. }), "{error:?}");
    assert_eq!(error.kind(), Kind::NotReachable);
    faults.restore("/machine.MachineService/Version");
    node.version().await.unwrap();
}

#[tokio::test]
async fn every_status_code_has_a_kind() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    use tonic::Code;
    for (code, kind) in [
        (Code::Cancelled, Kind::Cancelled),
        (Code::Unknown, Kind::Failed),
        (Code::InvalidArgument, Kind::Invalid),
        (Code::DeadlineExceeded, Kind::TimedOut),
        (Code::NotFound, Kind::NotFound),
        (Code::AlreadyExists, Kind::Conflict),
        (Code::PermissionDenied, Kind::NotAllowed),
        (Code::ResourceExhausted, Kind::Failed),
        (Code::FailedPrecondition, Kind::Precondition),
        (Code::Aborted, Kind::Conflict),
        (Code::Unimplemented, Kind::NotImplemented),
        (Code::Internal, Kind::Failed),
        (Code::Unavailable, Kind::NodeNotReachable),
        (Code::Unauthenticated, Kind::NotAllowed),
    ] {
        cluster.nodes()[0]
            .faults()
            .fail("/machine.MachineService/Version", code, "words");
        let error = node.version().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{code:?}");
        if kind != Kind::Invalid {
            assert!(text(&error).ends_with(": words"), "{}", text(&error));
        }
    }
}

#[tokio::test]
async fn a_long_message_arrives_whole() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let words = "word ".repeat(20_000);
    let faults = cluster.nodes()[0].faults();
    faults.fail(
        "/machine.MachineService/Version",
        tonic::Code::Internal,
        &words,
    );
    let error = node(&client, &cluster, 0).version().await.unwrap_err();
    let Error::Failed { source, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(source.0.len(), words.len());
}
