//! What editors of YAML were seen to get wrong.

use serde_json::json;
use talos_config::yaml::{Stream, read};

/// Edits the root of a text.
fn edited(text: &str, edit: impl FnOnce(&mut talos_config::yaml::Node)) -> String {
    let mut stream = Stream::parse(text).unwrap();
    edit(stream.root_mut(0).unwrap());
    stream.to_string()
}

#[test]
fn strings_that_talos_reads_as_numbers_or_times_are_quoted() {
    for word in [
        "1_000",
        "0_7",
        "0x_1",
        "2024-01-02",
        "2001-12-14t21:59:43.10-05:00",
        "0644",
        "1.10",
        "yes",
        "~",
    ] {
        let text = edited("machine:\n    token: a\n", |root| {
            root.get_mut("machine").unwrap().set("token", json!(word));
        });
        let written = text.lines().nth(1).unwrap().trim();
        assert!(
            written == format!("token: \"{word}\"") || written == format!("token: '{word}'"),
            "{text}"
        );
        assert_eq!(read(&text).unwrap()["machine"]["token"], word);
    }
}

#[test]
fn new_content_is_indented_as_the_file_is() {
    let text = edited("machine:\n    type: worker\n", |root| {
        let sections = json!({"kubelet": {"nodeIP": {"validSubnets": ["10.0.0.0/8"]}}});
        root.get_mut("machine").unwrap().set("network", sections);
    });
    assert_eq!(
        text,
        "machine:\n    type: worker\n    network:\n        kubelet:\n            nodeIP:\n                validSubnets:\n                    - 10.0.0.0/8\n"
    );
}

#[test]
fn items_of_a_list_that_stay_are_not_rewritten() {
    let before = "certSANs:\n  - \"a\"   # first\n  - 'b'\n\n  # the last\n  - c\n";
    let text = edited(before, |root| {
        root.set("certSANs", json!(["a", "x", "c", "d"]));
    });
    assert_eq!(
        text,
        "certSANs:\n  - \"a\"   # first\n  - 'x'\n\n  # the last\n  - c\n  - d\n"
    );
}

#[test]
fn a_removed_key_takes_its_comment_along() {
    let before = "# head\n\na: 1\n# about b\nb: 2 # and this\n# about c\nc: 3\n";
    let text = edited(before, |root| assert!(root.remove("b")));
    assert_eq!(text, "# head\n\na: 1\n# about c\nc: 3\n");
}

#[test]
fn keys_with_dots_are_one_key() {
    let before = "nodeLabels:\n    node.kubernetes.io/x: \"\"\nnode:\n    kubernetes: {}\n";
    let text = edited(before, |root| {
        let labels = root.get_mut("nodeLabels").unwrap();
        labels.set("node.kubernetes.io/x", json!("1"));
        labels.set("a.b", json!("c"));
    });
    assert_eq!(
        text,
        "nodeLabels:\n    node.kubernetes.io/x: \"1\"\n    a.b: c\nnode:\n    kubernetes: {}\n"
    );
}

#[test]
fn a_key_that_is_there_twice_is_refused_with_its_line() {
    let error = Stream::parse("machine:\n  type: worker\n  token: a\n  type: init\n").unwrap_err();
    let text = error.to_string();
    assert!(text.contains("line 4") && text.contains("type"), "{text}");
}
