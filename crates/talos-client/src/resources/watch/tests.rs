use super::*;

#[test]
fn waits_double_up_to_the_longest() {
    let backoff = Backoff {
        first: Duration::from_millis(250),
        longest: Duration::from_secs(10),
        tries: None,
    };
    let waits: Vec<u128> = [1, 2, 3, 6, 7, 1000]
        .iter()
        .map(|failures| backoff.wait(*failures).as_millis())
        .collect();
    assert_eq!(waits, [250, 500, 1000, 8000, 10_000, 10_000]);
}

/// A watch that never stood.
fn watch(options: WatchOptions) -> Watch {
    let security = crate::Security::Maintenance {
        fingerprints: Vec::new(),
    };
    let now = jiff::Timestamp::UNIX_EPOCH;
    let made = crate::Options::new(vec!["127.0.0.1".to_string()], security, now);
    Watch {
        node: crate::Client::new(made).unwrap().node("n"),
        target: Target {
            namespace: "runtime".to_string(),
            resource_type: "Services.v1alpha1.talos.dev".to_string(),
            id: None,
        },
        options,
        messages: None,
        events: VecDeque::new(),
        bookmark: None,
        seen: BTreeMap::new(),
        repeated: None,
        failures: 0,
        next_try: None,
        opening: None,
        broken: None,
        ended: false,
    }
}

fn broken(watch: &Watch) -> Error {
    Error::WatchBroken {
        call: watch.call(),
        source: NodeMessage("gone".to_string()),
    }
}

#[tokio::test]
async fn what_was_seen_before_an_error_in_the_same_message_comes_first() {
    let mut watch = watch(WatchOptions {
        contents_first: false,
        ..WatchOptions::default()
    });
    let event = |kind: wire::EventType| wire::Event {
        event_type: kind.into(),
        ..Default::default()
    };
    let message = wire::WatchResponse {
        event: vec![
            event(wire::EventType::Bootstrapped),
            event(wire::EventType::Errored),
        ],
    };
    let error = watch.take(message).unwrap_err();
    watch.failed(error);
    let first = watch.next().await.unwrap();
    assert!(matches!(first, Some(WatchEvent::Bootstrapped)), "{first:?}");
    let then = watch.next().await;
    assert!(matches!(then, Err(Error::WatchBroken { .. })), "{then:?}");
    assert!(watch.next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_caller_that_stops_waiting_does_not_put_off_the_next_try() {
    let mut watch = watch(WatchOptions::default());
    let error = broken(&watch);
    watch.failed(error);
    let told = watch.next().await.unwrap();
    assert!(
        matches!(told, Some(WatchEvent::Interrupted { .. })),
        "{told:?}"
    );
    let next_try = watch.next_try;
    assert!(futures::poll!(Box::pin(watch.next())).is_pending());
    assert_eq!(watch.next_try, next_try);

    // A try that takes a few looks, and callers who look only once.
    watch.next_try = None;
    let failure = broken(&watch);
    watch.opening = Some(Opening(Box::pin(async {
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        Err(failure)
    })));
    for _ in 0..5 {
        assert!(futures::poll!(Box::pin(watch.next())).is_pending());
    }
    let told = futures::poll!(Box::pin(watch.next()));
    assert!(told.is_ready(), "{told:?}");
}
