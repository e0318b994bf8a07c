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

#[test]
fn values_mean_what_go_reads() {
    for (text, want) in [
        ("a: off", json!("off")),
        ("a: yes", json!("yes")),
        ("a: y", json!("y")),
        ("a: true", json!(true)),
        ("a: 0644", json!(420)),
        ("a: 0o666", json!(438)),
        ("a: 1_000", json!(1000)),
        ("a: 1.10", json!(1.1)),
        ("a: \"1.10\"", json!("1.10")),
        ("a:", json!(null)),
        ("a: ~", json!(null)),
        ("a: 10.5.0.2", json!("10.5.0.2")),
        ("b: &b 1\na: *b", json!(1)),
    ] {
        let value = read(text).unwrap();
        assert_eq!(value["a"], want, "{text}");
        let stream = Stream::parse(text).unwrap();
        assert_eq!(stream.root(0).unwrap().value(), value, "{text}");
    }
}

#[test]
fn merged_mappings_are_read_as_if_written() {
    let text = "a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\n";
    let stream = Stream::parse(text).unwrap();
    let root = stream.root(0).unwrap();
    assert_eq!(root.get("b").unwrap().value(), json!({"y": 3, "x": 1}));
    assert_eq!(root.value(), read(text).unwrap());
}

#[test]
fn duplicate_keys_are_refused_with_their_position() {
    let error = Stream::parse("a: 1\nb: 2\na: 3\n").unwrap_err();
    let Error::Syntax { line, message, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(
        (*line, message.contains("duplicate")),
        (3, true),
        "{message}"
    );
}

#[test]
fn a_text_that_is_no_yaml_is_refused_without_showing_it() {
    let error = Stream::parse("token: s3cret\nkey: [s3cret\n").unwrap_err();
    assert!(!error.to_string().contains("s3cret"), "{error}");
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
fn odd_flow_lists_print_as_they_were() {
    for text in [
        "[-:]",
        "[-: ]",
        "[a: 1, - b]",
        "{a: [b: {c: -}]}",
        "[? a : b]",
        "{? a : b}",
        "{a, b: }",
        "[ , ]",
    ] {
        if let Ok(stream) = Stream::parse(text) {
            assert_eq!(stream.to_string(), text);
        }
    }
}

#[test]
fn a_text_that_would_take_too_much_memory_is_refused() {
    let laughs: String = ('b'..='z')
        .scan('a', |previous, name| {
            let aliases = format!("*{previous},").repeat(9);
            *previous = name;
            Some(format!("{name}: &{name} [{aliases}]\n"))
        })
        .collect();
    for text in [
        format!("a: &a [x]\n{laughs}"),
        "[".repeat(100_000),
        "- ".repeat(100_000),
        format!("[{}]", "a,".repeat(300_000)),
        "a: &a [*a]\n".to_owned(),
    ] {
        assert!(Stream::parse(&text).is_err(), "{}", &text[..20]);
    }
    let keys: String = (0..100_000).map(|key| format!("k{key}: 1\n")).collect();
    assert_eq!(
        Stream::parse(&keys).unwrap().root(0).unwrap().len(),
        100_000
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
fn content_behind_an_end_mark_or_a_block_of_lines_stays_where_it_is() {
    for text in [
        "...\nadded:\n    list:\n    - x\n",
        "k:\n  - x\n  - ? q\n  - 5\n",
        "- |\n - c\n  ",
        "k: |2-\n\n    ",
        "- \n    |+\n\n\n# x\n",
        "- !t 0!t : \n    !!str ",
    ] {
        let mut stream = Stream::parse(text).unwrap();
        assert_eq!(stream.to_string(), text);
        let root = stream.root_mut(0).unwrap();
        match root.kind() {
            Kind::List => root.push(json!("new")),
            _ => root.set("new", json!(1)),
        }
        let want = root.value();
        assert_eq!(read(&stream.to_string()).unwrap(), want, "{text:?}");
    }
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
