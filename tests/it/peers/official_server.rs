//! Our client against a server made of the official COSI runtime and MachineService.

use std::process::Stdio;

use expect_test::expect;
use jiff::Timestamp;
use talos_client::{
    ApplyMode, ApplyRequest, Client, Error, Events, Kind, Node, Options, Payload, Watch,
    WatchEvent, WatchOptions, resolve,
};
use talos_config::talosconfig::TalosConfig;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::program;

const CURRENT: &str = "10.5.0.2";
const OLDER: &str = "10.5.0.11";
const SERVICES: &str = "Services.v1alpha1.talos.dev";

/// The running server and what is needed to talk to it.
struct Server {
    folder: tempfile::TempDir,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl Server {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(program("server"))
            .arg("--folder")
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = output.next_line().await.unwrap();
        assert_eq!(ready.as_deref(), Some("ready"));
        Self {
            folder,
            input: child.stdin.take().unwrap(),
            output,
            _child: child,
        }
    }

    fn client(&self, role: &str) -> Client {
        let text = std::fs::read_to_string(self.folder.path().join(role)).unwrap();
        let config = TalosConfig::parse(role, &text).unwrap();
        let options = Options::from_context(&config, None, Timestamp::now()).unwrap();
        Client::new(options).unwrap()
    }

    /// Lets the server do something and waits until it is done.
    async fn tell(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.input.write_all(line.as_bytes()).await.unwrap();
        let answer = self.output.next_line().await.unwrap();
        assert_eq!(answer.as_deref(), Some("done"), "{line}");
    }
}

/// Shows an event in a few words.
fn show(event: &WatchEvent) -> String {
    let named = |resource: &talos_client::Resource| {
        let metadata = &resource.metadata;
        format!("{}@{}", metadata.id, metadata.version)
    };
    match event {
        WatchEvent::Created(resource) => format!("created {}", named(resource)),
        WatchEvent::Updated { old, new } => {
            let old = old.as_ref().map(|old| named(old)).unwrap_or_default();
            format!("updated {old} {}", named(new))
        }
        WatchEvent::Destroyed(resource) => format!("destroyed {}", named(resource)),
        WatchEvent::Bootstrapped => "bootstrapped".to_owned(),
        WatchEvent::Interrupted { .. } => "interrupted".to_owned(),
        WatchEvent::Resumed => "resumed".to_owned(),
        other => format!("{other:?}"),
    }
}

async fn next(watch: &mut Watch) -> String {
    match watch.next().await {
        Ok(Some(event)) => show(&event),
        Ok(None) => "ended".to_owned(),
        Err(error) => error.kind().to_string(),
    }
}

async fn check(watch: &mut Watch, expected: &[&str]) {
    for expected in expected {
        assert_eq!(next(watch).await, *expected);
    }
}

async fn kind_watch(node: &Node) -> Watch {
    let options = WatchOptions::default();
    node.watch("runtime", SERVICES, None, options)
        .await
        .unwrap()
}

#[tokio::test]
#[ignore = "needs Go: builds programs on the official Talos and COSI libraries"]
async fn calls_are_answered_by_the_official_server() {
    let server = Server::start().await;
    let admin = server.client("admin");
    for (node, tag) in [(CURRENT, "v1.13.9"), (OLDER, "v1.11.5")] {
        assert_eq!(admin.node(node).version().await.unwrap().tag, tag);
    }
    let node = admin.node(CURRENT);

    let definitions = node.definitions().await.unwrap();
    let mc = resolve(&definitions, "mc").unwrap();
    assert_eq!(mc.resource_type, "MachineConfigs.config.talos.dev");
    let ambiguous = resolve(&definitions, "ns").unwrap_err();
    assert!(
        matches!(ambiguous, Error::AmbiguousType { .. }),
        "{ambiguous}"
    );

    let services = node.list("runtime", SERVICES).await.unwrap();
    let ids = services.iter().map(|s| s.metadata.id.as_str());
    assert_eq!(ids.collect::<Vec<_>>(), ["apid", "etcd", "kubelet"]);
    let kubelet = node.get("runtime", SERVICES, "kubelet").await.unwrap();
    assert_eq!(kubelet.spec().unwrap()["healthy"], true);
    assert_eq!(kubelet.proto_spec, [8, 1, 16, 1]);

    let mut events = node.events(Events::default()).await.unwrap();
    let event = futures::StreamExt::next(&mut events)
        .await
        .unwrap()
        .unwrap();
    assert!(
        matches!(event.payload, Payload::MachineStatus { .. }),
        "{event:?}"
    );
}

#[tokio::test]
#[ignore = "needs Go: builds programs on the official Talos and COSI libraries"]
async fn errors_of_the_official_server_are_told_apart() {
    let server = Server::start().await;
    let [admin, reader] = ["admin", "reader"].map(|role| server.client(role));
    let node = admin.node(CURRENT);
    let name = "Nodenames.kubernetes.talos.dev";
    let kinds = [
        node.get("k8s", name, "nope").await.unwrap_err().kind(),
        node.get("k8s", "nope", "nope").await.unwrap_err().kind(),
        reader
            .node(CURRENT)
            .machine_config()
            .await
            .unwrap_err()
            .kind(),
        admin.node("10.5.0.99").version().await.unwrap_err().kind(),
        node.bootstrap().await.unwrap_err().kind(),
    ];
    let expected = [
        Kind::NotFound,
        // A type that does not exist is PermissionDenied on the wire.
        Kind::NotFound,
        Kind::NotAllowed,
        Kind::NodeNotReachable,
        Kind::NotImplemented,
    ];
    assert_eq!(kinds, expected);
}

#[tokio::test]
#[ignore = "needs Go: builds programs on the official Talos and COSI libraries"]
async fn configurations_are_read_in_both_encodings_and_applied() {
    let server = Server::start().await;
    let admin = server.client("admin");
    let node = admin.node(CURRENT);
    let current = node.machine_config().await.unwrap();
    let older = admin.node(OLDER).machine_config().await.unwrap();
    assert_eq!(current.text, older.text);
    assert!(current.text.contains("clusterName: official"));

    let apply = |config: String, dry_run| {
        node.apply_configuration(ApplyRequest {
            config,
            mode: ApplyMode::Auto,
            dry_run,
            try_timeout: None,
        })
    };
    let changed = current.text.replace("official", "renamed");
    let applied = apply(changed.clone(), true).await.unwrap();
    assert_eq!(applied.mode, Some(ApplyMode::NoReboot));
    assert_eq!(node.machine_config().await.unwrap(), current);
    apply(changed.clone(), false).await.unwrap();
    let after = node.machine_config().await.unwrap();
    assert_eq!(
        (after.text.as_str(), after.version.as_str()),
        (changed.as_str(), "2")
    );

    let broken = changed.replace("type: controlplane", "type: nonsense");
    let mut seen = String::new();
    for config in [broken, "machine:\n  bogus: 1\n".to_owned()] {
        match apply(config, true).await.unwrap_err() {
            Error::Invalid { problems, .. } => seen += &(problems.join("\n") + "\n"),
            other => panic!("{other}"),
        }
    }
    expect![[r#"
        etcd config is only allowed on control plane machines
        cluster CA key is not allowed on non-controlplane nodes (.cluster.ca)
        unknown machine type "nonsense"
        error decoding document /v1alpha1/ (line 1): unknown keys found during decoding:
        machine:
            bogus: 1
    "#]]
    .assert_eq(&seen);
}

#[tokio::test]
#[ignore = "needs Go: builds programs on the official Talos and COSI libraries"]
async fn watches_follow_and_resume_on_the_official_runtime() {
    let mut server = Server::start().await;
    let client = server.client("reader");
    let node = client.node(CURRENT);
    let mut watch = kind_watch(&node).await;
    let contents = ["created apid@1", "created etcd@1", "created kubelet@1"];
    check(&mut watch, &contents).await;
    check(&mut watch, &["bootstrapped"]).await;

    server.tell("health kubelet false").await;
    server.tell("add trustd").await;
    server.tell("remove etcd").await;
    let changes = [
        "updated kubelet@1 kubelet@2",
        "created trustd@1",
        "destroyed etcd@1",
    ];
    check(&mut watch, &changes).await;

    server.tell("cut").await;
    server.tell("health kubelet true").await;
    let resumed = ["interrupted", "resumed", "updated kubelet@2 kubelet@3"];
    check(&mut watch, &resumed).await;

    server.tell("forget").await;
    server.tell("cut").await;
    check(&mut watch, &["interrupted", "precondition", "ended"]).await;
}

#[tokio::test]
#[ignore = "needs Go: builds programs on the official Talos and COSI libraries"]
async fn one_resource_is_followed_on_the_official_runtime() {
    let mut server = Server::start().await;
    let client = server.client("reader");
    let node = client.node(CURRENT);
    let watch = async |id| {
        let options = WatchOptions::default();
        node.watch("runtime", SERVICES, Some(id), options)
            .await
            .unwrap()
    };
    let mut kubelet = watch("kubelet").await;
    let mut missing = watch("trustd").await;
    check(&mut kubelet, &["created kubelet@1"]).await;
    check(&mut missing, &["destroyed trustd@undefined"]).await;
    server.tell("health kubelet false").await;
    server.tell("add trustd").await;
    check(&mut kubelet, &["updated kubelet@1 kubelet@2"]).await;
    check(&mut missing, &["created trustd@1"]).await;
    server.tell("cut").await;
    server.tell("remove kubelet").await;
    check(
        &mut kubelet,
        &["interrupted", "resumed", "destroyed kubelet@2"],
    )
    .await;
}
