//! Upgrades that begin in the middle, or end there.

use std::sync::Arc;
use std::time::Duration;

use talos_kube::Component;
use talos_sim::Options;
use talos_upgrade::{Action, Blocked, Error, Event, Place, Stop, Timing};

use super::lab::{Lab, request, timing};

#[tokio::test]
async fn a_second_run_writes_nothing() {
    let lab = Lab::start(Options::default()).await;
    lab.upgrade().await;
    let configs: Vec<_> = lab
        .sim
        .nodes()
        .iter()
        .map(|node| node.machine_config())
        .collect();
    lab.sim.clear_calls();
    let before = lab.sim.kube_requests().len();
    let report = lab.upgrade().await;
    assert_eq!(report.changed, []);
    assert_eq!(report.manifests_changed, Vec::<String>::new());
    assert_eq!(report.skipped.len(), 6);
    let changing: Vec<_> = lab
        .sim
        .calls()
        .into_iter()
        .filter(|call| call.mutating)
        .collect();
    assert_eq!(changing, []);
    let requests = lab.sim.kube_requests().split_off(before);
    let written: Vec<_> = requests.iter().filter(|request| request.mutating).collect();
    assert!(written.is_empty(), "{written:?}");
    let after: Vec<_> = lab
        .sim
        .nodes()
        .iter()
        .map(|node| node.machine_config())
        .collect();
    assert_eq!(after, configs);
}

#[tokio::test]
async fn a_run_that_was_stopped_goes_on_where_it_ended() {
    let options = Options {
        workers: 3,
        ..Options::default()
    };
    let mut lab = Lab::start(options).await;
    let plan = lab.plan(&request()).await;
    let stop = lab.stop.clone();
    let watch = move |event: &Event| {
        // Stop while the first worker's kubelet is under way.
        if let Event::Written {
            component: Component::Kubelet,
            node,
            ..
        } = event
            && node.contains("worker")
        {
            stop.request();
        }
    };
    let error = lab.carry_out_watched(&plan, watch).await.unwrap_err();
    let Error::Interrupted { next, report } = &error else {
        panic!("{error}");
    };
    assert!(
        next.starts_with("kubelet on ") && next.ends_with("worker-2"),
        "{next}"
    );
    assert_eq!(report.changed.len(), 6);
    assert!(error.hint().unwrap().contains("run the same command again"));

    lab.sim.clear_calls();
    let rest = lab.plan(&request()).await;
    let changes = rest.steps.iter().filter(|step| step.action != Action::Done);
    let places: Vec<String> = changes
        .map(|step| format!("{} {}", step.component, step.node))
        .collect();
    assert_eq!(places.len(), 2, "{places:?}");
    lab.stop = Stop::default();
    let report = lab.carry_out(&rest).await.unwrap();
    let changed: Vec<&Place> = report.changed.iter().collect();
    assert_eq!(changed.len(), 2);
    assert!(
        changed
            .iter()
            .all(|place| place.component == Component::Kubelet)
    );
    assert_eq!(report.skipped.len(), 6);
    assert_eq!(lab.writes(), 2);
}

#[tokio::test]
async fn a_try_that_is_pending_is_never_overwritten() {
    let lab = Lab::start(Options::default()).await;
    let before = lab.plan(&request()).await;
    let node = lab.node("controlplane-1");
    let tried = format!("{}# tried\n", node.machine_config().unwrap());
    let tried = tried.replace("debug: false", "debug: true");
    let applied = lab
        .client
        .node(node.address().to_string())
        .apply_configuration(talos_client::ApplyRequest {
            config: tried,
            mode: talos_client::ApplyMode::Try,
            dry_run: false,
            try_timeout: None,
        })
        .await;
    applied.unwrap();
    lab.sim.clear_calls();
    // A plan that is made now says it, and one that was made earlier notices it.
    let name = node.name().to_owned();
    let pending = Blocked::Pending { node: name.clone() };
    assert_eq!(lab.plan(&request()).await.blocked, [pending]);
    let error = lab.carry_out(&before).await.unwrap_err();
    assert!(
        matches!(&error, Error::Pending { node } if *node == name),
        "{error}"
    );
    assert_eq!(lab.writes(), 0);
}

#[tokio::test]
async fn a_pod_that_never_gets_ready_is_named_and_the_rest_left_alone() {
    let lab = Lab::start(Options::default()).await;
    lab.node("controlplane-1")
        .kube_faults()
        .never_ready("kube-controller-manager");
    let error = lab
        .carry_out_within(&lab.plan(&request()).await, Duration::from_millis(300))
        .await;
    let error = error.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains(
            "kube-controller-manager did not run registry.k8s.io/kube-controller-manager:v1.34.0"
        ),
        "{text}"
    );
    assert!(text.ends_with("the new pod is not ready"), "{text}");
    assert!(error.hint().unwrap().contains("run the same command again"));
    assert_eq!(lab.writes(), 2);
}

#[tokio::test]
async fn a_stop_among_the_manifests_ends_the_run_before_the_next_object() {
    let mut lab = Lab::start(Options::default()).await;
    let plan = lab.plan(&request()).await;
    let stop = lab.stop.clone();
    let watch = move |event: &Event| {
        if let Event::Manifest { .. } = event {
            stop.request();
        }
    };
    let error = lab.carry_out_watched(&plan, watch).await.unwrap_err();
    let Error::Interrupted { next, report } = &error else {
        panic!("{error}");
    };
    assert_eq!(next, "applying DaemonSet/kube-system/kube-proxy");
    assert_eq!(report.manifests_changed, Vec::<String>::new());
    lab.stop = Stop::default();
    let report = lab.upgrade().await;
    assert_eq!(
        report.manifests_changed,
        ["DaemonSet/kube-system/kube-proxy"]
    );
}

const PULLS: [&str; 2] = [
    "/machine.ImageService/Pull",
    "/machine.MachineService/ImagePull",
];

#[tokio::test]
async fn a_pull_that_takes_forever_can_be_stopped_and_ends_by_itself() {
    let lab = Lab::start(Options::default()).await;
    for method in PULLS {
        let faults = lab.node("controlplane-1").faults();
        faults.delay(method, Duration::from_secs(3600));
    }
    let plan = lab.plan(&request()).await;
    let short = Timing {
        pull: Duration::from_millis(20),
        ..timing()
    };
    let error = lab.carry_out_with(&plan, short, |_| {}).await.unwrap_err();
    let Error::Pull { failures } = &error else {
        panic!("{error}");
    };
    assert!(!failures.is_empty());
    let stop = lab.stop.clone();
    let watch = move |event: &Event| {
        if let Event::Pulling { .. } = event {
            stop.request();
        }
    };
    let error = lab.carry_out_watched(&plan, watch).await.unwrap_err();
    assert!(matches!(error, Error::Interrupted { .. }), "{error}");
    assert_eq!(lab.writes(), 0);
}

#[tokio::test]
async fn a_node_that_does_not_answer_for_a_while_is_asked_again_during_a_run() {
    let lab = Arc::new(Lab::start(Options::default()).await);
    let plan = lab.plan(&request()).await;
    let watched = Arc::clone(&lab);
    let watch = move |event: &Event| {
        let Event::Written {
            component: Component::KubeApiserver,
            ..
        } = event
        else {
            return;
        };
        let lab = Arc::clone(&watched);
        let read = "/cosi.resource.State/Get";
        let fault = (tonic::Code::Unavailable, "starting");
        let faults = lab.node("controlplane-1").faults();
        faults.fail(read, fault.0, fault.1);
        let before = lab.calls("State/Get").len();
        tokio::spawn(async move {
            while lab.calls("State/Get").len() < before + 8 {
                tokio::task::yield_now().await;
            }
            lab.node("controlplane-1").faults().restore(read);
        });
    };
    let report = lab.carry_out_watched(&plan, watch).await;
    assert_eq!(report.unwrap().changed.len(), 6);
}
