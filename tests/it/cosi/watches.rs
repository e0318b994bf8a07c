//! Watching resources, across dropped connections.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use talos_client::{Backoff, Error, Kind, Node, Watch, WatchEvent, WatchOptions};
use talos_sim::{Cluster, Draft, Reach};

use crate::client::{client, cluster, node};

const NAMESPACE: &str = "runtime";
const TYPE: &str = "Services.v1alpha1.talos.dev";

fn quick() -> WatchOptions {
    WatchOptions {
        contents_first: true,
        backoff: Backoff {
            first: Duration::from_millis(1),
            longest: Duration::from_millis(5),
            tries: None,
        },
    }
}

fn put(cluster: &Cluster, id: &str, spec: Value) {
    let draft = Draft::new(NAMESPACE, TYPE, id, "test", spec);
    cluster.nodes()[0].store().put(draft, Timestamp::now());
}

fn destroy(cluster: &Cluster, id: &str) {
    cluster.nodes()[0]
        .store()
        .destroy(NAMESPACE, TYPE, id)
        .unwrap();
}

/// Waits for the next event and writes it in a few letters.
async fn next(watch: &mut Watch) -> String {
    match watch.next().await.unwrap().unwrap() {
        WatchEvent::Created(resource) => format!("+{}", resource.metadata.id),
        WatchEvent::Updated { old, new } => {
            let old = old.map_or_else(|| "?".to_string(), |old| old.metadata.version);
            format!("{} {old}>{}", new.metadata.id, new.metadata.version)
        }
        WatchEvent::Destroyed(resource) if resource.is_tombstone() => {
            format!("no {}", resource.metadata.id)
        }
        WatchEvent::Destroyed(resource) => format!("-{}", resource.metadata.id),
        WatchEvent::Bootstrapped => "all".to_string(),
        WatchEvent::Interrupted { .. } => "interrupted".to_string(),
        WatchEvent::Resumed => "resumed".to_string(),
        other => panic!("{other:?}"),
    }
}

/// Waits until the watch goes on after a break, however many tries that takes.
async fn resumed(watch: &mut Watch) {
    loop {
        match next(watch).await.as_str() {
            "interrupted" => {}
            "resumed" => return,
            other => panic!("{other}"),
        }
    }
}

async fn watch(node: &Node, id: Option<&str>, options: WatchOptions) -> Watch {
    node.watch(NAMESPACE, TYPE, id, options).await.unwrap()
}

/// Sees what exists at the start and returns its ids.
async fn contents(watch: &mut Watch) -> Vec<String> {
    let mut ids = Vec::new();
    loop {
        match next(watch).await.strip_prefix('+') {
            Some(id) => ids.push(id.to_string()),
            None => return ids,
        }
    }
}

#[tokio::test]
async fn a_type_starts_with_its_contents_and_goes_on_with_changes() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    let mut watch = watch(&node, None, quick()).await;
    let ids = contents(&mut watch).await;
    let list = node.list(NAMESPACE, TYPE).await.unwrap();
    let listed: Vec<String> = list.into_iter().map(|one| one.metadata.id).collect();
    assert_eq!(ids, listed);

    put(&cluster, "new", json!({"running": false}));
    assert_eq!(next(&mut watch).await, "+new");
    put(&cluster, "new", json!({"running": true}));
    assert_eq!(next(&mut watch).await, "new 1>2");
    destroy(&cluster, "new");
    assert_eq!(next(&mut watch).await, "-new");
}

#[tokio::test]
async fn without_contents_only_changes_are_seen() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let options = WatchOptions {
        contents_first: false,
        ..quick()
    };
    let mut watch = watch(&node(&client, &cluster, 0), None, options).await;
    put(&cluster, "new", json!({"running": false}));
    assert_eq!(next(&mut watch).await, "+new");
    cluster.nodes()[0].faults().drop_connections();
    assert_eq!(next(&mut watch).await, "interrupted");
    resumed(&mut watch).await;
    put(&cluster, "new", json!({"running": true}));
    assert_eq!(next(&mut watch).await, "new 1>2");
}

#[tokio::test]
async fn one_resource_starts_with_what_it_is() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    put(&cluster, "one", json!({"running": false}));
    let mut there = watch(&node, Some("one"), quick()).await;
    assert_eq!(next(&mut there).await, "+one");
    put(&cluster, "other", json!({"running": false}));
    put(&cluster, "one", json!({"running": true}));
    assert_eq!(next(&mut there).await, "one 1>2");

    let mut missing = watch(&node, Some("nope"), quick()).await;
    assert_eq!(next(&mut missing).await, "no nope");
    put(&cluster, "nope", json!({"running": true}));
    assert_eq!(next(&mut missing).await, "+nope");
}

#[tokio::test]
async fn nothing_is_missed_or_seen_twice_across_a_dropped_connection() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let mut watch = watch(&node(&client, &cluster, 0), None, quick()).await;
    contents(&mut watch).await;
    let faults = cluster.nodes()[0].faults();
    faults.set_reach(Reach::Refusing);
    assert_eq!(next(&mut watch).await, "interrupted");
    put(&cluster, "a", json!({"running": false}));
    put(&cluster, "a", json!({"running": true}));
    put(&cluster, "b", json!({"running": true}));
    destroy(&cluster, "b");
    faults.set_reach(Reach::Up);
    resumed(&mut watch).await;
    for expected in ["+a", "a 1>2", "+b", "-b"] {
        assert_eq!(next(&mut watch).await, expected);
    }
}

#[tokio::test]
async fn one_resource_is_compared_with_what_it_was_before_the_break() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    let faults = cluster.nodes()[0].faults();
    for id in ["same", "changed", "gone"] {
        put(&cluster, id, json!({"running": false}));
    }
    let mut same = watch(&node, Some("same"), quick()).await;
    let mut changed = watch(&node, Some("changed"), quick()).await;
    let mut gone = watch(&node, Some("gone"), quick()).await;
    for watch in [&mut same, &mut changed, &mut gone] {
        assert!(next(watch).await.starts_with('+'));
    }
    faults.set_reach(Reach::Refusing);
    for watch in [&mut same, &mut changed, &mut gone] {
        assert_eq!(next(watch).await, "interrupted");
    }
    put(&cluster, "changed", json!({"running": true}));
    destroy(&cluster, "gone");
    faults.set_reach(Reach::Up);
    for watch in [&mut same, &mut changed, &mut gone] {
        resumed(watch).await;
    }
    assert_eq!(next(&mut changed).await, "changed 1>2");
    assert_eq!(next(&mut gone).await, "-gone");
    put(&cluster, "same", json!({"running": true}));
    assert_eq!(next(&mut same).await, "same 1>2");
}

#[tokio::test]
async fn after_a_reboot_the_place_is_forgotten_and_the_watch_ends() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    let mut watch = watch(&node, None, quick()).await;
    contents(&mut watch).await;
    node.reboot(talos_client::RebootMode::Default)
        .await
        .unwrap();
    let error = loop {
        match watch.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the watch ended without an error"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), Kind::Precondition, "{error:?}");
    assert!(watch.next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_watch_gives_up_after_so_many_tries() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let mut options = quick();
    options.backoff.tries = Some(3);
    let mut watch = watch(&node(&client, &cluster, 0), None, options).await;
    contents(&mut watch).await;
    cluster.nodes()[0].faults().set_reach(Reach::Refusing);
    for _ in 0..3 {
        assert_eq!(next(&mut watch).await, "interrupted");
    }
    let error = watch.next().await.unwrap_err();
    assert_eq!(error.kind(), Kind::NotReachable, "{error:?}");
}

#[tokio::test]
async fn what_cannot_be_watched_is_an_error_at_once() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    let error = node
        .watch(NAMESPACE, "Nopes.x.talos.dev", None, quick())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound);
    cluster.nodes()[0].faults().set_reach(Reach::Refusing);
    let error = loop {
        match node
            .watch(NAMESPACE, TYPE, None, quick())
            .await
            .unwrap_err()
        {
            // The call that notices the break of the open connection.
            Error::ConnectionLost { .. } => {}
            error => break error,
        }
    };
    assert_eq!(error.kind(), Kind::NotReachable, "{error:?}");
}

#[tokio::test]
async fn dropping_a_watch_leaves_the_connection_to_others() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    for _ in 0..50 {
        let mut watch = watch(&node, None, quick()).await;
        next(&mut watch).await;
    }
    node.version().await.unwrap();
}
