//! `ichor config`.

use std::process::Stdio;

use expect_test::{Expect, expect};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use talos_config::talosconfig::TalosConfig;
use talos_pki::{Authority, AuthorityKind, Issued, LeafRequest, LeafUsage};
use talos_sim::Options;

use super::{files, private};
use crate::cli::program::{Home, Lab, Ran};

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

struct Client {
    authority: Authority,
    issued: Issued,
}

impl Client {
    fn new(now: Timestamp) -> Self {
        let authority = Authority::generate(AuthorityKind::Talos, now).unwrap();
        let request = LeafRequest {
            common_name: None,
            organizations: vec!["os:operator".to_owned(), "os:reader".to_owned()],
            names: Vec::new(),
            usage: LeafUsage {
                key_encipherment: false,
                server: false,
                client: true,
            },
            lifetime: SignedDuration::from_hours(48) + SignedDuration::from_mins(30),
            backdate: SignedDuration::ZERO,
        };
        let issued = authority.issue(&request, now).unwrap();
        Self { authority, issued }
    }

    fn files(&self, home: &Home) -> [String; 3] {
        [
            home.file("ca.pem", &self.authority.certificate().pem()),
            home.file("crt.pem", &self.issued.certificate.pem()),
            home.file("key.pem", self.issued.key.pem().as_str()),
        ]
    }
}

#[test]
fn a_context_is_added_from_files_and_described() {
    let home = Home::new();
    let now = Timestamp::now();
    let [ca, crt, key] = Client::new(now).files(&home);
    let add = [
        "config", "add", "new", "--ca", &ca, "--crt", &crt, "--key", &key, "-e", "h", "-n", "a,b",
    ];
    assert_eq!(home.run(&add).code, Some(0));
    let path = home.path().join(".talos/config");
    let config = TalosConfig::parse("config", &private(&path)).unwrap();
    assert_eq!((config.current(), config.contexts().len()), (None, 1));
    assert!(config.credentials("new").unwrap().identity.is_some());
    // The lock is not litter of a failed run.
    assert_eq!(
        files(&home.path().join(".talos")),
        ["config", "config.lock"]
    );

    let ran = home.run(&["config", "info"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr.contains("has no current context; it has new"),
        "{ran:?}"
    );
    assert_eq!(home.run(&["config", "context", "new"]).code, Some(0));

    let info = home.run(&["config", "info", "-o", "json"]).json();
    assert_eq!(
        (&info["context"], &info["endpoints"]),
        (&json!("new"), &json!(["h"]))
    );
    assert_eq!(info["nodes"], json!(["a", "b"]));
    assert_eq!(info["roles"], json!(["os:reader", "os:operator"]));
    assert!(
        info["certTTL"].as_str().unwrap().starts_with("48h2"),
        "{info}"
    );
    let end: Timestamp = info["certNotAfter"].as_str().unwrap().parse().unwrap();
    assert_eq!(end.duration_since(now).as_hours(), 48);

    let text = home.run(&["config", "info"]).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "Current context:     new",
            "Nodes:               a, b",
            "Endpoints:           h",
            "Roles:               os:reader, os:operator",
        ]
    );
    assert!(lines[4].starts_with("Certificate expires: in 2d"), "{text}");
    let key = std::fs::read_to_string(&key).unwrap();
    for ran in [
        home.run(&["config", "info", "-o", "yaml"]),
        home.run(&["config", "contexts", "-o", "json"]),
    ] {
        assert!(
            !ran.stdout.contains(&key) && !ran.stdout.contains("PRIVATE"),
            "{ran:?}"
        );
    }
}

#[test]
fn files_that_do_not_belong_together_are_refused_and_nothing_is_written() {
    let home = Home::new();
    let now = Timestamp::now();
    let [ca, crt, _] = Client::new(now).files(&home);
    let other = Client::new(now);
    let key = home.file("other.pem", other.issued.key.pem().as_str());
    let path = home.path().join(".talos/config");
    for (args, said) in [
        (
            vec!["--ca", &ca, "--crt", &crt, "--key", &key],
            "key does not belong to crt",
        ),
        (vec!["--ca", &key], "ca cannot be read"),
        (
            vec!["--ca", &ca, "--crt", &crt, "--key", &ca],
            "key cannot be read",
        ),
        (vec!["--ca", &ca, "--crt", &crt], "--key"),
        (vec!["--ca", "nowhere.pem"], "nowhere.pem"),
        (vec!["-e", "https://h/path"], "is not an endpoint"),
    ] {
        let ran = home.run(&[&["config", "add", "new"], args.as_slice()].concat());
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(said), "{args:?}: {ran:?}");
        assert!(!path.exists(), "{args:?}");
    }
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

/// Asks a node for its version with one line of the talosconfig replaced.
fn version_with(lab: &Lab, key: &str, line: &str, env: &[(&str, &str)]) -> Ran {
    let path = lab.home.path().join(".talos/config");
    let before = std::fs::read_to_string(&path).unwrap();
    let start = format!("        {key}: ");
    let lines = before
        .lines()
        .map(|own| if own.starts_with(&start) { line } else { own });
    let mut text = lines.collect::<Vec<_>>().join("\n") + "\n";
    if !before.contains(&start) {
        text += &format!("{line}\n");
    }
    std::fs::write(&path, text).unwrap();
    let mut command = lab.home.command(&["version", "-n", &lab.nodes[0]]);
    command.envs(env.iter().copied());
    let ran = tokio::task::block_in_place(|| Ran::from(command.output().unwrap()));
    std::fs::write(&path, before).unwrap();
    ran
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_context_says_about_security_is_obeyed() {
    let lab = Lab::start(Options::default()).await;
    let authority = lab
        .home
        .file("ca.pem", &lab.cluster.talos_authority().pem());
    let nothing = lab.home.file("empty.pem", "");

    let roots = |file: &str| version_with(&lab, "ca", "", &[("SSL_CERT_FILE", file)]);
    let ran = roots(&authority);
    assert_eq!(
        ran.code,
        Some(0),
        "without ca the system's authorities count: {ran:?}"
    );
    let ran = roots(&nothing);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr
            .contains("the system's certificate authorities cannot be read"),
        "{ran:?}"
    );

    let auth = "        auth: {basic: {username: u, password: pass-word-7}}";
    let ran = version_with(&lab, "auth", auth, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let call = lab.cluster.calls().pop().unwrap();
    assert_eq!(call.values("authorization"), ["Basic dTpwYXNzLXdvcmQtNw=="]);

    let auth = "        auth: {siderov1: {identity: me@example.com}}";
    let ran = version_with(&lab, "auth", auth, &[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr
            .contains("(auth.siderov1), which is not supported"),
        "{ran:?}"
    );

    let ran = version_with(&lab, "cluster", "        cluster: lab", &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        lab.cluster.calls().pop().unwrap().values("context"),
        ["lab"]
    );

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("http://u:hidden-7@{}", listener.local_addr().unwrap());
    drop(listener);
    let ran = version_with(
        &lab,
        "proxy-url",
        &format!("        proxy-url: {proxy}"),
        &[],
    );
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(
        ran.stderr.contains("does not let us through") && !ran.stderr.contains("hidden-7"),
        "{ran:?}"
    );
    let direct = version_with(
        &lab,
        "proxy-url",
        "        proxy-url: direct",
        &[("HTTPS_PROXY", &proxy)],
    );
    assert_eq!(direct.code, Some(0), "{direct:?}");
}
