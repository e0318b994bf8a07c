//! Upgrades that begin in the middle, or end there.

use talos_kube::Component;
use talos_sim::Options;
use talos_upgrade::{Action, Error, Event, Place, Stop};

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
