//! `ichor certs rotate-ca`: other authorities on a running cluster, whatever kills the run, and no node cut off meanwhile.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;
use talos_certs::{
    Journal, Keep, RotateAccess, RotateError, RotateEvent, RotateOptions, RotateTiming, Rotated,
    Stop, TalosCredentials, gather_rotation, rotate,
};
use talos_client::{Client, Options, Security};
use talos_config::machine::MachineConfig;
use talos_config::talosconfig::{Credentials, TalosConfig};
use talos_pki::{Certificate, is_issued_by};
use talos_sim::{Cluster, MachineType};
use tokio::sync::Notify;

use crate::cli::program::{Lab, Ran};

fn three_and_three() -> talos_sim::Options {
    talos_sim::Options {
        controlplanes: 3,
        workers: 3,
        ..talos_sim::Options::default()
    }
}

/// What is on disk in a real run: it survives a kill, and nothing else does.
struct Disk {
    journal: Mutex<Option<String>>,
    current: Mutex<Current>,
}

/// What the current talosconfig says.
#[derive(Clone)]
struct Current {
    version: usize,
    options: Options,
}

impl Disk {
    fn new(cluster: &Cluster) -> Self {
        let config = TalosConfig::parse("talosconfig", &cluster.talosconfig(&["os:admin"]));
        let options = Options::from_context(&config.unwrap(), None, Timestamp::now());
        Self {
            journal: Mutex::default(),
            current: Mutex::new(Current {
                version: 0,
                options: options.unwrap(),
            }),
        }
    }

    /// Reads the talosconfig; it is judged at the time it is read.
    fn current(&self) -> Current {
        let mut current = self.current.lock().unwrap().clone();
        current.options.now = Timestamp::now();
        current
    }

    fn write(&self, credentials: &TalosCredentials) {
        let mut current = self.current.lock().unwrap();
        current.version += 1;
        let Security::Mutual(before) = &current.options.security else {
            panic!("a talosconfig has credentials")
        };
        let identity = credentials.identity.clone().or(before.identity.clone());
        current.options.security = Security::Mutual(Credentials {
            authorities: credentials.authorities.clone(),
            identity,
        });
    }
}

fn names(cluster: &Cluster) -> Vec<String> {
    let nodes = cluster.nodes().iter();
    nodes.map(|node| node.address().to_string()).collect()
}

/// Runs a rotation until its end, or drops it at an event for which `kill` says so; tells whether it came to its end.
async fn run(
    cluster: &Cluster,
    disk: &Disk,
    authority: Rotated,
    kill: impl FnMut(&RotateEvent) -> bool + Send + 'static,
) -> Result<bool, RotateError> {
    let killed = Arc::new(Notify::new());
    let (notify, kill) = (killed.clone(), Mutex::new(kill));
    let options = RotateOptions {
        timing: RotateTiming {
            poll: Duration::from_millis(64),
            node: Duration::from_secs(60),
            kubelet: Duration::from_millis(100),
        },
        now: Arc::new(Timestamp::now),
        stop: Stop::default(),
        observer: Arc::new(move |event| {
            let mut kill = kill.lock().unwrap();
            if kill(&event) {
                notify.notify_one();
            }
        }),
        kubernetes: None,
    };
    let access = RotateAccess {
        options: disk.current().options,
    };
    let mut journal = match disk.journal.lock().unwrap().as_deref() {
        Some(text) => Journal::parse(text).unwrap(),
        None => Journal::default(),
    };
    let write_journal = |text: &str| {
        *disk.journal.lock().unwrap() = Some(text.to_owned());
        Ok(())
    };
    let write_talosconfig = |credentials: &TalosCredentials| {
        disk.write(credentials);
        Ok(())
    };
    let keep = Keep {
        journal: &write_journal,
        talosconfig: &write_talosconfig,
    };
    let asked = names(cluster);
    let work = async {
        let facts = gather_rotation(&access, &journal.clone(), &asked, &[], &options.now).await?;
        rotate(authority, &facts, &mut journal, &access, &keep, &options).await?;
        Ok(true)
    };
    tokio::select! {
        biased;
        () = killed.notified() => Ok(false),
        result = work => result,
    }
}

/// Lets a run go on to its end.
fn never(_: &RotateEvent) -> bool {
    false
}

/// Kills at the event of this number, from 1.
fn at(number: usize) -> impl FnMut(&RotateEvent) -> bool + Send + 'static {
    let mut told = 0;
    move |_| {
        told += 1;
        told == number
    }
}

/// Asks every node over and over with the current talosconfig, by new connections each time, and notes each failure.
async fn probe(cluster: &Cluster, disk: &Disk, over: &AtomicBool) -> (usize, Vec<String>) {
    let (mut rounds, mut failures) = (0, Vec::new());
    while !over.load(Ordering::SeqCst) {
        for node in names(cluster) {
            let current = disk.current();
            let client = Client::new(current.options).unwrap();
            if let Err(error) = client.node(&node).version().await {
                // The talosconfig that was read may have been replaced before the node was asked.
                if disk.current().version == current.version {
                    failures.push(format!("{node}: {error:?}"));
                }
            }
        }
        rounds += 1;
        tokio::task::yield_now().await;
    }
    (rounds, failures)
}

/// The authorities in a node's configuration: the issuing one, whether its key is there, and the accepted ones.
fn authorities(node: &talos_sim::Node, section: &str) -> (Certificate, bool, usize) {
    let config = MachineConfig::parse(&node.machine_config().unwrap()).unwrap();
    let section = &config.main().unwrap()[section];
    let text = |value: &Value| STANDARD.decode(value.as_str().unwrap_or_default()).unwrap();
    let issuing = Certificate::many_from_pem(text(&section["ca"]["crt"])).unwrap();
    let key = !text(&section["ca"]["key"]).is_empty();
    let accepted = section["acceptedCAs"].as_array().map_or(0, Vec::len);
    (issuing.into_iter().next().unwrap(), key, accepted)
}

/// The certificate that apid or kube-apiserver of a node shows as its own.
fn served(node: &talos_sim::Node, authority: Rotated) -> Certificate {
    let (kind, id, pointer) = match authority {
        Rotated::Talos => ("ApiCertificates.secrets.talos.dev", "api", "/server/crt"),
        Rotated::Kubernetes => (
            "KubernetesDynamicCerts.secrets.talos.dev",
            "k8s-dynamic-certs",
            "/apiServer/crt",
        ),
    };
    let resource = node.store().get("secrets", kind, id).unwrap();
    let text = resource.spec.value().pointer(pointer).unwrap().clone();
    let pem = STANDARD.decode(text.as_str().unwrap()).unwrap();
    Certificate::many_from_pem(pem).unwrap().swap_remove(0)
}

/// Holds every node against the end of a rotation.
fn check_end(cluster: &Cluster, disk: &Disk, authority: Rotated) {
    let text = disk.journal.lock().unwrap().clone().unwrap();
    let journal = Journal::parse(&text).unwrap();
    let rotation = journal.of(authority).unwrap();
    assert!(rotation.finished);
    let (section, before) = match authority {
        Rotated::Talos => ("machine", cluster.talos_authority()),
        Rotated::Kubernetes => ("cluster", cluster.kubernetes_authority()),
    };
    let new = rotation.new.certificate();
    assert_eq!(rotation.old.der(), before.der());
    assert_ne!(new.der(), before.der());
    for node in cluster.nodes() {
        let is_control_plane = node.machine_type() == MachineType::ControlPlane;
        let (issuing, key, accepted) = authorities(node, section);
        assert_eq!(issuing.der(), new.der(), "{}", node.name());
        assert_eq!((key, accepted), (is_control_plane, 0), "{}", node.name());
        if is_control_plane || authority == Rotated::Talos {
            assert!(
                is_issued_by(&served(node, authority), new),
                "{}",
                node.name()
            );
        }
    }
    if authority == Rotated::Talos {
        let Security::Mutual(credentials) = disk.current().options.security else {
            panic!("a talosconfig has credentials")
        };
        let [trusted] = credentials.authorities.as_slice() else {
            panic!("one authority is trusted in the end")
        };
        assert_eq!(trusted.der(), new.der());
        let leaf = &credentials.identity.unwrap().chain[0];
        assert!(is_issued_by(leaf, new));
        assert_eq!(leaf.organizations(), ["os:admin"]);
    }
}

/// Does some work on a cluster, and looks that no node is out of reach of the current talosconfig meanwhile.
async fn watched<T>(cluster: &Cluster, disk: &Disk, work: impl Future<Output = T>) -> T {
    let over = AtomicBool::new(false);
    let work = async {
        let result = work.await;
        over.store(true, Ordering::SeqCst);
        result
    };
    let (result, (rounds, failures)) = tokio::join!(work, probe(cluster, disk, &over));
    assert!(rounds > 0);
    assert_eq!(failures, Vec::<String>::new());
    result
}

/// Kills a rotation at its `kill`-th event and lets another run go on; tells whether there was such an event.
async fn killed_at(authority: Rotated, kill: usize) -> bool {
    let cluster = Cluster::start(three_and_three()).await.unwrap();
    let disk = Disk::new(&cluster);
    let was_killed = watched(&cluster, &disk, async {
        let first = run(&cluster, &disk, authority, at(kill)).await;
        let is_over = first.unwrap_or_else(|error| panic!("killed at {kill}: {error:?}"));
        if !is_over {
            let second = run(&cluster, &disk, authority, never).await;
            assert!(second.unwrap_or_else(|error| panic!("after {kill}: {error:?}")));
        }
        !is_over
    });
    let was_killed = was_killed.await;
    check_end(&cluster, &disk, authority);
    was_killed
}

/// What is new about an event, so that each thing that happens is one place to be killed at.
fn place(event: &RotateEvent) -> Option<String> {
    match event {
        RotateEvent::Waiting { .. } => None,
        RotateEvent::Written { node, .. } => Some(format!("written {node}")),
        RotateEvent::Verified { round, node, .. } => Some(format!("verified {round:?} {node}")),
        other => Some(format!("{other:?}")),
    }
}

/// Runs a rotation over and over, killed whenever something happens that did not happen in a run before.
async fn killed_at_everything_new(authority: Rotated) {
    let cluster = Cluster::start(three_and_three()).await.unwrap();
    let disk = Disk::new(&cluster);
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let runs = watched(&cluster, &disk, async {
        for runs in 1.. {
            let (seen, mut killed) = (seen.clone(), false);
            let kill = move |event: &RotateEvent| {
                // What is told between the kill and the end is not seen: it is a place of its own.
                let place = place(event).filter(|_| !killed);
                killed |= place.is_some_and(|place| seen.lock().unwrap().insert(place));
                killed
            };
            let result = run(&cluster, &disk, authority, kill).await;
            if result.unwrap_or_else(|error| panic!("run {runs}: {error:?}")) {
                return runs;
            }
        }
        0
    });
    let runs = runs.await;
    // Three rounds on six nodes, each of which is begun and verified, and the end of each round.
    assert!(runs > 3 * 6 * 2 + 3, "{runs}");
    check_end(&cluster, &disk, authority);
}

/// Kills one rotation at every seventh of its events, each time on another cluster.
async fn killed_once_and_run_again(authority: Rotated) {
    let mut kill = 1;
    while killed_at(authority, kill).await {
        kill += 7;
    }
    // Three rounds on six nodes, each of which is begun, written and verified.
    assert!(kill > 3 * 6 * 3, "{kill}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_talos_authority_is_rotated_by_runs_that_are_killed_at_every_step() {
    killed_at_everything_new(Rotated::Talos).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kubernetes_authority_is_rotated_by_runs_that_are_killed_at_every_step() {
    killed_at_everything_new(Rotated::Kubernetes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_talos_authority_is_rotated_by_a_run_that_goes_on_after_a_kill() {
    killed_once_and_run_again(Rotated::Talos).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kubernetes_authority_is_rotated_by_a_run_that_goes_on_after_a_kill() {
    killed_once_and_run_again(Rotated::Kubernetes).await;
}

fn rotate_ca(lab: &Lab, args: &[&str]) -> Ran {
    lab.run(&[&["certs", "rotate-ca"], args].concat())
}

/// The files of the home folder, without what the program never made.
fn files(lab: &Lab) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(lab.home.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_is_the_default_shows_both_rotations_and_writes_nothing() {
    let lab = Lab::start(three_and_three()).await;
    let ran = rotate_ca(&lab, &["--format", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let document = ran.json();
    assert_eq!(document["dryRun"], true);
    let plans = document["plans"].as_array().unwrap();
    let steps: Vec<(&str, usize)> = plans
        .iter()
        .map(|plan| {
            let steps = plan["steps"].as_array().unwrap();
            (plan["authority"].as_str().unwrap(), steps.len())
        })
        .collect();
    // Three rounds on six nodes, and a talosconfig after each round for the authority of Talos.
    assert_eq!(steps, [("talos", 21), ("kubernetes", 18)]);
    let nodes: Vec<&str> = plans[0]["steps"].as_array().unwrap()[..6]
        .iter()
        .map(|step| step["node"].as_str().unwrap())
        .collect();
    assert_eq!(nodes.len(), 6);
    for control_plane in &lab.nodes[..3] {
        assert!(nodes[..3].contains(&control_plane.as_str()), "{nodes:?}");
    }
    assert_eq!(lab.changes(), Vec::<String>::new());
    assert_eq!(files(&lab), Vec::<PathBuf>::new());
    let ran = rotate_ca(&lab, &[]);
    assert!(ran.stdout.contains("accept the new authority"), "{ran:?}");
    assert!(
        ran.stdout.contains("machine.ca, machine.acceptedCAs"),
        "{ran:?}"
    );
    assert!(!format!("{ran:?}").contains("PRIVATE KEY"));
}

#[cfg(unix)]
fn mode(path: &std::path::Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn the_program_goes_on_after_it_was_killed_and_leaves_only_the_talosconfig() {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    let lab = Lab::start(three_and_three()).await;
    let args = [
        "certs",
        "rotate-ca",
        "--dry-run=false",
        "--yes",
        "-o",
        "new/config",
    ];
    let state = lab.home.path().join("new/config.rotate-ca.json");
    // Each of these lines is told in another round, and the last one in the rotation of the other authority.
    for line in [
        "configuration written",
        "Talos CA: every node does it: accept the new authority",
        "Talos CA: issue by the new authority",
        "Talos CA: forget the old authority",
        "Kubernetes CA: issue by the new authority",
    ] {
        tokio::task::block_in_place(|| {
            let mut command = lab.home.command(&args);
            let mut child = command
                .stderr(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let lines = BufReader::new(child.stderr.take().unwrap()).lines();
            let mut told = Vec::new();
            for one in lines.map_while(Result::ok) {
                let found = one.contains(line);
                told.push(one);
                if found {
                    break;
                }
            }
            let _ = child.kill();
            let status = child.wait().unwrap();
            assert!(status.code().is_none(), "{line}: {status:?}: {told:#?}");
        });
        assert_eq!(mode(&state), 0o600);
        assert!(
            std::fs::read_to_string(&state)
                .unwrap()
                .contains("PRIVATE KEY")
        );
    }
    let ran = lab.run(&args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!format!("{ran:?}").contains("PRIVATE KEY"));
    assert!(!state.exists(), "nothing is left to go on with");
    let written = lab.home.path().join("new/config");
    assert_eq!(mode(&written), 0o600);
    for node in lab.cluster.nodes() {
        assert_ne!(
            authorities(node, "machine").0.der(),
            lab.cluster.talos_authority().der()
        );
        let (kubernetes, ..) = authorities(node, "cluster");
        assert_ne!(kubernetes.der(), lab.cluster.kubernetes_authority().der());
    }
    // The new talosconfig leads to every node, the old one to none.
    let all = lab.run(&["--talosconfig", "new/config", "version", "-o", "json"]);
    assert_eq!(all.code, Some(0), "{all:?}");
    assert_eq!(all.json()["nodes"].as_array().unwrap().len(), 6);
    assert_eq!(lab.run(&["version"]).code, Some(6));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_not_named_would_be_cut_off_and_blocks_the_rotation() {
    let lab = Lab::start(three_and_three()).await;
    let some = lab.nodes[..5].join(",");
    let ran = rotate_ca(
        &lab,
        &[
            "--control-plane-nodes",
            &some,
            "--dry-run=false",
            "--yes",
            "--format",
            "json",
        ],
    );
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let blocked = ran.json()["plans"][0]["blocked"].to_string();
    let left_out = lab.cluster.nodes()[5].name();
    assert!(
        blocked.contains(left_out) && blocked.contains("cut off"),
        "{blocked}"
    );
    assert_eq!(lab.changes(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_rotated_is_refused_before_anything_is_written() {
    let lab = Lab::start(talos_sim::Options::default()).await;
    let ran = rotate_ca(&lab, &["--talos=false", "--kubernetes=false"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let ran = rotate_ca(&lab, &["--dry-run=false"]);
    assert_eq!(ran.code, Some(5), "without --yes nobody answers: {ran:?}");
    let other = Cluster::start(talos_sim::Options::default()).await.unwrap();
    lab.home.file("theirs", &other.talosconfig(&["os:admin"]));
    let ran = rotate_ca(&lab, &["-o", "theirs", "--dry-run=false", "--yes"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stderr.contains("another cluster"), "{ran:?}");
    lab.home.file(
        "broken.json",
        "{\"version\": 1, \"rotations\": [{\"key\": \"s3cret\"}]}",
    );
    let ran = rotate_ca(&lab, &["--state", "broken.json"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr.contains("broken.json") && !ran.stderr.contains("s3cret"),
        "{ran:?}"
    );
    assert_eq!(lab.changes(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_file_of_its_own_is_refused_and_a_stranger_is_told_why() {
    let lab = Lab::start(talos_sim::Options::default()).await;
    for args in [
        ["-o", "-"],
        ["-o", "/dev/null"],
        ["--state", "/dev/null"],
        ["--state", "talosconfig"],
    ] {
        let ran = rotate_ca(&lab, &args);
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(
            ran.stderr.contains(args[0].trim_start_matches("-o")),
            "{ran:?}"
        );
    }
    let other = Cluster::start(talos_sim::Options::default()).await.unwrap();
    let config = TalosConfig::parse("theirs", &other.talosconfig(&["os:admin"])).unwrap();
    let name = config.current().unwrap().to_owned();
    let mut own = TalosConfig::parse("own", &lab.cluster.talosconfig(&["os:admin"])).unwrap();
    let mut context = own.contexts()[&name].clone();
    let theirs = &config.contexts()[&name];
    (context.crt, context.key) = (theirs.crt.clone(), theirs.key.clone());
    own.put_context(&name, &context).unwrap();
    lab.home.file(".talos/config", own.text());
    let ran = rotate_ca(&lab, &["-n", &lab.nodes[0]]);
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert!(ran.stderr.contains("failed to list the members"), "{ran:?}");
}
