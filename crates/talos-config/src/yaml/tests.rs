//! Tests of the lossless tree.

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

/// Edits the first document of a text and compares the text that results; it must read as the tree means.
fn check(text: &str, edit: impl FnOnce(&mut Node), want: &Expect) {
    let mut stream = Stream::parse(text).unwrap();
    assert_eq!(stream.to_string(), text, "printing what was parsed");
    edit(stream.root_mut(0).unwrap());
    let printed = stream.to_string();
    want.assert_eq(&printed);
    assert_eq!(
        read_documents(&printed).unwrap()[0],
        stream.root(0).unwrap().value()
    );
}

const CONFIG: &str = r#"# head
version: v1alpha1 # c1

# above machine
machine: # mc
  type: controlplane   # t
  certSANs:
  - a
  - "b" # cb
  # foot
  nodeLabels: {zone: a, "x.y/z": "", l: [1, 2,], }
  empty: # nothing
  files:
    - content: |
        abc
        def

      permissions: 0o644
    -   x: 1
        # inner
        y: 2
cluster: {}
# tail
---
kind: X
...
"#;

#[test]
fn scalars_change_in_their_line_only() {
    check(
        CONFIG,
        |root| {
            root.set("version", json!("v2"));
            root.get_mut("machine")
                .unwrap()
                .set("type", json!("worker"));
            root.get_mut("machine")
                .unwrap()
                .get_mut("certSANs")
                .unwrap()
                .item_mut(1)
                .unwrap()
                .assign(json!("c"));
            root.get_mut("machine")
                .unwrap()
                .get_mut("nodeLabels")
                .unwrap()
                .set("x.y/z", json!("1"));
            root.get_mut("machine").unwrap().set("empty", json!(5));
        },
        &expect![[r#"
            # head
            version: v2 # c1

            # above machine
            machine: # mc
              type: worker   # t
              certSANs:
              - a
              - "c" # cb
              # foot
              nodeLabels: {zone: a, "x.y/z": "1", l: [1, 2,], }
              empty: 5 # nothing
              files:
                - content: |
                    abc
                    def

                  permissions: 0o644
                -   x: 1
                    # inner
                    y: 2
            cluster: {}
            # tail
            ---
            kind: X
            ...
        "#]],
    );
}

#[test]
fn new_content_follows_the_indentation_of_the_file() {
    check(
        "a:\n    b:\n    - c\n",
        |root| {
            root.set(
                "d",
                json!({"e": {"f": 1}, "g": [{"h": 1, "i": [2]}, 3], "j": {}, "k": []}),
            )
        },
        &expect![[r#"
            a:
                b:
                - c
            d:
                e:
                    f: 1
                g:
                - h: 1
                  i:
                  - 2
                - 3
                j: {}
                k: []
        "#]],
    );
    check(
        "a:\n  b: {}\n  l: [] # none\n",
        |root| {
            let a = root.get_mut("a").unwrap();
            a.get_mut("b").unwrap().set("x", json!("y\nz\n"));
            a.get_mut("l").unwrap().push(json!("1_000"));
        },
        &expect![[r#"
            a:
              b:
                x: |
                  y
                  z
              l: # none
                - "1_000"
        "#]],
    );
}

#[test]
fn lists_change_item_by_item() {
    check(
        "l:\n# one\n-   a # ca\n\n-   b # cb\n-   c\n# end\n",
        |root| root.set("l", json!(["a", "x", "c", "d"])),
        &expect![[r#"
            l:
            # one
            -   a # ca

            -   x # cb
            -   c
            - d
            # end
        "#]],
    );
    check(
        "l: [a, b, c]\nm: [\n  a,\n  b\n]\n",
        |root| {
            root.set("l", json!(["b", "c", "d"]));
            root.set("m", json!(["b", "e"]));
        },
        &expect![[r#"
            l: [b, c, d]
            m: [
              b,
              e
            ]
        "#]],
    );
}

#[test]
fn a_removed_key_takes_its_own_comment_along() {
    check(
        "# file\na: 1 # ca\n\n# about b\n# more\nb: 2\n# group\n\n# about c\nc:\n  # about d\n  d: 1 # cd\n# last\n",
        |root| {
            root.remove("a");
            root.remove("b");
            root.get_mut("c").unwrap().remove("d");
        },
        &expect![[r#"
            # file
            # group

            # about c
            c: {}
            # last
        "#]],
    );
    check(
        "l:\n  - a: 1\n    # about b\n    b: 2\n  # about the second\n  - x\n",
        |root| {
            let list = root.get_mut("l").unwrap();
            list.item_mut(0).unwrap().remove("a");
            list.remove_item(1);
        },
        &expect![[r#"
            l:
              - # about b
                b: 2
        "#]],
    );
}

#[test]
fn keys_with_dots_are_keys() {
    check(
        "sysctls:\n  net.core.somaxconn: \"1\"\nnet:\n  core: {}\n",
        |root| {
            root.get_mut("sysctls")
                .unwrap()
                .set("net.core.somaxconn", json!("65535"))
        },
        &expect![[r#"
            sysctls:
              net.core.somaxconn: "65535"
            net:
              core: {}
        "#]],
    );
}

#[test]
fn aliases_keep_their_meaning_when_their_anchor_changes() {
    check(
        "a: &x [1, 2]\nb: *x\nc: *x\n",
        |root| root.get_mut("a").unwrap().push(json!(3)),
        &expect![[r#"
            a: &x [1, 2, 3]
            b:
                - 1
                - 2
            c:
                - 1
                - 2
        "#]],
    );
    check(
        "a: &x [1, 2]\nb: *x\nc: *x\n",
        |root| root.get_mut("b").unwrap().push(json!(3)),
        &expect![[r#"
            a: &x [1, 2]
            b:
                - 1
                - 2
                - 3
            c: *x
        "#]],
    );
    check(
        "a: &x {k: 1, l: 2}\nb:\n  <<: *x\n  m: 3\n",
        |root| {
            root.get_mut("b").unwrap().remove("l");
        },
        &expect![[r#"
            a: &x {k: 1, l: 2}
            b:
              m: 3
              k: 1
        "#]],
    );
}

#[test]
fn what_a_merge_key_brought_in_is_written_out_when_its_anchor_changes() {
    check(
        "a: &x {k: 1, l: 2}\nb:\n  # why\n  <<: *x\n  l: 3\nc: {<<: *x, m: 4}\n",
        |root| {
            root.get_mut("a").unwrap().remove("k");
        },
        &expect![[r#"
            a: &x {l: 2}
            b:
              l: 3
              k: 1
            c: {m: 4, k: 1, l: 2}
        "#]],
    );
}

#[test]
fn blanks_at_the_end_do_not_become_part_of_a_new_block() {
    check(
        "a: 1\n          ",
        |root| root.set("b", json!("two\nlines")),
        &expect![["a: 1\nb: \"two\\nlines\"\n          "]],
    );
}

#[test]
fn a_file_without_a_last_line_break_stays_one() {
    check("a: 1", |root| root.set("a", json!(2)), &expect!["a: 2"]);
    check(
        "a: 1",
        |root| root.set("b", json!(2)),
        &expect![[r#"
        a: 1
        b: 2
    "#]],
    );
}

#[test]
fn a_byte_order_mark_stays_at_the_head() {
    check(
        "\u{feff}a: 1\nb:\n- 2\n",
        |root| {
            root.remove("a");
            root.set("c", json!({"d": 3}));
        },
        &expect![["\u{feff}b:\n- 2\nc:\n    d: 3\n"]],
    );
    assert_eq!(Stream::parse("\u{feff}").unwrap().to_string(), "\u{feff}");
}

#[test]
fn line_breaks_of_windows_stay() {
    check(
        "a: 1\r\nb:\r\n  c: 2 # x\r\n",
        |root| {
            root.get_mut("b").unwrap().set("c", json!(3));
            root.set("d", json!([1]));
        },
        &expect!["a: 1\r\nb:\r\n  c: 3 # x\r\nd:\r\n  - 1\r\n"],
    );
}

#[test]
fn documents_come_and_go() {
    let mut stream = Stream::parse("# only\na: 1\n---\n# two\nb: 2\n---\nc: 3").unwrap();
    assert_eq!(stream.len(), 3);
    stream.push(json!({"d": 4}));
    assert!(stream.remove(1));
    assert_eq!(stream.to_string(), "# only\na: 1\n---\nc: 3\n---\nd: 4\n");
}

#[test]
fn a_key_gets_another_name() {
    check(
        "a: 1 # x\nb: {c: 1}\n",
        |root| {
            assert!(root.rename("a", "yes"));
            root.get_mut("b").unwrap().rename("c", "d");
        },
        &expect![[r#"
        "yes": 1 # x
        b: {d: 1}
    "#]],
    );
}

#[test]
fn forms_that_are_not_edited_in_place_are_read_and_copied() {
    check(
        "a:\n  ? x # one\n  : 1\n  y: 2\nb: [? p : q, r: s]\nc: 1 # c\n",
        |root| {
            assert_eq!(
                root.value(),
                json!({"a": {"x": 1, "y": 2}, "b": [{"p": "q"}, {"r": "s"}], "c": 1})
            );
            root.set("c", json!(2));
        },
        &expect![[r#"
            a:
              ? x # one
              : 1
              y: 2
            b: [? p : q, r: s]
            c: 2 # c
        "#]],
    );
}

#[test]
fn a_tag_stays_while_what_it_is_on_changes() {
    check(
        "a: !!map # t\n  b: 1\nc: &c !!str 5\nd: !x\n",
        |root| root.get_mut("a").unwrap().set("b", json!(2)),
        &expect![[r#"
            a: !!map # t
              b: 2
            c: &c !!str 5
            d: !x
        "#]],
    );
}

#[test]
fn a_value_is_written_as_a_document() {
    let value = json!({"a": {"b": ["off", 1, "1"]}, "c": "x\ny", "d": null});
    let text = write(&value);
    expect![[r#"
        a:
            b:
                - "off"
                - 1
                - "1"
        c: |-
            x
            y
        d: null
    "#]]
    .assert_eq(&text);
    assert_eq!(read(&text).unwrap(), value);
}
