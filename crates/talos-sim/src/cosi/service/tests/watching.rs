//! Watches: what comes first, what follows, and what ends them.

use expect_test::expect;
use futures::StreamExt as _;
use talos_api::cosi::resource as api;
use talos_api::cosi::resource::label_term::Operation;

use super::{LINKS, bare, bootstrap, check, put, ready, refused, request, resume, single, watch};
use crate::cosi::seeds::tests::{controlplane, seeds};

#[tokio::test]
async fn a_kind_is_watched_from_now_on_or_with_its_contents() {
    let store = bare();
    put(&store, "b", 1, &[]);
    put(&store, "a", 1, &[]);
    check(
        &store,
        request(<_>::default()),
        expect![[r#"
        []
    "#]],
    )
    .await;
    check(
        &store,
        request(bootstrap()),
        expect![[r#"
        []
        [CREATED a@1]
        [CREATED b@1]
        [BOOTSTRAPPED @undefined #1]
    "#]],
    )
    .await;
    let aggregated = api::WatchOptions {
        aggregated: true,
        bootstrap_bookmark: true,
        ..bootstrap()
    };
    check(
        &store,
        request(aggregated),
        expect![[r#"
        []
        [CREATED a@1, CREATED b@1, BOOTSTRAPPED @undefined #1, NOOP @undefined #1]
    "#]],
    )
    .await;
}

#[tokio::test]
async fn changes_carry_old_content_and_bookmarks() {
    let store = bare();
    put(&store, "a", 1, &[]);
    let mut stream = watch(&store, request(<_>::default())).await;
    put(&store, "a", 1, &[]);
    put(&store, "a", 2, &[]);
    put(&store, "b", 1, &[]);
    store.destroy("network", LINKS, "a");
    let (text, _) = ready(&mut stream).await;
    expect![[r#"
        []
        [UPDATED a@2 old @1 #1]
        [CREATED b@1 #2]
        [DESTROYED a@2 #3]
    "#]]
    .assert_eq(&text);

    let aggregated = api::WatchOptions {
        aggregated: true,
        ..<_>::default()
    };
    let mut stream = watch(&store, request(aggregated)).await;
    let (opened, _) = ready(&mut stream).await;
    put(&store, "b", 2, &[]);
    put(&store, "b", 3, &[]);
    let (text, _) = ready(&mut stream).await;
    expect![[r#"
        []
        [UPDATED b@2 old @1 #4, UPDATED b@3 old @2 #5]
    "#]]
    .assert_eq(&(opened + &text));
}

#[tokio::test]
async fn one_resource_is_created_or_a_tombstone_at_first() {
    let store = bare();
    put(&store, "a", 1, &[]);
    let mut stream = watch(&store, single("a", <_>::default())).await;
    put(&store, "b", 1, &[]);
    put(&store, "a", 2, &[]);
    store.destroy("network", LINKS, "a");
    let (text, _) = ready(&mut stream).await;
    expect![[r#"
        []
        [CREATED a@1]
        [UPDATED a@2 old @1 #2]
        [DESTROYED a@2 #3]
    "#]]
    .assert_eq(&text);
    check(
        &store,
        single("a", <_>::default()),
        expect![[r#"
        []
        [DESTROYED a@undefined]
    "#]],
    )
    .await;
    let message = watch(&store, single("a", <_>::default())).await;
    let event = message
        .skip(1)
        .next()
        .await
        .unwrap()
        .unwrap()
        .event
        .remove(0);
    let tombstone = event.resource.unwrap();
    assert_eq!(tombstone.spec, Some(api::Spec::default()));
    let metadata = tombstone.metadata.unwrap();
    assert_eq!(metadata.phase, "running");
    assert!(metadata.created.is_some() && metadata.owner.is_empty());
}

#[tokio::test]
async fn label_queries_turn_updates_into_coming_and_going() {
    let store = bare();
    put(&store, "a", 1, &[]);
    let exists = api::LabelTerm {
        key: "x".to_owned(),
        op: Operation::Exists.into(),
        ..<_>::default()
    };
    let labeled = api::WatchOptions {
        label_query: vec![api::LabelQuery {
            terms: vec![exists],
        }],
        ..bootstrap()
    };
    let mut stream = watch(&store, request(labeled)).await;
    put(&store, "a", 1, &[("x", "1")]);
    put(&store, "a", 1, &[("x", "2")]);
    put(&store, "a", 1, &[]);
    store.destroy("network", LINKS, "a");
    put(&store, "a", 1, &[]);
    let (text, _) = ready(&mut stream).await;
    expect![[r#"
        []
        [BOOTSTRAPPED @undefined #0]
        [CREATED a@2 #1]
        [UPDATED a@3 old @2 #2]
        [DESTROYED a@4 #3]
    "#]]
    .assert_eq(&text);
}

#[tokio::test]
async fn bookmarks_resume_until_the_node_reboots() {
    let store = bare();
    let empty = check(
        &store,
        request(bootstrap()),
        expect![[r#"
        []
        [BOOTSTRAPPED @undefined #-1]
    "#]],
    )
    .await;
    put(&store, "a", 1, &[]);
    let one = check(
        &store,
        request(resume(&empty)),
        expect![[r#"
        []
        [CREATED a@1 #0]
    "#]],
    )
    .await;
    put(&store, "a", 2, &[]);
    check(
        &store,
        request(resume(&one)),
        expect![[r#"
        []
        [UPDATED a@2 old @1 #1]
    "#]],
    )
    .await;
    let tail = |count| api::WatchOptions {
        tail_events: count,
        ..<_>::default()
    };
    check(
        &store,
        request(tail(1)),
        expect![[r#"
        []
        [UPDATED a@2 old @1 #1]
    "#]],
    )
    .await;
    check(
        &store,
        request(tail(100)),
        expect![[r#"
        []
        [CREATED a@1 #0]
        [UPDATED a@2 old @1 #1]
    "#]],
    )
    .await;
    check(
        &store,
        single("a", tail(1)),
        expect![[r#"
        []
        [UPDATED a@2 old @1 #1]
    "#]],
    )
    .await;
    check(
        &store,
        single("b", tail(1)),
        expect![[r#"
        []
    "#]],
    )
    .await;

    let mut beyond = one.clone();
    beyond[15] += 2;
    let invalid = "FailedPrecondition: invalid watch bookmark";
    for bookmark in [beyond.as_slice(), b"", b"x", &[0; 16]] {
        let answer = refused(&store, "os:admin", request(resume(bookmark))).await;
        assert_eq!(answer, invalid);
    }
    store.reboot();
    seeds().install(&store, &controlplane(), &[LINKS]);
    let answer = refused(&store, "os:admin", request(resume(&one))).await;
    assert_eq!(answer, invalid);
}

#[tokio::test]
async fn broken_streams_end_and_slow_ones_fall_silent() {
    let store = bare();
    put(&store, "a", 1, &[]);
    let mut stream = watch(&store, request(bootstrap())).await;
    let (_, bookmark) = ready(&mut stream).await;
    store.drop_watches();
    put(&store, "a", 2, &[]);
    let (text, _) = ready(&mut stream).await;
    expect![[r#"
        Unavailable: the connection is closing
    "#]]
    .assert_eq(&text);
    check(
        &store,
        request(resume(&bookmark)),
        expect![[r#"
        []
        [UPDATED a@2 old @1 #1]
    "#]],
    )
    .await;

    let mut stream = watch(&store, request(<_>::default())).await;
    let mut older = watch(
        &store,
        api::WatchRequest {
            api_version: 0,
            ..request(bootstrap())
        },
    )
    .await;
    store.overrun_watches();
    put(&store, "a", 3, &[]);
    let (text, _) = ready(&mut stream).await;
    expect![[r#"
        []
        [ERRORED buffer overrun: namespace "network" type "LinkStatuses.net.talos.dev", write pos 3, pos 2, capacity 8]
    "#]].assert_eq(&text);
    let (text, _) = ready(&mut older).await;
    expect![[r#"
        []
        [CREATED a@2]
    "#]]
    .assert_eq(&text);
}

#[tokio::test]
async fn a_reader_that_is_overtaken_hears_of_it() {
    let store = bare();
    let mut stream = watch(&store, request(<_>::default())).await;
    for mtu in 0..1100 {
        put(&store, "a", mtu, &[]);
    }
    let (text, _) = ready(&mut stream).await;
    expect![[r#"
        []
        [ERRORED buffer overrun: namespace "network" type "LinkStatuses.net.talos.dev", write pos 1100, pos 0, capacity 1024]
    "#]].assert_eq(&text);
}

#[tokio::test]
async fn watches_that_make_no_sense_are_refused() {
    let store = bare();
    let check = async |request, expected: &str| {
        assert_eq!(refused(&store, "os:admin", request).await, expected);
    };
    let labeled = api::WatchOptions {
        label_query: vec![<_>::default()],
        ..<_>::default()
    };
    let query = |regexp: &str| api::WatchOptions {
        id_query: Some(api::IdQuery {
            regexp: regexp.to_owned(),
        }),
        ..<_>::default()
    };
    check(
        single("a", bootstrap()),
        "Unimplemented: bootstrap contents is not implemented for resource watch",
    )
    .await;
    check(
        single("a", labeled),
        "Unimplemented: label query is not implemented for resource watch",
    )
    .await;
    let tail = api::WatchOptions {
        tail_events: 1,
        ..bootstrap()
    };
    check(
        request(tail),
        "Unknown: cannot use BootstrapContents with TailEvents and StartFromBookmark options",
    )
    .await;
    let tail = api::WatchOptions {
        tail_events: 1,
        ..resume(&[0; 16])
    };
    check(
        request(tail),
        "Unknown: cannot use both TailEvents and StartFromBookmark options",
    )
    .await;
    let answer = refused(&store, "os:admin", request(query("("))).await;
    assert!(
        answer.starts_with("InvalidArgument: failed to compile regexp: "),
        "{answer}"
    );
}
