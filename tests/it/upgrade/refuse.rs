//! Upgrades that do not start.

use talos_sim::Options;
use talos_upgrade::{Action, Blocked, Error, ImageStore, Request};

use super::lab::{Lab, NEW, behind_nat, request};

#[tokio::test]
async fn planning_and_previewing_change_nothing_on_either_side() {
    let lab = Lab::start(behind_nat()).await;
    let plan = lab.plan(&request()).await;
    let timing = super::lab::timing();
    let objects = talos_upgrade::preview(lab.cluster(), &plan, &timing)
        .await
        .unwrap();
    assert!(plan.steps.iter().any(|step| step.action == Action::Change));
    assert!(
        plan.pulls
            .iter()
            .any(|pull| pull.store == ImageStore::System)
    );
    let proxy = objects
        .iter()
        .find(|object| object.object == "DaemonSet/kube-system/kube-proxy");
    let fields = proxy.unwrap().fields.join("\n");
    assert!(
        fields.contains("kube-proxy:v1.33.4\" -> \"registry.k8s.io/kube-proxy:v1.34.0"),
        "{fields}"
    );

    let changing: Vec<_> = lab
        .sim
        .calls()
        .into_iter()
        .filter(|call| call.mutating)
        .collect();
    assert_eq!(changing, []);
    let pulls = lab
        .sim
        .calls()
        .into_iter()
        .filter(|call| call.method.contains("Pull"));
    assert_eq!(pulls.count(), 0);
    let requests = lab.sim.kube_requests();
    let written: Vec<_> = requests
        .iter()
        .filter(|request| request.mutating || request.dry_run)
        .collect();
    assert!(written.is_empty(), "{written:?}");
    assert!(!requests.is_empty());
}

#[tokio::test]
async fn a_path_of_two_minors_is_refused_before_anything_happens() {
    let lab = Lab::start(Options::default()).await;
    let far = Request {
        to: Some("1.35.0".parse().unwrap()),
        ..Request::default()
    };
    let plan = lab.plan(&far).await;
    let [
        Blocked::UnsupportedPath {
            lowest: Some(lowest),
            ..
        },
    ] = plan.blocked.as_slice()
    else {
        panic!("{:?}", plan.blocked);
    };
    assert_eq!(lowest.version.to_string(), "1.33.4");
    let error = lab.carry_out(&plan).await.unwrap_err();
    assert!(matches!(error, Error::Blocked { .. }), "{error}");
    assert_eq!(lab.writes(), 0);
}

#[tokio::test]
async fn a_missing_image_is_named_with_its_node_before_the_first_write() {
    let lab = Lab::start(Options::default()).await;
    let image = format!("ghcr.io/siderolabs/kubelet:v{NEW}");
    let worker = lab.node("worker-1");
    worker.faults().miss_image(&image);
    let error = lab
        .carry_out(&lab.plan(&request()).await)
        .await
        .unwrap_err();
    let Error::Pull { failures } = &error else {
        panic!("{error}");
    };
    assert_eq!(failures.len(), 1);
    assert_eq!(
        (failures[0].node.as_str(), failures[0].image.as_str()),
        (worker.name(), image.as_str())
    );
    assert_eq!(lab.writes(), 0);
    // Every image of the target was asked for, kube-proxy's too.
    let plan = lab.plan(&request()).await;
    let proxies = plan
        .pulls
        .iter()
        .filter(|pull| pull.image.contains("kube-proxy"));
    assert_eq!(proxies.count(), 2);
}
