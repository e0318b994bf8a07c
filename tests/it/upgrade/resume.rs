//! Upgrades that begin in the middle, or end there.

use std::time::Duration;

use talos_kube::Component;
use talos_sim::Options;
use talos_upgrade::{Action, Blocked, Error, Event, Place, Stop};

use super::lab::{Lab, request};

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
