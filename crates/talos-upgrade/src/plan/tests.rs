use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use talos_kube::{ComponentPod, Node};

use super::*;
use crate::{NodeFacts, TalosFacts};

const OLD: &str = "1.33.4";

/// A cluster of control planes `cp-1`.. and workers `w-1`.. at [`OLD`], all well.
fn cluster(controlplanes: u8, workers: u8) -> Facts {
    let mut facts = Facts::default();
    for index in 1..=controlplanes + workers {
        let control_plane = index <= controlplanes;
        let name = if control_plane {
            format!("cp-{index}")
        } else {
            format!("w-{}", index - controlplanes)
        };
        let mut running = BTreeMap::new();
        let mut add = |component: Component| {
            let repository = rules::default_repository(component);
            let image = format!("{repository}:v{OLD}");
            if component != Component::KubeProxy {
                running.insert(component, image.clone());
            }
            if component != Component::Kubelet {
                facts.pods.push(pod(&name, component, &image));
            }
        };
        if control_plane {
            Component::STATIC_PODS.into_iter().for_each(&mut add);
        }
        add(Component::KubeProxy);
        add(Component::Kubelet);
        let mut configured = running.clone();
        if control_plane {
            let image = format!("registry.k8s.io/kube-proxy:v{OLD}");
            configured.insert(Component::KubeProxy, image);
        }
        facts.nodes.push(NodeFacts {
            node: Node {
                name: name.clone(),
                control_plane,
                address: Some(format!("10.5.0.{}", index + 1)),
                addresses: vec![format!("10.5.0.{}", index + 1), name],
                kubelet_version: format!("v{OLD}"),
                ready: true,
            },
            talos: Some(TalosFacts {
                version: Version::new(1, 13, 9),
                pending: false,
                running,
                arguments: BTreeMap::new(),
                configured,
                disabled: Vec::new(),
                unrendered: Vec::new(),
            }),
        });
    }
    facts
}

fn pod(node: &str, component: Component, image: &str) -> ComponentPod {
    ComponentPod {
        name: format!("{component}-{node}"),
        uid: String::new(),
        component,
        node: Some(node.to_owned()),
        host_addresses: Vec::new(),
        image: image.to_owned(),
        annotations: BTreeMap::new(),
        ready: true,
        deleting: false,
    }
}

fn talos<'a>(facts: &'a mut Facts, name: &str) -> &'a mut TalosFacts {
    let mut nodes = facts.nodes.iter_mut();
    let node = nodes.find(|node| node.node.name == name).unwrap();
    node.talos.as_mut().unwrap()
}

/// Makes a node look upgraded as far as one component goes.
fn upgrade(facts: &mut Facts, name: &str, component: Component, to: &str) {
    let image = format!("{}:v{to}", rules::default_repository(component));
    let talos = talos(facts, name);
    talos.running.insert(component, image.clone());
    talos.configured.insert(component, image.clone());
    let pods = facts.pods.iter_mut();
    for pod in pods.filter(|pod| pod.component == component && pod.node.as_deref() == Some(name)) {
        pod.image.clone_from(&image);
    }
    if component == Component::Kubelet {
        let mut nodes = facts.nodes.iter_mut();
        let node = nodes.find(|node| node.node.name == name).unwrap();
        node.node.kubelet_version = format!("v{to}");
    }
}

fn request(to: &str) -> Request {
    Request {
        to: Some(to.parse().unwrap()),
        ..Request::default()
    }
}

fn shown(plan: &Plan) -> String {
    use std::fmt::Write as _;
    let mut text = format!("{} -> {}\n", plan.from, plan.to);
    for pull in &plan.pulls {
        writeln!(
            text,
            "pull {} {} {:?}",
            pull.address, pull.image, pull.store
        )
        .unwrap();
    }
    for step in &plan.steps {
        writeln!(
            text,
            "{:?} {} {} {}",
            step.action, step.component, step.node, step.to
        )
        .unwrap();
    }
    for blocked in &plan.blocked {
        writeln!(text, "blocked: {blocked}").unwrap();
    }
    for warning in &plan.warnings {
        writeln!(text, "warning: {warning}").unwrap();
    }
    text
}

fn check(facts: &Facts, request: &Request, expected: Expect) {
    expected.assert_eq(&shown(&plan(facts, request).unwrap()));
}

#[test]
fn components_go_in_order_and_control_planes_before_workers() {
    check(
        &cluster(2, 1),
        &request("1.34.0"),
        expect![[r#"
            1.33.4 -> 1.34.0
            pull 10.5.0.2 registry.k8s.io/kube-apiserver:v1.34.0 Pods
            pull 10.5.0.3 registry.k8s.io/kube-apiserver:v1.34.0 Pods
            pull 10.5.0.2 registry.k8s.io/kube-controller-manager:v1.34.0 Pods
            pull 10.5.0.3 registry.k8s.io/kube-controller-manager:v1.34.0 Pods
            pull 10.5.0.2 registry.k8s.io/kube-scheduler:v1.34.0 Pods
            pull 10.5.0.3 registry.k8s.io/kube-scheduler:v1.34.0 Pods
            pull 10.5.0.2 ghcr.io/siderolabs/kubelet:v1.34.0 System
            pull 10.5.0.3 ghcr.io/siderolabs/kubelet:v1.34.0 System
            pull 10.5.0.4 ghcr.io/siderolabs/kubelet:v1.34.0 System
            pull 10.5.0.2 registry.k8s.io/kube-proxy:v1.34.0 Pods
            pull 10.5.0.3 registry.k8s.io/kube-proxy:v1.34.0 Pods
            pull 10.5.0.4 registry.k8s.io/kube-proxy:v1.34.0 Pods
            Change kube-apiserver cp-1 registry.k8s.io/kube-apiserver:v1.34.0
            Change kube-apiserver cp-2 registry.k8s.io/kube-apiserver:v1.34.0
            Change kube-controller-manager cp-1 registry.k8s.io/kube-controller-manager:v1.34.0
            Change kube-controller-manager cp-2 registry.k8s.io/kube-controller-manager:v1.34.0
            Change kube-scheduler cp-1 registry.k8s.io/kube-scheduler:v1.34.0
            Change kube-scheduler cp-2 registry.k8s.io/kube-scheduler:v1.34.0
            Change kube-proxy cp-1 registry.k8s.io/kube-proxy:v1.34.0
            Change kube-proxy cp-2 registry.k8s.io/kube-proxy:v1.34.0
            Change kubelet cp-1 ghcr.io/siderolabs/kubelet:v1.34.0
            Change kubelet cp-2 ghcr.io/siderolabs/kubelet:v1.34.0
            Change kubelet w-1 ghcr.io/siderolabs/kubelet:v1.34.0
        "#]],
    );
}

#[test]
fn what_is_done_is_skipped_and_what_is_half_done_is_waited_for() {
    let mut facts = cluster(1, 2);
    for component in Component::STATIC_PODS {
        upgrade(&mut facts, "cp-1", component, "1.34.0");
    }
    let pods = facts.pods.iter_mut();
    for pod in pods.filter(|pod| pod.component == Component::KubeScheduler) {
        pod.image = "registry.k8s.io/kube-scheduler:v1.33.4".to_owned();
    }
    upgrade(&mut facts, "w-1", Component::Kubelet, "1.34.0");
    check(
        &facts,
        &request("1.34.0"),
        expect![[r#"
        1.33.4 -> 1.34.0
        pull 10.5.0.2 ghcr.io/siderolabs/kubelet:v1.34.0 System
        pull 10.5.0.4 ghcr.io/siderolabs/kubelet:v1.34.0 System
        pull 10.5.0.2 registry.k8s.io/kube-proxy:v1.34.0 Pods
        pull 10.5.0.3 registry.k8s.io/kube-proxy:v1.34.0 Pods
        pull 10.5.0.4 registry.k8s.io/kube-proxy:v1.34.0 Pods
        Done kube-apiserver cp-1 registry.k8s.io/kube-apiserver:v1.34.0
        Done kube-controller-manager cp-1 registry.k8s.io/kube-controller-manager:v1.34.0
        Wait kube-scheduler cp-1 registry.k8s.io/kube-scheduler:v1.34.0
        Change kube-proxy cp-1 registry.k8s.io/kube-proxy:v1.34.0
        Change kubelet cp-1 ghcr.io/siderolabs/kubelet:v1.34.0
        Done kubelet w-1 ghcr.io/siderolabs/kubelet:v1.34.0
        Change kubelet w-2 ghcr.io/siderolabs/kubelet:v1.34.0
    "#]],
    );
}

#[test]
fn the_pod_that_sets_the_lowest_version_is_named() {
    let mut facts = cluster(1, 1);
    for pod in &mut facts.pods {
        pod.image = pod.image.replace("1.33.4", "1.33.8");
    }
    let left_over = "registry.k8s.io/kube-proxy:v1.32.12";
    facts.pods.push(pod("w-9", Component::KubeProxy, left_over));
    let found = plan(&facts, &request("1.34.0")).unwrap();
    assert_eq!(found.blocked.len(), 1);
    assert_eq!(
        found.blocked[0].to_string(),
        "Kubernetes 1.32.12 cannot go to 1.34.0 in one upgrade; \
         pod kube-proxy-w-9 on node w-9 runs registry.k8s.io/kube-proxy:v1.32.12"
    );
    let believed = Request {
        from: Some("1.33.8".parse().unwrap()),
        ..request("1.34.0")
    };
    let found = plan(&facts, &believed).unwrap();
    assert_eq!(found.blocked, []);
    assert_eq!(
        found.warnings[0].to_string(),
        "--from says 1.33.8, but pod kube-proxy-w-9 on node w-9 runs registry.k8s.io/kube-proxy:v1.32.12"
    );
}

#[test]
fn a_version_that_cannot_be_reached_says_why() {
    let facts = cluster(1, 0);
    let reason = |to: &str| plan(&facts, &request(to)).unwrap().blocked[0].to_string();
    assert_eq!(
        reason("1.38.0"),
        "Kubernetes 1.38.0 is not known here, 1.37 is the newest"
    );
    assert_eq!(
        reason("1.32.9"),
        "Kubernetes cannot go back from 1.33.4 to 1.32.9"
    );
}

#[test]
fn repositories_stay_unless_replaced_and_flavors_stay_always() {
    let mut facts = cluster(1, 0);
    let own = "reg.local:5000/k8s/kube-apiserver:v1.33.4@sha256:abc";
    for (component, image) in [
        (Component::KubeApiserver, own),
        (Component::Kubelet, "reg.local/kubelet:v1.33.4-fat"),
    ] {
        let talos = talos(&mut facts, "cp-1");
        talos.configured.insert(component, image.to_owned());
        talos.running.insert(component, image.to_owned());
    }
    let to = |request: &Request, component| {
        let plan = plan(&facts, request).unwrap();
        let mut steps = plan.steps.iter();
        let step = steps.find(|step| step.component == component).unwrap();
        step.to.clone()
    };
    let plain = request("1.34.0");
    assert_eq!(
        to(&plain, Component::KubeApiserver),
        "reg.local:5000/k8s/kube-apiserver:v1.34.0"
    );
    assert_eq!(
        to(&plain, Component::Kubelet),
        "reg.local/kubelet:v1.34.0-fat"
    );
    let replaced = Request {
        repositories: BTreeMap::from([
            (Component::KubeApiserver, "mirror/kube-apiserver".to_owned()),
            (Component::Kubelet, "mirror/kubelet".to_owned()),
        ]),
        ..request("1.34.0")
    };
    assert_eq!(
        to(&replaced, Component::KubeApiserver),
        "mirror/kube-apiserver:v1.34.0"
    );
    assert_eq!(
        to(&replaced, Component::Kubelet),
        "mirror/kubelet:v1.34.0-fat"
    );
    assert_eq!(
        plan(&facts, &plain).unwrap().warnings[0].to_string(),
        format!("node cp-1: the digest of kube-apiserver ({own}) is dropped")
    );
}

#[test]
fn everything_that_forbids_the_upgrade_is_listed_with_its_node() {
    let mut facts = cluster(2, 2);
    talos(&mut facts, "cp-1").version = Version::new(1, 10, 2);
    talos(&mut facts, "cp-2").pending = true;
    talos(&mut facts, "w-1").version = Version::new(1, 15, 0);
    let cloud = vec!["--cloud-config=/etc/cloud".to_owned()];
    talos(&mut facts, "w-1")
        .arguments
        .insert(Component::Kubelet, cloud);
    facts.nodes[3].node.address = None;
    facts.nodes[3].talos = None;
    facts.nodes[2].node.kubelet_version = "v1.30.1".to_owned();
    facts.nodes[2].node.ready = false;
    let found = plan(&facts, &request("1.34.0")).unwrap();
    let lines: Vec<String> = found.blocked.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "node cp-1: Talos 1.10.2 runs Kubernetes up to 1.33",
            "node cp-2: a try or staged machine configuration is pending",
            "node w-1: its kubelet 1.30.1 is more than 3 minors behind",
            "node w-1: which Kubernetes Talos 1.15.0 runs is not known here",
            "node w-2: Kubernetes knows no address of it",
            "node w-1: kubelet has the removed flag --cloud-config",
        ]
    );
    assert_eq!(
        found.warnings,
        [Warning::NotReady {
            node: "w-1".to_owned()
        }]
    );
}

#[test]
fn a_component_that_is_turned_off_is_not_waited_for() {
    let mut facts = cluster(1, 0);
    talos(&mut facts, "cp-1").disabled = vec![Component::KubeProxy, Component::KubeScheduler];
    facts.pods.retain(|pod| {
        !matches!(
            pod.component,
            Component::KubeProxy | Component::KubeScheduler
        )
    });
    let found = plan(&facts, &request("1.34.0")).unwrap();
    let action = |component| {
        let mut steps = found.steps.iter();
        steps
            .find(|step| step.component == component)
            .unwrap()
            .action
    };
    assert_eq!(action(Component::KubeProxy), Action::Off);
    assert_eq!(action(Component::KubeScheduler), Action::Record);
    assert_eq!(found.manifests.proxy_image, None);
    assert!(
        !found
            .pulls
            .iter()
            .any(|pull| pull.image.contains("kube-proxy"))
    );
}

#[test]
fn a_static_pod_that_is_not_rendered_blocks_unless_it_is_turned_off() {
    let mut facts = cluster(2, 0);
    let lacking = talos(&mut facts, "cp-2");
    lacking.disabled = vec![Component::KubeApiserver, Component::KubeScheduler];
    assert!(!lacking.may_lack(Component::KubeApiserver));
    assert!(!lacking.may_lack(Component::KubeControllerManager));
    assert!(lacking.may_lack(Component::KubeScheduler));
    lacking.unrendered = vec![Component::KubeApiserver, Component::KubeControllerManager];
    let found = plan(&facts, &request("1.34.0")).unwrap();
    assert_eq!(found.blocked.len(), 1);
    assert_eq!(
        found.blocked[0].to_string(),
        "node cp-2 has not rendered its static pods: \
         kube-apiserver, kube-controller-manager are missing"
    );
}

#[test]
fn the_way_of_writing_manifests_follows_the_oldest_talos() {
    let mut facts = cluster(1, 1);
    let method = |facts: &Facts| plan(facts, &request("1.34.0")).unwrap().manifests.method;
    assert_eq!(method(&facts), ManifestMethod::ServerSideApply);
    talos(&mut facts, "w-1").version = "1.13.0-alpha.1".parse().unwrap();
    assert_eq!(method(&facts), ManifestMethod::ServerSideApply);
    talos(&mut facts, "w-1").version = Version::new(1, 12, 11);
    assert_eq!(method(&facts), ManifestMethod::Replace);
}

#[test]
fn versions_that_are_not_given_are_detected_or_asked_for() {
    let facts = cluster(1, 0);
    let found = plan(&facts, &Request::default()).unwrap();
    assert_eq!(
        (found.from.to_string(), found.to.to_string()),
        (OLD.to_owned(), "1.36.3".to_owned())
    );
    let mut unknown = facts.clone();
    talos(&mut unknown, "cp-1").version = Version::new(1, 99, 0);
    assert!(matches!(
        plan(&unknown, &Request::default()),
        Err(Error::NoTarget)
    ));
    let mut empty = facts;
    empty.pods.clear();
    assert!(matches!(
        plan(&empty, &request("1.34.0")),
        Err(Error::NoSource)
    ));
}

#[test]
fn without_kubelets_workers_are_not_changed() {
    let request = Request {
        upgrade_kubelet: false,
        pre_pull: false,
        ..request("1.34.0")
    };
    let found = plan(&cluster(1, 1), &request).unwrap();
    let touched: Vec<&str> = found.touched().map(|node| node.name.as_str()).collect();
    assert_eq!(touched, ["cp-1"]);
    assert!(
        found
            .steps
            .iter()
            .all(|step| step.component != Component::Kubelet)
    );
    assert_eq!(found.pulls, []);
    assert_eq!(found.warnings, [Warning::ImagesUnchecked]);
}
