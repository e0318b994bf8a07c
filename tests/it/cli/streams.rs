//! Streams: logs, events and watches, and how they end.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;
use talos_sim::Options;

use super::program::{Lab, Ran};

/// How long a program may take to print what a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the program until it has printed so many lines, then interrupts it.
fn until(lab: &Lab, args: &[&str], count: usize) -> (Vec<String>, Ran) {
    tokio::task::block_in_place(|| {
        let mut child = lab
            .home
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let id = child.id().to_string();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let (sender, receiver) = mpsc::channel();
        let reading = std::thread::spawn(move || {
            for line in reader.by_ref().lines().take(count) {
                let _ = sender.send(line.unwrap());
            }
            // Kept open, so that the interrupt ends the program and not a closed pipe.
            reader
        });
        let lines: Vec<String> = (0..count)
            .map_while(|_| receiver.recv_timeout(PATIENCE).ok())
            .collect();
        let interrupted = Command::new("kill").args(["-INT", &id]).status().unwrap();
        assert!(interrupted.success());
        let ran = Ran::from(child.wait_with_output().unwrap());
        drop(reading.join().unwrap());
        assert_eq!(lines.len(), count, "{args:?}: {lines:?} {ran:?}");
        (lines, ran)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_name_their_node() {
    let lab = Lab::start(Options::default()).await;
    let ran = lab.run(&["logs", "kubelet", "--tail", "2"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for node in &lab.nodes {
        let own = ran
            .stdout
            .lines()
            .filter(|line| line.starts_with(&format!("{node}: ")));
        assert_eq!(own.count(), 2, "{ran:?}");
    }
    let document = lab.json(&["logs", "kubelet", "--tail=1"]);
    assert_eq!(
        document["nodes"][0]["data"]["lines"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let unknown = lab.run(&["logs", "nope"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn followed_logs_are_objects_until_interrupted() {
    let lab = Lab::start(Options::default()).await;
    let args = ["logs", "kubelet", "-f", "--tail=1", "-o", "ndjson"];
    let (lines, ran) = until(&lab, &args, 2);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    for line in &lines {
        let object: Value = serde_json::from_str(line).unwrap();
        assert!(
            object["line"].is_string() && object["node"].is_string(),
            "{line}"
        );
    }
    assert_eq!(ran.error()["code"], "interrupted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_shows_what_there_is_and_goes_on() {
    let lab = Lab::start(Options::default()).await;
    let (lines, ran) = until(&lab, &["get", "nodename", "--watch", "-o", "ndjson"], 2);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    for line in &lines {
        let object: Value = serde_json::from_str(line).unwrap();
        assert_eq!(object["event"], "created");
    }
    let (lines, _) = until(
        &lab,
        &["get", "nodename", "nodename", "-w", "-n", &lab.nodes[0]],
        2,
    );
    assert!(lines[0].contains("*   NAMESPACE"), "{lines:?}");
    assert!(lines[1].contains("+   k8s"), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_objects_with_time_and_words() {
    let lab = Lab::start(Options::default()).await;
    lab.run(&["service", "kubelet", "restart", "-n", &lab.nodes[0]]);
    let args = ["events", "--tail=-1", "-o", "ndjson", "-n", &lab.nodes[0]];
    let (lines, ran) = until(&lab, &args, 1);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let event: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(event["node"], lab.nodes[0]);
    assert!(event["time"].as_str().unwrap().starts_with("20"), "{event}");
    let ran = lab.run(&["events", "--tail", "1", "--since", "x"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_away_ends_a_stream_quietly() {
    let lab = Lab::start(Options::default()).await;
    let output = tokio::task::block_in_place(|| {
        let mut child = lab
            .home
            .command(&["logs", "kubelet"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        child.wait_with_output().unwrap()
    });
    let ran = Ran::from(output);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}
