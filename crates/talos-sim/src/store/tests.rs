//! Versions, events and positions as Talos counts them.

use jiff::Timestamp;
use serde_json::json;

use super::{ChangeKind, Draft, Lost, Start, Store};

const KIND: &str = "Services.v1alpha1.talos.dev";

fn draft(id: &str, healthy: bool) -> Draft {
    Draft::new("runtime", KIND, id, "test", json!({"healthy": healthy}))
}

fn put(store: &Store, id: &str, healthy: bool) -> u64 {
    let at = Timestamp::from_second(1).unwrap();
    store.put(draft(id, healthy), at).metadata.version
}

#[test]
fn versions_count_changes_of_content() {
    let store = Store::new();
    assert_eq!(put(&store, "kubelet", false), 1);
    assert_eq!(put(&store, "kubelet", true), 2);
    assert_eq!(put(&store, "kubelet", true), 2);
    let forced = store.put_forced(draft("kubelet", true), Timestamp::UNIX_EPOCH);
    assert_eq!(forced.metadata.version, 3);
    let modified = store.modify("runtime", KIND, "kubelet", Timestamp::UNIX_EPOCH, |draft| {
        draft.labels.insert("a".to_owned(), "b".to_owned());
    });
    assert_eq!(modified.unwrap().metadata.version, 4);
    let missing = store.modify("runtime", KIND, "nope", Timestamp::UNIX_EPOCH, |_| {});
    assert!(missing.is_none());

    assert!(store.destroy("runtime", KIND, "kubelet").is_some());
    assert!(store.destroy("runtime", KIND, "kubelet").is_none());
    assert!(store.destroy("nope", KIND, "kubelet").is_none());
    assert_eq!(put(&store, "kubelet", true), 1);
}

#[test]
fn times_tell_creation_and_last_change() {
    let store = Store::new();
    let [first, second] = [1, 2].map(|s| Timestamp::from_second(s).unwrap());
    store.put(draft("kubelet", false), first);
    let changed = store.put(draft("kubelet", true), second);
    assert_eq!(
        (changed.metadata.created, changed.metadata.updated),
        (first, second)
    );
}

#[test]
fn namespaces_and_types_are_kept_apart() {
    let store = Store::new();
    put(&store, "b", true);
    put(&store, "a", true);
    let ids = |namespace, kind| {
        let listed = store.list(namespace, kind);
        listed
            .iter()
            .map(|r| r.metadata.id.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids("runtime", KIND), ["a", "b"]);
    assert!(ids("runtime", "Other").is_empty());
    assert!(store.get("k8s", KIND, "a").is_none());
}

#[tokio::test]
async fn changes_wait_for_what_happens() {
    let store = Store::new();
    let mut changes = store.changes("runtime", KIND);
    assert!(changes.try_next().unwrap().is_none());
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            put(&store, "kubelet", false);
            put(&store, "kubelet", true);
            store.destroy("runtime", KIND, "kubelet");
        }
    });
    for expected in [
        ChangeKind::Created,
        ChangeKind::Updated,
        ChangeKind::Destroyed,
    ] {
        let change = changes.next().await.unwrap();
        assert_eq!(change.kind, expected);
        assert_eq!(change.old.is_some(), expected == ChangeKind::Updated);
    }
    writer.await.unwrap();
    store.reboot();
    assert_eq!(changes.next().await.unwrap_err(), Lost::Dropped);
}

/// The numbers were measured on the COSI runtime with Talos's settings (8 growing to 1024, gap 4).
#[test]
fn bookmarks_are_good_for_as_long_as_the_history_grows() {
    let store = Store::new();
    let (_, start) = store.follow("runtime", KIND, Start::Now).unwrap();
    let oldest = [
        (1, -1),
        (3, -1),
        (4, 0),
        (8, 4),
        (9, -1),
        (12, 0),
        (16, 4),
        (17, -1),
        (64, 4),
        (65, -1),
        (1019, -1),
        (1020, 0),
        (1034, 14),
        (2049, 1029),
    ];
    let mut events = 0;
    for (count, oldest) in oldest {
        while events < count {
            put(&store, "kubelet", events % 2 == 0);
            events += 1;
        }
        let usable = |position: &i64| {
            let bookmark = start.bookmark_of(*position);
            let start = Start::Bookmark(&bookmark);
            store.follow("runtime", KIND, start).is_ok()
        };
        let all: Vec<i64> = (-2..=count + 1).filter(usable).collect();
        assert_eq!(all, (oldest..count).collect::<Vec<_>>(), "{count} events");
    }
}
