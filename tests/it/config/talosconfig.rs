//! `ichor config`.

use std::process::Stdio;

use expect_test::{Expect, expect};
use serde_json::json;
use talos_config::talosconfig::TalosConfig;

use super::private;
use crate::cli::program::{Home, Ran};

const FILE: &str = "\
# kept
context: lab
contexts:
    lab:
        endpoints: [127.0.0.1] # forwarded
        nodes: [10.5.0.2, 10.5.0.3, 10.5.0.4, 10.5.0.5]
        future: kept
    prod:
        endpoints:
            - 10.0.0.1
            - 10.0.0.2
    prod-old: {}
";

fn home() -> Home {
    let home = Home::new();
    home.file(".talos/config", FILE);
    home
}

/// Runs a verb that must succeed and returns what it left in the talosconfig.
fn text_after(home: &Home, args: &[&str]) -> String {
    let ran = home.run(&[&["config"], args].concat());
    assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
    private(&home.path().join(".talos/config"))
}

/// Runs a verb that must succeed and compares the lines that differ.
fn changes(args: &[&str], expected: &Expect) {
    let text = text_after(&home(), args);
    let lines = |from: &str, other: &str, sign: char| {
        let differ = from
            .lines()
            .filter(|line| !other.lines().any(|own| own == *line));
        differ
            .map(|line| format!("{sign}{line}\n"))
            .collect::<String>()
    };
    expected.assert_eq(&(lines(FILE, &text, '-') + &lines(&text, FILE, '+')));
}

fn output(args: &[&str]) -> String {
    let ran = home().run(&[&["config"], args].concat());
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (Some(0), ""),
        "{args:?}: {ran:?}"
    );
    ran.stdout
}

#[test]
fn contexts_are_listed() {
    for verb in ["contexts", "get-contexts"] {
        expect![[r#"
            CURRENT   NAME       ENDPOINTS           NODES
            *         lab        127.0.0.1           10.5.0.2,10.5.0.3,10.5.0.4,...
                      prod       10.0.0.1,10.0.0.2
                      prod-old
        "#]]
        .assert_eq(&output(&[verb]));
    }
    let document: serde_json::Value =
        serde_json::from_str(&output(&["contexts", "-o", "json"])).unwrap();
    let prod = json!({"name": "prod", "current": false, "endpoints": ["10.0.0.1", "10.0.0.2"], "nodes": []});
    assert_eq!(document["contexts"][1], prod);
}

#[test]
fn edits_touch_only_their_own_lines() {
    for verb in ["context", "use-context"] {
        changes(
            &[verb, "prod"],
            &expect![[r#"
                -context: lab
                +context: prod
            "#]],
        );
    }
    changes(
        &["endpoint", "127.0.0.1", "https://h:8443"],
        &expect![[r#"
            -        endpoints: [127.0.0.1] # forwarded
            +        endpoints: [127.0.0.1, https://h:8443] # forwarded
        "#]],
    );
    changes(
        &["--context", "prod", "endpoints", "10.0.0.1", "10.0.0.3"],
        &expect![[r#"
            -            - 10.0.0.2
            +            - 10.0.0.3
        "#]],
    );
    changes(
        &["node"],
        &expect![[r#"
            -        nodes: [10.5.0.2, 10.5.0.3, 10.5.0.4, 10.5.0.5]
        "#]],
    );
    changes(
        &["nodes", "a", "--context", "prod"],
        &expect![[r#"
            +        nodes:
            +            - a
        "#]],
    );
}

#[test]
fn contexts_are_removed_by_pattern_but_never_the_current_one() {
    let home = home();
    let ran = home.run(&["config", "remove", "*", "--dry-run", "-o", "json"]);
    assert_eq!(
        ran.json(),
        json!({"removed": ["prod", "prod-old"], "dryRun": true})
    );
    assert!(
        ran.stderr
            .contains("context \"lab\" is the current one and stays"),
        "{ran:?}"
    );
    assert_eq!(
        std::fs::read_to_string(home.path().join(".talos/config")).unwrap(),
        FILE
    );

    let ran = home.run(&["config", "remove", "prod"]);
    assert_eq!(ran.code, Some(5), "nobody was there to be asked: {ran:?}");
    for flag in ["-y", "--noconfirm"] {
        let text = text_after(&self::home(), &["remove", "prod-*", flag]);
        assert_eq!(text, FILE.replace("    prod-old: {}\n", ""));
    }
    let ran = home.run(&["config", "remove", "nope*", "-y"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
}

#[test]
fn a_merge_renames_what_is_taken_and_says_so() {
    let home = home();
    let other = home.file(
        "other",
        "context: lab\ncontexts:\n  lab:\n    endpoints: [10.9.9.9]\n",
    );
    let merge =
        |format: &[&str]| -> Ran { home.run(&[&["config", "merge", &other], format].concat()) };
    let ran = merge(&[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(
        ran.stderr,
        "renamed talosconfig context \"lab\" -> \"lab-1\"\n"
    );
    let text = private(&home.path().join(".talos/config"));
    let config = TalosConfig::parse("config", &text).unwrap();
    assert_eq!(config.current(), Some("lab-1"));
    assert_eq!(config.contexts()["lab-1"].endpoints, ["10.9.9.9"]);
    assert!(
        text.starts_with("# kept\n")
            && text.contains("# forwarded")
            && text.contains("future: kept")
    );

    let ran = merge(&["-o", "json"]);
    let renamed = json!({"context": "lab-2", "renamed": [{"from": "lab", "to": "lab-2"}]});
    assert_eq!(ran.json(), renamed);
}

#[test]
fn a_merge_into_nothing_makes_the_file() {
    let home = Home::new();
    let other = home.file("other", FILE);
    assert_eq!(home.run(&["config", "merge", &other]).code, Some(0));
    let text = private(&home.path().join(".talos/config"));
    let config = TalosConfig::parse("config", &text).unwrap();
    assert_eq!(config.current(), Some("lab"));
    assert_eq!(
        config.contexts(),
        TalosConfig::parse("other", FILE).unwrap().contexts()
    );
}

#[test]
fn many_at_once_lose_nothing() {
    let home = Home::new();
    home.file(".talos/config", "contexts: {}\n");
    let runs: Vec<_> = (0..8)
        .map(|number| {
            let name = format!("c{number}");
            let mut command = home.command(&["config", "add", &name, "-e", "h"]);
            command.stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut run in runs {
        assert!(run.wait().unwrap().success());
    }
    let config =
        TalosConfig::parse("config", &private(&home.path().join(".talos/config"))).unwrap();
    assert_eq!(config.contexts().len(), 8);
}

fn refused(text: Option<&str>, args: &[&str], code: i32, said: &str) {
    let home = Home::new();
    if let Some(text) = text {
        home.file(".talos/config", text);
    }
    let ran = home.run(args);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(code), ""),
        "{args:?}: {ran:?}"
    );
    assert!(ran.stderr.contains(said), "{args:?}: {ran:?}");
    let path = home.path().join(".talos/config");
    assert_eq!(std::fs::read_to_string(path).ok().as_deref(), text);
}

#[test]
fn bad_input_is_named_and_changes_nothing() {
    refused(None, &["config", "info"], 2, "there is no talosconfig");
    refused(
        None,
        &["config", "context", "x"],
        2,
        "there is no talosconfig",
    );
    refused(Some(""), &["config", "info"], 2, "is empty");
    refused(
        Some("a: ["),
        &["config", "node", "x"],
        2,
        "is not YAML (line 1, column 4)",
    );
    refused(
        Some(FILE),
        &["config", "context", "nope"],
        2,
        "has no context \"nope\"; it has lab, prod, prod-old",
    );
    refused(
        Some(FILE),
        &["config", "info", "--context", "nope"],
        2,
        "has no context \"nope\"",
    );
    refused(
        Some(FILE),
        &["config", "endpoint", "h:port"],
        2,
        "\"h:port\" is not an endpoint",
    );
    refused(Some(FILE), &["config", "endpoint"], 2, "ENDPOINT");
    refused(Some(FILE), &["config", "node", ""], 2, "a node is empty");
    refused(Some(FILE), &["config", "add", ""], 2, "a context is empty");
    refused(Some(FILE), &["config", "merge", "nowhere"], 2, "nowhere");
    refused(
        Some(FILE),
        &["config", "remove", "[", "-y"],
        2,
        "is not a pattern",
    );
    let broken = FILE.replace("future: kept", "crt: YQ==");
    refused(
        Some(&broken),
        &["config", "info"],
        2,
        "context \"lab\" has a crt but no key",
    );
}
