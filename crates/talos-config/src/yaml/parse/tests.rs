//! Tests of reading: what a text means, and what is refused.

use serde_json::json;

use crate::Error;
use crate::yaml::{Kind, Stream, read};

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
fn a_carriage_return_alone_is_refused() {
    let error = Stream::parse("a: 1\r\nb: \r # c\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 2: a carriage return without a line feed is not supported"
    );
}
