//! Certificates and keys of a talosconfig, and what else secures its calls.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use talos_config::talosconfig::TalosConfig;
use talos_pki::{Authority, AuthorityKind, Issued, LeafRequest, LeafUsage};
use talos_sim::Options;

use super::{files, private};
use crate::cli::program::{Home, Lab, Ran};

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
        [".config.ichor-lock", "config"]
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
