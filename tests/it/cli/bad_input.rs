//! A talosconfig that cannot be used: one clear message, an exit code, nothing changed.

use talos_sim::Options;

use super::program::{Home, Lab, Ran};

fn refused(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    assert_eq!(ran.stdout, "", "{ran:?}");
    let errors = ran.stderr.lines().filter(|line| line.starts_with("error:"));
    assert_eq!(errors.count(), 1, "{ran:?}");
    for word in words {
        assert!(ran.stderr.contains(word), "{word:?} in {ran:?}");
    }
}

#[test]
fn a_missing_talosconfig_names_the_places_looked_at() {
    let home = Home::new();
    let at_home = home.path().join(".talos/config");
    let ran = home.run(&["get", "members"]);
    refused(
        &ran,
        2,
        &[
            "there is no talosconfig",
            at_home.to_str().unwrap(),
            "--talosconfig",
        ],
    );
    assert!(!at_home.exists(), "reading makes no file");
    let named = home.run(&["get", "members", "--talosconfig", "/nowhere/config"]);
    refused(&named, 2, &["/nowhere/config"]);
}

#[test]
fn the_talosconfig_is_looked_for_in_order() {
    let home = Home::new();
    let run = |variables: &[(&str, &str)]| {
        let mut command = home.command(&["get", "members"]);
        command.envs(variables.iter().copied());
        Ran::from(command.output().unwrap()).stderr
    };
    home.file(".talos/config", "first: [");
    home.file("second", "second: [");
    home.file("third/config", "third: [");
    let third = home.path().join("third");
    assert!(run(&[]).contains(".talos/config"));
    assert!(run(&[("TALOS_HOME", third.to_str().unwrap())]).contains("third/config"));
    assert!(
        run(&[
            ("TALOSCONFIG", "second"),
            ("TALOS_HOME", third.to_str().unwrap())
        ])
        .contains("second")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_talosconfig_names_what_is_damaged() {
    let lab = Lab::start(Options::default()).await;
    let good = std::fs::read_to_string(lab.home.path().join(".talos/config")).unwrap();
    let other = Lab::start(Options::default()).await;
    let other = std::fs::read_to_string(other.home.path().join(".talos/config")).unwrap();
    let line = |text: &str, key: &str| {
        let found = text.lines().find(|line| line.trim().starts_with(key));
        found.unwrap().to_owned()
    };
    let with = |key: &str, by: &str| good.replace(&line(&good, key), &format!("        {by}"));
    let cases = [
        (String::new(), 2, &["is empty"][..]),
        ("context: [".to_owned(), 2, &["is not YAML"]),
        (
            "context: x\ncontexts: {}\n".to_owned(),
            2,
            &["no context \"x\""],
        ),
        (
            good.replace("context: cluster-1", "context: elsewhere"),
            2,
            &["\"elsewhere\"", "cluster-1"],
        ),
        (with("crt:", "crt: '!'"), 2, &["crt is not base64"]),
        (with("crt:", "crt: AAAA"), 2, &["crt cannot be read"]),
        (
            with("key:", line(&other, "key:").trim()),
            2,
            &["key does not belong to crt"],
        ),
        (
            with("ca:", line(&other, "ca:").trim()),
            6,
            &["not among the trusted authorities"],
        ),
    ];
    let calls = lab.cluster.calls().len();
    for (text, code, words) in cases {
        let file = lab.home.file("damaged", &text);
        let ran = lab.run(&[
            "get",
            "members",
            "-n",
            &lab.nodes[0],
            "--talosconfig",
            &file,
        ]);
        refused(&ran, code, words);
        let key = line(&good, "key:");
        assert!(!ran.stderr.contains(key.trim()), "the key is not shown");
    }
    assert_eq!(lab.cluster.calls().len(), calls, "nothing was asked");
    let unknown = lab.run(&["get", "members", "--context", "nope"]);
    refused(&unknown, 2, &["\"nope\"", "cluster-1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_an_object_when_json_is_wanted() {
    let ran = Home::new().run(&["get", "members", "-o", "json"]);
    let error = ran.error();
    assert_eq!(error["code"], "invalid");
    assert_eq!(error["message"], "there is no talosconfig");
    assert!(error["causes"].as_array().unwrap().len() >= 2, "{error}");
    assert!(error["hint"].is_string(), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_listens_at_the_endpoint() {
    let lab = Lab::start(Options::default()).await;
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let ran = lab.run(&[
        "version",
        "-n",
        &lab.nodes[0],
        "-e",
        &free.to_string(),
        "-o",
        "json",
    ]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    let error = &ran.json()["nodes"][0]["error"];
    assert_eq!(error["code"], "unreachable");
    assert!(error.to_string().contains(&free.to_string()), "{error}");
}
