//! The typed calls of the machine API.

use futures::StreamExt as _;
use talos_client::{
    ApplyMode, ApplyRequest, Events, ImageScope, LayerStatus, LogRequest, LogSource, Payload,
    RebootMode, ServiceAction, Tail,
};
use talos_config::kubeconfig::Kubeconfig;
use talos_sim::{Options, TalosVersion};

use super::{client, cluster, node, start};

async fn of_version(talos_version: TalosVersion) -> talos_sim::Cluster {
    start(Options {
        talos_version,
        workers: 0,
        ..Default::default()
    })
    .await
}

#[tokio::test]
async fn version_tells_what_a_node_runs() {
    for (version, tag) in [
        (TalosVersion::V1_11_5, "v1.11.5"),
        (TalosVersion::V1_13_9, "v1.13.9"),
        (TalosVersion::V1_14, "v1.14.1"),
    ] {
        let cluster = of_version(version).await;
        let client = client(&cluster);
        let version = node(&client, &cluster, 0).version().await.unwrap();
        assert_eq!(version.tag, tag);
        assert_eq!(version.semver().unwrap().to_string(), tag[1..]);
        assert_eq!((version.os.as_str(), version.rbac), ("linux", Some(true)));
        assert_eq!(version.platform.unwrap().mode, "metal");
    }
}

#[tokio::test]
async fn a_configuration_is_applied_in_the_mode_that_was_asked_for() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    let before = node.machine_config().await.unwrap();
    let config = format!("# a note\n{}", before.text);
    let request = |dry_run| ApplyRequest {
        config: config.clone(),
        mode: ApplyMode::NoReboot,
        dry_run,
        try_timeout: None,
    };
    let applied = node.apply_configuration(request(true)).await.unwrap();
    assert_eq!(applied.mode, Some(ApplyMode::NoReboot));
    assert_eq!(node.machine_config().await.unwrap(), before);
    assert!(cluster.calls().iter().all(|call| !call.mutating));

    node.apply_configuration(request(false)).await.unwrap();
    let after = node.machine_config().await.unwrap();
    assert_eq!(after.text, config);
    assert!(after.version.parse::<u64>().unwrap() > before.version.parse().unwrap());
    assert_eq!(cluster.nodes()[0].machine_config().unwrap(), config);
}

#[tokio::test]
async fn a_kubeconfig_comes_out_of_its_archive() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let text = node(&client, &cluster, 0).kubeconfig().await.unwrap();
    let kubeconfig = Kubeconfig::parse("kubeconfig", &text).unwrap();
    let access = kubeconfig.access(None).unwrap();
    assert_eq!(access.context, "admin@cluster-1");
    assert_eq!(access.cluster.server, cluster.endpoint());
}

#[tokio::test]
async fn services_are_listed_and_driven() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    let services = node.services().await.unwrap();
    let kubelet = services
        .iter()
        .find(|service| service.id == "kubelet")
        .unwrap();
    assert_eq!(
        (kubelet.state.as_str(), kubelet.health.healthy),
        ("Running", Some(true))
    );
    assert!(services.is_sorted_by_key(|service| service.id.clone()));
    node.drive_service("kubelet", ServiceAction::Start)
        .await
        .unwrap();
    node.drive_service("kubelet", ServiceAction::Restart)
        .await
        .unwrap();
    let error = node
        .drive_service("apid", ServiceAction::Stop)
        .await
        .unwrap_err();
    assert!(
        super::text(&error).contains("stop operation via API"),
        "{}",
        super::text(&error)
    );
}

fn log(tail: Option<u32>) -> LogRequest {
    LogRequest {
        source: LogSource::System,
        id: "kubelet".to_string(),
        follow: false,
        tail,
    }
}

#[tokio::test]
async fn a_log_is_read_whole_in_part_or_not_at_all() {
    let cluster = cluster(1, 0).await;
    for line in ["one", "two", "three"] {
        cluster.nodes()[0].append_log("kubelet", line);
    }
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    let read =
        async |tail| String::from_utf8(node.logs(log(tail)).collect().await.unwrap()).unwrap();
    assert_eq!(read(Some(2)).await, "two\nthree\n");
    assert_eq!(read(Some(0)).await, "");
    let whole = read(None).await;
    assert!(whole.ends_with("one\ntwo\nthree\n"), "{whole}");
}

#[tokio::test]
async fn a_followed_log_goes_on_until_it_is_dropped() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    cluster.nodes()[0].append_log("kubelet", "old");
    let mut stream = node.logs(LogRequest {
        follow: true,
        ..log(Some(1))
    });
    assert_eq!(stream.next().await.unwrap().unwrap(), b"old\n");
    cluster.nodes()[0].append_log("kubelet", "new");
    assert_eq!(stream.next().await.unwrap().unwrap(), b"new\n");
    drop(stream);
    node.version().await.unwrap();
}

#[tokio::test]
async fn a_file_is_read_in_pieces() {
    let cluster = cluster(1, 0).await;
    let content: Vec<u8> = (0..5000u32).map(|byte| byte as u8).collect();
    cluster.nodes()[0].write_file("/var/file", &content);
    cluster.nodes()[0].write_file("/var/empty", b"");
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    assert_eq!(node.read("/var/file").collect().await.unwrap(), content);
    assert_eq!(node.read("/var/empty").collect().await.unwrap(), b"");
}

#[tokio::test]
async fn a_reboot_is_told_by_events_of_its_actor() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    let mut events = node.events(Events::default()).await.unwrap();
    let actor = node.reboot(RebootMode::Default).await.unwrap();
    let first = loop {
        let event = events.next().await.unwrap().unwrap();
        if event.actor == actor {
            break event;
        }
    };
    let Payload::Sequence(sequence) = &first.payload else {
        panic!("{first:?}");
    };
    assert_eq!((sequence.sequence.as_str(), first.id.len()), ("reboot", 20));
}

#[tokio::test]
async fn past_events_can_come_first() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    node.drive_service("kubelet", ServiceAction::Restart)
        .await
        .unwrap();
    let all = Events {
        tail: Tail::All,
        actor: None,
    };
    let mut events = node.events(all).await.unwrap();
    let first = events.next().await.unwrap().unwrap();
    let after = Events {
        tail: Tail::AfterId(first.id.clone()),
        actor: None,
    };
    let mut rest = node.events(after).await.unwrap();
    let second = rest.next().await.unwrap().unwrap();
    assert_eq!(events.next().await.unwrap().unwrap(), second);
    assert!(second.id > first.id);
}

#[tokio::test]
async fn images_are_pulled_and_listed_on_new_and_old_nodes() {
    let reference = "registry.k8s.io/kube-apiserver:v1.34.0";
    for version in TalosVersion::ALL {
        let cluster = of_version(version).await;
        let client = client(&cluster);
        let node = node(&client, &cluster, 0);
        let mut layers = Vec::new();
        let pulled = node
            .image_pull(ImageScope::Kubernetes, reference, |layer| {
                layers.push(layer)
            })
            .await
            .unwrap();
        let old = version == TalosVersion::V1_11_5;
        assert_eq!(layers.is_empty(), old, "{version:?}");
        assert!(
            layers
                .iter()
                .all(|layer| layer.status != Some(LayerStatus::Present))
        );
        assert_eq!(pulled == reference, old, "{pulled}");
        assert_eq!(pulled.contains("@sha256:"), !old, "{pulled}");
        let images = node.image_list(ImageScope::Kubernetes).await.unwrap();
        assert!(
            images.iter().any(|image| image.name == reference),
            "{images:?}"
        );

        cluster.nodes()[0]
            .faults()
            .miss_image("registry.k8s.io/nope:v1");
        let error = node
            .image_pull(ImageScope::Kubernetes, "registry.k8s.io/nope:v1", |_| ())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), talos_client::Kind::NotFound, "{error:?}");
    }
}
