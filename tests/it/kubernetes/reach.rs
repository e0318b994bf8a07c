//! Finding the address at which Kubernetes answers.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use talos_config::kubeconfig::Kubeconfig;
use talos_kube::{Access, Address, Cause, Error, Options, Patience, Progress, reach};
use talos_sim::{Cluster, Reach};

/// What the cluster's own kubeconfig grants, at the first node of each of these clusters.
fn access(own: &Cluster, servers: &[&Cluster]) -> Access {
    let kubeconfig = Kubeconfig::parse("kubeconfig", &own.kubeconfig()).unwrap();
    let mut access = Access::from_kubeconfig(&kubeconfig, None).unwrap();
    let address = |cluster: &&Cluster| {
        let dial = cluster.nodes()[0].kube_dial().unwrap();
        Address::parse(&dial.to_string()).unwrap()
    };
    access.servers = servers.iter().map(address).collect();
    access
}

fn options() -> Options {
    Options {
        patience: Patience {
            pause: Duration::from_millis(5),
            longest_pause: Duration::from_millis(20),
            ..Patience::default()
        },
        ..Options::new(Timestamp::now())
    }
}

#[tokio::test]
async fn a_foreign_server_does_not_hide_an_api_server_that_restarts() {
    let own = Cluster::start(talos_sim::Options::default()).await.unwrap();
    let ingress = Cluster::start(talos_sim::Options::default()).await.unwrap();
    let own = Arc::new(own);
    own.nodes()[0].kube_faults().set_reach(Reach::Refusing);
    let restarting = Arc::clone(&own);
    let options = Options {
        watcher: Arc::new(move |progress| {
            if let Progress::Away { .. } = progress {
                restarting.nodes()[0].kube_faults().set_reach(Reach::Up);
            }
        }),
        ..options()
    };
    let access = access(&own, &[&ingress, &own]);
    let reached = reach(&access, options).await.unwrap();
    assert_eq!(*reached.address(), access.servers[1]);
}

#[tokio::test]
async fn a_foreign_server_is_the_error_when_no_other_comes_back() {
    let own = Cluster::start(talos_sim::Options::default()).await.unwrap();
    let ingress = Cluster::start(talos_sim::Options::default()).await.unwrap();
    own.nodes()[0].kube_faults().set_reach(Reach::Refusing);
    let options = Options {
        search: Duration::from_millis(50),
        ..options()
    };
    let access = access(&own, &[&own, &ingress]);
    let error = reach(&access, options).await.err().unwrap();
    assert!(
        matches!(&error, Error::Certificate { address, .. } if *address == access.servers[1]),
        "{error}"
    );
}

#[tokio::test]
async fn certificates_are_judged_at_the_time_that_is_given() {
    let own = Cluster::start(talos_sim::Options::default()).await.unwrap();
    let access = access(&own, &[&own]);
    let at = |now| Options {
        now,
        search: Duration::from_millis(50),
        ..options()
    };
    let long_ago = Timestamp::now() - SignedDuration::from_hours(24 * 365 * 20);
    let error = reach(&access, at(long_ago)).await.err().unwrap();
    let Error::Unreachable { attempts } = &error else {
        panic!("{error}");
    };
    assert_eq!(attempts[0].cause, Cause::NotYetValid);
    let far_off = Timestamp::now() + SignedDuration::from_hours(24 * 365 * 20);
    let error = reach(&access, at(far_off)).await.err().unwrap();
    assert!(error.to_string().contains("it has expired"), "{error}");
}
