//! Services, logs, files, images, credentials, events and reboots of a machine.

use std::io::Read as _;

use talos_api::common::{ContainerDriver, ContainerdInstance, ContainerdNamespace};
use talos_api::machine::image_service_client::ImageServiceClient;
use talos_api::machine::{self as api, EventsRequest};
use talos_sim::Platform;

use super::*;

async fn client(cluster: &Cluster, node: &Node) -> MachineServiceClient<Channel> {
    MachineServiceClient::new(admin(cluster, node).await)
}

async fn all(mut stream: tonic::Streaming<talos_api::common::Data>) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    while let Some(piece) = stream.message().await.unwrap() {
        pieces.push(piece.bytes);
    }
    pieces
}

#[tokio::test]
async fn services_can_only_be_driven_where_talos_allows_it() {
    let cluster = cluster(1, 0).await;
    let mut client = client(&cluster, &cluster.nodes()[0]).await;
    let restart = |id: &str| api::ServiceRestartRequest { id: id.to_owned() };
    refused(
        client.service_restart(restart("nope")).await,
        Code::Unknown,
        "service \"nope\" not defined",
    );
    let text = "service \"machined\" doesn't support restart operation via API";
    refused(
        client.service_restart(restart("machined")).await,
        Code::Unknown,
        text,
    );
    let stop = api::ServiceStopRequest {
        id: "apid".to_owned(),
    };
    let text = "service \"apid\" doesn't support stop operation via API";
    refused(client.service_stop(stop).await, Code::Unknown, text);
    let start = api::ServiceStartRequest {
        id: "kubelet".to_owned(),
    };
    client.service_start(start).await.unwrap();
    let answer = client
        .service_restart(restart("kubelet"))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer.messages[0].resp, "Service \"kubelet\" restarted");
}

/// The order is recorded (recorded/upgrade/e-kubelet-restart).
#[tokio::test]
async fn a_restarted_kubelet_shows_every_state_in_order() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let mut client = client(&cluster, node).await;
    let mut changes = node
        .store()
        .changes("runtime", "Services.v1alpha1.talos.dev");
    let mut events = client
        .events(EventsRequest::default())
        .await
        .unwrap()
        .into_inner();
    let hello = events.message().await.unwrap().unwrap();
    assert_eq!(hello.data.unwrap(), prost_types::Any::default());
    client
        .service_restart(api::ServiceRestartRequest {
            id: "kubelet".to_owned(),
        })
        .await
        .unwrap();
    let mut states = Vec::new();
    let mut ready = Vec::new();
    while ready.len() < 4 {
        let event = events.message().await.unwrap().unwrap();
        let data = event.data.unwrap();
        assert_eq!(event.id.len(), 20);
        match data.type_url.as_str() {
            "talos/runtime/machine.ServiceStateEvent" => {
                let event: api::ServiceStateEvent = decode(&data.value);
                states.push(event.action().as_str_name().to_owned());
            }
            "talos/runtime/machine.MachineStatusEvent" => {
                let event: api::MachineStatusEvent = decode(&data.value);
                ready.push(event.status.unwrap().ready);
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(ready, [false, true, false, true]);
    assert_eq!(
        states,
        [
            "STOPPING",
            "FINISHED",
            "STARTING",
            "WAITING",
            "PREPARING",
            "PREPARING",
            "RUNNING",
            "RUNNING",
            "RUNNING"
        ]
    );
    let mut seen = Vec::new();
    while let Ok(Some(change)) = changes.try_next() {
        let value = change.resource.spec.value();
        seen.push((
            change.resource.metadata.version,
            value["healthy"] == true,
            value["unknown"] == true,
        ));
    }
    // The tombstone still says healthy; the version then starts anew.
    assert!(seen[0].1);
    assert_eq!(
        seen[1..],
        [(1, false, true), (2, false, false), (3, true, false)]
    );
}

fn decode<M: prost::Message + Default>(bytes: &[u8]) -> M {
    M::decode(bytes).unwrap()
}

#[tokio::test]
async fn logs_are_cut_by_lines_and_sent_in_pieces() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let mut client = client(&cluster, node).await;
    for line in 0..100 {
        node.append_log("kubelet", &format!("line {line} {}", "x".repeat(50)));
    }
    let request = |id: &str, tail_lines, follow| api::LogsRequest {
        namespace: "system".to_owned(),
        id: id.to_owned(),
        tail_lines,
        follow,
        ..<_>::default()
    };
    let pieces = all(client
        .logs(request("kubelet", -1, false))
        .await
        .unwrap()
        .into_inner())
    .await;
    assert!(pieces.len() > 2 && pieces[0].len() == 1024);
    let pieces = all(client
        .logs(request("kubelet", 2, false))
        .await
        .unwrap()
        .into_inner())
    .await;
    let text = String::from_utf8(pieces.concat()).unwrap();
    let x = "x".repeat(50);
    assert_eq!(text, format!("line 98 {x}\nline 99 {x}\n"));
    assert!(
        all(client
            .logs(request("kubelet", 0, false))
            .await
            .unwrap()
            .into_inner())
        .await
        .is_empty()
    );
    let unknown = client.logs(request("nope", -1, false)).await;
    refused(unknown, Code::Unknown, "log \"nope\" was not registered");

    let container = |id: &str| api::LogsRequest {
        namespace: "k8s.io".to_owned(),
        driver: 1,
        ..request(id, -1, false)
    };
    let id = format!(
        "kube-system/kube-scheduler-{}:kube-scheduler:0123456789ab",
        node.name()
    );
    assert!(
        !all(client.logs(container(&id)).await.unwrap().into_inner())
            .await
            .is_empty()
    );
    let unknown = client.logs(container("kube-system/nope:nope")).await;
    assert_eq!(unknown.unwrap_err().code(), Code::Unknown);

    let mut following = client
        .logs(request("kubelet", 0, true))
        .await
        .unwrap()
        .into_inner();
    node.append_log("kubelet", "later");
    assert_eq!(
        following.message().await.unwrap().unwrap().bytes,
        b"later\n"
    );
}

#[tokio::test]
async fn files_are_read_and_missing_ones_named() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let mut client = client(&cluster, node).await;
    let read = |path: &str| api::ReadRequest {
        path: path.to_owned(),
    };
    let content = all(client
        .read(read("/etc/hostname"))
        .await
        .unwrap()
        .into_inner())
    .await
    .concat();
    assert_eq!(content, b"cluster-1-controlplane-1\n");
    let missing = client.read(read("/nope")).await;
    refused(
        missing,
        Code::NotFound,
        "stat /nope: no such file or directory",
    );
    assert_eq!(
        client.read(read("/etc")).await.unwrap_err().code(),
        Code::Unknown
    );
    node.write_file("/var/empty", b"");
    assert!(
        all(client.read(read("/var/empty")).await.unwrap().into_inner())
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn images_are_pulled_listed_and_missed() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let channel = admin(&cluster, node).await;
    let mut client = MachineServiceClient::new(channel.clone());
    let missing = "registry.k8s.io/kube-apiserver:v1.36.99";
    node.faults().miss_image(missing);
    let pull = |namespace, reference: &str| api::ImagePullRequest {
        namespace,
        reference: reference.to_owned(),
    };
    let text = "error pulling image: 1 error(s) occurred:\n\tfailed to pull image \"registry.k8s.io/kube-apiserver:v1.36.99\": failed to resolve reference \"registry.k8s.io/kube-apiserver:v1.36.99\": registry.k8s.io/kube-apiserver:v1.36.99: not found";
    refused(
        client.image_pull(pull(2, missing)).await,
        Code::NotFound,
        text,
    );
    refused(
        client.image_pull(pull(0, missing)).await,
        Code::InvalidArgument,
        "invalid namespace NS_UNKNOWN",
    );
    let text = "failed to parse image reference \"registry.k8s.io/UPPER case:v1\": invalid reference format: repository name (UPPER case) must be lowercase";
    refused(
        client
            .image_pull(pull(2, "registry.k8s.io/UPPER case:v1"))
            .await,
        Code::Unknown,
        text,
    );
    let wanted = "registry.k8s.io/kube-apiserver:v1.34.0";
    let answer = client
        .image_pull(pull(2, wanted))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer.messages, [api::ImagePull::default()]);
    let mut listed = client
        .image_list(api::ImageListRequest { namespace: 2 })
        .await
        .unwrap()
        .into_inner();
    let mut names = Vec::new();
    while let Some(image) = listed.message().await.unwrap() {
        names.push(image.name);
    }
    assert!(names.iter().any(|name| name == wanted));

    let mut images = ImageServiceClient::new(channel);
    let containerd = Some(ContainerdInstance {
        driver: ContainerDriver::Cri.into(),
        namespace: ContainerdNamespace::NsCri.into(),
    });
    let request = |image_ref: &str| api::ImageServicePullRequest {
        containerd,
        image_ref: image_ref.to_owned(),
    };
    let answers = async |mut stream: tonic::Streaming<api::ImageServicePullResponse>| {
        let mut count = 0;
        while stream.message().await.unwrap().is_some() {
            count += 1;
        }
        count
    };
    let present = images.pull(request(wanted)).await.unwrap().into_inner();
    assert_eq!(answers(present).await, 1);
    let fresh = images
        .pull(request("registry.k8s.io/kube-proxy:v1.34.0"))
        .await
        .unwrap()
        .into_inner();
    assert!(answers(fresh).await > 1);
    let unset = api::ImageServicePullRequest {
        containerd: None,
        image_ref: wanted.to_owned(),
    };
    assert_eq!(
        images.pull(unset).await.unwrap_err().code(),
        Code::InvalidArgument
    );
}

#[tokio::test]
async fn control_planes_hand_out_credentials_and_workers_do_not() {
    let cluster = cluster(1, 1).await;
    let [first, worker] = cluster.nodes() else {
        panic!()
    };
    let mut client = client(&cluster, first).await;
    let pieces = all(client.kubeconfig(()).await.unwrap().into_inner()).await;
    assert_eq!(pieces.len(), 1);
    let mut tar = Vec::new();
    flate2::read::GzDecoder::new(pieces[0].as_slice())
        .read_to_end(&mut tar)
        .unwrap();
    assert_eq!(&tar[..10], b"kubeconfig");
    let size = usize::from_str_radix(std::str::from_utf8(&tar[124..135]).unwrap(), 8).unwrap();
    assert_eq!(tar.len(), 512 + size, "the tar has no trailer");
    let text = String::from_utf8(tar[512..].to_vec()).unwrap();
    assert!(text.contains(&format!("server: {}\n", cluster.endpoint())));

    let request = api::GenerateClientConfigurationRequest {
        roles: vec!["os:reader".to_owned()],
        crt_ttl: Some(prost_types::Duration {
            seconds: 3600,
            nanos: 0,
        }),
    };
    let answer = client
        .generate_client_configuration(request)
        .await
        .unwrap()
        .into_inner();
    let talosconfig = String::from_utf8(answer.messages[0].talosconfig.clone()).unwrap();
    assert!(talosconfig.starts_with("context: reader@cluster-1\n"));
    assert!(talosconfig.contains("endpoints: []\n"));
    let config = Credentials::read(&talosconfig).config();
    let channel = connect(first.dial().unwrap(), &first.address().to_string(), config).await;
    tag(&channel, &[]).await.unwrap();

    let address = worker.address().to_string();
    let on_worker = [("node", address.as_str())];
    let text = "kubeconfig is only available on control plane nodes";
    refused(
        client.kubeconfig(ask((), &on_worker)).await,
        Code::Unimplemented,
        text,
    );
    let text = "bootstrap is only available on control plane nodes";
    let request = api::BootstrapRequest::default();
    refused(
        client.bootstrap(ask(request, &on_worker)).await,
        Code::Unimplemented,
        text,
    );
    refused(
        client.bootstrap(request).await,
        Code::AlreadyExists,
        "etcd data directory is not empty",
    );
}

#[tokio::test]
async fn a_reboot_is_told_in_order_and_changes_the_boot_id() {
    let cluster = cluster(1, 1).await;
    let [first, worker] = cluster.nodes() else {
        panic!()
    };
    let mut client = client(&cluster, first).await;
    let address = worker.address().to_string();
    let to_worker = [("node", address.as_str())];
    let boot_id = async |client: &mut MachineServiceClient<Channel>| {
        let request = api::ReadRequest {
            path: "/proc/sys/kernel/random/boot_id".to_owned(),
        };
        let stream = client.read(ask(request, &[("node", &address)])).await?;
        Ok::<_, Status>(all(stream.into_inner()).await.concat())
    };
    let before = boot_id(&mut client).await.unwrap();
    let mut events = client
        .events(ask(EventsRequest::default(), &to_worker))
        .await
        .unwrap()
        .into_inner();
    events.message().await.unwrap().unwrap();
    let answer = client
        .reboot(ask(api::RebootRequest::default(), &to_worker))
        .await
        .unwrap();
    let actor = answer.into_inner().messages[0].actor_id.clone();
    let mut phases = Vec::new();
    let lost = loop {
        match events.message().await {
            Ok(Some(event)) => {
                let data = event.data.unwrap();
                if data.type_url == "talos/runtime/machine.PhaseEvent" {
                    assert_eq!(event.actor_id, actor);
                    let phase: api::PhaseEvent = decode(&data.value);
                    if phase.action() == api::phase_event::Action::Start {
                        phases.push(phase.phase);
                    }
                }
            }
            Ok(None) => panic!("the stream ended"),
            Err(status) => break status,
        }
    };
    assert_eq!(lost.code(), Code::Unavailable);
    let expected = [
        "cleanup",
        "dbus",
        "stopServices",
        "umount",
        "unmountBind",
        "unmountSystem",
        "volumeFinalize",
        "kexec",
        "stopEverything",
        "reboot",
    ];
    assert_eq!(phases, expected);
    let after = loop {
        if let Ok(after) = boot_id(&mut client).await {
            break after;
        }
        tokio::task::yield_now().await;
    };
    assert_ne!(before, after);
    let all_events = EventsRequest {
        tail_events: -1,
        ..<_>::default()
    };
    let mut events = client
        .events(ask(all_events, &to_worker))
        .await
        .unwrap()
        .into_inner();
    loop {
        let data = events.message().await.unwrap().unwrap().data.unwrap();
        assert_ne!(
            data.type_url, "talos/runtime/machine.RestartEvent",
            "history survived"
        );
        if data.type_url == "talos/runtime/machine.MachineStatusEvent" {
            let status: api::MachineStatusEvent = decode(&data.value);
            if status.status.unwrap().ready {
                break;
            }
        }
    }
}

#[tokio::test]
async fn containers_do_not_reboot() {
    let options = Options {
        platform: Platform::Container,
        workers: 0,
        ..Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let mut client = client(&cluster, &cluster.nodes()[0]).await;
    let reboot = client.reboot(api::RebootRequest::default()).await;
    refused(
        reboot,
        Code::FailedPrecondition,
        "method is not supported in container mode",
    );
}

#[tokio::test]
async fn events_can_be_asked_for_by_number_id_and_actor() {
    let cluster = cluster(1, 0).await;
    let node = &cluster.nodes()[0];
    let mut client = client(&cluster, node).await;
    let mut live = client
        .events(EventsRequest::default())
        .await
        .unwrap()
        .into_inner();
    live.message().await.unwrap().unwrap();
    client
        .service_restart(api::ServiceRestartRequest {
            id: "kubelet".to_owned(),
        })
        .await
        .unwrap();
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(live.message().await.unwrap().unwrap().id);
    }
    assert!(ids.is_sorted());
    let after = EventsRequest {
        tail_id: ids[2].clone(),
        ..<_>::default()
    };
    let mut tail = client.events(after).await.unwrap().into_inner();
    tail.message().await.unwrap().unwrap();
    assert_eq!(tail.message().await.unwrap().unwrap().id, ids[3]);

    let two = EventsRequest {
        tail_events: 1,
        tail_seconds: 1,
        ..<_>::default()
    };
    assert_eq!(client.events(two).await.unwrap_err().code(), Code::Unknown);
    let bad = EventsRequest {
        tail_id: "nonsense".to_owned(),
        ..<_>::default()
    };
    assert_eq!(client.events(bad).await.unwrap_err().code(), Code::Unknown);
    let filtered = EventsRequest {
        with_actor_id: "someone".to_owned(),
        tail_events: -1,
        ..<_>::default()
    };
    let mut filtered = client.events(filtered).await.unwrap().into_inner();
    assert_eq!(
        filtered.message().await.unwrap().unwrap().actor_id,
        "someone"
    );
}
